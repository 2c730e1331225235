/* The logistic function and softplus in f32. */
#ifndef SB_NUMERICS_LOGISTIC_H
#define SB_NUMERICS_LOGISTIC_H

#include "exp_log.h"
#include "wide.h"

/* 1 / (1 + e^-x), at most 1 ulp, branch-free. With e = e^-|x| kept in two floats it is 1/(1+e) or
 * e/(1+e): one division, then a correction from its exact remainder. In two halves, which loops may go through one after the
 * other: the first gives e - 1 in two floats, without its power of two. */
static SB_HD_HOT sb_exp_reduced_f32 sb_sigmoid_begin_f32(float x) {
    float a = sb_abs_f32(x);
    a = a > 105.0f ? 105.0f : a;
    sb_exp_reduced_f32 reduced = sb_exp_reduce_f32(-a);
    sb_pair_f32 minus_one = sb_expm1_pair_f32(reduced);
    reduced.high = minus_one.high;
    reduced.low = minus_one.low;
    return reduced;
}

static SB_HD_HOT float sb_sigmoid_end_f32(float x, sb_exp_reduced_f32 begun) {
    sb_pair_f32 e = sb_ordered_sum_f32(1.0f, begun.high);
    e.low += begun.low;
    /* Below 2^-64 the denominator is 1; the clamp keeps the power of two representable. */
    float scale = sb_power_of_two_f32(begun.exponent < -64 ? -64 : begun.exponent);
    sb_pair_f32 d = sb_ordered_sum_f32(1.0f, scale * e.high);
    d.low = sb_fma_f32(scale, e.low, d.low);
    int is_negative = x < 0.0f;
    sb_pair_f32 n;
    n.high = is_negative ? e.high : 1.0f;
    n.low = is_negative ? e.low : 0.0f;
    float inverse = sb_reciprocal_f32(d.high);
    float quotient = n.high * inverse;
    float remainder = sb_fma_f32(-quotient, d.high, n.high) + sb_fma_f32(-quotient, d.low, n.low);
    float result = sb_fma_f32(remainder, inverse, quotient);
    return sb_scale_f32(result, is_negative ? begun.exponent : 0);
}

static SB_HD_HOT float sb_sigmoid_f32(float x) {
    return sb_sigmoid_end_f32(x, sb_sigmoid_begin_f32(x));
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|). softplus(-inf) = 0, softplus(+inf) = inf. */
static SB_HD float sb_softplus_f32(float x) {
    double wide = (double)x;
    double negative = wide > 0.0 ? -wide : wide;
    negative = negative < -200.0 ? -200.0 : negative;
    double correction = sb_wide_log1p(sb_wide_exp(negative));
    return (float)((wide > 0.0 ? wide : 0.0) + (wide == wide ? correction : wide));
}

#endif
