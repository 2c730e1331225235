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
        .mark = FAKE_TENSOR_MAP_MARK, .rank = rank, .address = (uintptr_t)address, .swizzle = (uint16_t)swizzle};
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
