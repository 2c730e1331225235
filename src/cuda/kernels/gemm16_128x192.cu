/* 16-bit products by TMA and wgmma, in tiles of 128 by 192. */
#define IV_GEMM_N 192
#define IV_GEMM_GROUPS 2
#define IV_GEMM_BOXES 1
#define IV_GEMM_STAGES 4
#define IV_GEMM_CLUSTER 1
#define IV_GEMM_KERNEL(layout) iv_gemm16_128x192_##layout
#include "cuda/kernels/gemm16_hopper_layouts.cuh"
