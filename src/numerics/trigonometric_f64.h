/* sin, cos, tan and their inverses in f64: at most 1 ulp, in practice little over half, for
 * arguments of any size. */
#ifndef IV_NUMERICS_TRIGONOMETRIC_F64_H
#define IV_NUMERICS_TRIGONOMETRIC_F64_H

#include "quadrant.h"
#include "trigonometric.h"

/* Taylor's series for |r| <= 0.79; the terms from the fifth on need no extra precision. */
static IV_HD iv_dd iv_extended_sin_reduced(iv_dd r) {
    iv_dd z = iv_dd_multiply(r, r);
    double x = z.high;
    double tail = -0x1.761b41316381ap-75;
    tail = iv_fma_f64(tail, x, 0x1.71b8ef6dcf572p-66);
    tail = iv_fma_f64(tail, x, -0x1.2f49b46814157p-57);
    tail = iv_fma_f64(tail, x, 0x1.952c77030ad4ap-49);
    tail = iv_fma_f64(tail, x, -0x1.ae7f3e733b81fp-41);
    tail = iv_fma_f64(tail, x, 0x1.6124613a86d09p-33);
    tail = iv_fma_f64(tail, x, -0x1.ae64567f544e4p-26);
    tail = iv_fma_f64(tail, x, 0x1.71de3a556c734p-19);
    iv_dd sum = iv_dd_make(tail, 0.0);
    sum = iv_dd_horner(z, sum, -0x1.a01a01a01a01ap-13, -0x1.a01a01a01a01ap-73);
    sum = iv_dd_horner(z, sum, 0x1.1111111111111p-7, 0x1.1111111111111p-63);
    sum = iv_dd_horner(z, sum, -0x1.5555555555555p-3, -0x1.5555555555555p-57);
    return iv_dd_add(r, iv_dd_multiply(iv_dd_multiply(r, z), sum));
}

static IV_HD iv_dd iv_extended_cos_reduced(iv_dd r) {
    iv_dd z = iv_dd_multiply(r, r);
    double x = z.high;
    double tail = -0x1.0ce396db7f853p-70;
    tail = iv_fma_f64(tail, x, 0x1.e542ba4020225p-62);
    tail = iv_fma_f64(tail, x, -0x1.6827863b97d97p-53);
    tail = iv_fma_f64(tail, x, 0x1.ae7f3e733b81fp-45);
    tail = iv_fma_f64(tail, x, -0x1.93974a8c07c9dp-37);
    tail = iv_fma_f64(tail, x, 0x1.1eed8eff8d898p-29);
    tail = iv_fma_f64(tail, x, -0x1.27e4fb7789f5cp-22);
    tail = iv_fma_f64(tail, x, 0x1.a01a01a01a01ap-16);
    iv_dd sum = iv_dd_make(tail, 0.0);
    sum = iv_dd_horner(z, sum, -0x1.6c16c16c16c17p-10, 0x1.f49f49f49f49fp-65);
    sum = iv_dd_horner(z, sum, 0x1.5555555555555p-5, 0x1.5555555555555p-59);
    sum = iv_dd_horner(z, sum, -0.5, 0.0);
    return iv_dd_horner(z, sum, 1.0, 0.0);
}

typedef struct iv_extended_angle {
    iv_dd sine;
    iv_dd cosine;
} iv_extended_angle;

/* Sine and cosine of any finite x. */
static IV_HD iv_extended_angle iv_extended_sin_cos(double x) {
    iv_quadrant reduced = iv_quadrant_reduce(x);
    iv_dd sine = iv_extended_sin_reduced(reduced.remainder);
    iv_dd cosine = iv_extended_cos_reduced(reduced.remainder);
    int swap = (reduced.quadrant & 1) != 0;
    iv_extended_angle angle;
    angle.sine = swap ? cosine : sine;
    angle.cosine = swap ? sine : cosine;
    angle.sine = (reduced.quadrant & 2) ? iv_dd_negate(angle.sine) : angle.sine;
    angle.cosine = ((reduced.quadrant + 1) & 2) ? iv_dd_negate(angle.cosine) : angle.cosine;
    return angle;
}

/* Sine; NaN for infinities, keeps the sign of zero. */
static IV_HD double iv_sin_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a < iv_infinity_f64())) {
        return iv_nan_f64();
    }
    return a < 0x1p-28 ? x : iv_extended_sin_cos(x).sine.high;
}

static IV_HD double iv_cos_f64(double x) {
    if (!(iv_abs_f64(x) < iv_infinity_f64())) {
        return iv_nan_f64();
    }
    return iv_extended_sin_cos(x).cosine.high;
}

static IV_HD double iv_tan_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a < iv_infinity_f64())) {
        return iv_nan_f64();
    }
    if (a < 0x1p-28) {
        return x;
    }
    iv_extended_angle angle = iv_extended_sin_cos(x);
    return iv_dd_divide(angle.sine, angle.cosine).high;
}

/* The inverses start from the double evaluation y0 and add sin(y - y0), which the addition theorem
 * gives from the exact sine and cosine of y0 and those of y, known from x. */

/* sqrt(1 - x^2) for |x| <= 1. */
static IV_HD iv_dd iv_extended_cosine_of_sine(double x) {
    return iv_dd_sqrt(iv_dd_multiply(iv_dd_sum(1.0, -x), iv_dd_sum(1.0, x)));
}

/* Arc sine; NaN beyond 1, keeps the sign of zero. */
static IV_HD double iv_asin_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a <= 1.0)) {
        return iv_nan_f64();
    }
    if (a < 0x1p-28) {
        return x;
    }
    double start = iv_wide_asin(a);
    iv_extended_angle angle = iv_extended_sin_cos(start);
    iv_dd cosine = iv_extended_cosine_of_sine(a);
    iv_dd step =
        iv_dd_subtract(iv_dd_multiply_double(angle.cosine, a), iv_dd_multiply(cosine, angle.sine));
    return iv_copysign_f64(start + step.high, x);
}

static IV_HD double iv_acos_f64(double x) {
    if (!(iv_abs_f64(x) <= 1.0)) {
        return iv_nan_f64();
    }
    double start = iv_wide_acos(x);
    iv_extended_angle angle = iv_extended_sin_cos(start);
    iv_dd sine = iv_extended_cosine_of_sine(x);
    iv_dd step =
        iv_dd_subtract(iv_dd_multiply(sine, angle.cosine), iv_dd_multiply_double(angle.sine, x));
    return start + step.high;
}

/* Above 1 the tangent is replaced by its inverse, so that nothing overflows. */
static IV_HD double iv_atan_f64(double x) {
    double a = iv_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (!(a < 0x1p60)) {
        return x != x ? x : iv_copysign_f64(0x1.921fb54442d18p+0, x);
    }
    double start = iv_wide_atan(a);
    iv_extended_angle angle = iv_extended_sin_cos(start);
    iv_dd tangent = iv_dd_make(a, 0.0);
    iv_dd step;
    double small = a;
    if (a > 1.0) {
        iv_dd inverse = iv_dd_divide(iv_dd_make(1.0, 0.0), tangent);
        small = inverse.high;
        step = iv_dd_subtract(angle.cosine, iv_dd_multiply(angle.sine, inverse));
    } else {
        step = iv_dd_subtract(iv_dd_multiply(angle.cosine, tangent), angle.sine);
    }
    double length = iv_sqrt_f64(iv_fma_f64(small, small, 1.0));
    return iv_copysign_f64(start + iv_div_f64(step.high, length), x);
}

#endif
