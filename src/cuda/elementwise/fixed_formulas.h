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
 * for each of the 2^16 values of either. erf(x) / x is a polynomial in x^2, which is within 2^-23.5 of it up to 2.625, where
 * erf rounds to 1; in x^2 - 3.445 its terms do not cancel. The last bits of its coefficients have been chosen so that no value
 * rounds otherwise. */
static SB_HD_HOT float sb_cuda_erf_16(float x) {
    float a = sb_abs_f32(x);
    a = a > 2.625f ? 2.625f : a;
    const float v = sb_fma_f32(a, a, -3.445f);
    float q = 0x1.ac4e5ap-31f;
    q = sb_fma_f32(q, v, -0x1.486cb2p-27f);
    q = sb_fma_f32(q, v, 0x1.557acep-24f);
    q = sb_fma_f32(q, v, -0x1.91c99ap-21f);
    q = sb_fma_f32(q, v, 0x1.c23bb2p-18f);
    q = sb_fma_f32(q, v, -0x1.b948acp-15f);
    q = sb_fma_f32(q, v, 0x1.81723p-12f);
    q = sb_fma_f32(q, v, -0x1.2e00d4p-9f);
    q = sb_fma_f32(q, v, 0x1.ae1e9p-7f);
    q = sb_fma_f32(q, v, -0x1.281d52p-4f);
    q = sb_fma_f32(q, v, 0x1.1175e4p-1f);
    return sb_copysign_f32(a * q, x);
}

#endif
