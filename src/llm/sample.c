#include "llm/sample.h"

#include <math.h>

#include <samebit/llm.h>

#include "base/allocation.h"
#include "base/error.h"
#include "llm/choose_row.h"

#define LIMIT 0x1p20f

/* Also of what sb_llm_sample itself does not look at. */
static bool adjustments_fit(const sb_llm_sampling *sampling) {
    bool fits = sampling->repetition_penalty >= 1 / LIMIT && sampling->repetition_penalty <= LIMIT &&
                fabsf(sampling->presence_penalty) <= LIMIT && fabsf(sampling->frequency_penalty) <= LIMIT &&
                sampling->bias_count >= 0;
    for (int64_t i = 0; i < sampling->bias_count && fits; i++) {
        float bias = sampling->biases[i].bias;
        fits = (fabsf(bias) <= LIMIT || bias == -INFINITY) && sampling->biases[i].token >= 0 &&
               (i == 0 || sampling->biases[i].token > sampling->biases[i - 1].token);
    }
    return fits;
}

bool sb_llm_sampling_fits(const sb_llm_sampling *sampling) {
    bool fits = sampling->temperature == 0 || (sampling->temperature >= 1 / LIMIT && sampling->temperature <= LIMIT);
    return fits && adjustments_fit(sampling) && sampling->top_k >= 0 && sampling->top_p > 0 && sampling->top_p <= 1 &&
           sampling->min_p >= 0 && sampling->min_p <= 1;
}

static sb_status check_settings(int64_t vocabulary, const sb_llm_sampling *sampling, sb_error *error) {
    bool fits = sampling->struct_bytes == sizeof *sampling && vocabulary > 0 && vocabulary <= INT64_C(1) << 24;
    if (fits && sb_llm_sampling_fits(sampling))
        return SB_OK;
    return sb_fail(
        error, SB_ERROR_INVALID_ARGUMENT,
        "sampling with temperature %g, top_k %lld, top_p %g and min_p %g: they may be 0 or 2^-20 to 2^20, 0 "
        "or more, above 0 to 1, and 0 to 1; a repetition penalty 2^-20 to 2^20, other penalties and biases within "
        "2^20, biases in the order of their tokens",
        (double)sampling->temperature, (long long)sampling->top_k, (double)sampling->top_p, (double)sampling->min_p);
}

/* ---- the first token in the order of section 11 ---- */

typedef struct best_token {
    int64_t token; /* -1: none yet */
    int32_t order;
} best_token;

/* Of equal ones the first stays. */
static void consider(best_token *best, const float *values, int count, int64_t first, int32_t largest) {
    if (best->token >= 0 && largest <= best->order)
        return;
    int at = 0;
    while (at < count - 1 && sb_sample_order(values[at]) != largest)
        at++;
    *best = (best_token){first + at, largest};
}

static sb_status fail_odd(const float *logits, int64_t first, sb_error *error) {
    while (logits[first] < INFINITY)
        first++;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the logit of token %lld is %s: none can be chosen",
                   (long long)first, logits[first] > 0 ? "infinite" : "NaN");
}

/* The largest of logits that can be chosen from: none is NaN or infinite, and one is above minus infinity. */
static sb_status find_largest(const float *logits, int64_t vocabulary, int64_t *token, sb_error *error) {
    const sb_choose_loops *loops = sb_choose_loops_best();
    best_token best = {-1, 0};
    for (int64_t i = 0; i < vocabulary; i += SB_CHOOSE_BLOCK) {
        int count = (int)(vocabulary - i < SB_CHOOSE_BLOCK ? vocabulary - i : SB_CHOOSE_BLOCK);
        sb_choose_block block = loops->look(logits + i, count);
        if (block.odd)
            return fail_odd(logits, i, error);
        consider(&best, logits + i, count, i, block.largest);
    }
    *token = best.token;
    return logits[best.token] > -INFINITY
               ? SB_OK
               : sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no logit is above minus infinity: no token can be chosen");
}

/* ---- noise ---- */

/* Of all tokens; -1: none can be chosen. */
static int64_t draw_any(const float *logits, int64_t vocabulary, float factor, const sb_choose_noise *noise) {
    const sb_choose_loops *loops = sb_choose_loops_best();
    float noisy[SB_CHOOSE_BLOCK];
    best_token best = {-1, 0};
    for (int64_t i = 0; i < vocabulary; i += SB_CHOOSE_BLOCK) {
        int count = (int)(vocabulary - i < SB_CHOOSE_BLOCK ? vocabulary - i : SB_CHOOSE_BLOCK);
        loops->draw(logits + i, count, factor, noise, i, noisy);
        consider(&best, noisy, count, i, loops->look(noisy, count).largest);
    }
    return best.order != INT32_MIN ? best.token : -1;
}

/* ---- leaving tokens out ---- */

#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

/* Puts keys, which are there in the order of their tokens, into the order of section 11: by their upper halves, eleven bits at a
 * time from the lowest on, in passes that keep what is equal in its order. Three passes bring them to `to`. A comparing sort takes
 * ten times as long. */
static void sort_keys(uint64_t *from, uint64_t *to, int64_t count) {
    for (int shift = 32; shift < 64; shift += DIGIT_BITS) {
        int64_t places[DIGITS] = {0}, place = 0;
        for (int64_t i = 0; i < count; i++)
            places[from[i] >> shift & (DIGITS - 1)]++;
        for (int digit = DIGITS; digit-- > 0;) { /* the largest comes first */
            int64_t next = place + places[digit];
            places[digit] = place;
            place = next;
        }
        for (int64_t i = 0; i < count; i++)
            to[places[from[i] >> shift & (DIGITS - 1)]++] = from[i];
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
}

/* A logit's weight in units of 2^-38 of the largest's exponent, cut toward zero: sums of them have no order. */
static int64_t units_of(float logit, sb_logp_scale scale, int32_t maximum) {
    float held = sb_logp_hold(logit, scale), shifted = sb_logp_shifted(held, scale);
    sb_logp_pair pair = {sb_logp_exponent(shifted), sb_logp_mantissa(held, shifted, scale)};
    return sb_logp_units(pair, maximum);
}

/* How many of the ordered tokens are left. */
static int64_t cut(const float *scaled, const uint64_t *order, int64_t count, const sb_llm_sampling *sampling) {
    if (sampling->top_k > 0 && sampling->top_k < count)
        count = sampling->top_k;
    if (sampling->top_p == 1 && sampling->min_p == 0)
        return count;
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    float first = sb_logp_hold(scaled[sb_sample_token(order[0])], scale);
    int32_t maximum = sb_logp_exponent(sb_logp_shifted(first, scale));
    int64_t total = 0, sum = 0, largest = units_of(first, scale, maximum), kept = 0;
    for (int64_t i = 0; i < count; i++)
        total += units_of(scaled[sb_sample_token(order[i])], scale, maximum);
    double enough = (double)sampling->top_p * (double)total, least = (double)sampling->min_p * (double)largest;
    while (kept < count) {
        int64_t units = units_of(scaled[sb_sample_token(order[kept])], scale, maximum);
        if (kept > 0 && ((double)sum >= enough || (double)units < least))
            break;
        sum += units;
        kept++;
    }
    return kept;
}

/* Of the first ones; -1: none can be chosen. */
static int64_t draw_some(const float *scaled, const uint64_t *order, int64_t count, const sb_choose_noise *noise) {
    uint64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t token = sb_sample_token(order[i]);
        if (scaled[token] == -INFINITY)
            continue;
        float drawn = sb_sample_noise(noise->seed, noise->request, noise->position, token);
        uint64_t key = sb_sample_key(scaled[token] + drawn, token);
        best = key > best ? key : best;
    }
    return best != 0 ? sb_sample_token(best) : -1;
}

static sb_status check_drawn(int64_t token, const sb_llm_sampling *sampling, sb_error *error) {
    return token >= 0 ? SB_OK
                      : sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                                "no logit is above minus infinity when it is divided by the temperature %g: choose a "
                                "higher one",
                                (double)sampling->temperature);
}

/* ---- choosing ---- */

sb_status sb_llm_sample(const float *logits, int64_t vocabulary, const sb_llm_sampling *sampling, int64_t position,
                        int64_t *token, sb_error *error) {
    SB_TRY(check_settings(vocabulary, sampling, error));
    SB_TRY(find_largest(logits, vocabulary, token, error));
    if (sampling->temperature == 0)
        return SB_OK;
    const sb_choose_noise noise = {sampling->seed, sampling->request, position};
    float inverse = sb_div_f32(1.0f, sampling->temperature);
    if (sampling->top_k == 0 && sampling->top_p == 1 && sampling->min_p == 0) {
        *token = draw_any(logits, vocabulary, inverse, &noise);
        return check_drawn(*token, sampling, error);
    }
    size_t bytes = (size_t)vocabulary * (2 * sizeof(uint64_t) + sizeof(float));
    uint64_t *keys = sb_allocate(bytes);
    if (keys == NULL)
        return sb_fail_memory(error, bytes);
    uint64_t *order = keys + vocabulary;
    float *scaled = (float *)(void *)(order + vocabulary);
    for (int64_t i = 0; i < vocabulary; i++) {
        scaled[i] = logits[i] * inverse;
        keys[i] = sb_sample_key(scaled[i], i);
    }
    sort_keys(keys, order, vocabulary);
    *token = draw_some(scaled, order, cut(scaled, order, vocabulary, sampling), &noise);
    sb_free(keys);
    return check_drawn(*token, sampling, error);
}
