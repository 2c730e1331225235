/* Scores to weights, compiled once per instruction set: plain loops over the keys of a block, which the compiler turns into
 * vectors. What depends on the types is chosen outside of them. */
#include "cpu/attention/weigh.h"

#include "base/isa.h"
#include "cpu/simd.h"
#include "numerics/convert.h"

#define ALWAYS SB_VF_INLINE
#define BLOCK SB_ATTENTION_BLOCK
#define NOT_SEEN (-SB_SPLIT_EXPONENT_LIMIT)

/* ---- scores ---- */

static void finish(const sb_attention_formula *formula, int count, const float *bias, float *s) {
    const float scale = formula->scale, cap = formula->cap;
    if (cap != 0) {
        for (int j = 0; j < count; j++)
            s[j] = sb_attention_finish_f32(s[j], scale, cap, 0, 0);
    } else {
        for (int j = 0; j < count; j++)
            s[j] = sb_attention_finish_f32(s[j], scale, 0, 0, 0);
    }
    if (formula->biased) {
        for (int j = 0; j < count; j++)
            s[j] = s[j] + bias[j];
    }
}

/* The scores' exponents: n is NOT_SEEN where a key is masked. Returns the largest; *wrong becomes whether one that is seen is NaN
 * or too large. */
ALWAYS int32_t find_exponents(sb_split_scale_f32 split, int count, int first, int last, const float *bias,
                              const float *s, int32_t *n, bool *wrong) {
    int32_t largest = NOT_SEEN, bad = 0;
    for (int j = 0; j < count; j++) {
        const float held = sb_split_hold_f32(s[j], split);
        const int32_t exponent = sb_split_exponent_f32(sb_split_shifted_f32(held, split));
        int32_t seen = (j >= first) & (j < last);
        if (bias != NULL)
            seen &= bias[j] != -sb_infinity_f32();
        bad |= seen & ((held != held) | (exponent >= SB_SPLIT_EXPONENT_LIMIT));
        n[j] = seen ? exponent : NOT_SEEN;
        largest = n[j] > largest ? n[j] : largest;
    }
    *wrong = bad != 0;
    return largest;
}

/* ---- weights ---- */

/* Scores become weights. `dtype` is a constant at every call. Returns how many are not +0. Loops apart, as the compiler takes them. */
ALWAYS int weigh_as(sb_dtype dtype, sb_split_scale_f32 split, int count, const int32_t *n, int32_t maximum,
                    float *weights, uint16_t *stored) {
    int32_t there = 0;
    for (int j = 0; j < count; j++) {
        const float weight = sb_attention_weight_f32(dtype, weights[j], split, maximum);
        weights[j] = n[j] > NOT_SEEN ? weight : 0.0f;
    }
    for (int j = 0; j < count && dtype != SB_F32; j++)
        stored[j] = dtype == SB_BF16 ? sb_bf16_from_f32(weights[j]) : sb_f16_from_f32(weights[j]);
    for (int j = 0; j < count && dtype != SB_F32; j++)
        weights[j] = dtype == SB_BF16 ? sb_bf16_to_f32(stored[j]) : sb_f16_to_f32(stored[j]);
    for (int j = 0; j < count; j++)
        there += weights[j] != 0;
    return there;
}

/* Lane l adds, of each eight, keys 2 l and 2 l + 1. Four lanes are a vector on every machine. */
typedef float lanes4 __attribute__((vector_size(16), aligned(4), may_alias));

static void add_to_lanes(int count, const float *weights, float *lanes) {
    lanes4 sum = *(const lanes4 *)(const void *)lanes;
    for (int j = 0; j < count; j += 8) {
        const lanes4 low = *(const lanes4 *)(const void *)(weights + j);
        const lanes4 high = *(const lanes4 *)(const void *)(weights + j + 4);
        sum = sum + __builtin_shufflevector(low, high, 0, 2, 4, 6);
        sum = sum + __builtin_shufflevector(low, high, 1, 3, 5, 7);
    }
    *(lanes4 *)(void *)lanes = sum;
}

static sb_attention_marks weigh(const sb_attention_formula *formula, int count, int first, int last, const float *bias,
                                float *scores, uint16_t *stored, sb_attention_sum *row) {
    int32_t n[BLOCK], largest;
    bool wrong;
    sb_attention_marks marks = {.factor = 1};
    const int whole = (count + 15) & ~15;
    if (!formula->direct)
        finish(formula, count, bias, scores);
    if (bias != NULL)
        largest = find_exponents(formula->split, whole, first, last, bias, scores, n, &wrong);
    else
        largest = find_exponents(formula->split, whole, first, last, NULL, scores, n, &wrong);
    row->is_nan = row->is_nan || wrong;
    if (row->is_nan || largest == NOT_SEEN) {
        memset(scores, 0, (size_t)whole * sizeof *scores);
        if (formula->dtype != SB_F32)
            memset(stored, 0, (size_t)whole * sizeof *stored);
        return marks;
    }
    if (row->any && largest > row->maximum) {
        marks.factor = sb_split_factor_f32(row->maximum, largest);
        for (int lane = 0; lane < SB_SPLIT_LANES; lane++)
            row->lanes[lane] = row->lanes[lane] * marks.factor;
    }
    row->maximum = row->any && row->maximum > largest ? row->maximum : largest;
    row->any = true;
    int there;
    if (formula->dtype == SB_BF16)
        there = weigh_as(SB_BF16, formula->split, whole, n, row->maximum, scores, stored);
    else if (formula->dtype == SB_F16)
        there = weigh_as(SB_F16, formula->split, whole, n, row->maximum, scores, stored);
    else
        there = weigh_as(SB_F32, formula->split, whole, n, row->maximum, scores, NULL);
    add_to_lanes(whole, scores, row->lanes);
    if (there == 0)
        return marks;
    marks.first = first;
    marks.last = last;
    while (scores[marks.first] == 0)
        marks.first++;
    while (scores[marks.last - 1] == 0)
        marks.last--;
    marks.gaps = there < marks.last - marks.first;
    return marks;
}

/* ---- masks and sums ---- */

#define LOAD_BIAS(type, value)                                                                                         \
    do {                                                                                                               \
        const type *from = (const type *)(const void *)mask;                                                           \
        if (step == 1) {                                                                                               \
            for (int j = 0; j < count; j++)                                                                            \
                bias[j] = value(from[j]);                                                                              \
        } else {                                                                                                       \
            for (int j = 0; j < count; j++)                                                                            \
                bias[j] = value(from[j * step]);                                                                       \
        }                                                                                                              \
    } while (0)
#define BIAS_OF_TRUTH(x) ((x) != 0 ? 0.0f : -sb_infinity_f32())
#define BIAS_OF_F32(x) (x)

static void load_bias(sb_dtype dtype, const char *mask, int64_t step, int count, float *bias) {
    if (dtype == SB_BOOL)
        LOAD_BIAS(uint8_t, BIAS_OF_TRUTH);
    else if (dtype == SB_F16)
        LOAD_BIAS(uint16_t, sb_f16_to_f32);
    else if (dtype == SB_BF16)
        LOAD_BIAS(uint16_t, sb_bf16_to_f32);
    else
        LOAD_BIAS(float, BIAS_OF_F32);
}

static void scale(float *values, int64_t count, float factor) {
    for (int64_t i = 0; i < count; i++)
        values[i] = values[i] * factor;
}

static void fold(float *total, float total_factor, const float *sums, float sums_factor, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        total[i] = total[i] * total_factor + sums[i] * sums_factor;
}

extern const sb_attention_kernels SB_ISA_NAME(sb_attention_kernels);
const sb_attention_kernels SB_ISA_NAME(sb_attention_kernels) = {weigh, load_bias, scale, fold};
