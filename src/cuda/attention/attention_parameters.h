/* The structs that the kernels of attention.cu and attention16.cu take. */
#ifndef SB_CUDA_ATTENTION_ATTENTION_PARAMETERS_H
#define SB_CUDA_ATTENTION_ATTENTION_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/pages.h"

/* Elements [batch, head, row, column]: steps in elements. */
typedef struct sb_cuda_attention_array {
    char *data; /* NULL: none */
    int64_t batch, head, row, column;
} sb_cuda_attention_array;

enum { SB_CUDA_ATTENTION_NO_MASK, SB_CUDA_ATTENTION_TRUTH, SB_CUDA_ATTENTION_BIAS };

/* What a row (a query of a head) has come to: its largest exponent and the sum of its weights. */
enum { SB_CUDA_ATTENTION_NOTHING, SB_CUDA_ATTENTION_SUM, SB_CUDA_ATTENTION_NAN };
typedef struct sb_cuda_attention_row {
    double sum;
    int32_t maximum, outcome;
} sb_cuda_attention_row;

/* sb_attention_work of ops/attention.h for a device. Of queries, keys and the mask there may be fewer than there is room
 * for: sb_cuda_used. */
typedef struct sb_cuda_attention {
    int64_t batch, heads, key_heads, queries, past, fresh, width, value_width;
    const int64_t *used_queries, *used_past, *used_fresh, *used_mask;
    sb_cuda_attention_array q, k, past_k, v, past_v, mask, y, scores;
    int64_t mask_keys;
    sb_pages pages; /* of PagedAttention: `lengths` are then of its sequences */
    const int64_t *lengths;
    int64_t lengths_stride;
    int64_t left, right; /* -1: no bound */
    double scale, cap;
    int32_t mask_kind;
    int32_t mask_repeats; /* whether a mask of one key is for all */
    int32_t scores_dtype, stage;
    int64_t tiles;               /* of columns of values, for rows one by one */
    sb_cuda_attention_row *rows; /* [batch, heads, queries], for the probabilities */
} sb_cuda_attention;

/* Columns of values that a block of threads sums at once. */
#define SB_CUDA_ATTENTION_COLUMNS 128

/* Keys or values of the past and behind them new ones, as `out`: rows of `units` units, whose size is the kernel's. Steps are in
 * units. */
typedef struct sb_cuda_attention_present {
    int64_t batch, heads, past, fresh, units;
    const int64_t *used_past;
    sb_cuda_attention_array old, source, out; /* `old` without data: is there already */
    int64_t elements;                         /* units of all that are copied */
} sb_cuda_attention_present;

#endif
