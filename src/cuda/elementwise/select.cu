/* Where and Clip. */
#include "cuda/elementwise/convert.cuh"
#include "ops/clip_values.h"

/* Operand 0 from operand 2 where operand 1 is true, else from operand 3. */
#define WHERE(bits, type)                                                                                              \
    SB_CUDA_KERNEL(sb_cuda_where_##bits, sb_cuda_box, box) {                                                           \
        SB_CUDA_EACH_GROUP(number, box) {                                                                              \
            sb_cuda_group group;                                                                                       \
            uint8_t condition[SB_CUDA_GROUP] = {0};                                                                    \
            type x[SB_CUDA_GROUP] = {0}, y[SB_CUDA_GROUP] = {0};                                                       \
            sb_cuda_group_find(box, number, 4, &group);                                                                \
            SB_CUDA_GROUP_LOAD(uint8_t, box, &group, 1, condition);                                                    \
            SB_CUDA_GROUP_LOAD(type, box, &group, 2, x);                                                               \
            SB_CUDA_GROUP_LOAD(type, box, &group, 3, y);                                                               \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < SB_CUDA_GROUP; j++)                                                                    \
                x[j] = condition[j] != 0 ? x[j] : y[j];                                                                \
            SB_CUDA_GROUP_STORE(type, box, &group, 0, x);                                                              \
        }                                                                                                              \
    }
WHERE(8, uint8_t)
WHERE(16, uint16_t)
WHERE(32, uint32_t)
WHERE(64, uint64_t)

#define CLIP(suffix, type, real, load)                                                                                 \
    SB_CUDA_KERNEL(sb_cuda_clip_##suffix, sb_cuda_clip, p) {                                                           \
        real least, most;                                                                                              \
        memcpy(&least, p->otherwise_least, sizeof least);                                                              \
        memcpy(&most, p->otherwise_most, sizeof most);                                                                 \
        if (p->least != NULL)                                                                                          \
            least = load(SB_CUDA_CONST_ELEMENT(type, p->least, 0));                                                    \
        if (p->most != NULL)                                                                                           \
            most = load(SB_CUDA_CONST_ELEMENT(type, p->most, 0));                                                      \
        SB_CUDA_EACH_GROUP(number, &p->box) {                                                                          \
            sb_cuda_group group;                                                                                       \
            type x[SB_CUDA_GROUP] = {0};                                                                               \
            sb_cuda_group_find(&p->box, number, 2, &group);                                                            \
            SB_CUDA_GROUP_LOAD(type, &p->box, &group, 1, x);                                                           \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < SB_CUDA_GROUP; j++)                                                                    \
                x[j] = sb_clip_value_##suffix(x[j], least, most);                                                      \
            SB_CUDA_GROUP_STORE(type, &p->box, &group, 0, x);                                                          \
        }                                                                                                              \
    }
#define CLIP_FLOAT(dtype, suffix, type, real, real_suffix, load, store, unused) CLIP(suffix, type, real, load)
#define CLIP_INTEGER(dtype, suffix, type, wide, unused) CLIP(suffix, type, type, SB_SAME)
SB_FLOAT_TYPES(CLIP_FLOAT, )
SB_SIGNED_TYPES(CLIP_INTEGER, )
SB_UNSIGNED_TYPES(CLIP_INTEGER, )
