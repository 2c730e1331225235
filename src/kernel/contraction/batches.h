/* Where the matrices of a batch lie: over several dimensions, as models have them (samples and heads), of which A and B step
 * each in its own way. */
#ifndef SB_KERNEL_CONTRACTION_BATCHES_H
#define SB_KERNEL_CONTRACTION_BATCHES_H

#include <stdint.h>

/* Dimensions that batches may have: all of a tensor's but the matrices' own two. */
#define SB_GEMM_BATCH_RANK 10

/* The outermost dimension first; with `rank` 0 there is one matrix. Steps are elements from one matrix to the next along a
 * dimension, 0 where all are the same. Plain data, which travels among a kernel's parameters. */
typedef struct sb_gemm_batches {
    int32_t rank, unused;
    int64_t dims[SB_GEMM_BATCH_RANK];
    int64_t a_steps[SB_GEMM_BATCH_RANK], b_steps[SB_GEMM_BATCH_RANK];
} sb_gemm_batches;

#endif
