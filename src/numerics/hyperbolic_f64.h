/* Hyperbolic functions and their inverses in f64, at most 1 ulp. Below 2^-28 the cubic term of the
 * odd ones is under 2^-57 of the linear one, and they return their argument. */
#ifndef IV_NUMERICS_HYPERBOLIC_F64_H
#define IV_NUMERICS_HYPERBOLIC_F64_H

#include "exp_log_f64.h"

/* With E = e^(2|x|) - 1, tanh|x| = E / (E + 2). */
static IV_HD double iv_tanh_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (a > 22.0) {
        return x != x ? x : iv_copysign_f64(1.0, x);
    }
    iv_dd e = iv_extended_expm1_value(iv_dd_make(2.0 * a, 0.0));
    return iv_copysign_f64(iv_dd_divide(e, iv_dd_add_double(e, 2.0)).high, x);
}

/* e^a / 2 for a > 40, where e^-a is below 2^-115 of it. */
static IV_HD double iv_half_exp_f64(double a) {
    return iv_extended_exp_round(iv_dd_make(a > 750.0 ? 750.0 : a, 0.0), -1);
}

/* With E = e^|x| - 1, sinh|x| = (E + E/(E+1)) / 2. */
static IV_HD double iv_sinh_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (a > 40.0) {
        return iv_copysign_f64(iv_half_exp_f64(a), x);
    }
    iv_dd e = iv_extended_expm1_value(iv_dd_make(a, 0.0));
    iv_dd sum = iv_dd_add(e, iv_dd_divide(e, iv_dd_add_double(e, 1.0)));
    return iv_copysign_f64(0.5 * sum.high, x);
}

static IV_HD double iv_cosh_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a <= 40.0)) {
        return a > 40.0 ? iv_half_exp_f64(a) : x;
    }
    iv_dd e = iv_extended_exp_value(iv_dd_make(a, 0.0));
    return 0.5 * iv_dd_add(e, iv_dd_divide(iv_dd_make(1.0, 0.0), e)).high;
}

/* log(2a) for a >= 2^30, where the other terms are below 2^-61. */
static IV_HD double iv_log_of_double_f64(double a) {
    iv_dd ln2 = iv_dd_make(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56);
    return iv_dd_add(iv_extended_log(iv_dd_make(a, 0.0)), ln2).high;
}

/* log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))). */
static IV_HD double iv_asinh_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a >= 0x1p-28 && a < iv_infinity_f64())) {
        return x;
    }
    if (a >= 0x1p30) {
        return iv_copysign_f64(iv_log_of_double_f64(a), x);
    }
    iv_dd square = iv_dd_product(a, a);
    iv_dd root = iv_dd_sqrt(iv_dd_add_double(square, 1.0));
    iv_dd u = iv_dd_add_double(iv_dd_divide(square, iv_dd_add_double(root, 1.0)), a);
    return iv_copysign_f64(iv_extended_log1p(u).high, x);
}

/* With t = x - 1, log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(2t + t^2)); NaN below 1. */
static IV_HD double iv_acosh_f64(double x) {
    if (!(x >= 1.0 && x < iv_infinity_f64())) {
        return x < 1.0 ? iv_nan_f64() : x;
    }
    if (x >= 0x1p30) {
        return iv_log_of_double_f64(x);
    }
    iv_dd t = iv_dd_sum(x, -1.0);
    iv_dd root = iv_dd_sqrt(iv_dd_multiply(t, iv_dd_add_double(t, 2.0)));
    return iv_extended_log1p(iv_dd_add(t, root)).high;
}

/* log1p(2a / (1 - a)) / 2; infinite at +-1, NaN beyond. */
static IV_HD double iv_atanh_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (a >= 1.0) {
        return a > 1.0 ? iv_nan_f64() : iv_copysign_f64(iv_infinity_f64(), x);
    }
    iv_dd u = iv_dd_divide(iv_dd_make(2.0 * a, 0.0), iv_dd_sum(1.0, -a));
    return iv_copysign_f64(0.5 * iv_extended_log1p(u).high, x);
}

#endif
