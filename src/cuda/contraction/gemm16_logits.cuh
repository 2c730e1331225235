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
#else
/* The same by the definition, for the host. */
#if defined(__CUDACC__)
#define SB_GEMM16_DEFINE_LOGITS(suffix)                                                                                \
    SB_CUDA_FUNCTION void sb_gemm16_define_logits_##suffix(const sb_gemm16_logits *p) {                                \
        __trap();                                                                                                      \
    }
#else
/* A block's pair by its definition. */
SB_CUDA_FUNCTION sb_logp_pair sb_gemm16_define_pair(const float *logits, int64_t count, sb_logp_scale scale) {
    float lanes[SB_LOGP_LANES] = {0, 0, 0, 0};
    sb_logp_pair pair = {-SB_LOGP_EXPONENT_LIMIT, 0.0f};
    for (int64_t i = 0; i < count; i++) {
        const int32_t exponent = sb_logp_exponent(sb_logp_shifted(sb_logp_hold(logits[i], scale), scale));
        pair.maximum = exponent > pair.maximum ? exponent : pair.maximum;
    }
    for (int64_t i = 0; i < count; i++) {
        const float held = sb_logp_hold(logits[i], scale), shifted = sb_logp_shifted(held, scale);
        float *lane = &lanes[sb_logp_lane(i)];
        *lane = sb_logp_add(*lane, sb_logp_mantissa(held, shifted, scale),
                            sb_logp_factor(sb_logp_exponent(shifted), pair.maximum));
    }
    pair.sum = sb_logp_fold(lanes[0], lanes[1], lanes[2], lanes[3]);
    return pair;
}

#define SB_GEMM16_DEFINE_LOGITS(suffix)                                                                                \
    SB_CUDA_FUNCTION void sb_gemm16_define_logits_##suffix(const sb_gemm16_logits *p) {                                \
        const sb_gemm16 *product = &p->product.product;                                                                \
        const sb_logp_chunk *chunk = &p->reduce.chunk;                                                                 \
        const int64_t blocks = (product->n + SB_LOGP_BLOCK - 1) / SB_LOGP_BLOCK;                                       \
        SB_CUDA_EACH(index, product->m *blocks) {                                                                      \
            const int64_t row = index % product->m, first = index / product->m * SB_LOGP_BLOCK;                        \
            const int64_t count = product->n - first < SB_LOGP_BLOCK ? product->n - first : SB_LOGP_BLOCK;             \
            float logits[SB_LOGP_BLOCK];                                                                               \
            for (int64_t i = 0; i < count; i++)                                                                        \
                logits[i] = sb_chain16_##suffix(product->a.data + row * product->a.line_stride, product->a.k_stride,   \
                                                product->b.data + (first + i) * product->b.line_stride,                \
                                                product->b.k_stride, product->k, 0.0f);                                \
            const int64_t target = sb_logp_target_column(chunk, row) - first;                                          \
            if (target >= 0 && target < count)                                                                         \
                p->reduce.chosen[row] = logits[target];                                                                \
            p->reduce.pairs[(chunk->first_column + first) / SB_LOGP_BLOCK * p->reduce.pair_rows + row] =               \
                sb_gemm16_define_pair(logits, count, chunk->scale);                                                    \
        }                                                                                                              \
    }
#endif
SB_GEMM16_DEFINE_LOGITS(bf16)
SB_GEMM16_DEFINE_LOGITS(f16)
#define SB_GEMM16_REDUCING_KERNEL(name) SB_CUDA_KERNEL(name, sb_gemm16_logits, p)
#endif

#endif
