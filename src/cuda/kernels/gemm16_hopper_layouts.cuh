/* A shape's kernels of 16-bit products for both dtypes and every layout of A and B: included by a source that defines the shape
 * (gemm16_hopper.cuh) and IV_GEMM_KERNEL(layout), the name of a kernel. With IV_GEMM_A_ALONG only those whose A lies
 * along k, with IV_GEMM_B_ALONG only those whose B does. */
#include "cuda/kernels/gemm16_finish.cuh"
#include "cuda/kernels/wgmma.cuh"

#define IV_GEMM_NAME IV_GEMM_KERNEL(bf16_along_along)
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 0
#include "cuda/kernels/gemm16_hopper.cuh"

#define IV_GEMM_NAME IV_GEMM_KERNEL(f16_along_along)
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 0
#include "cuda/kernels/gemm16_hopper.cuh"

#if !defined(IV_GEMM_A_ALONG)
#define IV_GEMM_NAME IV_GEMM_KERNEL(bf16_across_along)
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_A_ACROSS 1
#define IV_GEMM_B_ACROSS 0
#include "cuda/kernels/gemm16_hopper.cuh"

#define IV_GEMM_NAME IV_GEMM_KERNEL(f16_across_along)
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_A_ACROSS 1
#define IV_GEMM_B_ACROSS 0
#include "cuda/kernels/gemm16_hopper.cuh"
#endif

#if !defined(IV_GEMM_B_ALONG)
#define IV_GEMM_NAME IV_GEMM_KERNEL(bf16_along_across)
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 1
#include "cuda/kernels/gemm16_hopper.cuh"

#define IV_GEMM_NAME IV_GEMM_KERNEL(f16_along_across)
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_A_ACROSS 0
#define IV_GEMM_B_ACROSS 1
#include "cuda/kernels/gemm16_hopper.cuh"
#endif

#if !defined(IV_GEMM_A_ALONG) && !defined(IV_GEMM_B_ALONG)
#define IV_GEMM_NAME IV_GEMM_KERNEL(bf16_across_across)
#define IV_GEMM_TYPE "bf16"
#define IV_GEMM_SUFFIX bf16
#define IV_GEMM_A_ACROSS 1
#define IV_GEMM_B_ACROSS 1
#include "cuda/kernels/gemm16_hopper.cuh"

#define IV_GEMM_NAME IV_GEMM_KERNEL(f16_across_across)
#define IV_GEMM_TYPE "f16"
#define IV_GEMM_SUFFIX f16
#define IV_GEMM_A_ACROSS 1
#define IV_GEMM_B_ACROSS 1
#include "cuda/kernels/gemm16_hopper.cuh"
#endif
