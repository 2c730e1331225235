/* Taking numbers of elements apart, and reading indices. */
#ifndef SB_CUDA_COMMON_INDEX_CUH
#define SB_CUDA_COMMON_INDEX_CUH

#include "cuda/common/kernel.cuh"
#include "cuda/common/parameters.h"

/* Divides *index, which is not negative, by the extent and returns the rest: the innermost
 * coordinate of a row-major number. Devices have no instruction for 64-bit division. */
SB_CUDA_FUNCTION int64_t sb_cuda_take(int64_t *index, int64_t extent) {
    int64_t whole = *index;
    if (((uint64_t)whole | (uint64_t)extent) <= UINT32_MAX)
        *index = (uint32_t)whole / (uint32_t)extent;
    else
        *index = whole / extent;
    return whole - *index * extent;
}

/* Element `index` of a packed list of s32, or of s64 where it is `wide`. */
SB_CUDA_FUNCTION int64_t sb_cuda_index(const void *list, int wide, int64_t index) {
    return wide ? ((const int64_t *)list)[index] : ((const int32_t *)list)[index];
}

/* An index counted from the end when negative; -1, with a fault, outside the extent. */
SB_CUDA_FUNCTION int64_t sb_cuda_check_index(int64_t index, int64_t extent, uint32_t *fault) {
    if (index < -extent || index >= extent) {
        *fault = SB_FAULT_INDEX;
        return -1;
    }
    return index < 0 ? index + extent : index;
}

/* 16 bytes, moved at once. */
typedef struct sb_cuda_16_bytes {
    uint64_t low, high;
} __attribute__((aligned(16))) sb_cuda_16_bytes;

/* X(size, type): for what only moves, every size of an element. */
#define SB_CUDA_SIZES(X)                                                                                               \
    X(8, uint8_t)                                                                                                      \
    X(16, uint16_t)                                                                                                    \
    X(32, uint32_t)                                                                                                    \
    X(64, uint64_t)

#endif
