/* The pair of a block of logits on the host: plain loops that the compiler turns into vectors. For sources that are compiled once
 * per instruction set. */
#ifndef SB_NUMERICS_LOGP_BLOCK_H
#define SB_NUMERICS_LOGP_BLOCK_H

#include "logp.h"

/* Exponents and mantissas of a block. Columns that it lacks have mantissas of +0 and the first
 * one's exponent: adding +0 to a lane, which is never -0, is no different from leaving it out. */
static inline void sb_logp_take_apart(const float *restrict logits, int64_t count, sb_logp_scale scale,
                                      int32_t *restrict exponents, float *restrict mantissas) {
    for (int64_t i = 0; i < count; i++) {
        float held = sb_logp_hold(logits[i], scale), shifted = sb_logp_shifted(held, scale);
        exponents[i] = sb_logp_exponent(shifted);
        mantissas[i] = sb_logp_mantissa(held, shifted, scale);
    }
    for (int64_t i = count; i < SB_LOGP_BLOCK; i++) {
        exponents[i] = exponents[0];
        mantissas[i] = 0.0f;
    }
}

/* The pair of up to SB_LOGP_BLOCK columns, at least one; its sum is NaN where one of them is. */
static inline sb_logp_pair sb_logp_reduce_block(const float *logits, int64_t count, sb_logp_scale scale) {
    _Alignas(64) int32_t exponents[SB_LOGP_BLOCK];
    _Alignas(64) float mantissas[SB_LOGP_BLOCK], factors[SB_LOGP_BLOCK];
    sb_logp_take_apart(logits, count, scale, exponents, mantissas);
    int32_t maximum = exponents[0];
    for (int i = 1; i < SB_LOGP_BLOCK; i++)
        maximum = exponents[i] > maximum ? exponents[i] : maximum;
    for (int i = 0; i < SB_LOGP_BLOCK; i++)
        factors[i] = sb_logp_factor(exponents[i], maximum);
    float lanes[SB_LOGP_LANES] = {0};
    for (int i = 0; i < SB_LOGP_BLOCK; i += 8) {
        for (int t = 0; t < SB_LOGP_LANES; t++)
            lanes[t] = sb_logp_add(lanes[t], mantissas[i + 2 * t], factors[i + 2 * t]);
        for (int t = 0; t < SB_LOGP_LANES; t++)
            lanes[t] = sb_logp_add(lanes[t], mantissas[i + 2 * t + 1], factors[i + 2 * t + 1]);
    }
    return (sb_logp_pair){maximum, sb_logp_fold(lanes[0], lanes[1], lanes[2], lanes[3])};
}

#endif
