/* The logistic function and softplus in f32. */
#ifndef IV_NUMERICS_LOGISTIC_H
#define IV_NUMERICS_LOGISTIC_H

#include "exp_log.h"
#include "wide.h"

/* 1 / (1 + e^-x), at most 1 ulp, branch-free. With e = e^-|x| kept in two floats it is 1/(1+e) or
 * e/(1+e): one division, then a correction from its exact remainder. */
static IV_HD_HOT float iv_sigmoid_f32(float x) {
    float a = iv_abs_f32(x);
    a = a > 105.0f ? 105.0f : a;
    iv_exp_reduced_f32 reduced = iv_exp_reduce_f32(-a);
    iv_pair_f32 minus_one = iv_expm1_pair_f32(reduced);
    iv_pair_f32 e = iv_ordered_sum_f32(1.0f, minus_one.high);
    e.low += minus_one.low;
    /* Below 2^-64 the denominator is 1; the clamp keeps the power of two representable. */
    float scale = iv_power_of_two_f32(reduced.exponent < -64 ? -64 : reduced.exponent);
    iv_pair_f32 d = iv_ordered_sum_f32(1.0f, scale * e.high);
    d.low = iv_fma_f32(scale, e.low, d.low);
    int is_negative = x < 0.0f;
    iv_pair_f32 n;
    n.high = is_negative ? e.high : 1.0f;
    n.low = is_negative ? e.low : 0.0f;
    float inverse = iv_div_f32(1.0f, d.high);
    float quotient = n.high * inverse;
    float remainder = iv_fma_f32(-quotient, d.high, n.high) + iv_fma_f32(-quotient, d.low, n.low);
    float result = iv_fma_f32(remainder, inverse, quotient);
    return iv_scale_f32(result, is_negative ? reduced.exponent : 0);
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|). softplus(-inf) = 0, softplus(+inf) = inf. */
static IV_HD float iv_softplus_f32(float x) {
    double wide = (double)x;
    double negative = wide > 0.0 ? -wide : wide;
    negative = negative < -200.0 ? -200.0 : negative;
    double correction = iv_wide_log1p(iv_wide_exp(negative));
    return (float)((wide > 0.0 ? wide : 0.0) + (wide == wide ? correction : wide));
}

#endif
