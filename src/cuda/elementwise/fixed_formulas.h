/* Formulas that give the bits of a step of 16 bits in fewer instructions than those of all f32, for devices and for the
 * tests that try every argument (tests/cuda/test_fixed.c). */
#ifndef SB_CUDA_ELEMENTWISE_FIXED_FORMULAS_H
#define SB_CUDA_ELEMENTWISE_FIXED_FORMULAS_H

#include "numerics/error_function.h"

/* x / y in f32, rounded once, where both are values of f16 and r is 1 / y, rounded to f32. With the rest of the first
 * quotient the second one is the nearest for all pairs of significands, and exponents of f16
 * stay away from the ends of f32. Where the rest is 0, or no number since x or y are infinite or y is 0, the first quotient
 * is right. */
static SB_HD_HOT float sb_cuda_quotient_f16(float x, float y, float r) {
    const float quotient = x * r;
    const float rest = sb_fma_f32(-quotient, y, x);
    return sb_abs_f32(rest) > 0 ? sb_fma_f32(rest, r, quotient) : quotient;
}

/* erf(x) where x is a value of f16 or bf16 and the result will be rounded to that type: then it is what sb_erf_f32 gives,
 * for each of the 2^16 values of either. The same polynomials, with a t of one float and e^-t - 1 in one too. */
static SB_HD_HOT float sb_cuda_erf_16(float x) {
    float a = sb_abs_f32(x);
    a = a > 4.0f ? 4.0f : a;
    const float s = sb_fma_f32(sb_erf_bend_f32(a), a, 0x1.20dd76p+0f);
    const float exponent = -(a * s); /* -t */
    const float shifted = sb_fma_f32(exponent, SB_LOG2_E_F32, SB_ROUNDING_SHIFT_F32);
    const float r = sb_fma_f32(shifted - SB_ROUNDING_SHIFT_F32, -SB_LN2_HIGH_F32, exponent);
    const float minus_one = sb_fma_f32(r * r, sb_exp_tail_f32(r), r);
    const float scale = sb_bits_to_f32((sb_bits_from_f32(shifted) << 23) + 0x3f800000u);
    return sb_copysign_f32(sb_fma_f32(-scale, minus_one, 1.0f - scale), x);
}

#endif
