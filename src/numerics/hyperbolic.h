/* Hyperbolic functions and their inverses in f32. */
#ifndef SB_NUMERICS_HYPERBOLIC_H
#define SB_NUMERICS_HYPERBOLIC_H

#include "exp_log.h"
#include "wide.h"

/* tanh(x), at most 1 ulp, branch-free: with N = e^(-2|x|) - 1 kept in two floats, tanh|x| = -N / (2 + N): one division,
 * then a correction from its exact remainder. */
static SB_HD_HOT sb_exp_reduced_f32 sb_tanh_begin_f32(float x) {
    float a = sb_abs_f32(x);
    a = a > 9.5f ? 9.5f : a;
    sb_exp_reduced_f32 reduced = sb_exp_reduce_f32(-2.0f * a);
    sb_pair_f32 minus_one = sb_expm1_pair_f32(reduced);
    reduced.high = minus_one.high;
    reduced.low = minus_one.low;
    return reduced;
}

static SB_HD_HOT float sb_tanh_end_f32(float x, sb_exp_reduced_f32 begun) {
    sb_pair_f32 minus_one;
    minus_one.high = begun.high;
    minus_one.low = begun.low;
    sb_pair_f32 n = sb_expm1_scale_f32(minus_one, begun.exponent);
    sb_pair_f32 d = sb_ordered_sum_f32(2.0f, n.high);
    d.low += n.low;
    float inverse = sb_reciprocal_f32(d.high);
    float quotient = n.high * inverse;
    float remainder = sb_fma_f32(-quotient, d.high, n.high) + sb_fma_f32(-quotient, d.low, n.low);
    float result = sb_copysign_f32(sb_fma_f32(remainder, inverse, quotient), x);
    return x == x ? result : x;
}

static SB_HD_HOT float sb_tanh_f32(float x) {
    return sb_tanh_end_f32(x, sb_tanh_begin_f32(x));
}

/* With E = e^|x| - 1, sinh|x| = (E + E/(E+1)) / 2. */
static SB_HD float sb_sinh_f32(float x) {
    double a = (double)sb_abs_f32(x);
    double e = sb_wide_expm1(a > 100.0 ? 100.0 : a);
    float result = sb_copysign_f32((float)(0.5 * (e + sb_div_f64(e, e + 1.0))), x);
    return x == x ? result : x;
}

static SB_HD float sb_cosh_f32(float x) {
    double a = (double)sb_abs_f32(x);
    double e = sb_wide_exp(a > 100.0 ? 100.0 : a);
    return x == x ? (float)(0.5 * (e + sb_div_f64(1.0, e))) : x;
}

/* log(a + sqrt(a^2 + 1)), arranged so that small arguments keep their relative accuracy. */
static SB_HD float sb_asinh_f32(float x) {
    double a = (double)sb_abs_f32(x);
    double square = a * a;
    double u = a + sb_div_f64(square, 1.0 + sb_sqrt_f64(square + 1.0));
    float result = sb_copysign_f32((float)sb_wide_log1p(u), x);
    return a < (double)sb_infinity_f32() ? result : x;
}

/* log(x + sqrt(x^2 - 1)); NaN below 1. */
static SB_HD float sb_acosh_f32(float x) {
    double t = (double)x - 1.0;
    double safe = t >= 0.0 ? t : 0.0;
    double u = safe + sb_sqrt_f64(safe * (safe + 2.0));
    float result = t >= 0.0 ? (float)sb_wide_log1p(u) : sb_nan_f32();
    return x < sb_infinity_f32() ? result : x;
}

/* log((1 + x) / (1 - x)) / 2; infinite at +-1, NaN beyond. */
static SB_HD float sb_atanh_f32(float x) {
    double a = (double)sb_abs_f32(x);
    double safe = a < 1.0 ? a : 0.0;
    float inside = (float)(0.5 * sb_wide_log1p(sb_div_f64(2.0 * safe, 1.0 - safe)));
    float result = a < 1.0 ? inside : a == 1.0 ? sb_infinity_f32() : sb_nan_f32();
    return sb_copysign_f32(result, x);
}

#endif
