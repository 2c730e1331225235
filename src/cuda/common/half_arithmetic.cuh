/* Sums, differences, products and the larger ones of pairs of 16 bits (halves.cuh), in the bits that f32 and then one rounding give.
 *
 * A device has instructions that round once: f32 has more than twice as many digits and two, so that a sum that is rounded to it
 * first is the same after the second rounding; a product is exact in f32, or where bf16's is below f32's normal numbers, as far as the
 * second rounding sees. Products with one and sums with -0 change nothing. */
#ifndef SB_CUDA_COMMON_HALF_ARITHMETIC_CUH
#define SB_CUDA_COMMON_HALF_ARITHMETIC_CUH

#include "cuda/common/halves.cuh"
#include "numerics/minmax.h"

/* a · b + c of each of a pair, rounded once. */
#if defined(__CUDA_ARCH__)
template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_fuse_pair(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t pair;
    if (HALF == SB_CUDA_F16)
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(a), "r"(b), "r"(c));
    else
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(a), "r"(b), "r"(c));
    return pair;
}
#else
/* On the host by way of f32: of the lower ones, a0 and b0, and of the higher ones. */
#define SB_CUDA_BY_F32(low, high)                                                                                      \
    float a0, a1, b0, b1;                                                                                              \
    sb_cuda_widen_pair<HALF>(a, &a0, &a1);                                                                             \
    sb_cuda_widen_pair<HALF>(b, &b0, &b1);                                                                             \
    return sb_cuda_round_pair<HALF>(low, high)
#endif

template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_add_pair(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return sb_cuda_fuse_pair<HALF>(a, HALF == SB_CUDA_F16 ? 0x3c003c00u : 0x3f803f80u, b);
#else
    SB_CUDA_BY_F32(a0 + b0, a1 + b1);
#endif
}

template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_subtract_pair(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return sb_cuda_fuse_pair<HALF>(b, HALF == SB_CUDA_F16 ? 0xbc00bc00u : 0xbf80bf80u, a);
#else
    SB_CUDA_BY_F32(a0 - b0, a1 - b1);
#endif
}

template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_multiply_pair(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return sb_cuda_fuse_pair<HALF>(a, b, 0x80008000u);
#else
    SB_CUDA_BY_F32(a0 * b0, a1 * b1);
#endif
}

/* The larger ones of two pairs: NaN wins, and +0 is above -0. */
template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_larger_pair(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    uint32_t larger;
    if (HALF == SB_CUDA_F16)
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    else
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
#else
    SB_CUDA_BY_F32(sb_max_f32(a0, b0), sb_max_f32(a1, b1));
#endif
}

#endif
