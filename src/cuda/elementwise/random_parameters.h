/* What the kernels of random numbers take; everything lies packed. */
#ifndef SB_CUDA_ELEMENTWISE_RANDOM_PARAMETERS_H
#define SB_CUDA_ELEMENTWISE_RANDOM_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/random_values.h"

typedef struct sb_cuda_random {
    int64_t elements;
    sb_random_params params;
    sb_dtype dtype, in_dtype;
    int64_t classes; /* Multinomial */
    const void *in;  /* Bernoulli and Multinomial */
    void *out;
} sb_cuda_random;

#endif
