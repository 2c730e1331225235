/* Sums of rows whose elements lie below each other, for the host and for devices. */
#ifndef SB_CUDA_ROWS_REDUCE_COLUMNS_PARAMETERS_H
#define SB_CUDA_ROWS_REDUCE_COLUMNS_PARAMETERS_H

#include <stdint.h>

/* Threads of a block at most. */
#define SB_CUDA_COLUMN_THREADS 512

/* [batches][length][8 groups] of 16 bits becomes [batches][8 groups]. Steps are in bytes and multiples of 16. */
typedef struct sb_cuda_column_reduction {
    int64_t batches, length, groups; /* the length is not 0 */
    int64_t step, x_batch, y_batch;
    int32_t eights,
        lanes; /* of a block, which has a thread for each of both; lanes: a power of 2 up to 256, and no fewer
                              than there are elements */
    int32_t mean, unused;
    const char *x;
    char *y;
} sb_cuda_column_reduction;

#endif
