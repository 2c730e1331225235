/* The struct that the kernels of linear_attention.cu take. */
#ifndef SB_CUDA_RECURRENT_LINEAR_ATTENTION_PARAMETERS_H
#define SB_CUDA_RECURRENT_LINEAR_ATTENTION_PARAMETERS_H

#include "cuda/common/parameters.h"

/* Columns of values that a block of threads computes: those of its first warp. The other warps fetch what comes next. */
#define SB_CUDA_LINEAR_COLUMNS 32
#define SB_CUDA_LINEAR_THREADS 128
/* The most positions that are fetched at once. */
#define SB_CUDA_LINEAR_CHUNK 8

/* Elements [batch, position, column], steps in elements. */
typedef struct sb_cuda_linear_array {
    char *data; /* NULL: none */
    int64_t steps[3];
} sb_cuda_linear_array;

/* A state [batch, head, row, column], steps in elements. */
typedef struct sb_cuda_linear_state {
    char *data; /* NULL: none */
    int64_t steps[4];
    int32_t dtype;
} sb_cuda_linear_state;

typedef struct sb_cuda_linear {
    int64_t parts; /* [batch, key head, tile of columns] */
    int64_t tiles, key_heads, group, positions, width, value_width;
    const int64_t *used_positions;
    int64_t decays;     /* factors for a head and position: 0, 1 or the width */
    int64_t rates;      /* heads that have a beta of their own: 0 without it, 1 or all */
    int64_t chunk;      /* positions that are fetched at once */
    int64_t row_floats; /* of a position that has been fetched: key, factors, queries, values, beta */
    int64_t floats;     /* a block's: a tile of the state and two chunks */
    float *memory;      /* of all blocks, where shared memory has no room; else NULL */
    float scale;
    int32_t dtype;
    sb_cuda_linear_array query, key, value, decay, beta, output;
    sb_cuda_linear_state past, present;
} sb_cuda_linear;

#endif
