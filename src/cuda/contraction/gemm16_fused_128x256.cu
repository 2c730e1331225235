/* 16-bit products by TMA and wgmma with the nodes behind them, in tiles of 128 by 256.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 256
#define SB_GEMM_GROUPS 2
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 4
#define SB_GEMM_CLUSTER 2
#define SB_GEMM_KERNEL(layout) sb_gemm16_fused_128x256_##layout
#define SB_GEMM_FUSED
#define SB_GEMM_A_K_MAJOR
#include "cuda/contraction/gemm16_hopper_layouts.cuh"
