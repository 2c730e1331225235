#include "cuda/contraction/tensor_map.h"

sb_status sb_tensor_map_encode(sb_cuda_device *device, sb_dtype dtype, const sb_tensor_boxes *boxes, sb_tensor_map *map,
                               sb_error *error) {
    cuuint64_t extents[5], steps[4];
    cuuint32_t box[5], ones[] = {1, 1, 1, 1, 1};
    for (unsigned i = 0; i < boxes->rank; i++) {
        extents[i] = (cuuint64_t)boxes->extents[i];
        box[i] = (cuuint32_t)boxes->box[i];
        /* Where there is no next one, any step will do. */
        if (i > 0)
            steps[i - 1] = (cuuint64_t)(boxes->extents[i] > 1 ? boxes->steps[i] : 8) * 2;
    }
    _Static_assert(sizeof(CUtensorMap) == sizeof *map && _Alignof(CUtensorMap) == _Alignof(sb_tensor_map),
                   "the driver's map");
    return SB_CUDA_DO(device, error, cuTensorMapEncodeTiled, (CUtensorMap *)(void *)map,
                      dtype == SB_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, boxes->rank,
                      (void *)(uintptr_t)boxes->data, extents, steps, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
