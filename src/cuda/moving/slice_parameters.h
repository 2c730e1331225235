/* The struct that the kernels of slice.cu take. */
#ifndef SB_CUDA_MOVING_SLICE_PARAMETERS_H
#define SB_CUDA_MOVING_SLICE_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/slice_values.h"

/* The output is packed. Element i along an axis is the input's at start + i * pace, the start as sb_slice_clamp has it. */
typedef struct sb_cuda_slice {
    int64_t elements;
    int32_t rank;
    int64_t dims[SB_CUDA_RANK];    /* of the output */
    int64_t extents[SB_CUDA_RANK]; /* of the input; the first of them are used: */
    const int64_t *used[SB_CUDA_RANK];
    int64_t starts[SB_CUDA_RANK];                     /* as given … */
    const int64_t *known[SB_CUDA_RANK];               /* … or here, in this run; NULL: there */
    int64_t paces[SB_CUDA_RANK], steps[SB_CUDA_RANK]; /* steps from element to element of the input, in bytes */
    const char *in;
    char *out;
} sb_cuda_slice;

#endif
