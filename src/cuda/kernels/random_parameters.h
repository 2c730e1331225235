/* What the kernels of random numbers take; everything lies packed. */
#ifndef IV_CUDA_KERNELS_RANDOM_PARAMETERS_H
#define IV_CUDA_KERNELS_RANDOM_PARAMETERS_H

#include "cuda/kernels/parameters.h"
#include "ops/random_values.h"

typedef struct iv_cuda_random {
    int64_t elements;
    iv_random_params params;
    iv_dtype dtype, in_dtype;
    int64_t classes; /* Multinomial */
    const void *in;  /* Bernoulli and Multinomial */
    void *out;
} iv_cuda_random;

#endif
