/* 16-bit products of one row by TMA and wgmma with the nodes behind them, in tiles of 64 by 8.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 8
#define SB_GEMM_GROUPS 1
#define SB_GEMM_BOXES 4
#define SB_GEMM_STAGES 32
#define SB_GEMM_CLUSTER 1
#define SB_GEMM_KERNEL(layout) sb_gemm16_fused_row_64x8_##layout
#define SB_GEMM_ROW
#define SB_GEMM_FUSED
#define SB_GEMM_B_K_MAJOR
#include "cuda/contraction/gemm16_hopper_layouts.cuh"
