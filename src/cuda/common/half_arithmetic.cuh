/* Operations on pairs of 16 bits (halves.cuh), rounded once. Of f16 a device has instructions for them: a product is exact in f32,
 * and a sum that is rounded to f32 before it is rounded to f16 is the same, since f32 has more than twice as many digits and two. */
#ifndef SB_CUDA_COMMON_HALF_ARITHMETIC_CUH
#define SB_CUDA_COMMON_HALF_ARITHMETIC_CUH

#include "cuda/common/halves.cuh"

template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_multiply_pair(uint32_t pair, uint32_t by) {
#if defined(__CUDA_ARCH__)
    if (HALF == SB_CUDA_F16) {
        uint32_t product;
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(pair), "r"(by));
        return product;
    }
#endif
    float low, high, by_low, by_high;
    sb_cuda_widen_pair<HALF>(pair, &low, &high);
    sb_cuda_widen_pair<HALF>(by, &by_low, &by_high);
    return sb_cuda_round_pair<HALF>(low * by_low, high * by_high);
}

template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_add_pair(uint32_t pair, uint32_t addend) {
#if defined(__CUDA_ARCH__)
    if (HALF == SB_CUDA_F16) {
        uint32_t sum;
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(pair), "r"(addend));
        return sum;
    }
#endif
    float low, high, more_low, more_high;
    sb_cuda_widen_pair<HALF>(pair, &low, &high);
    sb_cuda_widen_pair<HALF>(addend, &more_low, &more_high);
    return sb_cuda_round_pair<HALF>(low + more_low, high + more_high);
}

#endif
