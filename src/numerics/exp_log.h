/* exp, exp2 and log in f32: branch-free, f32 and integer operations only, so that loops over them
 * vectorise to the same bits on every instruction set. At most 1 ulp from the exact value for every
 * input; subnormal results are rounded, not flushed. Coefficients come from polynomials.sollya. */
#ifndef SB_NUMERICS_EXP_LOG_H
#define SB_NUMERICS_EXP_LOG_H

#include "scalar.h"

/* x = exponent * ln 2 + (high + low), |high| <= 0.347. `high` is exact: the product exponent *
 * SB_LN2_HIGH - x is a multiple of 2^-25 and small. */
typedef struct sb_exp_reduced_f32 {
    float high;
    float low;
    int32_t exponent;
} sb_exp_reduced_f32;

#define SB_LN2_HIGH_F32 0x1.62e430p-1f
#define SB_LN2_LOW_F32 -0x1.05c610p-29f
#define SB_LOG2_E_F32 0x1.715476p+0f

/* Adding 1.5 * 2^23 rounds a float of magnitude below 2^22 to an integer, which then stands in the
 * low bits. A NaN gives a NaN and some integer. */
#define SB_ROUNDING_SHIFT_F32 12582912.0f

static SB_HD_HOT int32_t sb_shifted_integer_f32(float shifted) {
    return (int32_t)(sb_bits_from_f32(shifted) - 0x4b400000u);
}

/* For |x| <= 110. */
static SB_HD_HOT sb_exp_reduced_f32 sb_exp_reduce_f32(float x) {
    float shifted = sb_fma_f32(x, SB_LOG2_E_F32, SB_ROUNDING_SHIFT_F32);
    float count = shifted - SB_ROUNDING_SHIFT_F32;
    sb_exp_reduced_f32 reduced;
    reduced.high = sb_fma_f32(count, -SB_LN2_HIGH_F32, x);
    reduced.low = count * -SB_LN2_LOW_F32;
    reduced.exponent = sb_shifted_integer_f32(shifted);
    return reduced;
}

/* (e^r - 1 - r) / r^2 for |r| <= 0.347, so that e^r - 1 is within 2^-31 relative. */
static SB_HD_HOT float sb_exp_tail_f32(float r) {
    float q = 0x1.a27414p-13f;
    q = sb_fma_f32(q, r, 0x1.6d5152p-10f);
    q = sb_fma_f32(q, r, 0x1.110feep-7f);
    q = sb_fma_f32(q, r, 0x1.5554e4p-5f);
    q = sb_fma_f32(q, r, 0x1.555556p-3f);
    return sb_fma_f32(q, r, 0x1p-1f);
}

/* e^(high + low) - 1 - high: the part of e^r - 1 that needs no extra precision. */
static SB_HD_HOT float sb_exp_rest_f32(float high, float low) {
    float curved = sb_fma_f32(high, sb_exp_tail_f32(high), low);
    return sb_fma_f32(high, curved, low);
}

/* A value as the unevaluated sum of two floats, |low| at most half a unit in the last place of high. */
typedef struct sb_pair_f32 {
    float high;
    float low;
} sb_pair_f32;

/* a + b with its rounding error, for |a| >= |b| or a = 0. */
static SB_HD_HOT sb_pair_f32 sb_ordered_sum_f32(float a, float b) {
    sb_pair_f32 sum;
    sum.high = a + b;
    sum.low = b - (sum.high - a);
    return sum;
}

/* e^(high + low) - 1 to about 2^-28 relative. */
static SB_HD_HOT sb_pair_f32 sb_expm1_pair_f32(sb_exp_reduced_f32 reduced) {
    return sb_ordered_sum_f32(reduced.high, sb_exp_rest_f32(reduced.high, reduced.low));
}

/* e^r 2^exponent - 1 from e^r - 1, to about 2^-28 relative, for -64 <= exponent <= 0. 2^exponent - 1 is not exact below
 * 2^-24, and what it loses counts next to 1. */
static SB_HD_HOT sb_pair_f32 sb_expm1_scale_f32(sb_pair_f32 minus_one, int32_t exponent) {
    float scale = sb_power_of_two_f32(exponent);
    sb_pair_f32 whole = sb_ordered_sum_f32(-1.0f, scale);
    sb_pair_f32 result = sb_ordered_sum_f32(whole.high, scale * minus_one.high);
    result.low += sb_fma_f32(scale, minus_one.low, whole.low);
    return result;
}

/* e^x. exp(-inf) = 0, exp(+inf) = inf. */
static SB_HD_HOT float sb_exp_f32(float x) {
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -105.0f ? -105.0f : clamped;
    sb_exp_reduced_f32 reduced = sb_exp_reduce_f32(clamped);
    float r = reduced.high;
    float p = 0x1.671126p-10f;
    p = sb_fma_f32(p, r, 0x1.123be2p-7f);
    p = sb_fma_f32(p, r, 0x1.555ddep-5f);
    p = sb_fma_f32(p, r, 0x1.55548ep-3f);
    p = sb_fma_f32(p, r, 0x1.fffff4p-2f);
    float rest = sb_fma_f32(r, sb_fma_f32(p, r, reduced.low), reduced.low);
    sb_pair_f32 sum = sb_ordered_sum_f32(1.0f, r);
    return sb_scale_f32(sum.high + (sum.low + rest), reduced.exponent);
}

/* 2^f for |f| <= 0.5. */
static SB_HD_HOT float sb_exp2_fraction_f32(float f) {
    float p = 0x1.3fa208p-13f;
    p = sb_fma_f32(p, f, 0x1.5f0b82p-10f);
    p = sb_fma_f32(p, f, 0x1.3b30a0p-7f);
    p = sb_fma_f32(p, f, 0x1.c6af76p-5f);
    p = sb_fma_f32(p, f, 0x1.ebfbd8p-3f);
    p = sb_fma_f32(p, f, 0x1.62e430p-1f);
    return sb_fma_f32(p, f, 1.0f);
}

/* 2^x; exact for integers. */
static SB_HD_HOT float sb_exp2_f32(float x) {
    float clamped = x > 129.0f ? 129.0f : x;
    clamped = clamped < -151.0f ? -151.0f : clamped;
    float shifted = clamped + SB_ROUNDING_SHIFT_F32;
    float fraction = clamped - (shifted - SB_ROUNDING_SHIFT_F32);
    return sb_scale_f32(sb_exp2_fraction_f32(fraction), sb_shifted_integer_f32(shifted));
}

/* Natural logarithm. log(+-0) = -inf, log of a negative number is NaN. */
static SB_HD_HOT float sb_log_f32(float x) {
    int is_small = x < 0x1p-126f;
    uint32_t bits = sb_bits_from_f32(is_small ? x * 8388608.0f : x);
    /* x = 2^k m, with m from sqrt(1/2) to sqrt(2). */
    int32_t whole = (int32_t)(bits - 0x3f3504f3u) >> 23;
    float m = sb_bits_to_f32(bits - ((uint32_t)whole << 23));
    float k = (float)(whole - (is_small ? 23 : 0));
    float f = m - 1.0f;
    float p = -0x1.355facp-4f;
    p = sb_fma_f32(p, f, 0x1.065834p-3f);
    p = sb_fma_f32(p, f, -0x1.0ebef6p-3f);
    p = sb_fma_f32(p, f, 0x1.22cbd8p-3f);
    p = sb_fma_f32(p, f, -0x1.544bbap-3f);
    p = sb_fma_f32(p, f, 0x1.999f02p-3f);
    p = sb_fma_f32(p, f, -0x1.0002cap-2f);
    p = sb_fma_f32(p, f, 0x1.55555ap-2f);
    float square = f * f;
    float rest = sb_fma_f32(p * f, square, -0.5f * square);
    /* k * ln 2 + f with its rounding error: |k * ln 2| > |f| unless k = 0, when the sum is exact. */
    float base = k * 0x1.62e4p-1f;
    float high = base + f;
    float low = (base - high) + f;
    float result = high + (low + sb_fma_f32(k, 0x1.7f7d1cp-20f, rest));
    result = x > 0.0f ? result : sb_nan_f32();
    result = x == 0.0f ? -sb_infinity_f32() : result;
    return x < sb_infinity_f32() ? result : x;
}

#endif
