/* Copies of elements between any strides: operand 0 from operand 1. One kernel for each size of an
 * element; what the bits mean does not matter. */
#include "cuda/common/box.cuh"
#include "cuda/moving/moving_parameters.h"

#define COPY(bits, type)                                                                                               \
    SB_CUDA_KERNEL(sb_cuda_copy_##bits, sb_cuda_box, box) {                                                            \
        SB_CUDA_EACH_GROUP(number, box) {                                                                              \
            sb_cuda_group group;                                                                                       \
            type values[SB_CUDA_GROUP] = {0};                                                                          \
            sb_cuda_group_find(box, number, 2, &group);                                                                \
            SB_CUDA_GROUP_LOAD(type, box, &group, 1, values);                                                          \
            SB_CUDA_GROUP_STORE(type, box, &group, 0, values);                                                         \
        }                                                                                                              \
    }
COPY(8, uint8_t)
COPY(16, uint16_t)
COPY(32, uint32_t)
COPY(64, uint64_t)

#define PLACED_COPY(bits, type)                                                                                        \
    SB_CUDA_KERNEL(sb_cuda_placed_copy_##bits, sb_cuda_placed_copy, p) {                                               \
        const sb_cuda_box *box = &p->box;                                                                              \
        int64_t rows = 0;                                                                                              \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int i = 0; i < p->count; i++)                                                                             \
            rows += sb_cuda_used(p->used[i], p->extents[i]);                                                           \
        SB_CUDA_EACH_GROUP(number, box) {                                                                              \
            sb_cuda_group group;                                                                                       \
            type values[SB_CUDA_GROUP] = {0};                                                                          \
            sb_cuda_group_find(box, number, 2, &group);                                                                \
            SB_CUDA_GROUP_LOAD(type, box, &group, 1, values);                                                          \
            SB_CUDA_GROUP_STORE_AT(type, box, &group, 0, rows * p->step, values);                                      \
        }                                                                                                              \
    }
PLACED_COPY(8, uint8_t)
PLACED_COPY(16, uint16_t)
PLACED_COPY(32, uint32_t)
PLACED_COPY(64, uint64_t)
