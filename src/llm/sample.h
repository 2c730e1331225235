/* The scalar arithmetic of choosing tokens (docs/numerics.md, section 11). */
#ifndef SB_LLM_SAMPLE_H
#define SB_LLM_SAMPLE_H

#include <samebit/llm.h>

#include "kernel/logp/logp.h"
#include "numerics/philox.h"
#include "numerics/wide_exp_log.h"

/** Whether the settings are in their ranges. */
bool sb_llm_sampling_fits(const sb_llm_sampling *sampling);

/** The key of a logit in the order of section 11, larger first: of equal ones, +0 and -0 among them, the smaller token. */
static inline uint64_t sb_sample_key(float logit, int64_t token) {
    uint32_t bits = sb_bits_from_f32(logit == 0.0f ? 0.0f : logit);
    bits = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t) ~(uint32_t)token;
}

static inline int64_t sb_sample_token(uint64_t key) {
    return (int64_t)(uint32_t) ~(uint32_t)key;
}

/** The Gumbel noise of a token at a position. */
static inline float sb_sample_noise(uint64_t seed, uint32_t request, int64_t position, int64_t token) {
    const sb_philox_block counter = {
        {(uint32_t)token, (uint32_t)position, (uint32_t)((uint64_t)position >> 32), (uint32_t)(seed >> 32)}};
    float uniform = ((float)sb_philox4x32_10(counter, (uint32_t)seed, request).word[0] + 0.5f) * 0x1p-32f;
    return -sb_log_f32(-sb_log1p_f32(-uniform));
}

#endif
