/* The fake's tensor maps: what the driver refuses is refused, and what it writes is for the kernels on the host to read,
 * host_copies.c. */
#include <string.h>

#include "fake_internal.h"
#include "fake_tensor_map.h"

/* As the driver's documentation of cuTensorMapEncodeTiled has it, for tensors of 16-bit
 * elements without interleaving. */
static bool is_allowed(const CUtensorMap *map, cuuint32_t rank, const void *address, const cuuint64_t *dims,
                       const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *element_strides,
                       CUtensorMapSwizzle swizzle) {
    if ((uintptr_t)map % 64 != 0 || (uintptr_t)address % 16 != 0 || rank < 1 || rank > 5)
        return false;
    for (cuuint32_t d = 0; d < rank; d++) {
        if (dims[d] < 1 || dims[d] > (cuuint64_t)1 << 32 || box[d] < 1 || box[d] > 256 || element_strides[d] != 1)
            return false;
        if (d + 1 < rank && (strides[d] % 16 != 0 || strides[d] >= (cuuint64_t)1 << 40))
            return false;
    }
    return swizzle == CU_TENSOR_MAP_SWIZZLE_128B && box[0] * 2 <= 128;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
    START("%d, %u, %p, %d, %d", type, rank, address, promotion, fill);
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        !is_allowed(map, rank, address, dims, strides, box, element_strides, swizzle))
        return finish(CUDA_ERROR_INVALID_VALUE);
    fake_tensor_map made = {
        .mark = FAKE_TENSOR_MAP_MARK, .rank = rank, .address = (uintptr_t)address, .swizzle = (uint8_t)swizzle};
    _Static_assert(sizeof made <= sizeof *map, "it is written into the driver's map");
    for (cuuint32_t d = 0; d < rank; d++) {
        made.extents[d] = dims[d];
        made.box[d] = (uint16_t)box[d];
        if (d > 0)
            made.strides[d - 1] = strides[d - 1];
    }
    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return finish(CUDA_SUCCESS);
}

/* As its documentation has it, for four dimensions: channels, width, height and samples. */
static bool allows_pixels(const CUtensorMap *map, cuuint32_t rank, const void *address, const cuuint64_t *dims,
                          const cuuint64_t *strides, const int *lower, const int *upper, cuuint32_t channels,
                          cuuint32_t pixels, const cuuint32_t *element_strides) {
    static const cuuint32_t any[5] = {1, 1, 1, 1, 1}, ones[5] = {1, 1, 1, 1, 1};
    if (rank != 4 || channels < 1 || channels > 64 || pixels < 1 || pixels > 256 ||
        !is_allowed(map, rank, address, dims, strides, any, ones, CU_TENSOR_MAP_SWIZZLE_128B))
        return false;
    for (int d = 0; d < 2; d++) {
        if (lower[d] < -128 || lower[d] > 127 || upper[d] < -128 || upper[d] > 127 || element_strides[d + 1] < 1 ||
            element_strides[d + 1] > 8 || (int64_t)dims[d + 1] - 1 + upper[d] < lower[d])
            return false;
    }
    return element_strides[3] == 1;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                 const cuuint64_t *dims, const cuuint64_t *strides, const int *lower_corner,
                                 const int *upper_corner, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill) {
    START("%d, %u, %p, %d, %d", type, rank, address, promotion, fill);
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle != CU_TENSOR_MAP_SWIZZLE_128B ||
        !allows_pixels(map, rank, address, dims, strides, lower_corner, upper_corner, channels, pixels,
                       element_strides))
        return finish(CUDA_ERROR_INVALID_VALUE);
    fake_tensor_map made = {.mark = FAKE_TENSOR_MAP_MARK,
                            .rank = rank,
                            .address = (uintptr_t)address,
                            .box = {(uint16_t)channels},
                            .swizzle = (uint8_t)swizzle,
                            .is_pixels = 1,
                            .pixels = (uint16_t)pixels};
    for (cuuint32_t d = 0; d < rank; d++) {
        made.extents[d] = dims[d];
        if (d > 0)
            made.strides[d - 1] = strides[d - 1];
    }
    for (int d = 0; d < 2; d++) {
        made.element_strides[d] = (uint8_t)element_strides[d + 1];
        made.lower[d] = (int8_t)lower_corner[d];
        made.upper[d] = (int8_t)upper_corner[d];
    }
    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return finish(CUDA_SUCCESS);
}
