/* 16-bit products by TMA and wgmma, in tiles of 64 by 112, of which four that lie below each other share their columns of B: for K-major
 * factors alone. Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 112
#define SB_GEMM_GROUPS 1
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 32
#define SB_GEMM_CLUSTER 4
#define SB_GEMM_KERNEL(layout) sb_gemm16_quad_64x112_##layout
#define SB_GEMM_A_K_MAJOR
#define SB_GEMM_B_K_MAJOR
#include "cuda/contraction/gemm16_hopper_layouts.cuh"
