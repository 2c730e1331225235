/* SwiGLU. The formula is long, so it is there once and takes a group's elements one by one. */
#include "cuda/common/box.cuh"
#include "cuda/elementwise/gated_parameters.h"
#include "ops/gated_values.h"

#define GATED(dtype, suffix, type, real, real_suffix, load, store, unused)                                             \
    SB_CUDA_KERNEL(sb_cuda_gated_##suffix, sb_cuda_gated, p) {                                                         \
        SB_CUDA_EACH_GROUP(number, &p->box) {                                                                          \
            sb_cuda_group group;                                                                                       \
            type gate[SB_CUDA_GROUP] = {0}, value[SB_CUDA_GROUP] = {0};                                                \
            sb_cuda_group_find(&p->box, number, 3, &group);                                                            \
            SB_CUDA_GROUP_LOAD(type, &p->box, &group, 1, gate);                                                        \
            SB_CUDA_GROUP_LOAD(type, &p->box, &group, 2, value);                                                       \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                                         \
                type result = sb_gated_value_##suffix(gate[0], value[0], p->alpha);                                    \
                SB_CUDA_GROUP_TURN(type, gate, result);                                                                \
                SB_CUDA_GROUP_TURN(type, value, value[0]);                                                             \
            }                                                                                                          \
            SB_CUDA_GROUP_STORE(type, &p->box, &group, 0, gate);                                                       \
        }                                                                                                              \
    }
SB_FLOAT_TYPES(GATED, )
