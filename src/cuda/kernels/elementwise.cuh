/* Kernels of element-wise operators: one for each operator and type, around the values that the
 * CPU's loops compute too. Operators that take many instructions have kernels in the LONG form. */
#ifndef IV_CUDA_KERNELS_ELEMENTWISE_CUH
#define IV_CUDA_KERNELS_ELEMENTWISE_CUH

#include "cuda/kernels/box.cuh"

#define IV_CUDA_ELEMENTWISE(name, operands, load, compute, out_type)                               \
    IV_CUDA_KERNEL(name, iv_cuda_elementwise, p) {                                                 \
        IV_CUDA_EACH_GROUP(number, &p->box) {                                                      \
            iv_cuda_group group;                                                                   \
            out_type result[IV_CUDA_GROUP];                                                        \
            iv_cuda_group_find(&p->box, number, operands, &group);                                 \
            load;                                                                                  \
            compute;                                                                               \
            IV_CUDA_GROUP_STORE(out_type, &p->box, &group, 0, result);                             \
        }                                                                                          \
    }
#define IV_CUDA_LOAD_X(type)                                                                       \
    type x[IV_CUDA_GROUP];                                                                         \
    IV_CUDA_GROUP_LOAD(type, &p->box, &group, 1, x)
#define IV_CUDA_LOAD_XY(type)                                                                      \
    IV_CUDA_LOAD_X(type);                                                                          \
    type y[IV_CUDA_GROUP];                                                                         \
    IV_CUDA_GROUP_LOAD(type, &p->box, &group, 2, y)

/* iv_cuda_unary_<op>_<suffix> */
#define IV_CUDA_UNARY(op, suffix, out_type, type)                                                  \
    IV_CUDA_ELEMENTWISE(iv_cuda_unary_##op##_##suffix, 2, IV_CUDA_LOAD_X(type),                    \
                        IV_CUDA_UNROLL for (int j = 0; j < IV_CUDA_GROUP; j++) result[j] =         \
                            iv_unary_value_##op##_##suffix(x[j], p->a, p->b),                      \
                        out_type)
#define IV_CUDA_UNARY_LONG(op, suffix, out_type, type)                                             \
    IV_CUDA_ELEMENTWISE(                                                                           \
        iv_cuda_unary_##op##_##suffix, 2, IV_CUDA_LOAD_X(type),                                    \
        IV_CUDA_KEEP_LOOP for (int turn = 0; turn < IV_CUDA_GROUP; turn++) {                       \
            out_type value = iv_unary_value_##op##_##suffix(x[0], p->a, p->b);                     \
            IV_CUDA_GROUP_TURN(type, x, x[0]);                                                     \
            IV_CUDA_GROUP_TURN(out_type, result, value);                                           \
        },                                                                                         \
        out_type)

/* iv_cuda_binary_<op>_<suffix> */
#define IV_CUDA_BINARY(op, suffix, out_type, type)                                                 \
    IV_CUDA_ELEMENTWISE(iv_cuda_binary_##op##_##suffix, 3, IV_CUDA_LOAD_XY(type),                  \
                        IV_CUDA_UNROLL for (int j = 0; j < IV_CUDA_GROUP; j++) result[j] =         \
                            iv_binary_value_##op##_##suffix(x[j], y[j]),                           \
                        out_type)
/* `check` sees y[0]. */
#define IV_CUDA_BINARY_LONG(op, suffix, out_type, type, check)                                     \
    IV_CUDA_ELEMENTWISE(                                                                           \
        iv_cuda_binary_##op##_##suffix, 3, IV_CUDA_LOAD_XY(type),                                  \
        IV_CUDA_KEEP_LOOP for (int turn = 0; turn < IV_CUDA_GROUP; turn++) {                       \
            check;                                                                                 \
            out_type value = iv_binary_value_##op##_##suffix(x[0], y[0]);                          \
            IV_CUDA_GROUP_TURN(type, x, x[0]);                                                     \
            IV_CUDA_GROUP_TURN(type, y, y[0]);                                                     \
            IV_CUDA_GROUP_TURN(out_type, result, value);                                           \
        },                                                                                         \
        out_type)

#endif
