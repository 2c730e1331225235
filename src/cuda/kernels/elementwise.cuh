/* Kernels of element-wise operators: one for each operator and type, around the values that the
 * CPU's loops compute too. */
#ifndef IV_CUDA_KERNELS_ELEMENTWISE_CUH
#define IV_CUDA_KERNELS_ELEMENTWISE_CUH

#include "cuda/kernels/box.cuh"

/* iv_cuda_unary_<op>_<suffix> */
#define IV_CUDA_UNARY(op, suffix, out_type, type)                                                  \
    IV_CUDA_KERNEL(iv_cuda_unary_##op##_##suffix, iv_cuda_elementwise, p) {                        \
        IV_CUDA_EACH(index, p->box.elements) {                                                     \
            int64_t offsets[2];                                                                    \
            iv_cuda_place(&p->box, index, 2, offsets);                                             \
            IV_CUDA_ELEMENT(out_type, p->box.data[0], offsets[0]) =                                \
                iv_unary_value_##op##_##suffix(                                                    \
                    IV_CUDA_CONST_ELEMENT(type, p->box.data[1], offsets[1]), p->a, p->b);          \
        }                                                                                          \
    }

/* iv_cuda_binary_<op>_<suffix>; `check` sees x and y. */
#define IV_CUDA_BINARY_CHECKED(op, suffix, out_type, type, check)                                  \
    IV_CUDA_KERNEL(iv_cuda_binary_##op##_##suffix, iv_cuda_elementwise, p) {                       \
        IV_CUDA_EACH(index, p->box.elements) {                                                     \
            int64_t offsets[3];                                                                    \
            iv_cuda_place(&p->box, index, 3, offsets);                                             \
            type x = IV_CUDA_CONST_ELEMENT(type, p->box.data[1], offsets[1]);                      \
            type y = IV_CUDA_CONST_ELEMENT(type, p->box.data[2], offsets[2]);                      \
            check;                                                                                 \
            IV_CUDA_ELEMENT(out_type, p->box.data[0], offsets[0]) =                                \
                iv_binary_value_##op##_##suffix(x, y);                                             \
        }                                                                                          \
    }
#define IV_CUDA_BINARY(op, suffix, out_type, type)                                                 \
    IV_CUDA_BINARY_CHECKED(op, suffix, out_type, type, (void)0)

#endif
