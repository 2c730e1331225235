/* Products whose results are logits: each block of 128 columns of a row is reduced to its pair in registers, and the
 * logits of targets are picked on the way (docs/numerics.md, section 9). The accumulators of wgmma lie as
 * sb_logp_reduce_held wants them. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_LOGITS_CUH
#define SB_CUDA_CONTRACTION_GEMM16_LOGITS_CUH

#include "cuda/contraction/gemm16_hopper_tile.cuh"
#include "cuda/logp/logp.cuh"

#if SB_HOPPER
/* A warpgroup's 64 rows from m on, and `blocks` blocks of columns from n on. */
SB_CUDA_FUNCTION void sb_gemm16_reduce_logits(const sb_logp_reduce *task, int64_t m, int64_t n, int blocks,
                                              const float *sums) {
    const sb_logp_chunk *chunk = &task->chunk;
    const int lane = (int)threadIdx.x % 32, own = lane % 4 * 2;
    const int64_t first_row = m + (int)threadIdx.x % 128 / 32 * 16 + lane / 4;
    SB_CUDA_UNROLL
    for (int half = 0; half < 2; half++) {
        const int64_t row = first_row + 8 * half;
        const int64_t target = row < chunk->rows ? sb_logp_target_column(chunk, row) : -1;
        SB_CUDA_UNROLL
        for (int block = 0; block < blocks; block++) {
            const int64_t column = n + block * SB_LOGP_BLOCK;
            float logits[SB_LOGP_HELD];
            SB_CUDA_UNROLL
            for (int i = 0; i < SB_LOGP_HELD; i++)
                logits[i] = sums[(block * 16 + i / 2) * 4 + half * 2 + i % 2];
            const sb_logp_pair pair = sb_logp_reduce_held(logits, chunk->columns - column - own, chunk->scale);
            if (row >= chunk->rows || column >= chunk->columns)
                continue;
            if (lane % 4 == 0)
                task->pairs[(chunk->first_column + column) / SB_LOGP_BLOCK * task->pair_rows + row] = pair;
            const int64_t place = target - column - own;
            if (place < 0 || place >= SB_LOGP_BLOCK)
                continue;
            SB_CUDA_UNROLL
            for (int i = 0; i < SB_LOGP_HELD; i++) {
                if (sb_logp_held_column(i) == place)
                    task->chosen[row] = logits[i];
            }
        }
    }
}
#endif

#endif
