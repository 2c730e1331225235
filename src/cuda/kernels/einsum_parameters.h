/* What the kernels of Einsum take. */
#ifndef IV_CUDA_KERNELS_EINSUM_PARAMETERS_H
#define IV_CUDA_KERNELS_EINSUM_PARAMETERS_H

#include <invar/dtype.h>

#include "cuda/kernels/parameters.h"

#define IV_CUDA_EINSUM_OPERANDS 8
#define IV_CUDA_EINSUM_LABELS 32

/* Labels of the output, then summed ones; steps in elements. */
typedef struct iv_cuda_einsum {
    int64_t elements;
    int64_t rows; /* the product of the summed extents but the last; 0 where one is 0 */
    int32_t operands, outer, inner;
    iv_dtype dtype;
    int64_t dims[IV_CUDA_EINSUM_LABELS];
    int64_t steps[IV_CUDA_EINSUM_OPERANDS][IV_CUDA_EINSUM_LABELS];
    const void *data[IV_CUDA_EINSUM_OPERANDS];
    void *out;
} iv_cuda_einsum;

#endif
