/* Finding elements: which ones a thread takes, and where they lie. */
#ifndef IV_CUDA_KERNELS_PLACE_H
#define IV_CUDA_KERNELS_PLACE_H

#include "cuda/kernels/parameters.h"

/* Every thread takes elements a whole grid apart, so any grid covers any box. */
#define IV_CUDA_EACH(index, count)                                                                 \
    for (int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; index < (count);          \
         index += (int64_t)gridDim.x * blockDim.x)

/* Where element `index` of the box lies in each operand: byte offsets in `offsets`. Boxes of fewer than 2^32 elements, which is
 * nearly all, do without 64-bit division, for which devices have no instruction. */
static __device__ __forceinline__ void iv_cuda_place(const iv_cuda_box &box, int64_t index, int operands,
                                                     int64_t *offsets) {
    for (int i = 0; i < operands; i++)
        offsets[i] = 0;
    if (box.elements <= UINT32_MAX) {
        uint32_t rest = (uint32_t)index;
#pragma unroll 1
        for (int d = box.rank - 1; d > 0; d--) {
            uint32_t extent = (uint32_t)box.dims[d], quotient = rest / extent;
            uint32_t at = rest - quotient * extent;
            for (int i = 0; i < operands; i++)
                offsets[i] += at * box.steps[i][d];
            rest = quotient;
        }
        for (int i = 0; i < operands; i++)
            offsets[i] += rest * box.steps[i][0];
        return;
    }
#pragma unroll 1
    for (int d = box.rank - 1; d >= 0; d--) {
        int64_t quotient = d > 0 ? index / box.dims[d] : 0, at = index - quotient * box.dims[d];
        for (int i = 0; i < operands; i++)
            offsets[i] += at * box.steps[i][d];
        index = quotient;
    }
}

#endif
