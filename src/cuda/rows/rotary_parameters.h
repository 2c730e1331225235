/* The struct that the kernels of rotary.cu take. */
#ifndef SB_CUDA_ROWS_ROTARY_PARAMETERS_H
#define SB_CUDA_ROWS_ROTARY_PARAMETERS_H

#include "cuda/common/parameters.h"

/* One pair, or one element behind those that are turned, for each unit of [batch, tokens, heads, units]: ops/rotary.h.
 * Steps are in bytes. */
typedef struct sb_cuda_rotary {
    int64_t elements; /* units of all heads */
    int64_t batch, tokens, heads, units, half;
    int64_t x_steps[4], y_steps[4];
    int64_t cosine_steps[3], sine_steps[3]; /* of batch, token and pair; with positions, 0, of a row, and of a pair */
    int64_t position_steps[2];
    int64_t rows; /* of the tables, with positions */
    const int64_t *used_batch, *used_tokens, *used_rows;
    int32_t interleaved;
    const char *x, *cosines, *sines, *positions; /* positions: NULL where the tables have a row per token */
    char *y;
    uint32_t *fault;
} sb_cuda_rotary;

#endif
