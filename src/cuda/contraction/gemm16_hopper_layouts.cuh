/* A shape's kernels of 16-bit products for both dtypes and every layout of A and B: included by a source that defines
 * the shape (gemm16_hopper.cuh) and SB_GEMM_KERNEL(layout), the name of a kernel. With SB_GEMM_A_K_MAJOR only those
 * whose A is K-major, with SB_GEMM_B_K_MAJOR only those whose B is. */
#include "cuda/common/follow.cuh"
#include "cuda/contraction/gemm16_hopper_epilogue.cuh"
#if defined(SB_GEMM_FUSED)
#include "cuda/contraction/gemm16_fused.cuh"
#endif
#if defined(SB_GEMM_NORMED)
#include "cuda/contraction/gemm16_normed.cuh"
#endif
#if defined(SB_GEMM_TURNS)
#include "cuda/contraction/gemm16_turns.cuh"
#endif
#include "cuda/contraction/wgmma.cuh"

#if !defined(SB_MODULE_f16)
#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_k_k)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_MN_MAJOR 0
#define SB_GEMM_B_MN_MAJOR 0
#include "cuda/contraction/gemm16_hopper.cuh"

#if !defined(SB_GEMM_A_K_MAJOR)
#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_mn_k)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_MN_MAJOR 1
#define SB_GEMM_B_MN_MAJOR 0
#include "cuda/contraction/gemm16_hopper.cuh"
#endif

#if !defined(SB_GEMM_B_K_MAJOR)
#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_k_mn)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_MN_MAJOR 0
#define SB_GEMM_B_MN_MAJOR 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif

#if !defined(SB_GEMM_A_K_MAJOR) && !defined(SB_GEMM_B_K_MAJOR)
#define SB_GEMM_NAME SB_GEMM_KERNEL(bf16_mn_mn)
#define SB_GEMM_TYPE "bf16"
#define SB_GEMM_SUFFIX bf16
#define SB_GEMM_A_MN_MAJOR 1
#define SB_GEMM_B_MN_MAJOR 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif
#endif

#if !defined(SB_MODULE_bf16)
#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_k_k)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_MN_MAJOR 0
#define SB_GEMM_B_MN_MAJOR 0
#include "cuda/contraction/gemm16_hopper.cuh"

#if !defined(SB_GEMM_A_K_MAJOR)
#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_mn_k)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_MN_MAJOR 1
#define SB_GEMM_B_MN_MAJOR 0
#include "cuda/contraction/gemm16_hopper.cuh"
#endif

#if !defined(SB_GEMM_B_K_MAJOR)
#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_k_mn)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_MN_MAJOR 0
#define SB_GEMM_B_MN_MAJOR 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif

#if !defined(SB_GEMM_A_K_MAJOR) && !defined(SB_GEMM_B_K_MAJOR)
#define SB_GEMM_NAME SB_GEMM_KERNEL(f16_mn_mn)
#define SB_GEMM_TYPE "f16"
#define SB_GEMM_SUFFIX f16
#define SB_GEMM_A_MN_MAJOR 1
#define SB_GEMM_B_MN_MAJOR 1
#include "cuda/contraction/gemm16_hopper.cuh"
#endif
#endif
