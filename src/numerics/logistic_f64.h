/* The logistic function and softplus in f64, at most 1 ulp. */
#ifndef IV_NUMERICS_LOGISTIC_F64_H
#define IV_NUMERICS_LOGISTIC_F64_H

#include "exp_log_f64.h"

/* 1 / (1 + e^-x). Beyond 40 in magnitude the other term is below 2^-57 of the result. */
static IV_HD double iv_sigmoid_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a <= 40.0)) {
        return x > 0.0 ? 1.0 : iv_exp_f64(x);
    }
    iv_dd e = iv_extended_exp_value(iv_dd_make(-a, 0.0));
    iv_dd numerator = x < 0.0 ? e : iv_dd_make(1.0, 0.0);
    return iv_dd_divide(numerator, iv_dd_add_double(e, 1.0)).high;
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|). */
static IV_HD double iv_softplus_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a <= 40.0)) {
        return x > 0.0 ? x : iv_exp_f64(x);
    }
    iv_dd correction = iv_extended_log1p(iv_extended_exp_value(iv_dd_make(-a, 0.0)));
    return iv_dd_add_double(correction, x > 0.0 ? x : 0.0).high;
}

#endif
