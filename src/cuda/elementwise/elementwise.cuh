/* Kernels of element-wise operators: one for each operator and type, around the values that the
 * CPU's loops compute too. Operators that take many instructions have kernels in the LONG form. */
#ifndef SB_CUDA_ELEMENTWISE_ELEMENTWISE_CUH
#define SB_CUDA_ELEMENTWISE_ELEMENTWISE_CUH

#include "cuda/common/box.cuh"

#define SB_CUDA_ELEMENTWISE(name, operands, load, compute, out_type)                                                   \
    SB_CUDA_KERNEL(name, sb_cuda_elementwise, p) {                                                                     \
        SB_CUDA_EACH_GROUP(number, &p->box) {                                                                          \
            sb_cuda_group group;                                                                                       \
            out_type result[SB_CUDA_GROUP] = {0};                                                                      \
            sb_cuda_group_find(&p->box, number, operands, &group);                                                     \
            load;                                                                                                      \
            compute;                                                                                                   \
            SB_CUDA_GROUP_STORE(out_type, &p->box, &group, 0, result);                                                 \
        }                                                                                                              \
    }
#define SB_CUDA_LOAD_X(type)                                                                                           \
    type x[SB_CUDA_GROUP];                                                                                             \
    SB_CUDA_GROUP_LOAD(type, &p->box, &group, 1, x)
#define SB_CUDA_LOAD_XY(type)                                                                                          \
    SB_CUDA_LOAD_X(type);                                                                                              \
    type y[SB_CUDA_GROUP];                                                                                             \
    SB_CUDA_GROUP_LOAD(type, &p->box, &group, 2, y)

/* sb_cuda_unary_<op>_<suffix> */
#define SB_CUDA_UNARY(op, suffix, out_type, type)                                                                      \
    SB_CUDA_ELEMENTWISE(sb_cuda_unary_##op##_##suffix, 2, SB_CUDA_LOAD_X(type),                                        \
                        SB_CUDA_UNROLL for (int j = 0; j < SB_CUDA_GROUP; j++) result[j] =                             \
                            sb_unary_value_##op##_##suffix(x[j], p->a, p->b),                                          \
                        out_type)
#define SB_CUDA_UNARY_LONG(op, suffix, out_type, type)                                                                 \
    SB_CUDA_ELEMENTWISE(                                                                                               \
        sb_cuda_unary_##op##_##suffix, 2, SB_CUDA_LOAD_X(type),                                                        \
        SB_CUDA_KEEP_LOOP for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                           \
            out_type value = sb_unary_value_##op##_##suffix(x[0], p->a, p->b);                                         \
            SB_CUDA_GROUP_TURN(type, x, x[0]);                                                                         \
            SB_CUDA_GROUP_TURN(out_type, result, value);                                                               \
        },                                                                                                             \
        out_type)

/* sb_cuda_binary_<op>_<suffix> */
#define SB_CUDA_BINARY(op, suffix, out_type, type)                                                                     \
    SB_CUDA_ELEMENTWISE(sb_cuda_binary_##op##_##suffix, 3, SB_CUDA_LOAD_XY(type),                                      \
                        SB_CUDA_UNROLL for (int j = 0; j < SB_CUDA_GROUP; j++) result[j] =                             \
                            sb_binary_value_##op##_##suffix(x[j], y[j]),                                               \
                        out_type)
#define SB_CUDA_BINARY_LONG(op, suffix, out_type, type)                                                                \
    SB_CUDA_ELEMENTWISE(                                                                                               \
        sb_cuda_binary_##op##_##suffix, 3, SB_CUDA_LOAD_XY(type),                                                      \
        SB_CUDA_KEEP_LOOP for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                           \
            out_type value = sb_binary_value_##op##_##suffix(x[0], y[0]);                                              \
            SB_CUDA_GROUP_TURN(type, x, x[0]);                                                                         \
            SB_CUDA_GROUP_TURN(type, y, y[0]);                                                                         \
            SB_CUDA_GROUP_TURN(out_type, result, value);                                                               \
        },                                                                                                             \
        out_type)

#endif
