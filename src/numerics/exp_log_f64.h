/* exp, exp2, expm1, log, log2 and log1p in f64: at most 1 ulp, in practice little over half. */
#ifndef IV_NUMERICS_EXP_LOG_F64_H
#define IV_NUMERICS_EXP_LOG_F64_H

#include "extended_exp_log.h"

static IV_HD double iv_exp_f64(double x) {
    double clamped = x > 750.0 ? 750.0 : x < -750.0 ? -750.0 : x;
    double result = iv_extended_exp_round(iv_dd_make(clamped, 0.0), 0);
    return x == x ? result : x;
}

/* 2^x; exact for integers. */
static IV_HD double iv_exp2_f64(double x) {
    double clamped = x > 1100.0 ? 1100.0 : x < -1100.0 ? -1100.0 : x;
    double shifted = clamped + IV_ROUNDING_SHIFT_F64;
    double fraction = clamped - (shifted - IV_ROUNDING_SHIFT_F64);
    iv_dd r =
        iv_dd_multiply_double(iv_dd_make(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56), fraction);
    iv_dd value = iv_dd_add_double(iv_extended_expm1_reduced(r), 1.0);
    double result = iv_scale_f64(value.high, iv_shifted_integer_f64(shifted));
    return x == x ? result : x;
}

/* e^x - 1; keeps the sign of zero. */
static IV_HD double iv_expm1_f64(double x) {
    if (!(iv_abs_f64(x) >= 0x1p-54)) {
        return x;
    }
    if (x > 40.0) {
        return iv_exp_f64(x);
    }
    return iv_extended_expm1_value(iv_dd_make(x < -60.0 ? -60.0 : x, 0.0)).high;
}

/* The results of a logarithm that need no evaluation: x not a positive finite number. */
static IV_HD double iv_log_special_f64(double x) {
    return x == 0.0 ? -iv_infinity_f64() : x < 0.0 ? iv_nan_f64() : x;
}

/* Natural logarithm. log(+-0) = -inf, log of a negative number is NaN. */
static IV_HD double iv_log_f64(double x) {
    if (!(x > 0.0 && x < iv_infinity_f64())) {
        return iv_log_special_f64(x);
    }
    return iv_extended_log(iv_dd_make(x, 0.0)).high;
}

/* Logarithm to base 2, exact for powers of two. */
static IV_HD double iv_log2_f64(double x) {
    if (!(x > 0.0 && x < iv_infinity_f64())) {
        return iv_log_special_f64(x);
    }
    iv_extended_split split = iv_extended_split_log(iv_dd_make(x, 0.0));
    iv_dd log2_e = iv_dd_make(0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
    iv_dd part = iv_dd_multiply(iv_extended_log_reduced(split.fraction), log2_e);
    return iv_dd_add_double(part, split.exponent).high;
}

/* log(1 + x). log1p(-1) = -inf, NaN below -1; keeps the sign of zero. */
static IV_HD double iv_log1p_f64(double x) {
    if (iv_abs_f64(x) < 0x1p-54) {
        return x;
    }
    if (!(x > -1.0 && x < iv_infinity_f64())) {
        return x == -1.0 ? -iv_infinity_f64() : x < -1.0 ? iv_nan_f64() : x;
    }
    return iv_extended_log1p(iv_dd_make(x, 0.0)).high;
}

#endif
