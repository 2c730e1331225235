/* Several elements in one access: bits of 8 and 16 bytes, and dividing by a number that is known beforehand. */
#ifndef SB_CUDA_COMMON_WORDS_CUH
#define SB_CUDA_COMMON_WORDS_CUH

#include <string.h>

#include "cuda/common/divisor.h"
#include "cuda/common/kernel.cuh"

#if defined(__CUDACC__)
typedef uint2 sb_cuda_words2;
typedef uint4 sb_cuda_words4;
#else
typedef struct sb_cuda_words2 {
    uint32_t x __attribute__((aligned(8)));
    uint32_t y;
} sb_cuda_words2;
typedef struct sb_cuda_words4 {
    uint32_t x __attribute__((aligned(16)));
    uint32_t y, z, w;
} sb_cuda_words4;
#endif

/* Four neighbours of `size` bytes each (1, 2, 4 or 8) from or to memory that is aligned to all four
 * (to 16 bytes where they are 32). */
SB_CUDA_FUNCTION void sb_cuda_load_four(const char *at, int size, void *values) {
    if (size == 1) {
        uint32_t word = *(const uint32_t *)(const void *)at;
        memcpy(values, &word, 4);
    } else if (size == 2) {
        sb_cuda_words2 words = *(const sb_cuda_words2 *)(const void *)at;
        memcpy(values, &words, 8);
    } else {
        sb_cuda_words4 words = *(const sb_cuda_words4 *)(const void *)at;
        memcpy(values, &words, 16);
        if (size == 8) {
            words = *(const sb_cuda_words4 *)(const void *)(at + 16);
            memcpy((char *)values + 16, &words, 16);
        }
    }
}

SB_CUDA_FUNCTION void sb_cuda_store_four(char *at, int size, const void *values) {
    if (size == 1) {
        uint32_t word;
        memcpy(&word, values, 4);
        *(uint32_t *)(void *)at = word;
    } else if (size == 2) {
        sb_cuda_words2 words;
        memcpy(&words, values, 8);
        *(sb_cuda_words2 *)(void *)at = words;
    } else {
        sb_cuda_words4 words;
        memcpy(&words, values, 16);
        *(sb_cuda_words4 *)(void *)at = words;
        if (size == 8) {
            memcpy(&words, (const char *)values + 16, 16);
            *(sb_cuda_words4 *)(void *)(at + 16) = words;
        }
    }
}

/* value / divisor for value < 2^31, by a product: see sb_cuda_divisor_of. */
SB_CUDA_FUNCTION uint32_t sb_cuda_divide(uint32_t value, const sb_cuda_divisor *divisor) {
    uint32_t high = (uint32_t)((uint64_t)value * divisor->magic >> 32);
    return (high + value) >> divisor->shift;
}

/* value / divisor for 0 <= value < 2^52, with inverse = 1 / divisor rounded to f64: the product is
 * off by less than 1. Devices have no instruction for 64-bit division, and the subroutine would take
 * registers from everything around it. */
SB_CUDA_FUNCTION int64_t sb_cuda_divide_large(int64_t value, int64_t divisor, double inverse) {
    int64_t quotient = (int64_t)((double)value * inverse);
    int64_t rest = value - quotient * divisor;
    return quotient + (rest >= divisor) - (rest < 0);
}

#endif
