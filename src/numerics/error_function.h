/* The error function in f32. */
#ifndef SB_NUMERICS_ERROR_FUNCTION_H
#define SB_NUMERICS_ERROR_FUNCTION_H

#include "exp_log.h"

/* The S of erf below. */
static SB_HD_HOT float sb_erf_bend_f32(float a) {
    float s = 0x1.3b1372p-20f;
    s = sb_fma_f32(s, a, -0x1.62d97ep-16f);
    s = sb_fma_f32(s, a, 0x1.5d6806p-13f);
    s = sb_fma_f32(s, a, -0x1.834c08p-11f);
    s = sb_fma_f32(s, a, 0x1.d7037ep-10f);
    s = sb_fma_f32(s, a, -0x1.074aaap-12f);
    s = sb_fma_f32(s, a, -0x1.393cfap-6f);
    s = sb_fma_f32(s, a, 0x1.a4f3b2p-4f);
    return sb_fma_f32(s, a, 0x1.45f308p-1f);
}

/* erf(x), at most 1 ulp, branch-free: erf(a) = 1 - e^-t with t = -log(1 - erf(a)) = a * (c + a * S(a)), S a polynomial
 * on [0, 4] whose error is weighted by its effect on erf. t is kept in two floats. In two halves, of which the first gives t
 * (without an exponent). */
static SB_HD_HOT sb_exp_reduced_f32 sb_erf_begin_f32(float x) {
    float a = sb_abs_f32(x);
    a = a > 4.0f ? 4.0f : a;
    float s = sb_erf_bend_f32(a);
    /* 2/sqrt(pi) in two floats. */
    float linear = a * 0x1.20dd76p+0f;
    float linear_low = sb_fma_f32(a, 0x1.20dd76p+0f, -linear);
    linear_low = sb_fma_f32(a, -0x1.f7ac92p-25f, linear_low);
    float square = a * a;
    float bent = square * s;
    float bent_low = sb_fma_f32(square, s, -bent);
    bent_low = sb_fma_f32(sb_fma_f32(a, a, -square), s, bent_low);
    sb_exp_reduced_f32 t;
    t.exponent = 0;
    t.high = linear + bent;
    t.low = linear >= bent ? (linear - t.high) + bent : (bent - t.high) + linear;
    t.low += linear_low + bent_low;
    return t;
}

static SB_HD_HOT float sb_erf_end_f32(float x, sb_exp_reduced_f32 t) {
    sb_exp_reduced_f32 reduced = sb_exp_reduce_f32(-t.high);
    reduced.low -= t.low;
    sb_pair_f32 minus_one = {reduced.high, sb_exp_rest_f32(reduced.high, reduced.low)};
    sb_pair_f32 sum = sb_expm1_scale_f32(minus_one, reduced.exponent);
    float result = sb_copysign_f32(sum.high + sum.low, x);
    return x == x ? result : x;
}

static SB_HD_HOT float sb_erf_f32(float x) {
    return sb_erf_end_f32(x, sb_erf_begin_f32(x));
}

#endif
