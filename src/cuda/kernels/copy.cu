/* Copies of elements between any strides: operand 0 from operand 1. One kernel for each size of an element; what the
 * bits mean does not matter. */
#include "cuda/kernels/place.h"

#define COPY(bits, type)                                                                           \
    extern "C" __global__ void iv_copy_##bits(const iv_cuda_box box) {                             \
        IV_CUDA_EACH(index, box.elements) {                                                        \
            int64_t offsets[2];                                                                    \
            iv_cuda_place(box, index, 2, offsets);                                                 \
            *(type *)(box.data[0] + offsets[0]) = *(const type *)(box.data[1] + offsets[1]);       \
        }                                                                                          \
    }
COPY(8, uint8_t)
COPY(16, uint16_t)
COPY(32, uint32_t)
COPY(64, uint64_t)
