/* Copies from global to shared memory that go on while the thread computes.
 *
 * iv_cuda_copy_4 and iv_cuda_copy_16 begin one, IV_CUDA_COPIES_END ends a batch of them, and
 * IV_CUDA_COPIES_WAIT(n) waits until all but the thread's last n batches have arrived; others see
 * them behind a barrier. The host copies at once. */
#ifndef IV_CUDA_KERNELS_ASYNCHRONOUS_CUH
#define IV_CUDA_KERNELS_ASYNCHRONOUS_CUH

#include "cuda/kernels/kernel.cuh"

#if defined(__CUDACC__)
typedef float4 iv_cuda_float4;
typedef float2 iv_cuda_float2;

IV_CUDA_FUNCTION void iv_cuda_copy_4(float *to, const float *from) {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from));
}

/* +0 where not `wanted`; `from` is an address in any case. */
IV_CUDA_FUNCTION void iv_cuda_copy_4_or_zero(float *to, const float *from, bool wanted) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(wanted ? 4 : 0));
}

IV_CUDA_FUNCTION void iv_cuda_copy_16(float *to, const float *from) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from));
}

#define IV_CUDA_COPIES_END() asm volatile("cp.async.commit_group;")
#define IV_CUDA_COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#else
typedef struct iv_cuda_float4 {
    _Alignas(16) float x;
    float y, z, w;
} iv_cuda_float4;
typedef struct iv_cuda_float2 {
    _Alignas(8) float x;
    float y;
} iv_cuda_float2;

IV_CUDA_FUNCTION void iv_cuda_copy_4(float *to, const float *from) {
    *to = *from;
}

IV_CUDA_FUNCTION void iv_cuda_copy_4_or_zero(float *to, const float *from, bool wanted) {
    *to = wanted ? *from : 0.0f;
}

IV_CUDA_FUNCTION void iv_cuda_copy_16(float *to, const float *from) {
    *(iv_cuda_float4 *)(void *)to = *(const iv_cuda_float4 *)(const void *)from;
}

#define IV_CUDA_COPIES_END() (void)0
#define IV_CUDA_COPIES_WAIT(n) (void)0
#endif

#endif
