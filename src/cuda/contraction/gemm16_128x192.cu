/* 16-bit products by TMA and wgmma, in tiles of 128 by 192.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 192
#define SB_GEMM_GROUPS 2
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 4
#define SB_GEMM_CLUSTER 1
#define SB_GEMM_KERNEL(layout) sb_gemm16_128x192_##layout
#include "cuda/contraction/gemm16_hopper_layouts.cuh"
