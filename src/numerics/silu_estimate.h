/* x * logistic(x) where only its rounding to 16 bits is wanted.
 *
 * Machines have an approximate 2^t and an approximate reciprocal of which no more is known than how far off they may be. An
 * estimate by them is near enough to say what the definition's value (logistic.h) rounds to, unless that lies next to the middle
 * between two numbers of 16 bits: if all that lies within the estimate's bound rounds to the same, so does the definition's
 * value (A. Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991). Where it does
 * not, one time in some 500, the definition is evaluated. */
#ifndef SB_NUMERICS_SILU_ESTIMATE_H
#define SB_NUMERICS_SILU_ESTIMATE_H

#include "scalar.h"

/* Arguments for which the bound below holds. Less than the lower one would make t, which is rounded, too large for it; next to
 * zero the results are subnormal. */
#define SB_SILU_ESTIMATE_LOWEST -16.0f
#define SB_SILU_ESTIMATE_SMALLEST 0x1p-100f
static SB_HD_HOT int sb_silu_can_be_estimated(float x) {
    return x > SB_SILU_ESTIMATE_LOWEST && sb_abs_f32(x) >= SB_SILU_ESTIMATE_SMALLEST;
}

/* The steps of the estimate x / (1 + 2^t): t, the sum whose reciprocal is wanted. */
static SB_HD_HOT float sb_silu_estimate_exponent(float x) {
    return x * -0x1.715476p0f;
}
static SB_HD_HOT float sb_silu_estimate_sum(float power) {
    return 1.0f + power;
}

/* What 2^t may be off, as a part of itself, and the reciprocal likewise: PTX ISA, ex2.approx.ftz and rcp.approx.ftz. A power
 * below the normal numbers may be zero. */
#define SB_SILU_ESTIMATE_POWER_ERROR 0x1p-22
#define SB_SILU_ESTIMATE_RECIPROCAL_ERROR 0x1p-23

/* The definition's x * logistic(x), and that times a factor, rounded after each product, lie between the estimate (times the
 * factor) times these two: 2^-18 to both sides. Of that 2^-19.2 is for t: up to 23.1 with two roundings. The test
 * numerics_silu_estimate looks at all arguments with the worst that the two approximations may give. */
#define SB_SILU_ESTIMATE_LOWER 0x1.ffff8p-1f
#define SB_SILU_ESTIMATE_UPPER 0x1.00004p0f

#endif
