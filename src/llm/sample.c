#include "llm/sample.h"

#include <math.h>

#include <samebit/llm.h>

#include "base/allocation.h"
#include "base/error.h"
#include "llm/choose_row.h"

#define LIMIT SB_CHOOSE_LIMIT

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
    return adjustments_fit(sampling) &&
           sb_choose_fits(sampling->temperature, sampling->top_k, sampling->top_p, sampling->min_p);
}

sb_choose_settings sb_llm_choose_settings(const sb_llm_sampling *sampling, int64_t position) {
    return (sb_choose_settings){.temperature = sampling->temperature,
                                .top_p = sampling->top_p,
                                .min_p = sampling->min_p,
                                .top_k = sampling->top_k,
                                .seed = sampling->seed,
                                .request = sampling->request,
                                .position = position};
}

sb_status sb_llm_fail_choice(int64_t failed, const sb_llm_sampling *sampling, sb_error *error) {
    int64_t token;
    switch (sb_choose_why(failed, &token)) {
    case SB_CHOOSE_NAN:
    case SB_CHOOSE_INFINITE:
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the logit of token %lld is %s: none can be chosen",
                       (long long)token, sb_choose_why(failed, &token) == SB_CHOOSE_NAN ? "NaN" : "infinite");
    case SB_CHOOSE_NOTHING:
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no logit is above minus infinity: no token can be chosen");
    case SB_CHOOSE_VANISHED:
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "no logit is above minus infinity when it is divided by the temperature %g: choose a "
                       "higher one",
                       (double)sampling->temperature);
    case SB_CHOOSE_UNFIT:
        break;
    }
    return sb_fail(error, SB_ERROR_INTERNAL, "a token was to be chosen of no row, or by settings out of their ranges");
}

static sb_status check_settings(int64_t vocabulary, const sb_llm_sampling *sampling, sb_error *error) {
    bool fits = sampling->struct_bytes == sizeof *sampling && vocabulary > 0 && vocabulary <= SB_CHOOSE_MOST_TOKENS;
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
    while (at < count - 1 && sb_choose_order(values[at]) != largest)
        at++;
    *best = (best_token){first + at, largest};
}

/* The first that is NaN or infinite, from `first` on. */
static int64_t find_odd(const float *logits, int64_t first) {
    while (logits[first] < INFINITY)
        first++;
    return sb_choose_failed(logits[first] > 0 ? SB_CHOOSE_INFINITE : SB_CHOOSE_NAN, first);
}

/* The largest of logits that can be chosen from, if none is NaN or infinite, and one is above minus infinity. */
static int64_t find_largest(const float *logits, int64_t vocabulary) {
    const sb_choose_loops *loops = sb_choose_loops_best();
    best_token best = {-1, 0};
    for (int64_t i = 0; i < vocabulary; i += SB_CHOOSE_BLOCK) {
        int count = (int)(vocabulary - i < SB_CHOOSE_BLOCK ? vocabulary - i : SB_CHOOSE_BLOCK);
        sb_choose_block block = loops->look(logits + i, count);
        if (block.odd)
            return find_odd(logits, i);
        consider(&best, logits + i, count, i, block.largest);
    }
    return logits[best.token] > -INFINITY ? best.token : sb_choose_failed(SB_CHOOSE_NOTHING, 0);
}

/* ---- noise ---- */

/* Of all tokens. */
static int64_t draw_any(const float *logits, int64_t vocabulary, float factor, const sb_choose_settings *by) {
    const sb_choose_loops *loops = sb_choose_loops_best();
    float noisy[SB_CHOOSE_BLOCK];
    best_token best = {-1, 0};
    for (int64_t i = 0; i < vocabulary; i += SB_CHOOSE_BLOCK) {
        int count = (int)(vocabulary - i < SB_CHOOSE_BLOCK ? vocabulary - i : SB_CHOOSE_BLOCK);
        loops->draw(logits + i, count, factor, by, i, noisy);
        consider(&best, noisy, count, i, loops->look(noisy, count).largest);
    }
    return best.order != INT32_MIN ? best.token : sb_choose_failed(SB_CHOOSE_VANISHED, 0);
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

/* ---- choosing ---- */

static sb_status draw_some(const float *logits, int64_t vocabulary, float factor, const sb_choose_settings *by,
                           int64_t *token, sb_error *error) {
    size_t bytes = (size_t)vocabulary * (2 * sizeof(uint64_t) + sizeof(float));
    uint64_t *keys = sb_allocate(bytes);
    if (keys == NULL)
        return sb_fail_memory(error, bytes);
    uint64_t *order = keys + vocabulary;
    float *scaled = (float *)(void *)(order + vocabulary);
    for (int64_t i = 0; i < vocabulary; i++) {
        scaled[i] = logits[i] * factor;
        keys[i] = sb_choose_key(scaled[i], i);
    }
    sort_keys(keys, order, vocabulary);
    *token = sb_choose_draw(scaled, order, sb_choose_cut(scaled, order, vocabulary, by), by);
    sb_free(keys);
    return SB_OK;
}

sb_status sb_llm_sample(const float *logits, int64_t vocabulary, const sb_llm_sampling *sampling, int64_t position,
                        int64_t *token, sb_error *error) {
    SB_TRY(check_settings(vocabulary, sampling, error));
    *token = find_largest(logits, vocabulary);
    if (*token >= 0 && sampling->temperature != 0) {
        const sb_choose_settings by = sb_llm_choose_settings(sampling, position);
        float factor = sb_div_f32(1.0f, by.temperature);
        if (sb_choose_cuts(by.top_k, by.top_p, by.min_p))
            SB_TRY(draw_some(logits, vocabulary, factor, &by, token, error));
        else
            *token = draw_any(logits, vocabulary, factor, &by);
    }
    return *token >= 0 ? SB_OK : sb_llm_fail_choice(*token, sampling, error);
}
