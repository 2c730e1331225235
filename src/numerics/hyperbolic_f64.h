/* Hyperbolic functions and their inverses in f64, at most 1 ulp. Below 2^-28 the cubic term of the
 * odd ones is under 2^-57 of the linear one, and they return their argument. */
#ifndef SB_NUMERICS_HYPERBOLIC_F64_H
#define SB_NUMERICS_HYPERBOLIC_F64_H

#include "exp_log_f64.h"

/* With E = e^(2|x|) - 1, tanh|x| = E / (E + 2). */
static SB_HD double sb_tanh_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (a > 22.0) {
        return x != x ? x : sb_copysign_f64(1.0, x);
    }
    sb_dd e = sb_extended_expm1_value(sb_dd_make(2.0 * a, 0.0));
    return sb_copysign_f64(sb_dd_divide(e, sb_dd_add_double(e, 2.0)).high, x);
}

/* e^a / 2 for a > 40, where e^-a is below 2^-115 of it. */
static SB_HD double sb_half_exp_f64(double a) {
    return sb_extended_exp_round(sb_dd_make(a > 750.0 ? 750.0 : a, 0.0), -1);
}

/* With E = e^|x| - 1, sinh|x| = (E + E/(E+1)) / 2. */
static SB_HD double sb_sinh_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (a > 40.0) {
        return sb_copysign_f64(sb_half_exp_f64(a), x);
    }
    sb_dd e = sb_extended_expm1_value(sb_dd_make(a, 0.0));
    sb_dd sum = sb_dd_add(e, sb_dd_divide(e, sb_dd_add_double(e, 1.0)));
    return sb_copysign_f64(0.5 * sum.high, x);
}

static SB_HD double sb_cosh_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a <= 40.0)) {
        return a > 40.0 ? sb_half_exp_f64(a) : x;
    }
    sb_dd e = sb_extended_exp_value(sb_dd_make(a, 0.0));
    return 0.5 * sb_dd_add(e, sb_dd_divide(sb_dd_make(1.0, 0.0), e)).high;
}

/* log(2a) for a >= 2^30, where the other terms are below 2^-61. */
static SB_HD double sb_log_of_double_f64(double a) {
    sb_dd ln2 = sb_dd_make(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56);
    return sb_dd_add(sb_extended_log(sb_dd_make(a, 0.0)), ln2).high;
}

/* log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))). */
static SB_HD double sb_asinh_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a >= 0x1p-28 && a < sb_infinity_f64())) {
        return x;
    }
    if (a >= 0x1p30) {
        return sb_copysign_f64(sb_log_of_double_f64(a), x);
    }
    sb_dd square = sb_dd_product(a, a);
    sb_dd root = sb_dd_sqrt(sb_dd_add_double(square, 1.0));
    sb_dd u = sb_dd_add_double(sb_dd_divide(square, sb_dd_add_double(root, 1.0)), a);
    return sb_copysign_f64(sb_extended_log1p(u).high, x);
}

/* With t = x - 1, log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(2t + t^2)); NaN below 1. */
static SB_HD double sb_acosh_f64(double x) {
    if (!(x >= 1.0 && x < sb_infinity_f64())) {
        return x < 1.0 ? sb_nan_f64() : x;
    }
    if (x >= 0x1p30) {
        return sb_log_of_double_f64(x);
    }
    sb_dd t = sb_dd_sum(x, -1.0);
    sb_dd root = sb_dd_sqrt(sb_dd_multiply(t, sb_dd_add_double(t, 2.0)));
    return sb_extended_log1p(sb_dd_add(t, root)).high;
}

/* log1p(2a / (1 - a)) / 2; infinite at +-1, NaN beyond. */
static SB_HD double sb_atanh_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (a >= 1.0) {
        return a > 1.0 ? sb_nan_f64() : sb_copysign_f64(sb_infinity_f64(), x);
    }
    sb_dd u = sb_dd_divide(sb_dd_make(2.0 * a, 0.0), sb_dd_sum(1.0, -a));
    return sb_copysign_f64(0.5 * sb_extended_log1p(u).high, x);
}

#endif
