/* Copies from global to shared memory that go on while the thread computes.
 *
 * sb_cuda_copy_4 and sb_cuda_copy_16 begin one, SB_CUDA_COPIES_END ends a batch of them, and
 * SB_CUDA_COPIES_WAIT(n) waits until all but the thread's last n batches have arrived; others see
 * them behind a barrier. On the host the bytes come when they are waited
 * for (tests/cuda/host_asynchronous.c). */
#ifndef SB_CUDA_COMMON_ASYNCHRONOUS_CUH
#define SB_CUDA_COMMON_ASYNCHRONOUS_CUH

#include "cuda/common/kernel.cuh"

#if defined(__CUDACC__)
typedef float4 sb_cuda_float4;
typedef float2 sb_cuda_float2;

SB_CUDA_FUNCTION void sb_cuda_copy_4(float *to, const float *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from));
}

/* +0 where not `wanted`; `from` is an address in any case. */
SB_CUDA_FUNCTION void sb_cuda_copy_4_or_zero(float *to, const float *from, bool wanted) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(wanted ? 4 : 0));
}

SB_CUDA_FUNCTION void sb_cuda_copy_16(float *to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from));
}

#define SB_CUDA_COPIES_END() asm volatile("cp.async.commit_group;")
#define SB_CUDA_COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#else
typedef struct sb_cuda_float4 {
    float x __attribute__((aligned(16)));
    float y, z, w;
} sb_cuda_float4;
typedef struct sb_cuda_float2 {
    float x __attribute__((aligned(8)));
    float y;
} sb_cuda_float2;

SB_CUDA_FUNCTION void sb_cuda_copy_4(float *to, const float *from) {
    host_begin_copy(to, from, 4);
}

SB_CUDA_FUNCTION void sb_cuda_copy_4_or_zero(float *to, const float *from, bool wanted) {
    host_begin_copy(to, wanted ? from : NULL, 4);
}

SB_CUDA_FUNCTION void sb_cuda_copy_16(float *to, const float *from) {
    host_begin_copy(to, from, 16);
}

#define SB_CUDA_COPIES_END() host_end_copies()
#define SB_CUDA_COPIES_WAIT(n) host_wait_copies(n)
#endif

#endif
