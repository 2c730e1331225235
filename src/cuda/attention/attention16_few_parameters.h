/* The struct that the kernels of attention16_few.cuh take. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_FEW_PARAMETERS_H
#define SB_CUDA_ATTENTION_ATTENTION16_FEW_PARAMETERS_H

#include "cuda/attention/attention_parameters.h"
#include "cuda/common/divisor.h"

/* Rows of a cluster for which waiting counts most; its blocks, each of which scores a block of 128 keys of a split, and the threads of
 * these. In shared memory: keys, a quarter of a split's values, scores and weights of a split and 16 bytes more of each row,
 * the largest scores, some words, where the tile is, and room for the definition. */
#define SB_CUDA_ATTENTION16_FEW_ROWS 8
#define SB_CUDA_ATTENTION16_FEW_BLOCKS 4
#define SB_CUDA_ATTENTION16_FEW_THREADS 256
/* Lines that a page has at least, so that a split's pages are not more than a warp has lanes. */
#define SB_CUDA_ATTENTION16_FEW_PAGE 16
#define SB_CUDA_ATTENTION16_FEW_SHARED(width)                                                                          \
    (SB_CUDA_ATTENTION16_UNIT(width) + 512 * SB_CUDA_ATTENTION16_PITCH((width) / 4) * 2 +                              \
     8 * SB_CUDA_ATTENTION16_PITCH(512) * (4 + 2) + 8 * 4 * 8 * 4 + 8 * 4 * 3 + 16 + 1024)

/* Attention, of which `splits` are those that there is room for, one or more. Samples are with pages sequences. */
typedef struct sb_cuda_attention16_few {
    sb_cuda_attention attention;
    sb_cuda_divisor by_key_heads, by_samples, by_group, by_page; /* by_page: lines of a page */
    int32_t left, right; /* as the attention's, but for windows that reach further than any key */
    uint32_t *
        arrived; /* with several splits: words of tiles of rows, [tiles, key_heads, 4], 0 before and behind the launch */
} sb_cuda_attention16_few;

/* What a PagedAppend of one row does, of one sequence that lies on one page, where all elements of queries and keys are turned. The keys
 * and values of the attention are the cache, its queries are those that are turned. Steps are in bytes: of keys and values from head to
 * head, of the tables from row to row. */
typedef struct sb_cuda_attention16_append {
    sb_cuda_attention_array queries; /* as they are given; elements and steps as the attention's */
    const char *keys, *values, *cosines, *sines;
    int64_t key_step, value_step, cosine_step, sine_step;
    int64_t room, table_rows;        /* keys that there is room for, and rows of the tables */
    const int64_t *start, *position; /* where the row goes, and which row of the tables turns it */
    uint32_t *fault;
    int32_t ahead; /* SB_CUDA_SETTLED: no kernel ahead writes keys, values, or what says where rows are */
} sb_cuda_attention16_append;

typedef struct sb_cuda_attention16_few_appended {
    sb_cuda_attention16_few attention;
    sb_cuda_attention16_append append;
} sb_cuda_attention16_few_appended;

#endif
