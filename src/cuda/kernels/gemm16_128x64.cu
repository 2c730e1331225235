/* 16-bit products by TMA and wgmma, in tiles of 128 by 64. */
#define IV_GEMM_N 64
#define IV_GEMM_GROUPS 2
#define IV_GEMM_BOXES 1
#define IV_GEMM_STAGES 8
#define IV_GEMM_CLUSTER 1
#define IV_GEMM_KERNEL(layout) iv_gemm16_128x64_##layout
#include "cuda/kernels/gemm16_hopper_layouts.cuh"
