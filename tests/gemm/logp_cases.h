/* Log-probabilities for tests: operands, and the definition of docs/numerics.md, section 9, written
 * down once more by plain loops. Include after cmocka.h. */
#ifndef LOGP_CASES_H
#define LOGP_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/logp.h>

#include "numerics/chain.h"
#include "numerics/convert.h"
#include "numerics/exp_log.h"
#include "numerics/wide.h"
#include "support/random.h"

#define LOGP_MOST_SAMPLES 8

typedef struct logp_case {
    sb_dtype dtype, d_hidden_dtype;
    int64_t m, k, v;
    float inverse_temperature;
    int64_t ignore_index;
    bool by_words; /* weight and d_weight are [V, K], else [K, V] */
    int64_t gap;   /* between rows of every matrix */
    bool accumulate, wants_d_hidden, wants_d_weight;
    bool rounds_d_weight; /* to 16 bits, which lie in the same room */
    int samples;          /* 0: no row map */
    int64_t lengths[LOGP_MOST_SAMPLES];

    uint16_t *hidden, *weight;
    int64_t *targets;
    float *d_logp;
    /* What a pass writes, or what it should. */
    float *logp, *sum;
    int32_t *maximum;
    char *d_hidden;
    float *d_weight;
} logp_case;

static inline void *logp_room(int64_t count, size_t size) {
    void *room = calloc((size_t)count + 1, size);
    assert_non_null(room);
    return room;
}

static inline int64_t logp_hidden_elements(const logp_case *c) {
    return c->m * (c->k + c->gap);
}

static inline int64_t logp_weight_elements(const logp_case *c) {
    return c->by_words ? c->v * (c->k + c->gap) : c->k * (c->v + c->gap);
}

/* Gives a case, whose settings are there, its memory, all zeros. */
static inline void logp_allocate(logp_case *c) {
    c->hidden = logp_room(logp_hidden_elements(c), 2);
    c->weight = logp_room(logp_weight_elements(c), 2);
    c->targets = logp_room(c->m, 8);
    c->d_logp = logp_room(c->m, 4);
    c->logp = logp_room(c->m, 4);
    c->sum = logp_room(c->m, 4);
    c->maximum = logp_room(c->m, 4);
    c->d_hidden = logp_room(logp_hidden_elements(c), 4);
    c->d_weight = logp_room(logp_weight_elements(c), 4);
}

static inline void logp_free(logp_case *c) {
    free(c->hidden);
    free(c->weight);
    free(c->targets);
    free(c->d_logp);
    free(c->logp);
    free(c->sum);
    free(c->maximum);
    free(c->d_hidden);
    free(c->d_weight);
}

static inline void *logp_copy_of(const void *from, int64_t count, size_t size) {
    void *copy = logp_room(count, size);
    memcpy(copy, from, (size_t)count * size);
    return copy;
}

/* Another case with copies of everything. */
static inline logp_case logp_clone(const logp_case *c) {
    logp_case other = *c;
    other.hidden = logp_copy_of(c->hidden, logp_hidden_elements(c), 2);
    other.weight = logp_copy_of(c->weight, logp_weight_elements(c), 2);
    other.targets = logp_copy_of(c->targets, c->m, 8);
    other.d_logp = logp_copy_of(c->d_logp, c->m, 4);
    other.logp = logp_copy_of(c->logp, c->m, 4);
    other.sum = logp_copy_of(c->sum, c->m, 4);
    other.maximum = logp_copy_of(c->maximum, c->m, 4);
    other.d_hidden = logp_copy_of(c->d_hidden, logp_hidden_elements(c), 4);
    other.d_weight = logp_copy_of(c->d_weight, logp_weight_elements(c), 4);
    return other;
}

static inline uint16_t logp_from_f32(sb_dtype dtype, float value) {
    return dtype == SB_BF16 ? sb_bf16_from_f32(value) : sb_f16_from_f32(value);
}

static inline float logp_to_f32(sb_dtype dtype, uint16_t bits) {
    return dtype == SB_BF16 ? sb_bf16_to_f32(bits) : sb_f16_to_f32(bits);
}

static inline int64_t logp_weight_at(const logp_case *c, int64_t k, int64_t v) {
    return c->by_words ? v * (c->k + c->gap) + k : k * (c->v + c->gap) + v;
}

static inline float logp_uniform(random_source *random) {
    return (float)(int32_t)(uint32_t)random_bits(random) * 0x1p-31f;
}

/* Fills what is read, and what is accumulated to. `spread` is about the size of the logits;
 * `special` strews in what is not an ordinary number. */
static inline void logp_fill(logp_case *c, random_source *random, float spread, bool special) {
    float each = c->k > 0 ? spread / sqrtf((float)c->k) : 0.0f;
    static const float odd[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e30f, -1e30f, 1e-40f, 60000.0f, -60000.0f};
    for (int64_t i = 0; i < logp_hidden_elements(c); i++)
        c->hidden[i] = logp_from_f32(c->dtype, 2 * logp_uniform(random));
    for (int64_t i = 0; i < logp_weight_elements(c); i++) {
        bool is_odd = special && random_between(random, 0, 40 * c->v) == 0;
        c->weight[i] =
            logp_from_f32(c->dtype, is_odd ? odd[random_between(random, 0, 9)] : each * logp_uniform(random));
    }
    for (int64_t row = 0; row < c->m; row++) {
        bool is_ignored = c->v == 0 || random_between(random, 0, 5) == 0;
        c->targets[row] = is_ignored ? c->ignore_index : random_between(random, 0, c->v - 1);
        c->d_logp[row] = logp_uniform(random);
        if (special && c->k > 0 && random_between(random, 0, 3) == 0)
            c->hidden[row * (c->k + c->gap)] = logp_from_f32(c->dtype, odd[random_between(random, 0, 9)]);
    }
    for (int64_t i = 0; i < logp_weight_elements(c); i++)
        c->d_weight[i] = logp_uniform(random);
}

/* A case of any kind; small numbers more often than large ones. */
static inline logp_case logp_random(random_source *random, int64_t most_v) {
    static const float temperatures[] = {1.0f, 1.0f, 1.0f / 0.7f, 0.5f, 0x1p-20f, 0x1p20f};
    static const int64_t ignored[] = {-100, -100, 0, INT64_MIN, INT64_MAX};
    logp_case c = {0};
    bool special = random_between(random, 0, 2) == 0;
    c.dtype = random_between(random, 0, 1) ? SB_BF16 : SB_F16;
    c.d_hidden_dtype = random_between(random, 0, 1) ? SB_F32 : c.dtype;
    c.m = random_between(random, 0, random_between(random, 0, 40));
    c.k = random_between(random, 0, random_between(random, 0, 50));
    c.v = random_between(random, 0, 20) ? random_between(random, 1, random_between(random, 1, most_v)) : 0;
    c.inverse_temperature = temperatures[random_between(random, 0, 5)];
    c.ignore_index = ignored[random_between(random, 0, 4)];
    c.by_words = random_between(random, 0, 1);
    c.gap = random_between(random, 0, 3) ? 0 : random_between(random, 1, 5);
    c.accumulate = random_between(random, 0, 1);
    c.wants_d_hidden = random_between(random, 0, 4) != 0;
    c.wants_d_weight = random_between(random, 0, 4) != 0;
    if (random_between(random, 0, 1)) {
        int64_t rest = c.m;
        c.samples = (int)random_between(random, 1, LOGP_MOST_SAMPLES);
        for (int i = 0; i < c.samples; i++) {
            c.lengths[i] = i + 1 < c.samples ? random_between(random, 0, rest) : rest;
            rest -= c.lengths[i];
        }
    }
    logp_allocate(&c);
    logp_fill(&c, random, (float)(random_between(random, 0, 3) * 10), special);
    return c;
}

/* ---- descriptions ---- */

static inline sb_matrix logp_matrix(sb_dtype dtype, const void *data, int64_t rows, int64_t columns, int64_t gap) {
    return (sb_matrix){.dtype = dtype,
                       .data = (void *)data,
                       .rows = rows,
                       .columns = columns,
                       .row_stride = columns + gap,
                       .column_stride = 1};
}

static inline sb_matrix logp_weight_matrix(const logp_case *c, sb_dtype dtype, const void *data) {
    if (!c->by_words)
        return logp_matrix(dtype, data, c->k, c->v, c->gap);
    return (sb_matrix){.dtype = dtype,
                       .data = (void *)data,
                       .rows = c->k,
                       .columns = c->v,
                       .row_stride = 1,
                       .column_stride = c->k + c->gap};
}

static inline sb_linear_logp logp_describe(const logp_case *c) {
    sb_linear_logp logp = SB_LINEAR_LOGP_DEFAULT;
    logp.hidden = logp_matrix(c->dtype, c->hidden, c->m, c->k, c->gap);
    logp.weight = logp_weight_matrix(c, c->dtype, c->weight);
    logp.targets = c->targets;
    logp.ignore_index = c->ignore_index;
    logp.inverse_temperature = c->inverse_temperature;
    logp.logp = c->logp;
    logp.maximum = c->maximum;
    logp.sum = c->sum;
    return logp;
}

static inline sb_linear_logp_gradient logp_describe_gradient(const logp_case *c, const sb_row_map *map) {
    sb_linear_logp_gradient gradient = SB_LINEAR_LOGP_GRADIENT_DEFAULT;
    gradient.d_logp = c->d_logp;
    if (c->wants_d_hidden)
        gradient.d_hidden = logp_matrix(c->d_hidden_dtype, c->d_hidden, c->m, c->k, c->gap);
    if (c->wants_d_weight)
        gradient.d_weight = logp_weight_matrix(c, c->rounds_d_weight ? c->dtype : SB_F32, c->d_weight);
    gradient.accumulate = c->accumulate;
    gradient.rows = map;
    return gradient;
}

/* ---- the definition ---- */

static inline float logp_chain(const logp_case *c, const uint16_t *a, int64_t a_stride, const uint16_t *b,
                               int64_t b_stride, int64_t count, float start) {
    sb_chain16_format format = c->dtype == SB_BF16 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    float chain = sb_chain16(a, a_stride, b, b_stride, count, start, format);
    return chain == chain ? chain : sb_nan_f32();
}

static inline void logp_define_logits(const logp_case *c, int64_t row, float *logits) {
    int64_t step = logp_weight_at(c, 1, 0) - logp_weight_at(c, 0, 0);
    for (int64_t v = 0; v < c->v; v++)
        logits[v] =
            logp_chain(c, c->hidden + row * (c->k + c->gap), 1, c->weight + logp_weight_at(c, 0, v), step, c->k, 0.0f);
}

/* 2^exponent * mantissa for a logit. */
typedef struct logp_parts {
    int64_t exponent;
    float mantissa;
} logp_parts;

static inline logp_parts logp_take_apart(const logp_case *c, float z) {
    float scale = c->inverse_temperature * 1.44269502162933349609375f;
    float bound = 2097152.0f / scale;
    if (z != z)
        return (logp_parts){INT64_MIN, z};
    z = z > bound ? bound : z < -bound ? -bound : z;
    /* Products of floats, and what is left of them, are exact in double. */
    double x = (double)z * (double)scale, nearest = nearbyint(x);
    return (logp_parts){(int64_t)nearest, sb_exp2_fraction_f32((float)(x - nearest))};
}

/* x * 2^exponent, and nothing below 2^-126 of x. */
static inline float logp_relative(float x, int64_t exponent) {
    return exponent < -126 ? 0.0f : ldexpf(x, (int)exponent);
}

/* A row's largest exponent and its sum in units of 2^-38; false when it has none. */
static inline bool logp_define_sum(const logp_case *c, const float *logits, int64_t *maximum, int64_t *units) {
    bool is_known = c->v > 0;
    *maximum = INT64_MIN;
    *units = 0;
    for (int64_t v = 0; v < c->v; v++) {
        int64_t exponent = logp_take_apart(c, logits[v]).exponent;
        is_known = is_known && logits[v] == logits[v];
        *maximum = exponent > *maximum ? exponent : *maximum;
    }
    if (!is_known || *maximum <= -2097152 || *maximum >= 2097152)
        return false;
    for (int64_t first = 0; first < c->v; first += 128) {
        int64_t end = first + 128 < c->v ? first + 128 : c->v, largest = INT64_MIN;
        float lanes[4] = {0};
        for (int64_t v = first; v < end; v++) {
            int64_t exponent = logp_take_apart(c, logits[v]).exponent;
            largest = exponent > largest ? exponent : largest;
        }
        for (int64_t v = first; v < end; v++) {
            logp_parts parts = logp_take_apart(c, logits[v]);
            float factor = logp_relative(1.0f, parts.exponent - largest), *lane = &lanes[v % 8 / 2];
            *lane = fmaf(parts.mantissa, factor, *lane);
        }
        float sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
        *units += (int64_t)logp_relative(ldexpf(sum, 38), largest - *maximum);
    }
    return true;
}

static inline bool logp_is_valid(const logp_case *c, int64_t row) {
    return c->targets[row] != c->ignore_index && c->targets[row] >= 0 && c->targets[row] < c->v;
}

/* The forward pass, into the case's own memory. */
static inline void logp_define_forward(logp_case *c) {
    float *logits = logp_room(c->v, 4);
    for (int64_t row = 0; row < c->m; row++) {
        int64_t maximum, units;
        logp_define_logits(c, row, logits);
        bool is_known = logp_define_sum(c, logits, &maximum, &units);
        c->maximum[row] = is_known ? (int32_t)maximum : 0;
        c->sum[row] = is_known ? (float)units * 0x1p-38f : sb_nan_f32();
        if (c->targets[row] == c->ignore_index) {
            c->logp[row] = 0.0f;
        } else if (!is_known || !logp_is_valid(c, row)) {
            c->logp[row] = sb_nan_f32();
        } else {
            logp_parts parts = logp_take_apart(c, logits[c->targets[row]]);
            sb_wide_split split = sb_wide_split_log((double)parts.mantissa / ((double)units * 0x1p-38));
            double whole = split.exponent + (double)(parts.exponent - maximum);
            c->logp[row] = (float)fma(whole, 0x1.62e42fefa39efp-1, sb_wide_log_reduced(split.fraction));
            if (parts.exponent <= -2097152)
                c->logp[row] = -INFINITY;
        }
    }
    free(logits);
}

static inline void logp_define_gradients(const logp_case *c, int64_t row, const float *logits, uint16_t *gradients) {
    float own = c->d_logp[row] * c->inverse_temperature;
    float share = own / c->sum[row];
    for (int64_t v = 0; v < c->v; v++) {
        logp_parts parts = logp_take_apart(c, logits[v]);
        float term =
            c->sum[row] != c->sum[row] ? NAN : parts.mantissa * logp_relative(1.0f, parts.exponent - c->maximum[row]);
        float gradient = fmaf(-term, share, v == c->targets[row] ? own : 0.0f);
        bool is_ignored = c->targets[row] == c->ignore_index;
        gradients[v] = logp_from_f32(c->dtype, is_ignored ? 0.0f : !logp_is_valid(c, row) ? NAN : gradient);
    }
}

/* Continues d_weight's chains over the rows of each sample, or of all. */
static inline void logp_define_d_weight(logp_case *c, const uint16_t *gradients) {
    const int64_t all = c->m, *lengths = c->samples > 0 ? c->lengths : &all;
    int samples = c->samples > 0 ? c->samples : 1;
    for (int64_t k = 0; k < c->k; k++) {
        for (int64_t v = 0; v < c->v; v++) {
            float *at = &c->d_weight[logp_weight_at(c, k, v)], chain = c->accumulate ? *at : 0.0f;
            int64_t row = 0;
            for (int i = 0; i < samples; row += lengths[i++])
                chain = logp_chain(c, c->hidden + row * (c->k + c->gap) + k, c->k + c->gap, gradients + row * c->v + v,
                                   c->v, lengths[i], chain);
            *at = chain;
        }
    }
}

/* The backward pass from the case's own maximum and sum. */
static inline void logp_define_backward(logp_case *c) {
    uint16_t *gradients = logp_room(c->m * c->v, 2);
    float *logits = logp_room(c->v, 4);
    int64_t step = logp_weight_at(c, 0, 1) - logp_weight_at(c, 0, 0);
    for (int64_t row = 0; row < c->m; row++) {
        logp_define_logits(c, row, logits);
        logp_define_gradients(c, row, logits, gradients + row * c->v);
        for (int64_t k = 0; k < c->k && c->wants_d_hidden; k++) {
            float chain =
                logp_chain(c, gradients + row * c->v, 1, c->weight + logp_weight_at(c, k, 0), step, c->v, 0.0f);
            uint16_t rounded = logp_from_f32(c->dtype, chain);
            int64_t at = row * (c->k + c->gap) + k;
            if (c->d_hidden_dtype == SB_F32)
                memcpy(c->d_hidden + at * 4, &chain, 4);
            else
                memcpy(c->d_hidden + at * 2, &rounded, 2);
        }
    }
    if (c->wants_d_weight)
        logp_define_d_weight(c, gradients);
    free(gradients);
    free(logits);
}

/* ---- comparing ---- */

static inline bool logp_same(const void *one, const void *other, int64_t count, size_t size) {
    return memcmp(one, other, (size_t)count * size) == 0;
}

/* What differs between what two cases' passes wrote, to the byte; NULL when nothing does. */
static inline const char *logp_difference(const logp_case *one, const logp_case *other) {
    if (!logp_same(one->logp, other->logp, one->m, 4))
        return "logp";
    if (!logp_same(one->maximum, other->maximum, one->m, 4))
        return "maximum";
    if (!logp_same(one->sum, other->sum, one->m, 4))
        return "sum";
    if (!logp_same(one->d_hidden, other->d_hidden, logp_hidden_elements(one), 4))
        return "d_hidden";
    if (!logp_same(one->d_weight, other->d_weight, logp_weight_elements(one), 4))
        return "d_weight";
    return NULL;
}

#define LOGP_CHECK_SAME(one, other, how)                                                                               \
    do {                                                                                                               \
        const char *different_ = logp_difference((one), (other));                                                      \
        if (different_ != NULL)                                                                                        \
            fail_msg("%s: %s differs: %s, m %lld, k %lld, v %lld, temperature 1/%g, gap %lld, "                        \
                     "%d samples",                                                                                     \
                     (how), different_, sb_dtype_name((one)->dtype), (long long)(one)->m, (long long)(one)->k,         \
                     (long long)(one)->v, (double)(one)->inverse_temperature, (long long)(one)->gap, (one)->samples);  \
    } while (0)

#endif
