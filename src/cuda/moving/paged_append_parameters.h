/* The struct that the kernels of paged_append.cu and paged_append_rows.cu take. */
#ifndef SB_CUDA_MOVING_PAGED_APPEND_PARAMETERS_H
#define SB_CUDA_MOVING_PAGED_APPEND_PARAMETERS_H

#include "cuda/moving/tensor_scatter_parameters.h"
#include "cuda/rows/rotary_parameters.h"

/* Of a block of paged_append_rows.cu, and how many a multiprocessor takes at once. */
#define SB_CUDA_APPEND_THREADS 128
#define SB_CUDA_APPEND_BLOCKS 5

/* Of each row first the units of its queries, then those of its keys, then its values' elements. */
typedef struct sb_cuda_paged_append {
    int64_t rows, query_units, key_units, values; /* of a row */
    sb_cuda_rotary queries, keys;                 /* the keys' output: key_cache */
    sb_cuda_paged_scatter key_cache, value_cache;
    int32_t shares, unused; /* warps of a row, in paged_append_rows.cu */
} sb_cuda_paged_append;

#endif
