/* Copies of elements between any strides: operand 0 from operand 1. One kernel for each size of an
 * element; what the bits mean does not matter. */
#include "cuda/kernels/box.cuh"

#define COPY(bits, type)                                                                           \
    IV_CUDA_KERNEL(iv_cuda_copy_##bits, iv_cuda_box, box) {                                        \
        IV_CUDA_EACH(index, box->elements) {                                                       \
            int64_t offsets[2];                                                                    \
            iv_cuda_place(box, index, 2, offsets);                                                 \
            IV_CUDA_ELEMENT(type, box->data[0], offsets[0]) =                                      \
                IV_CUDA_CONST_ELEMENT(type, box->data[1], offsets[1]);                             \
        }                                                                                          \
    }
COPY(8, uint8_t)
COPY(16, uint16_t)
COPY(32, uint32_t)
COPY(64, uint64_t)
