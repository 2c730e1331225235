/* Loops over logits, compiled once per instruction set: plain ones that the compiler turns into vectors. */
#include "base/isa.h"
#include "cpu/logp/logp_cpu.h"

/* Exponents and mantissas of a block. Columns that it lacks have mantissas of +0 and the first
 * one's exponent: adding +0 to a lane, which is never -0, is no different from leaving it out. */
static void take_apart(const float *restrict logits, int64_t count, sb_logp_scale scale, int32_t *restrict exponents,
                       float *restrict mantissas) {
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

static sb_logp_pair reduce(const float *logits, int64_t count, sb_logp_scale scale) {
    _Alignas(64) int32_t exponents[SB_LOGP_BLOCK];
    _Alignas(64) float mantissas[SB_LOGP_BLOCK], factors[SB_LOGP_BLOCK];
    take_apart(logits, count, scale, exponents, mantissas);
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

/* One loop for each format, without a question in it. */
#define DIFFERENTIATE(round)                                                                                           \
    for (int64_t i = 0; i < count; i++)                                                                                \
    gradients[i] = round(sb_logp_gradient(logits[i], scale, weight, is_target))

static void differentiate(const float *restrict logits, int64_t count, sb_logp_scale scale, sb_logp_weight weight,
                          int is_target, int32_t is_bf16, uint16_t *restrict gradients) {
    if (is_bf16)
        DIFFERENTIATE(sb_bf16_from_f32);
    else
        DIFFERENTIATE(sb_f16_from_f32);
}

extern const sb_logp_kernels SB_ISA_NAME(sb_logp_kernels);
const sb_logp_kernels SB_ISA_NAME(sb_logp_kernels) = {reduce, differentiate};
