/* Batch normalisation channel by channel, for the host and for the device. */
#ifndef SB_CUDA_ELEMENTWISE_BATCH_PARAMETERS_H
#define SB_CUDA_ELEMENTWISE_BATCH_PARAMETERS_H

#include "cuda/elementwise/convert_parameters.h"

/* A value for each channel, `step` bytes apart. */
typedef struct sb_cuda_channel_list {
    char *data; /* NULL: not wanted */
    int64_t step;
    sb_cuda_typed type;
} sb_cuda_channel_list;

typedef struct sb_cuda_batch {
    sb_cuda_box box; /* operands 0 (y; without data where nobody wants it) and 1 (x) of channel 0, row-major */
    int64_t channels;
    int64_t out_step, in_step;       /* from channel to channel */
    sb_cuda_typed type;              /* of x and y */
    sb_cuda_channel_list given[4];   /* scale, bias, mean, variance */
    sb_cuda_channel_list results[4]; /* running mean and variance, those of the batch */
    float epsilon, momentum;
    int32_t trains, wants_output;
} sb_cuda_batch;

#define SB_CUDA_BATCH_THREADS 256 /* the lanes of numerics/reduce.h */

#endif
