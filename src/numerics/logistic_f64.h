/* The logistic function and softplus in f64, at most 1 ulp. */
#ifndef SB_NUMERICS_LOGISTIC_F64_H
#define SB_NUMERICS_LOGISTIC_F64_H

#include "exp_log_f64.h"

/* 1 / (1 + e^-x). Beyond 40 in magnitude the other term is below 2^-57 of the result. */
static SB_HD double sb_sigmoid_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a <= 40.0)) {
        return x > 0.0 ? 1.0 : sb_exp_f64(x);
    }
    sb_dd e = sb_extended_exp_value(sb_dd_make(-a, 0.0));
    sb_dd numerator = x < 0.0 ? e : sb_dd_make(1.0, 0.0);
    return sb_dd_divide(numerator, sb_dd_add_double(e, 1.0)).high;
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|). */
static SB_HD double sb_softplus_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a <= 40.0)) {
        return x > 0.0 ? x : sb_exp_f64(x);
    }
    sb_dd correction = sb_extended_log1p(sb_extended_exp_value(sb_dd_make(-a, 0.0)));
    return sb_dd_add_double(correction, x > 0.0 ? x : 0.0).high;
}

#endif
