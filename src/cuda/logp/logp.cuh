/* Reducing blocks of logits that lie in registers: for sb_logp_reduce_blocks, and for epilogues of
 * products, whose accumulators (mma.sync, wgmma) give a row of a block to four neighbouring threads
 * in just this way. */
#ifndef SB_CUDA_LOGP_LOGP_CUH
#define SB_CUDA_LOGP_LOGP_CUH

#include "cuda/common/shuffle.cuh"
#include "cuda/logp/logp_parameters.h"

SB_CUDA_DEFINE_SHUFFLE(i32, int32_t, int)

/* Columns of a block that a thread of four has: the pair 2t, 2t + 1 of each eight. */
#define SB_LOGP_HELD (SB_LOGP_BLOCK / SB_LOGP_LANES)

/* The column that a thread's element `i` is of, from the thread's first on. */
SB_CUDA_FUNCTION int32_t sb_logp_held_column(int32_t i) {
    return i / 2 * 8 + i % 2;
}

/* The block's pair, in the first of the four threads. `logits` has a thread's SB_LOGP_HELD
 * elements, of which those count whose sb_logp_held_column is below `columns`. All threads of the
 * warp come here. */
SB_CUDA_FUNCTION sb_logp_pair sb_logp_reduce_held(const float *logits, int64_t columns, sb_logp_scale scale) {
    int32_t exponents[SB_LOGP_HELD];
    float mantissas[SB_LOGP_HELD];
    sb_logp_pair pair;
    pair.maximum = -SB_LOGP_EXPONENT_LIMIT;
    pair.sum = 0.0f;
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_LOGP_HELD; i++) {
        float held = sb_logp_hold(logits[i], scale), shifted = sb_logp_shifted(held, scale);
        exponents[i] = sb_logp_exponent(shifted);
        mantissas[i] = sb_logp_mantissa(held, shifted, scale);
    }
    /* Only a row's last block may lack columns: asked once for all. */
    if (columns <= sb_logp_held_column(SB_LOGP_HELD - 1)) {
        SB_CUDA_UNROLL
        for (int i = 0; i < SB_LOGP_HELD; i++) {
            int is_there = sb_logp_held_column(i) < columns;
            exponents[i] = is_there ? exponents[i] : -SB_LOGP_EXPONENT_LIMIT;
            mantissas[i] = is_there ? mantissas[i] : 0.0f;
        }
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_LOGP_HELD; i++)
        pair.maximum = exponents[i] > pair.maximum ? exponents[i] : pair.maximum;
    for (int distance = SB_LOGP_LANES / 2; distance > 0; distance /= 2) {
        int32_t other = sb_cuda_shuffle_down_i32(pair.maximum, distance, SB_LOGP_LANES);
        pair.maximum = other > pair.maximum ? other : pair.maximum;
    }
    pair.maximum = sb_cuda_shuffle_first_i32(pair.maximum, SB_LOGP_LANES);
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_LOGP_HELD; i++)
        pair.sum = sb_logp_add(pair.sum, mantissas[i], sb_logp_factor(exponents[i], pair.maximum));
    /* sb_logp_fold: neighbours first. */
    pair.sum = pair.sum + sb_cuda_shuffle_down_f32(pair.sum, 1, SB_LOGP_LANES);
    pair.sum = pair.sum + sb_cuda_shuffle_down_f32(pair.sum, 2, SB_LOGP_LANES);
    return pair;
}

#endif
