/* Several elements in one access: bits of 8 and 16 bytes, and dividing by a number that is known
 * beforehand. */
#ifndef IV_CUDA_KERNELS_WORDS_CUH
#define IV_CUDA_KERNELS_WORDS_CUH

#include "cuda/kernels/divisor.h"
#include "cuda/kernels/kernel.cuh"

#if defined(__CUDACC__)
typedef uint2 iv_cuda_words2;
typedef uint4 iv_cuda_words4;
#else
typedef struct iv_cuda_words2 {
    _Alignas(8) uint32_t x;
    uint32_t y;
} iv_cuda_words2;
typedef struct iv_cuda_words4 {
    _Alignas(16) uint32_t x;
    uint32_t y, z, w;
} iv_cuda_words4;
#endif

/* value / divisor for value < 2^31, by a product: see iv_cuda_divisor_of. */
IV_CUDA_FUNCTION uint32_t iv_cuda_divide(uint32_t value, const iv_cuda_divisor *divisor) {
    uint32_t high = (uint32_t)((uint64_t)value * divisor->magic >> 32);
    return (high + value) >> divisor->shift;
}

#endif
