/* The steps of iv_linear_logp between its products, as plain data: what the CPU's loops and the
 * kernels both take. Addresses are of the process or of the device. Rows and columns count from the
 * beginning of a chunk. */
#ifndef IV_GEMM_LOGP_TASKS_H
#define IV_GEMM_LOGP_TASKS_H

#include "gemm/logp.h"

/* A chunk of logits, row-major, and the row vectors from its first row on. */
typedef struct iv_logp_chunk {
    const float *logits;
    int64_t row_stride; /* in elements, a multiple of IV_LOGP_BLOCK */
    int64_t rows, columns;
    int64_t first_column; /* of the vocabulary, a multiple of IV_LOGP_BLOCK */
    int64_t vocabulary;
    const int64_t *targets;
    int64_t ignore_index;
    iv_logp_scale scale;
} iv_logp_chunk;

/* The column of a row's target within its chunk; -1 when it is not there, or the row has none. */
static IV_HD_HOT int64_t iv_logp_target_column(const iv_logp_chunk *chunk, int64_t row) {
    int64_t target = chunk->targets[row];
    iv_logp_target kind = iv_logp_target_kind(target, chunk->ignore_index, chunk->vocabulary);
    int64_t column = kind == IV_LOGP_TARGET_VALID ? target - chunk->first_column : -1;
    return column < chunk->columns ? column : -1;
}

/* Reduces each row of a chunk to the pairs of its blocks, and picks the logits of those targets
 * that are in it. What an epilogue of the product can do as well: logits are then not read. */
typedef struct iv_logp_reduce {
    iv_logp_chunk chunk;
    iv_logp_pair *pairs; /* of block b of the vocabulary and row r: [b * pair_rows + r] */
    int64_t pair_rows;
    float *chosen; /* one for each row, written where the target is in the chunk */
} iv_logp_reduce;

/* Adds up the pairs of each row. */
typedef struct iv_logp_merge {
    const iv_logp_pair *pairs;
    int64_t pair_rows;
    int64_t rows, blocks;
    const float *chosen;
    const int64_t *targets;
    int64_t ignore_index, vocabulary;
    iv_logp_scale scale;
    float *logp;
    int32_t *maximum; /* NULL: not wanted, with … */
    float *sum;       /* … this */
} iv_logp_merge;

/* The gradients of a chunk of logits, rounded to 16 bits. */
typedef struct iv_logp_differentiate {
    iv_logp_chunk chunk;
    float inverse_temperature;
    int32_t is_bf16; /* else f16 */
    const int32_t *maximum;
    const float *sum, *d_logp;
    uint16_t *gradients; /* row-major, with the chunk's row stride */
} iv_logp_differentiate;

/* Rounds a row-major matrix of f32 to 16 bits. */
typedef struct iv_logp_round {
    const float *from;
    int64_t rows, columns;
    uint16_t *to;
    int64_t row_stride, column_stride; /* of `to`, in elements */
    int32_t is_bf16;
} iv_logp_round;

static IV_HD_HOT uint16_t iv_logp_to_16(float value, int32_t is_bf16) {
    return is_bf16 ? iv_bf16_from_f32(value) : iv_f16_from_f32(value);
}

#endif
