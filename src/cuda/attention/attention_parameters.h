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
    int64_t batch, heads, key_heads, group, queries, past, fresh, width,
        value_width; /* group: heads of a head of keys */
    const int64_t *used_queries, *used_past, *used_fresh, *used_mask;
    sb_cuda_attention_array q, k, past_k, v, past_v, mask, y, scores;
    int64_t mask_keys;
    sb_pages pages;     /* of PagedAttention: `lengths` are then of its sequences */
    int64_t page_lines; /* for tensor cores: from a page to the next are so many times what is from a key to the next */
    /* With pages: rows that share keys are those of one sequence, whose number decides which sequences a launch is for, and
     * whose rows have parts: the others' splits stay together. */
    int64_t more_than, up_to, parts_up_to;
    const int64_t *lengths;
    int64_t lengths_stride;
    int64_t left, right; /* -1: no bound */
    double scale, cap;
    int32_t mask_kind;
    int32_t mask_repeats; /* whether a mask of one key is for all */
    int32_t scores_dtype, stage;
    int64_t tiles;               /* of columns of values, for rows one by one */
    sb_cuda_attention_row *rows; /* [batch, heads, queries], for the probabilities */
    int64_t row_tiles;           /* of a head of keys, for tiles of rows */
    int64_t splits;    /* 0: a block of threads goes through all of a row's splits; else that there is room for */
    int64_t part_rows; /* for which `partial` has room: the queries, or with pages of all sequences together */
    float *partial;    /* of splits: [batch, heads, part_rows, splits, value_width + 4] */
    /* Scores in place of those of q and k, or probabilities in place of weights; for kernels of attention.cu. */
    sb_cuda_attention_array given;
    int32_t given_dtype;
} sb_cuda_attention;

/* Of a row of a split lie behind its sums of values that of its weights and, as s32, its largest exponent: of a row that sees
 * no key the least that there is, of one that is NaN the greatest. Rows begin at multiples of 16 bytes. */
#define SB_CUDA_ATTENTION_PARTIAL(value_width) ((value_width) + 4)

/* Rows are queries of the heads that share keys, the heads side by side. Rows of a tile, a quarter for each of four warps; and
 * of a block that decodes, which have all of them. */
#define SB_CUDA_ATTENTION16_ROWS 64
#define SB_CUDA_ATTENTION16_DECODE_ROWS 16
#define SB_CUDA_ATTENTION16_THREADS 128
/* Elements from a key, or its value, to the next in shared memory: eight rows of a matrix are in different banks. */
#define SB_CUDA_ATTENTION16_PITCH(width) ((width) + 8)
#define SB_CUDA_ATTENTION16_UNIT(width) (128 * SB_CUDA_ATTENTION16_PITCH(width) * 2)
/* A tile's queries, a block of keys, one of values, and the totals; and 1024 bytes less than half of a multiprocessor's. */
#define SB_CUDA_ATTENTION16_SHARED(width) ((64 + 2 * 128) * (width)*2 + SB_CUDA_ATTENTION16_ROWS * (width)*4)
/* Blocks of 128 keys, or values, that are in shared memory or on their way there. */
#define SB_CUDA_ATTENTION16_STAGES(width) ((width) == 64 ? 5 : (width) == 96 ? 4 : 3)
/* Behind them weights of 16 rows, the largest score of each row and warp, a word, and for the widest heads the totals. */
#define SB_CUDA_ATTENTION16_DECODE_SHARED(width)                                                                       \
    (SB_CUDA_ATTENTION16_STAGES(width) * SB_CUDA_ATTENTION16_UNIT(width) + 16 * SB_CUDA_ATTENTION16_PITCH(128) * 2 +   \
     16 * 4 * 4 + 16 + ((width) == 256 ? 16 * (width)*4 : 0))

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
