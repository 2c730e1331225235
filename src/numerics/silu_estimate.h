/* x * logistic(x), SiLU, where only its rounding to 16 bits is wanted.
 *
 * Machines have an approximate 2^t and an approximate reciprocal of which no more is known than how far off they may be. An
 * estimate by them is near enough to say what the definition's value (logistic.h) rounds to, unless that lies next to the middle
 * between two numbers of 16 bits: if all that lies within the estimate's bound rounds to the same, so does the definition's
 * value (A. Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991). Where it does
 * not, of bf16 one time in some 2000, the definition is evaluated.
 *
 * With h = 2^(-|x| log2(e) / 2), whose square is e^-|x|, logistic(x) is 1 / (1 + h h), or that times h h where x is negative: h
 * and not its square, which is zero to a machine that flushes subnormal powers long before SiLU rounds to zero. */
#ifndef SB_NUMERICS_SILU_ESTIMATE_H
#define SB_NUMERICS_SILU_ESTIMATE_H

#include "scalar.h"

/* What an approximate power may be off, as a part of itself, and a reciprocal of 1 to 2: the PTX ISA on ex2.approx.ftz and
 * rcp.approx.ftz. (Of all floats, an H200's are off by 2^-22.7 and 2^-23.2 at most.) A power below the normal numbers may be zero. */
#define SB_SILU_POWER_ERROR 0x1p-22
#define SB_SILU_RECIPROCAL_ERROR 0x1p-23

/* h is 2 to this. */
static SB_HD_HOT float sb_silu_estimate_argument(float x) {
    return __builtin_fabsf(x) * -0x1.715476p-1f;
}

/* The sum whose reciprocal is wanted. */
static SB_HD_HOT float sb_silu_estimate_sum(float h) {
    return sb_fma_f32(h, h, 1.0f);
}

static SB_HD_HOT float sb_silu_estimate(float x, float h, float reciprocal) {
    const float side = x < 0.0f ? h : 1.0f;
    return (x * side) * (side * reciprocal);
}

/* How far the definition's value times `factor`, rounded after each product, may lie from y, the estimate of x times that factor.
 * As a part of y: 2^-19.8 for the approximations and the roundings of both, and 2^-23.6 |x| for the argument's where x is
 * negative. And where e^-|x| is subnormal, which the definition rounds, up to 104 * 2^-149 of SiLU. The test
 * numerics_silu_estimate looks at all floats with the worst that the two approximations may give. */
static SB_HD_HOT float sb_silu_estimate_bound(float x, float y, float factor) {
    const float part = sb_fma_f32(x < 0.0f ? x : 0.0f, -0x1.8p-24f, 0x1.8p-20f);
    return sb_fma_f32(part, __builtin_fabsf(y), sb_fma_f32(__builtin_fabsf(factor), 0x1p-142f, 0x1p-142f));
}

#endif
