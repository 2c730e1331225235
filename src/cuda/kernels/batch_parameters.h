/* Batch normalisation channel by channel, for the host and for the device. */
#ifndef IV_CUDA_KERNELS_BATCH_PARAMETERS_H
#define IV_CUDA_KERNELS_BATCH_PARAMETERS_H

#include "cuda/kernels/convert_parameters.h"

/* A value for each channel, `step` bytes apart. */
typedef struct iv_cuda_channel_list {
    char *data; /* NULL: not wanted */
    int64_t step;
    iv_cuda_typed type;
} iv_cuda_channel_list;

typedef struct iv_cuda_batch {
    iv_cuda_box box; /* operands 0 (y; without data where nobody wants it) and 1 (x) of channel 0, row-major */
    int64_t channels;
    int64_t out_step, in_step; /* from channel to channel */
    iv_cuda_typed type;        /* of x and y */
    iv_cuda_channel_list given[4];   /* scale, bias, mean, variance */
    iv_cuda_channel_list results[4]; /* running mean and variance, those of the batch */
    float epsilon, momentum;
    int32_t trains, wants_output;
} iv_cuda_batch;

#define IV_CUDA_BATCH_THREADS 256 /* the lanes of numerics/reduce.h */

#endif
