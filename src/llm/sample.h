/* The scalar arithmetic of choosing tokens (docs/numerics.md, section 11). */
#ifndef SB_LLM_SAMPLE_H
#define SB_LLM_SAMPLE_H

#include <samebit/llm.h>

#include "kernel/logp/logp.h"
#include "numerics/philox.h"
#include "numerics/wide_exp_log.h"

/** Whether the settings are in their ranges. */
bool sb_llm_sampling_fits(const sb_llm_sampling *sampling);

/** A logit as a number in the order of section 11: of equal ones, +0 and -0 among them, the same. */
static inline int32_t sb_sample_order(float logit) {
    int32_t bits = (int32_t)sb_bits_from_f32(logit == 0.0f ? 0.0f : logit);
    return bits ^ (bits >> 31 & INT32_MAX);
}

/** The key of a logit in the order of section 11, larger first: of equal ones, +0 and -0 among them, the smaller token. */
static inline uint64_t sb_sample_key(float logit, int64_t token) {
    uint32_t order = (uint32_t)sb_sample_order(logit) ^ 0x80000000u;
    return (uint64_t)order << 32 | (uint32_t) ~(uint32_t)token;
}

static inline int64_t sb_sample_token(uint64_t key) {
    return (int64_t)(uint32_t) ~(uint32_t)key;
}

/* The Gumbel noise of a token at a position, in three steps: a random word, a number from 0 to 1, the noise. */

static inline uint32_t sb_sample_word(uint64_t seed, uint32_t request, int64_t position, uint32_t token) {
    const sb_philox_block counter = {
        {token, (uint32_t)position, (uint32_t)((uint64_t)position >> 32), (uint32_t)(seed >> 32)}};
    return sb_philox4x32_10(counter, (uint32_t)seed, request).word[0];
}

static inline float sb_sample_uniform(uint32_t word) {
    return ((float)word + 0.5f) * 0x1p-32f;
}

static inline float sb_sample_noise(uint64_t seed, uint32_t request, int64_t position, int64_t token) {
    return -sb_log_f32(-sb_log1p_f32(-sb_sample_uniform(sb_sample_word(seed, request, position, (uint32_t)token))));
}

#endif
