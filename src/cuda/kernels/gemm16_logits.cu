/* Logits of 16-bit products, reduced where they are: tiles of 128 by 256. */
#include "cuda/kernels/gemm16_logits.cuh"
#include "cuda/kernels/wgmma.cuh"

#define IV_GEMM_N 256
#define IV_GEMM_GROUPS 2
#define IV_GEMM_STAGES 4
#define IV_GEMM_CLUSTER 2
#define IV_GEMM_LOGITS

#define IV_GEMM_NAME iv_gemm16_logits_bf16_along_along
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 0
#include "cuda/kernels/gemm16_hopper.cuh"

#define IV_GEMM_NAME iv_gemm16_logits_bf16_along_across
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 1
#include "cuda/kernels/gemm16_hopper.cuh"

#define IV_GEMM_NAME iv_gemm16_logits_f16_along_along
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 0
#include "cuda/kernels/gemm16_hopper.cuh"

#define IV_GEMM_NAME iv_gemm16_logits_f16_along_across
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 1
#include "cuda/kernels/gemm16_hopper.cuh"
