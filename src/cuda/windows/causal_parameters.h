/* The struct that the kernels of causal.cu take. */
#ifndef SB_CUDA_WINDOWS_CAUSAL_PARAMETERS_H
#define SB_CUDA_WINDOWS_CAUSAL_PARAMETERS_H

#include "cuda/common/parameters.h"

/* Steps of sample, channel and time, in bytes; both outputs are packed. */
typedef struct sb_cuda_causal {
    int64_t elements; /* of the output that the kernel writes */
    int64_t channels, length, taps;
    const int64_t *used_length;                                    /* for the present state */
    int64_t x_steps[3], past_steps[3], weight_steps[2], bias_step; /* weight_steps: of a channel and a tap */
    int32_t swish;
    const char *x, *past, *weights, *bias; /* past and bias: NULL where omitted */
    char *out;
} sb_cuda_causal;

#endif
