/* 16-bit products with a row map by TMA and wgmma, in tiles of 128 by 128: for gradients of weights.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/contraction/gemm16_mapped.cuh"
#include "cuda/contraction/wgmma.cuh"

#define SB_GEMM_N 128
#define SB_GEMM_GROUPS 2
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 6
#define SB_GEMM_CLUSTER 1
#define SB_GEMM_MAPPED

#if !defined(SB_MODULE_f16)
#define SB_GEMM_NAME sb_gemm16_mapped_128x128_bf16_mn_mn
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_MN_MAJOR 1
#define SB_GEMM_B_MN_MAJOR 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif

#if !defined(SB_MODULE_bf16)
#define SB_GEMM_NAME sb_gemm16_mapped_128x128_f16_mn_mn
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_MN_MAJOR 1
#define SB_GEMM_B_MN_MAJOR 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif
