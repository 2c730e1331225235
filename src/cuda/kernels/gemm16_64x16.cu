/* 16-bit products by TMA and wgmma, in tiles of 64 by 16: for products of few rows. */
#define IV_GEMM_N 16
#define IV_GEMM_GROUPS 1
#define IV_GEMM_BOXES 4
#define IV_GEMM_STAGES 32
#define IV_GEMM_CLUSTER 1
#define IV_GEMM_KERNEL(layout) iv_gemm16_64x16_##layout
#define IV_GEMM_B_ALONG
#include "cuda/kernels/gemm16_hopper_layouts.cuh"
