/* The scalar arithmetic of choosing tokens (docs/numerics.md, section 11), once for the host and for kernels. */
#ifndef SB_NUMERICS_CHOOSE_H
#define SB_NUMERICS_CHOOSE_H

#include <stdbool.h>

#include "logp.h"
#include "philox.h"
#include "wide_exp_log.h"

/* The most tokens of a vocabulary: f32 and the noise's counter have room for them. */
#define SB_CHOOSE_MOST_TOKENS (INT64_C(1) << 24)

/* Temperatures other than 0, and what is multiplied by them, are within 2^-20 and 2^20. */
#define SB_CHOOSE_LIMIT 0x1p20f

/* What a token is chosen by: of one row of logits. */
typedef struct sb_choose_settings {
    float temperature, top_p, min_p;
    int64_t top_k; /* 0: all */
    uint64_t seed;
    uint32_t request;
    int64_t position;
} sb_choose_settings;

static SB_HD bool sb_choose_fits(float temperature, int64_t top_k, float top_p, float min_p) {
    bool fits = temperature == 0.0f || (temperature >= 1.0f / SB_CHOOSE_LIMIT && temperature <= SB_CHOOSE_LIMIT);
    return fits && top_k >= 0 && top_p > 0.0f && top_p <= 1.0f && min_p >= 0.0f && min_p <= 1.0f;
}

/* Whether some tokens are left out before noise is added. */
static SB_HD bool sb_choose_cuts(int64_t top_k, float top_p, float min_p) {
    return top_k != 0 || top_p != 1.0f || min_p != 0.0f;
}

/* Why none was chosen, as a number below 0 in the token's place. Of a logit that is NaN or +infinity the token is told, too: the first. */
typedef enum sb_choose_failure {
    SB_CHOOSE_NAN,      /* the logit of `token` is NaN */
    SB_CHOOSE_INFINITE, /* … +infinity */
    SB_CHOOSE_NOTHING,  /* no logit is above -infinity */
    SB_CHOOSE_VANISHED, /* … when it is divided by the temperature */
    SB_CHOOSE_UNFIT     /* settings are not in their ranges, or a number is none of a row or slot */
} sb_choose_failure;

static SB_HD int64_t sb_choose_failed(sb_choose_failure why, int64_t token) {
    return -1 - ((int64_t)why << 24 | token);
}

static SB_HD sb_choose_failure sb_choose_why(int64_t failed, int64_t *token) {
    *token = (-1 - failed) & (SB_CHOOSE_MOST_TOKENS - 1);
    return (sb_choose_failure)((-1 - failed) >> 24);
}

/* ---- the order of tokens ---- */

/** A logit as a number in the order of section 11: of equal ones, +0 and -0 among them, the same. */
static SB_HD_HOT int32_t sb_choose_order(float logit) {
    int32_t bits = (int32_t)sb_bits_from_f32(logit == 0.0f ? 0.0f : logit);
    return bits ^ (bits >> 31 & INT32_MAX);
}

/** The key of a logit in the order of section 11, larger first: of equal ones, +0 and -0 among them, the smaller token. */
static SB_HD_HOT uint64_t sb_choose_key(float logit, int64_t token) {
    uint32_t order = (uint32_t)sb_choose_order(logit) ^ 0x80000000u;
    return (uint64_t)order << 32 | (uint32_t) ~(uint32_t)token;
}

static SB_HD_HOT int64_t sb_choose_token(uint64_t key) {
    return (int64_t)(uint32_t) ~(uint32_t)key;
}

/** The number that has such a key; +0 of both zeros. */
static SB_HD_HOT float sb_choose_value(uint64_t key) {
    int32_t order = (int32_t)((uint32_t)(key >> 32) ^ 0x80000000u);
    return sb_bits_to_f32((uint32_t)(order ^ (order >> 31 & INT32_MAX)));
}

/* ---- noise ---- */

/* The bits of what is behind everything else in the order, and of a sum that is NaN, of infinities, which is behind all but that. */
#define SB_CHOOSE_NEVER 0xffffffffu
#define SB_CHOOSE_LAST 0xffc00000u

/* The Gumbel noise of a token at a position, in three steps: a random word, a number from 0 to 1, the noise. */

static SB_HD_HOT uint32_t sb_choose_word(uint64_t seed, uint32_t request, int64_t position, uint32_t token) {
    sb_philox_block counter;
    counter.word[0] = token;
    counter.word[1] = (uint32_t)position;
    counter.word[2] = (uint32_t)((uint64_t)position >> 32);
    counter.word[3] = (uint32_t)(seed >> 32);
    return sb_philox4x32_10(counter, (uint32_t)seed, request).word[0];
}

static SB_HD_HOT float sb_choose_uniform(uint32_t word) {
    return ((float)word + 0.5f) * 0x1p-32f;
}

static SB_HD_HOT float sb_choose_exponent(float uniform) {
    return -sb_log1p_f32(-uniform);
}

/** A logit that has been divided by the temperature, with the noise of that exponent. */
static SB_HD_HOT float sb_choose_noisy(float scaled, float exponent) {
    float sum = scaled + -sb_log_f32(exponent);
    sum = sum == sum ? sum : sb_bits_to_f32(SB_CHOOSE_LAST);
    return scaled == -sb_infinity_f32() ? sb_bits_to_f32(SB_CHOOSE_NEVER) : sum;
}

/** A token's logit, divided by the temperature, with its noise. */
static SB_HD float sb_choose_drawn(float scaled, const sb_choose_settings *by, int64_t token) {
    uint32_t word = sb_choose_word(by->seed, by->request, by->position, (uint32_t)token);
    return sb_choose_noisy(scaled, sb_choose_exponent(sb_choose_uniform(word)));
}

/** The key of such a number; 0: the token cannot be chosen. */
static SB_HD_HOT uint64_t sb_choose_drawn_key(float noisy, int64_t token) {
    return sb_bits_from_f32(noisy) == SB_CHOOSE_NEVER ? 0 : sb_choose_key(noisy, token);
}

/* ---- leaving tokens out ---- */

/* The least min_p that leaves out, by itself, all that a top_p of 1 would: what has no weight, and what adds so little behind all others
 * that a sum in f64 does not tell. Of tokens in front of the first that is too light each weighs 2^17 units or more, and sums below 2^63 are
 * rounded by no more than 2^10. */
#define SB_CHOOSE_LEAST_MIN_P 0x1p-20f

/* Whether a search by weight is needed. */
static SB_HD bool sb_choose_weighs(float top_p, float min_p) {
    return top_p != 1.0f || (min_p != 0.0f && min_p < SB_CHOOSE_LEAST_MIN_P);
}

/* The exponent that weights are relative to: of the first token's logit. */
static SB_HD int32_t sb_choose_maximum(float first) {
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    return sb_logp_exponent(sb_logp_shifted(sb_logp_hold(first, scale), scale));
}

/* A logit's weight in units of 2^-38 of the largest's exponent, cut toward zero: sums of them have no order. */
static SB_HD int64_t sb_choose_units(float logit, int32_t maximum) {
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    float held = sb_logp_hold(logit, scale), shifted = sb_logp_shifted(held, scale);
    sb_logp_pair pair;
    pair.maximum = sb_logp_exponent(shifted);
    pair.sum = sb_logp_mantissa(held, shifted, scale);
    return sb_logp_units(pair, maximum);
}

/** How many of `count` tokens are left, of which keys are given in the order of section 11, and logits, divided by the temperature, by
 * their tokens. */
static inline int64_t sb_choose_cut(const float *scaled, const uint64_t *keys, int64_t count,
                                    const sb_choose_settings *by) {
    if (by->top_k > 0 && by->top_k < count)
        count = by->top_k;
    if (by->top_p == 1.0f && by->min_p == 0.0f)
        return count;
    float first = scaled[sb_choose_token(keys[0])];
    int32_t maximum = sb_choose_maximum(first);
    int64_t total = 0, sum = 0, kept = 0;
    for (int64_t i = 0; i < count; i++)
        total += sb_choose_units(scaled[sb_choose_token(keys[i])], maximum);
    double enough = (double)by->top_p * (double)total;
    double least = (double)by->min_p * (double)sb_choose_units(first, maximum);
    while (kept < count) {
        int64_t units = sb_choose_units(scaled[sb_choose_token(keys[kept])], maximum);
        if (kept > 0 && ((double)sum >= enough || (double)units < least))
            break;
        sum += units;
        kept++;
    }
    return kept;
}

/** The token of the first `count` whose noisy logit comes first; SB_CHOOSE_VANISHED where none can be chosen. */
static inline int64_t sb_choose_draw(const float *scaled, const uint64_t *keys, int64_t count,
                                     const sb_choose_settings *by) {
    uint64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t token = sb_choose_token(keys[i]);
        uint64_t key = sb_choose_drawn_key(sb_choose_drawn(scaled[token], by, token), token);
        best = key > best ? key : best;
    }
    return best != 0 ? sb_choose_token(best) : sb_choose_failed(SB_CHOOSE_VANISHED, 0);
}

/* ---- choices as rows of numbers: what the operator ChooseTokens is given ---- */

/* Columns of the integers, of which each row is a choice. */
enum {
    SB_CHOOSE_ROW,  /* of the logits: the one to choose from */
    SB_CHOOSE_SLOT, /* where the token goes */
    SB_CHOOSE_TOP_K,
    SB_CHOOSE_SEED, /* the bits of an unsigned number */
    SB_CHOOSE_REQUEST,
    SB_CHOOSE_POSITION,
    SB_CHOOSE_INTEGER_COLUMNS
};

/* Columns of the reals: all of them, or, where no choice leaves tokens out, the temperature alone. */
enum { SB_CHOOSE_TEMPERATURE, SB_CHOOSE_TOP_P, SB_CHOOSE_MIN_P, SB_CHOOSE_REAL_COLUMNS };
#define SB_CHOOSE_COLUMNS_OF_ALL 1

/* What was chosen: numbers of f64, which have room for a token and for an f32. */
enum { SB_CHOOSE_TOKEN, SB_CHOOSE_LOGP, SB_CHOOSE_CHOSEN_COLUMNS };

/* The settings of one choice, of so many columns of reals. */
static SB_HD sb_choose_settings sb_choose_read(const int64_t *integers, const float *reals, int64_t columns) {
    sb_choose_settings by;
    by.temperature = reals[SB_CHOOSE_TEMPERATURE];
    by.top_p = columns > SB_CHOOSE_TOP_P ? reals[SB_CHOOSE_TOP_P] : 1.0f;
    by.min_p = columns > SB_CHOOSE_MIN_P ? reals[SB_CHOOSE_MIN_P] : 0.0f;
    by.top_k = integers[SB_CHOOSE_TOP_K];
    by.seed = (uint64_t)integers[SB_CHOOSE_SEED];
    by.request = (uint32_t)integers[SB_CHOOSE_REQUEST];
    by.position = integers[SB_CHOOSE_POSITION];
    return by;
}

static SB_HD void sb_choose_write(const sb_choose_settings *by, int64_t row, int64_t slot, int64_t *integers,
                                  float *reals, int64_t columns) {
    integers[SB_CHOOSE_ROW] = row;
    integers[SB_CHOOSE_SLOT] = slot;
    integers[SB_CHOOSE_TOP_K] = by->top_k;
    integers[SB_CHOOSE_SEED] = (int64_t)by->seed;
    integers[SB_CHOOSE_REQUEST] = by->request;
    integers[SB_CHOOSE_POSITION] = by->position;
    reals[SB_CHOOSE_TEMPERATURE] = by->temperature;
    if (columns == SB_CHOOSE_REAL_COLUMNS) {
        reals[SB_CHOOSE_TOP_P] = by->top_p;
        reals[SB_CHOOSE_MIN_P] = by->min_p;
    }
}

/* Whether a choice has a row, a slot, and settings in their ranges, which with one column are those that keep all tokens. */
static SB_HD bool sb_choose_is_fit(const int64_t *integers, const float *reals, int64_t columns, int64_t rows,
                                   int64_t slots) {
    int64_t row = integers[SB_CHOOSE_ROW], slot = integers[SB_CHOOSE_SLOT];
    const sb_choose_settings by = sb_choose_read(integers, reals, columns);
    return row >= 0 && row < rows && slot >= 0 && slot < slots &&
           sb_choose_fits(by.temperature, by.top_k, by.top_p, by.min_p) &&
           (columns == SB_CHOOSE_REAL_COLUMNS || by.top_k == 0);
}

/* What stands for the token that waits in a slot. */
static SB_HD int64_t sb_choose_waiting(int64_t slot) {
    return -1 - slot;
}

/* The token that is meant by `token`: the one in a slot, if that stands for it. */
static SB_HD int64_t sb_choose_pending(int64_t token, const int64_t *slots, int64_t step, int64_t count) {
    return token < 0 && sb_choose_waiting(token) < count ? slots[sb_choose_waiting(token) * step] : token;
}

#endif
