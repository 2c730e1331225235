/* exp, exp2, expm1, log, log2 and log1p in f64: at most 1 ulp, in practice little over half. */
#ifndef SB_NUMERICS_EXP_LOG_F64_H
#define SB_NUMERICS_EXP_LOG_F64_H

#include "extended_exp_log.h"

static SB_HD double sb_exp_f64(double x) {
    double clamped = x > 750.0 ? 750.0 : x < -750.0 ? -750.0 : x;
    double result = sb_extended_exp_round(sb_dd_make(clamped, 0.0), 0);
    return x == x ? result : x;
}

/* 2^x; exact for integers. */
static SB_HD double sb_exp2_f64(double x) {
    double clamped = x > 1100.0 ? 1100.0 : x < -1100.0 ? -1100.0 : x;
    double shifted = clamped + SB_ROUNDING_SHIFT_F64;
    double fraction = clamped - (shifted - SB_ROUNDING_SHIFT_F64);
    sb_dd r = sb_dd_multiply_double(sb_dd_make(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56), fraction);
    sb_dd value = sb_dd_add_double(sb_extended_expm1_reduced(r), 1.0);
    double result = sb_scale_f64(value.high, sb_shifted_integer_f64(shifted));
    return x == x ? result : x;
}

/* e^x - 1; keeps the sign of zero. */
static SB_HD double sb_expm1_f64(double x) {
    if (!(sb_abs_f64(x) >= 0x1p-54)) {
        return x;
    }
    if (x > 40.0) {
        return sb_exp_f64(x);
    }
    return sb_extended_expm1_value(sb_dd_make(x < -60.0 ? -60.0 : x, 0.0)).high;
}

/* The results of a logarithm that need no evaluation: x not a positive finite number. */
static SB_HD double sb_log_special_f64(double x) {
    return x == 0.0 ? -sb_infinity_f64() : x < 0.0 ? sb_nan_f64() : x;
}

/* Natural logarithm. log(+-0) = -inf, log of a negative number is NaN. */
static SB_HD double sb_log_f64(double x) {
    if (!(x > 0.0 && x < sb_infinity_f64())) {
        return sb_log_special_f64(x);
    }
    return sb_extended_log(sb_dd_make(x, 0.0)).high;
}

/* Logarithm to base 2, exact for powers of two. */
static SB_HD double sb_log2_f64(double x) {
    if (!(x > 0.0 && x < sb_infinity_f64())) {
        return sb_log_special_f64(x);
    }
    sb_extended_split split = sb_extended_split_log(sb_dd_make(x, 0.0));
    sb_dd log2_e = sb_dd_make(0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
    sb_dd part = sb_dd_multiply(sb_extended_log_reduced(split.fraction), log2_e);
    return sb_dd_add_double(part, split.exponent).high;
}

/* log(1 + x). log1p(-1) = -inf, NaN below -1; keeps the sign of zero. */
static SB_HD double sb_log1p_f64(double x) {
    if (sb_abs_f64(x) < 0x1p-54) {
        return x;
    }
    if (!(x > -1.0 && x < sb_infinity_f64())) {
        return x == -1.0 ? -sb_infinity_f64() : x < -1.0 ? sb_nan_f64() : x;
    }
    return sb_extended_log1p(sb_dd_make(x, 0.0)).high;
}

#endif
