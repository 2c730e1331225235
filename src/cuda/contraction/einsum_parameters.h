/* What the kernels of Einsum take. */
#ifndef SB_CUDA_CONTRACTION_EINSUM_PARAMETERS_H
#define SB_CUDA_CONTRACTION_EINSUM_PARAMETERS_H

#include <samebit/dtype.h>

#include "cuda/common/parameters.h"

#define SB_CUDA_EINSUM_OPERANDS 8
#define SB_CUDA_EINSUM_LABELS 32

/* Labels of the output, then summed ones; steps in elements. */
typedef struct sb_cuda_einsum {
    int64_t elements;
    int64_t rows; /* the product of the summed extents but the last; 0 where one is 0 */
    int32_t operands, outer, inner;
    sb_dtype dtype;
    int64_t dims[SB_CUDA_EINSUM_LABELS];
    int64_t steps[SB_CUDA_EINSUM_OPERANDS][SB_CUDA_EINSUM_LABELS];
    const void *data[SB_CUDA_EINSUM_OPERANDS];
    void *out;
} sb_cuda_einsum;

#endif
