/* Copies of elements between any strides: operand 0 from operand 1. One kernel for each size of an
 * element; what the bits mean does not matter. */
#include "cuda/kernels/box.cuh"

#define COPY(bits, type)                                                                           \
    IV_CUDA_KERNEL(iv_cuda_copy_##bits, iv_cuda_box, box) {                                        \
        IV_CUDA_EACH_GROUP(number, box) {                                                          \
            iv_cuda_group group;                                                                   \
            type values[IV_CUDA_GROUP] = {0};                                                      \
            iv_cuda_group_find(box, number, 2, &group);                                            \
            IV_CUDA_GROUP_LOAD(type, box, &group, 1, values);                                      \
            IV_CUDA_GROUP_STORE(type, box, &group, 0, values);                                     \
        }                                                                                          \
    }
COPY(8, uint8_t)
COPY(16, uint16_t)
COPY(32, uint32_t)
COPY(64, uint64_t)
