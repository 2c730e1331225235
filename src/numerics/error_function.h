/* The error function in f32. */
#ifndef IV_NUMERICS_ERROR_FUNCTION_H
#define IV_NUMERICS_ERROR_FUNCTION_H

#include "exp_log.h"

/* erf(x), at most 1 ulp, branch-free: erf(a) = 1 - e^-t with t = -log(1 - erf(a)) = a * (c + a *
 * S(a)), S a polynomial on [0, 4] whose error is weighted by its effect on erf. t is kept in two
 * floats. */
static IV_HD_HOT float iv_erf_f32(float x) {
    float a = iv_abs_f32(x);
    a = a > 4.0f ? 4.0f : a;
    float s = 0x1.3b1372p-20f;
    s = iv_fma_f32(s, a, -0x1.62d97ep-16f);
    s = iv_fma_f32(s, a, 0x1.5d6806p-13f);
    s = iv_fma_f32(s, a, -0x1.834c08p-11f);
    s = iv_fma_f32(s, a, 0x1.d7037ep-10f);
    s = iv_fma_f32(s, a, -0x1.074aaap-12f);
    s = iv_fma_f32(s, a, -0x1.393cfap-6f);
    s = iv_fma_f32(s, a, 0x1.a4f3b2p-4f);
    s = iv_fma_f32(s, a, 0x1.45f308p-1f);
    /* 2/sqrt(pi) in two floats. */
    float linear = a * 0x1.20dd76p+0f;
    float linear_low = iv_fma_f32(a, 0x1.20dd76p+0f, -linear);
    linear_low = iv_fma_f32(a, -0x1.f7ac92p-25f, linear_low);
    float square = a * a;
    float bent = square * s;
    float bent_low = iv_fma_f32(square, s, -bent);
    bent_low = iv_fma_f32(iv_fma_f32(a, a, -square), s, bent_low);
    float t_high = linear + bent;
    float t_low = linear >= bent ? (linear - t_high) + bent : (bent - t_high) + linear;
    t_low += linear_low + bent_low;
    iv_exp_reduced_f32 reduced = iv_exp_reduce_f32(-t_high);
    reduced.low -= t_low;
    iv_pair_f32 minus_one = {reduced.high, iv_exp_rest_f32(reduced.high, reduced.low)};
    iv_pair_f32 sum = iv_expm1_scale_f32(minus_one, reduced.exponent);
    float result = iv_copysign_f32(sum.high + sum.low, x);
    return x == x ? result : x;
}

#endif
