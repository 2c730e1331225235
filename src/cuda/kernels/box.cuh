/* Finding the elements of a box. */
#ifndef IV_CUDA_KERNELS_BOX_CUH
#define IV_CUDA_KERNELS_BOX_CUH

#include "cuda/kernels/kernel.cuh"
#include "cuda/kernels/parameters.h"

/* Where element `index` of the box lies in its first `operands` operands, in bytes from the first
 * element of each. Boxes of fewer than 2^32 elements, which is nearly all, do without 64-bit
 * division, for which devices have no instruction; a packed box, whose rank is 1, does without
 * division. */
IV_CUDA_FUNCTION void iv_cuda_place(const iv_cuda_box *box, int64_t index, int operands,
                                    int64_t *offsets) {
    for (int i = 0; i < operands; i++)
        offsets[i] = 0;
    if (box->elements <= UINT32_MAX) {
        uint32_t rest = (uint32_t)index;
        IV_CUDA_KEEP_LOOP
        for (int d = box->rank - 1; d > 0; d--) {
            uint32_t extent = (uint32_t)box->dims[d], quotient = rest / extent;
            uint32_t at = rest - quotient * extent;
            for (int i = 0; i < operands; i++)
                offsets[i] += at * box->steps[i][d];
            rest = quotient;
        }
        for (int i = 0; i < operands; i++)
            offsets[i] += rest * box->steps[i][0];
        return;
    }
    IV_CUDA_KEEP_LOOP
    for (int d = box->rank - 1; d >= 0; d--) {
        int64_t quotient = d > 0 ? index / box->dims[d] : 0, at = index - quotient * box->dims[d];
        for (int i = 0; i < operands; i++)
            offsets[i] += at * box->steps[i][d];
        index = quotient;
    }
}

#endif
