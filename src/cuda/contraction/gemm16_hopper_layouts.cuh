/* A shape's kernels of 16-bit products for both dtypes and every layout of A and B: included by a source that defines the shape
 * (gemm16_hopper.cuh) and SB_GEMM_KERNEL(layout), the name of a kernel. With SB_GEMM_A_ALONG only those whose A lies
 * along k, with SB_GEMM_B_ALONG only those whose B does. */
#include "cuda/contraction/gemm16_hopper_epilogue.cuh"
#include "cuda/contraction/wgmma.cuh"

#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_along_along)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_ACROSS 0
#define SB_GEMM_B_ACROSS 0
#include "cuda/contraction/gemm16_hopper.cuh"

#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_along_along)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_ACROSS 0
#define SB_GEMM_B_ACROSS 0
#include "cuda/contraction/gemm16_hopper.cuh"

#if !defined(SB_GEMM_A_ALONG)
#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_across_along)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_ACROSS 1
#define SB_GEMM_B_ACROSS 0
#include "cuda/contraction/gemm16_hopper.cuh"

#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_across_along)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_ACROSS 1
#define SB_GEMM_B_ACROSS 0
#include "cuda/contraction/gemm16_hopper.cuh"
#endif

#if !defined(SB_GEMM_B_ALONG)
#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_along_across)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_ACROSS 0
#define SB_GEMM_B_ACROSS 1
#include "cuda/contraction/gemm16_hopper.cuh"

#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_along_across)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_ACROSS 0
#define SB_GEMM_B_ACROSS 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif

#if !defined(SB_GEMM_A_ALONG) && !defined(SB_GEMM_B_ALONG)
#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_across_across)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_ACROSS 1
#define SB_GEMM_B_ACROSS 1
#include "cuda/contraction/gemm16_hopper.cuh"

#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_across_across)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_ACROSS 1
#define SB_GEMM_B_ACROSS 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif
