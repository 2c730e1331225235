/* pow in f32 with the special cases of IEEE 754 (C17 F.10.4.4), evaluated in double and rounded once. */
#ifndef SB_NUMERICS_POWER_H
#define SB_NUMERICS_POWER_H

#include "wide.h"

/* 0 if y is not an integer, 1 if odd, 2 if even. For finite y. */
static SB_HD int sb_integer_parity(double y) {
    double a = sb_abs_f64(y);
    if (a >= 9007199254740992.0) {
        return 2;
    }
    int64_t whole = (int64_t)a;
    if ((double)whole != a) {
        return 0;
    }
    return (whole & 1) != 0 ? 1 : 2;
}

/* |x|^y where x is 0 or infinite and y is finite and not 0: 0, or infinity. */
static SB_HD double sb_power_of_extreme(double x, double y) {
    int grows = (x != 0.0) == (y > 0.0);
    return grows ? sb_infinity_f64() : 0.0;
}

/* |x|^y where y is infinite and x is neither NaN nor +1: 1 if |x| is 1. */
static SB_HD double sb_power_to_infinity(double x, double y) {
    double a = sb_abs_f64(x);
    int grows = (a > 1.0) == (y > 0.0);
    return a == 1.0 ? 1.0 : grows ? sb_infinity_f64() : 0.0;
}

/* The cases that need no logarithm. Returns whether *result is set; else x is finite and not 0, y
 * is finite, and the answer is |x|^y, negated if *negate. */
static SB_HD int sb_power_special(double x, double y, double *result, int *negate) {
    *negate = 0;
    *result = 1.0;
    if (y == 0.0 || x == 1.0) {
        return 1;
    }
    if (x != x || y != y) {
        *result = sb_nan_f64();
        return 1;
    }
    if (sb_abs_f64(y) == sb_infinity_f64()) {
        *result = sb_power_to_infinity(x, y);
        return 1;
    }
    int parity = sb_integer_parity(y);
    *negate = parity == 1 && (sb_bits_from_f64(x) >> 63) != 0;
    if (x == 0.0 || sb_abs_f64(x) == sb_infinity_f64()) {
        double extreme = sb_power_of_extreme(x, y);
        *result = *negate ? -extreme : extreme;
        return 1;
    }
    if (x < 0.0 && parity == 0) {
        *result = sb_nan_f64();
        return 1;
    }
    return 0;
}

/* |x|^y for finite x that is not 0, and finite y, without a branch. The logarithm is good to 2^-50 and |y log2 x| stays
 * below 300, so the power is good to 2^-41. */
static SB_HD_HOT float sb_pow_of_magnitude_f32(float x, float y) {
    double exponent = (double)y * sb_wide_log2((double)sb_abs_f32(x));
    exponent = exponent > 300.0 ? 300.0 : exponent < -300.0 ? -300.0 : exponent;
    return (float)sb_wide_exp2(exponent);
}

/* x^y. */
static SB_HD float sb_pow_f32(float x, float y) {
    double result;
    int negate;
    if (sb_power_special((double)x, (double)y, &result, &negate)) {
        return (float)result;
    }
    float power = sb_pow_of_magnitude_f32(x, y);
    return negate ? -power : power;
}

#endif
