/* From a logit to a log-probability: the scalar formulas of sb_linear_logp_forward and _backward
 * (docs/numerics.md, section 9), once for the CPU and for kernels.
 *
 * A logit z is taken as 2^exponent * mantissa = e^(z * inverse_temperature), the mantissa from
 * sqrt(1/2) to sqrt(2). Sums are kept relative to the largest exponent, an integer, so that
 * changing to another one is exact.
 *
 * Columns are cut from 0 into blocks of 128, and those of a block into four lanes, which take the
 * pairs of columns in turn. This is how tensor cores leave a row of a product in the registers of
 * four threads, so that an epilogue behind them needs no memory. */
#ifndef SB_NUMERICS_LOGP_H
#define SB_NUMERICS_LOGP_H

#include "convert.h"
#include "exponent_split.h"
#include "wide.h"

#define SB_LOGP_BLOCK 128
#define SB_LOGP_LANES SB_SPLIT_LANES

#define SB_LOGP_EXPONENT_LIMIT SB_SPLIT_EXPONENT_LIMIT

/* Sums of blocks are added as multiples of 2^-38, an integer sum, which any order of adding leaves the same. A block
 * has at most 128 * sqrt(2) and there are at most 2^17 blocks, so it stays below 2^63. */
#define SB_LOGP_UNIT 0x1p-38f
#define SB_LOGP_UNITS 0x1p38f

/* A block's sum, lane by lane relative to its largest exponent: sum * 2^maximum. When the sum is
 * NaN, the maximum means nothing. */
typedef struct sb_logp_pair {
    int32_t maximum;
    float sum;
} sb_logp_pair;

/* How logits become exponents, of all logits of a call: `scale` is log2(e) * inverse_temperature. */
typedef sb_split_scale_f32 sb_logp_scale;

/* For an inverse temperature from 2^-20 to 2^20. */
static SB_HD sb_logp_scale sb_logp_scale_of(float inverse_temperature) {
    return sb_split_scale_of_f32(inverse_temperature);
}

/* A NaN stays one. */
static SB_HD_HOT float sb_logp_hold(float z, sb_logp_scale s) {
    return sb_split_hold_f32(z, s);
}

/* The next three take a logit that is held: numerics/exponent_split.h. */
static SB_HD_HOT float sb_logp_shifted(float z, sb_logp_scale s) {
    return sb_split_shifted_f32(z, s);
}

static SB_HD_HOT int32_t sb_logp_exponent(float shifted) {
    return sb_split_exponent_f32(shifted);
}

static SB_HD_HOT float sb_logp_mantissa(float z, float shifted, sb_logp_scale s) {
    return sb_exp2_fraction_f32(sb_split_fraction_f32(z, shifted, s));
}

/* 2^(exponent - maximum), and +0 below 2^-126. */
static SB_HD_HOT float sb_logp_factor(int32_t exponent, int32_t maximum) {
    return sb_split_factor_f32(exponent, maximum);
}

/* The lane of a column. */
static SB_HD_HOT int32_t sb_logp_lane(int64_t column) {
    return sb_split_lane(column);
}

/* Adds a term to a lane: the product is exact inside of the fma, so this is the rounded sum. */
static SB_HD_HOT float sb_logp_add(float lane, float mantissa, float factor) {
    return sb_fma_f32(mantissa, factor, lane);
}

/* A block's sum from its lanes. */
static SB_HD_HOT float sb_logp_fold(float lane0, float lane1, float lane2, float lane3) {
    return sb_split_fold_f32(lane0, lane1, lane2, lane3);
}

/* A block's part of the integer sum, cut toward zero, relative to the row's largest exponent. Not
 * for a NaN. */
static SB_HD_HOT int64_t sb_logp_units(sb_logp_pair pair, int32_t maximum) {
    return (int64_t)(pair.sum * SB_LOGP_UNITS * sb_logp_factor(pair.maximum, maximum));
}

/* Whether a row's largest exponent is one that is told apart from others. */
static SB_HD_HOT int sb_logp_is_known(int32_t maximum) {
    return maximum > -SB_LOGP_EXPONENT_LIMIT && maximum < SB_LOGP_EXPONENT_LIMIT;
}

/* A row's pair from the largest exponent and the integer sum of its blocks, of which one may have
 * been NaN: what the backward pass reads. A row that is not known is (0, NaN). */
static SB_HD sb_logp_pair sb_logp_row(int32_t maximum, int64_t units, int has_nan) {
    sb_logp_pair row;
    int known = !has_nan && sb_logp_is_known(maximum);
    row.maximum = known ? maximum : 0;
    row.sum = known ? (float)units * SB_LOGP_UNIT : sb_nan_f32();
    return row;
}

/* log(mantissa * 2^exponent / (units * 2^-38 * 2^maximum)) for the logit z: the quotient of the mantissas, whose
 * logarithm gets the difference of the exponents before it is rounded. No two large numbers are subtracted, and the
 * result is never above 0, since units holds the term itself. */
static SB_HD float sb_logp_finish(float z, sb_logp_scale s, int32_t maximum, int64_t units) {
    float held = sb_logp_hold(z, s), shifted = sb_logp_shifted(held, s);
    int32_t exponent = sb_logp_exponent(shifted);
    double sum = (double)units * (double)SB_LOGP_UNIT;
    double quotient = sb_div_f64((double)sb_logp_mantissa(held, shifted, s), sum);
    sb_wide_split split = sb_wide_split_log(quotient);
    double whole = split.exponent + (double)(exponent - maximum);
    float result = (float)sb_fma_f64(whole, 0x1.62e42fefa39efp-1, sb_wide_log_reduced(split.fraction));
    return exponent > -SB_LOGP_EXPONENT_LIMIT ? result : -sb_infinity_f32();
}

/* What a target is. */
typedef enum sb_logp_target { SB_LOGP_TARGET_VALID, SB_LOGP_TARGET_IGNORED, SB_LOGP_TARGET_INVALID } sb_logp_target;

static SB_HD_HOT sb_logp_target sb_logp_target_kind(int64_t target, int64_t ignore_index, int64_t vocabulary) {
    return target == ignore_index               ? SB_LOGP_TARGET_IGNORED
           : target >= 0 && target < vocabulary ? SB_LOGP_TARGET_VALID
                                                : SB_LOGP_TARGET_INVALID;
}

/* A row's log-probability; z is the target's logit, which is not looked at unless the target is valid. */
static SB_HD float sb_logp_value(sb_logp_target kind, float z, sb_logp_scale s, sb_logp_pair row, int64_t units) {
    if (kind == SB_LOGP_TARGET_IGNORED)
        return 0.0f;
    if (kind == SB_LOGP_TARGET_INVALID || row.sum != row.sum)
        return sb_nan_f32();
    return sb_logp_finish(z, s, row.maximum, units);
}

/* What all gradients of a row's logits have in common. */
typedef struct sb_logp_weight {
    float own;   /* d_logp * inverse_temperature: the target's, before what all columns lose */
    float share; /* … over the sum */
    int32_t maximum;
    int32_t is_ignored;
} sb_logp_weight;

static SB_HD_HOT sb_logp_weight sb_logp_weight_of(sb_logp_target kind, float d_logp, float inverse_temperature,
                                                  int32_t maximum, float sum) {
    sb_logp_weight weight;
    weight.own = kind == SB_LOGP_TARGET_INVALID ? sb_nan_f32() : d_logp * inverse_temperature;
    weight.share = sb_div_f32(weight.own, sum);
    weight.maximum = maximum;
    weight.is_ignored = kind == SB_LOGP_TARGET_IGNORED;
    return weight;
}

/* The gradient of one logit, not rounded to 16 bits yet. */
static SB_HD_HOT float sb_logp_gradient(float z, sb_logp_scale s, sb_logp_weight weight, int is_target) {
    float held = sb_logp_hold(z, s), shifted = sb_logp_shifted(held, s);
    float factor = sb_logp_factor(sb_logp_exponent(shifted), weight.maximum);
    float term = sb_logp_mantissa(held, shifted, s) * factor;
    float gradient = sb_fma_f32(-term, weight.share, is_target ? weight.own : 0.0f);
    return weight.is_ignored ? 0.0f : gradient;
}

#endif
