/* Reducing blocks of logits that lie in registers: for iv_logp_reduce_blocks, and for epilogues of
 * products, whose accumulators (mma.sync, wgmma) give a row of a block to four neighbouring threads
 * in just this way. */
#ifndef IV_CUDA_KERNELS_LOGP_CUH
#define IV_CUDA_KERNELS_LOGP_CUH

#include "cuda/kernels/logp_parameters.h"
#include "cuda/kernels/shuffle.cuh"

IV_CUDA_DEFINE_SHUFFLE(i32, int32_t, int)

/* Columns of a block that a thread of four has: the pair 2t, 2t + 1 of each eight. */
#define IV_LOGP_HELD (IV_LOGP_BLOCK / IV_LOGP_LANES)

/* The column that a thread's element `i` is of, from the thread's first on. */
IV_CUDA_FUNCTION int32_t iv_logp_held_column(int32_t i) {
    return i / 2 * 8 + i % 2;
}

/* The block's pair, in the first of the four threads. `logits` has a thread's IV_LOGP_HELD
 * elements, of which those count whose iv_logp_held_column is below `columns`. All threads of the
 * warp come here. */
IV_CUDA_FUNCTION iv_logp_pair iv_logp_reduce_held(const float *logits, int64_t columns,
                                                  iv_logp_scale scale) {
    int32_t exponents[IV_LOGP_HELD];
    float mantissas[IV_LOGP_HELD];
    iv_logp_pair pair;
    pair.maximum = -IV_LOGP_EXPONENT_LIMIT;
    pair.sum = 0.0f;
    IV_CUDA_UNROLL
    for (int i = 0; i < IV_LOGP_HELD; i++) {
        float held = iv_logp_hold(logits[i], scale), shifted = iv_logp_shifted(held, scale);
        exponents[i] = iv_logp_exponent(shifted);
        mantissas[i] = iv_logp_mantissa(held, shifted, scale);
    }
    /* Only a row's last block may lack columns: asked once for all. */
    if (columns <= iv_logp_held_column(IV_LOGP_HELD - 1)) {
        IV_CUDA_UNROLL
        for (int i = 0; i < IV_LOGP_HELD; i++) {
            int is_there = iv_logp_held_column(i) < columns;
            exponents[i] = is_there ? exponents[i] : -IV_LOGP_EXPONENT_LIMIT;
            mantissas[i] = is_there ? mantissas[i] : 0.0f;
        }
    }
    IV_CUDA_UNROLL
    for (int i = 0; i < IV_LOGP_HELD; i++)
        pair.maximum = exponents[i] > pair.maximum ? exponents[i] : pair.maximum;
    for (int distance = IV_LOGP_LANES / 2; distance > 0; distance /= 2) {
        int32_t other = iv_cuda_shuffle_down_i32(pair.maximum, distance, IV_LOGP_LANES);
        pair.maximum = other > pair.maximum ? other : pair.maximum;
    }
    pair.maximum = iv_cuda_shuffle_first_i32(pair.maximum, IV_LOGP_LANES);
    IV_CUDA_UNROLL
    for (int i = 0; i < IV_LOGP_HELD; i++)
        pair.sum = iv_logp_add(pair.sum, mantissas[i], iv_logp_factor(exponents[i], pair.maximum));
    /* iv_logp_fold: neighbours first. */
    pair.sum = pair.sum + iv_cuda_shuffle_down_f32(pair.sum, 1, IV_LOGP_LANES);
    pair.sum = pair.sum + iv_cuda_shuffle_down_f32(pair.sum, 2, IV_LOGP_LANES);
    return pair;
}

#endif
