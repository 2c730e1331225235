/* 16-bit products by TMA and wgmma of rows that they normalise, in tiles of 64 by 8: for products of few rows, in place of gemm16_64x16,
 * whose weights they read by the same maps.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 8
#define SB_GEMM_GROUPS 1
#define SB_GEMM_BOXES 4
#define SB_GEMM_STAGES 32
#define SB_GEMM_CLUSTER 1
#define SB_GEMM_KERNEL(layout) sb_gemm16_normed_64x8_##layout
#define SB_GEMM_NORMED
#define SB_GEMM_A_K_MAJOR
#define SB_GEMM_B_K_MAJOR
#include "cuda/contraction/gemm16_hopper_layouts.cuh"
