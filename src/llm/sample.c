#include "llm/sample.h"

#include <math.h>
#include <stdlib.h>

#include <samebit/llm.h>

#include "base/allocation.h"
#include "base/error.h"

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

static sb_status check(const float *logits, int64_t vocabulary, const sb_llm_sampling *sampling, sb_error *error) {
    bool fits = sampling->struct_bytes == sizeof *sampling && vocabulary > 0 && vocabulary <= INT64_C(1) << 24;
    if (!fits || !sb_llm_sampling_fits(sampling))
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "sampling with temperature %g, top_k %lld, top_p %g and min_p %g: they may be 0 or 2^-20 to 2^20, 0 "
            "or more, above 0 to 1, and 0 to 1; a repetition penalty 2^-20 to 2^20, other penalties and biases within "
            "2^20, biases in the order of their tokens",
            (double)sampling->temperature, (long long)sampling->top_k, (double)sampling->top_p,
            (double)sampling->min_p);
    bool any = false;
    for (int64_t i = 0; i < vocabulary; i++) {
        if (!(logits[i] < INFINITY))
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the logit of token %lld is %s: none can be chosen",
                           (long long)i, logits[i] > 0 ? "infinite" : "NaN");
        any = any || logits[i] > -INFINITY;
    }
    return any ? SB_OK
               : sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no logit is above minus infinity: no token can be chosen");
}

static int64_t greedy(const float *logits, int64_t vocabulary) {
    uint64_t best = 0;
    for (int64_t i = 0; i < vocabulary; i++) {
        uint64_t key = sb_sample_key(logits[i], i);
        best = key > best ? key : best;
    }
    return sb_sample_token(best);
}

static int larger_first(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a > b ? -1 : a < b;
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

static int64_t draw(const float *scaled, const uint64_t *order, int64_t count, const sb_llm_sampling *sampling,
                    int64_t position) {
    uint64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t token = sb_sample_token(order[i]);
        if (scaled[token] == -INFINITY)
            continue;
        float noise = sb_sample_noise(sampling->seed, sampling->request, position, token);
        uint64_t key = sb_sample_key(scaled[token] + noise, token);
        best = key > best ? key : best;
    }
    return sb_sample_token(best);
}

sb_status sb_llm_sample(const float *logits, int64_t vocabulary, const sb_llm_sampling *sampling, int64_t position,
                        int64_t *token, sb_error *error) {
    SB_TRY(check(logits, vocabulary, sampling, error));
    if (sampling->temperature == 0) {
        *token = greedy(logits, vocabulary);
        return SB_OK;
    }
    size_t bytes = (size_t)vocabulary * (sizeof(uint64_t) + sizeof(float));
    uint64_t *order = sb_allocate(bytes);
    if (order == NULL)
        return sb_fail_memory(error, bytes);
    float *scaled = (float *)(void *)(order + vocabulary), inverse = sb_div_f32(1.0f, sampling->temperature);
    for (int64_t i = 0; i < vocabulary; i++) {
        scaled[i] = logits[i] * inverse;
        order[i] = sb_sample_key(scaled[i], i);
    }
    bool cuts = sampling->top_k > 0 || sampling->top_p != 1 || sampling->min_p != 0;
    if (cuts)
        qsort(order, (size_t)vocabulary, sizeof *order, larger_first);
    *token = draw(scaled, order, cuts ? cut(scaled, order, vocabulary, sampling) : vocabulary, sampling, position);
    sb_free(order);
    return SB_OK;
}
