/* Products whose results are logits, of which the gradients are wanted (docs/numerics.md, section 9): each is worked out where its chain
 * ends, and rounded to 16 bits, so that logits are neither written nor read. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_GRADIENTS_CUH
#define SB_CUDA_CONTRACTION_GEMM16_GRADIENTS_CUH

#include "cuda/contraction/gemm16_hopper_tile.cuh"

#if SB_HOPPER
/* What the gradients of a row have in common, and its target's column from the thread's first one on. */
typedef struct sb_gemm16_gradient_row {
    sb_logp_weight weight;
    int target;
} sb_gemm16_gradient_row;

/* Of the chunk's row `row`, for a thread whose first column is `column`; rows behind the last one have gradients that nobody keeps. */
SB_CUDA_FUNCTION sb_gemm16_gradient_row sb_gemm16_gradient_row_of(const sb_logp_differentiate *task, int row,
                                                                  int column) {
    const sb_logp_chunk *chunk = &task->chunk;
    const int64_t there = row < chunk->rows ? row : chunk->rows - 1;
    const sb_logp_target kind = sb_logp_target_kind(chunk->targets[there], chunk->ignore_index, chunk->vocabulary);
    sb_gemm16_gradient_row of;
    of.weight =
        sb_logp_weight_of(kind, task->d_logp[there], task->inverse_temperature, task->maximum[there], task->sum[there]);
    of.target = (int)sb_logp_target_column(chunk, there);
    of.target = of.target < 0 ? -1 : of.target - column;
    return of;
}

/* `count` logits of two rows, `first` columns behind the thread's first one, become gradients. */
SB_CUDA_FUNCTION void sb_gemm16_differentiate(const sb_gemm16_gradient_row *rows, sb_logp_scale scale, int first,
                                              const int count, float *logits) {
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++) {
        const sb_gemm16_gradient_row *row = &rows[i / 2 % 2];
        logits[i] = sb_logp_gradient(logits[i], scale, row->weight, row->target - first == i / 4 * 8 + i % 2);
    }
}
#endif

#endif
