/* Divisors that kernels divide by with a product. */
#ifndef SB_CUDA_COMMON_DIVISOR_H
#define SB_CUDA_COMMON_DIVISOR_H

#include <stdint.h>

/* With s the number of bits of divisor - 1 and magic = 2^32 (2^s - divisor) / divisor + 1, rounded
 * down, floor(n / divisor) = (floor(n magic / 2^32) + n) / 2^s, where the sum stays below 2^32 for
 * n < 2^31 (Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994). */
typedef struct sb_cuda_divisor {
    uint32_t divisor, magic, shift;
} sb_cuda_divisor;

/** For 1 <= divisor < 2^31. */
static inline sb_cuda_divisor sb_cuda_divisor_of(uint32_t divisor) {
    uint32_t shift = 0;
    while ((uint64_t)1 << shift < divisor)
        shift++;
    uint64_t rest = ((uint64_t)1 << shift) - divisor;
    sb_cuda_divisor result = {divisor, (uint32_t)((rest << 32) / divisor) + 1, shift};
    return result;
}

#endif
