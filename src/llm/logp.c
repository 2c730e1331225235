/* The log-probability of a token from the logits of all: docs/numerics.md, section 9, in plain C. */
#include "llm/score.h"

/* Pairs of a row's first blocks, which are kept between the two passes over it: 524,288 tokens'. Of blocks behind them the
 * second pass makes them again. */
#define KEPT_PAIRS 4096

/* A block's sum; NaN for one with a NaN. */
static sb_logp_pair block_pair(const float *logits, int64_t count, sb_logp_scale scale, bool *has_nan) {
    float lanes[SB_LOGP_LANES] = {0}, mantissas[SB_LOGP_BLOCK];
    int32_t exponents[SB_LOGP_BLOCK];
    sb_logp_pair pair = {INT32_MIN, 0};
    for (int64_t i = 0; i < count; i++) {
        float held = sb_logp_hold(logits[i], scale), shifted = sb_logp_shifted(held, scale);
        exponents[i] = sb_logp_exponent(shifted);
        mantissas[i] = sb_logp_mantissa(held, shifted, scale);
        *has_nan = *has_nan || logits[i] != logits[i];
        pair.maximum = exponents[i] > pair.maximum ? exponents[i] : pair.maximum;
    }
    for (int64_t i = 0; i < count && !*has_nan; i++) {
        float *lane = &lanes[sb_logp_lane(i)];
        *lane = sb_logp_add(*lane, mantissas[i], sb_logp_factor(exponents[i], pair.maximum));
    }
    pair.sum = sb_logp_fold(lanes[0], lanes[1], lanes[2], lanes[3]);
    return pair;
}

sb_llm_logp_row sb_llm_logp_row_of(const float *logits, int64_t vocabulary) {
    sb_logp_pair kept[KEPT_PAIRS];
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    int32_t maximum = INT32_MIN;
    bool has_nan = false;
    sb_llm_logp_row row = {.units = 0};
    for (int64_t i = 0, block = 0; i < vocabulary; i += SB_LOGP_BLOCK, block++) {
        int64_t count = vocabulary - i < SB_LOGP_BLOCK ? vocabulary - i : SB_LOGP_BLOCK;
        sb_logp_pair pair = block_pair(logits + i, count, scale, &has_nan);
        maximum = pair.maximum > maximum ? pair.maximum : maximum;
        if (block < KEPT_PAIRS)
            kept[block] = pair;
    }
    for (int64_t i = 0, block = 0; i < vocabulary && !has_nan; i += SB_LOGP_BLOCK, block++) {
        int64_t count = vocabulary - i < SB_LOGP_BLOCK ? vocabulary - i : SB_LOGP_BLOCK;
        sb_logp_pair pair = block < KEPT_PAIRS ? kept[block] : block_pair(logits + i, count, scale, &has_nan);
        row.units += sb_logp_units(pair, maximum);
    }
    row.pair = sb_logp_row(maximum, row.units, has_nan);
    return row;
}

float sb_llm_logp_in(const sb_llm_logp_row *row, const float *logits, int64_t vocabulary, int64_t token) {
    sb_logp_target kind = sb_logp_target_kind(token, -1, vocabulary);
    if (kind != SB_LOGP_TARGET_VALID)
        return sb_nan_f32();
    return sb_logp_value(kind, logits[token], sb_logp_scale_of(1.0f), row->pair, row->units);
}

float sb_llm_logp(const float *logits, int64_t vocabulary, int64_t token) {
    sb_llm_logp_row row = sb_llm_logp_row_of(logits, vocabulary);
    return sb_llm_logp_in(&row, logits, vocabulary, token);
}
