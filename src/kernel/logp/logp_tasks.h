/* The steps of sb_linear_logp between its products, as plain data: what the CPU's loops and the
 * kernels both take. Addresses are of the process or of the device. Rows and columns count from the
 * beginning of a chunk. */
#ifndef SB_KERNEL_LOGP_LOGP_TASKS_H
#define SB_KERNEL_LOGP_LOGP_TASKS_H

#include "numerics/logp.h"

/* A chunk of logits, row-major, and the row vectors from its first row on. */
typedef struct sb_logp_chunk {
    const float *logits;
    int64_t row_stride; /* in elements, a multiple of SB_LOGP_BLOCK */
    int64_t rows, columns;
    int64_t first_column; /* of the vocabulary, a multiple of SB_LOGP_BLOCK */
    int64_t vocabulary;
    const int64_t *targets;
    int64_t ignore_index;
    sb_logp_scale scale;
} sb_logp_chunk;

/* The column of a row's target within its chunk; -1 when it is not there, or the row has none. */
static SB_HD_HOT int64_t sb_logp_target_column(const sb_logp_chunk *chunk, int64_t row) {
    int64_t target = chunk->targets[row];
    sb_logp_target kind = sb_logp_target_kind(target, chunk->ignore_index, chunk->vocabulary);
    int64_t column = kind == SB_LOGP_TARGET_VALID ? target - chunk->first_column : -1;
    return column < chunk->columns ? column : -1;
}

/* Reduces each row of a chunk to the pairs of its blocks, and picks the logits of those targets
 * that are in it. What an epilogue of the product can do as well: logits are then not read. */
typedef struct sb_logp_reduce {
    sb_logp_chunk chunk;
    sb_logp_pair *pairs; /* of block b of the vocabulary and row r: [b * pair_rows + r] */
    int64_t pair_rows;
    float *chosen; /* one for each row, written where the target is in the chunk */
} sb_logp_reduce;

/* Adds up the pairs of each row. */
typedef struct sb_logp_merge {
    const sb_logp_pair *pairs;
    int64_t pair_rows;
    int64_t rows, blocks;
    const float *chosen;
    const int64_t *targets;
    int64_t ignore_index, vocabulary;
    sb_logp_scale scale;
    float *logp;
    int32_t *maximum; /* NULL: not wanted, with … */
    float *sum;       /* … this */
} sb_logp_merge;

/* The gradients of a chunk of logits, rounded to 16 bits. */
typedef struct sb_logp_differentiate {
    sb_logp_chunk chunk;
    float inverse_temperature;
    int32_t is_bf16; /* else f16 */
    const int32_t *maximum;
    const float *sum, *d_logp;
    uint16_t *gradients; /* row-major, with the chunk's row stride */
} sb_logp_differentiate;

/* Rounds a row-major matrix of f32 to 16 bits. */
typedef struct sb_logp_round {
    const float *from;
    int64_t rows, columns;
    uint16_t *to;
    int64_t row_stride, column_stride; /* of `to`, in elements */
    int32_t is_bf16;
} sb_logp_round;

static SB_HD_HOT uint16_t sb_logp_to_16(float value, int32_t is_bf16) {
    return is_bf16 ? sb_bf16_from_f32(value) : sb_f16_from_f32(value);
}

#endif
