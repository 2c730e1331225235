/* sin, cos, tan and their inverses in f64: at most 1 ulp, in practice little over half, for
 * arguments of any size. */
#ifndef SB_NUMERICS_TRIGONOMETRIC_F64_H
#define SB_NUMERICS_TRIGONOMETRIC_F64_H

#include "quadrant.h"
#include "trigonometric.h"

/* Taylor's series for |r| <= 0.79; the terms from the fifth on need no extra precision. */
static SB_HD sb_dd sb_extended_sin_reduced(sb_dd r) {
    sb_dd z = sb_dd_multiply(r, r);
    double x = z.high;
    double tail = -0x1.761b41316381ap-75;
    tail = sb_fma_f64(tail, x, 0x1.71b8ef6dcf572p-66);
    tail = sb_fma_f64(tail, x, -0x1.2f49b46814157p-57);
    tail = sb_fma_f64(tail, x, 0x1.952c77030ad4ap-49);
    tail = sb_fma_f64(tail, x, -0x1.ae7f3e733b81fp-41);
    tail = sb_fma_f64(tail, x, 0x1.6124613a86d09p-33);
    tail = sb_fma_f64(tail, x, -0x1.ae64567f544e4p-26);
    tail = sb_fma_f64(tail, x, 0x1.71de3a556c734p-19);
    sb_dd sum = sb_dd_make(tail, 0.0);
    sum = sb_dd_horner(z, sum, -0x1.a01a01a01a01ap-13, -0x1.a01a01a01a01ap-73);
    sum = sb_dd_horner(z, sum, 0x1.1111111111111p-7, 0x1.1111111111111p-63);
    sum = sb_dd_horner(z, sum, -0x1.5555555555555p-3, -0x1.5555555555555p-57);
    return sb_dd_add(r, sb_dd_multiply(sb_dd_multiply(r, z), sum));
}

static SB_HD sb_dd sb_extended_cos_reduced(sb_dd r) {
    sb_dd z = sb_dd_multiply(r, r);
    double x = z.high;
    double tail = -0x1.0ce396db7f853p-70;
    tail = sb_fma_f64(tail, x, 0x1.e542ba4020225p-62);
    tail = sb_fma_f64(tail, x, -0x1.6827863b97d97p-53);
    tail = sb_fma_f64(tail, x, 0x1.ae7f3e733b81fp-45);
    tail = sb_fma_f64(tail, x, -0x1.93974a8c07c9dp-37);
    tail = sb_fma_f64(tail, x, 0x1.1eed8eff8d898p-29);
    tail = sb_fma_f64(tail, x, -0x1.27e4fb7789f5cp-22);
    tail = sb_fma_f64(tail, x, 0x1.a01a01a01a01ap-16);
    sb_dd sum = sb_dd_make(tail, 0.0);
    sum = sb_dd_horner(z, sum, -0x1.6c16c16c16c17p-10, 0x1.f49f49f49f49fp-65);
    sum = sb_dd_horner(z, sum, 0x1.5555555555555p-5, 0x1.5555555555555p-59);
    sum = sb_dd_horner(z, sum, -0.5, 0.0);
    return sb_dd_horner(z, sum, 1.0, 0.0);
}

typedef struct sb_extended_angle {
    sb_dd sine;
    sb_dd cosine;
} sb_extended_angle;

/* Sine and cosine of any finite x. */
static SB_HD sb_extended_angle sb_extended_sin_cos(double x) {
    sb_quadrant reduced = sb_quadrant_reduce(x);
    sb_dd sine = sb_extended_sin_reduced(reduced.remainder);
    sb_dd cosine = sb_extended_cos_reduced(reduced.remainder);
    int swap = (reduced.quadrant & 1) != 0;
    sb_extended_angle angle;
    angle.sine = swap ? cosine : sine;
    angle.cosine = swap ? sine : cosine;
    angle.sine = (reduced.quadrant & 2) ? sb_dd_negate(angle.sine) : angle.sine;
    angle.cosine = ((reduced.quadrant + 1) & 2) ? sb_dd_negate(angle.cosine) : angle.cosine;
    return angle;
}

/* Sine; NaN for infinities, keeps the sign of zero. */
static SB_HD double sb_sin_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a < sb_infinity_f64())) {
        return sb_nan_f64();
    }
    return a < 0x1p-28 ? x : sb_extended_sin_cos(x).sine.high;
}

static SB_HD double sb_cos_f64(double x) {
    if (!(sb_abs_f64(x) < sb_infinity_f64())) {
        return sb_nan_f64();
    }
    return sb_extended_sin_cos(x).cosine.high;
}

static SB_HD double sb_tan_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a < sb_infinity_f64())) {
        return sb_nan_f64();
    }
    if (a < 0x1p-28) {
        return x;
    }
    sb_extended_angle angle = sb_extended_sin_cos(x);
    return sb_dd_divide(angle.sine, angle.cosine).high;
}

/* The inverses start from the double evaluation y0 and add sin(y - y0), which the addition theorem
 * gives from the exact sine and cosine of y0 and those of y, known from x. */

/* sqrt(1 - x^2) for |x| <= 1. */
static SB_HD sb_dd sb_extended_cosine_of_sine(double x) {
    return sb_dd_sqrt(sb_dd_multiply(sb_dd_sum(1.0, -x), sb_dd_sum(1.0, x)));
}

/* Arc sine; NaN beyond 1, keeps the sign of zero. */
static SB_HD double sb_asin_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a <= 1.0)) {
        return sb_nan_f64();
    }
    if (a < 0x1p-28) {
        return x;
    }
    double start = sb_wide_asin(a);
    sb_extended_angle angle = sb_extended_sin_cos(start);
    sb_dd cosine = sb_extended_cosine_of_sine(a);
    sb_dd step = sb_dd_subtract(sb_dd_multiply_double(angle.cosine, a), sb_dd_multiply(cosine, angle.sine));
    return sb_copysign_f64(start + step.high, x);
}

static SB_HD double sb_acos_f64(double x) {
    if (!(sb_abs_f64(x) <= 1.0)) {
        return sb_nan_f64();
    }
    double start = sb_wide_acos(x);
    sb_extended_angle angle = sb_extended_sin_cos(start);
    sb_dd sine = sb_extended_cosine_of_sine(x);
    sb_dd step = sb_dd_subtract(sb_dd_multiply(sine, angle.cosine), sb_dd_multiply_double(angle.sine, x));
    return start + step.high;
}

/* Above 1 the tangent is replaced by its inverse, so that nothing overflows. */
static SB_HD double sb_atan_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a >= 0x1p-28)) {
        return x;
    }
    if (!(a < 0x1p60)) {
        return x != x ? x : sb_copysign_f64(0x1.921fb54442d18p+0, x);
    }
    double start = sb_wide_atan(a);
    sb_extended_angle angle = sb_extended_sin_cos(start);
    sb_dd tangent = sb_dd_make(a, 0.0);
    sb_dd step;
    double small = a;
    if (a > 1.0) {
        sb_dd inverse = sb_dd_divide(sb_dd_make(1.0, 0.0), tangent);
        small = inverse.high;
        step = sb_dd_subtract(angle.cosine, sb_dd_multiply(angle.sine, inverse));
    } else {
        step = sb_dd_subtract(sb_dd_multiply(angle.cosine, tangent), angle.sine);
    }
    double length = sb_sqrt_f64(sb_fma_f64(small, small, 1.0));
    return sb_copysign_f64(start + sb_div_f64(step.high, length), x);
}

#endif
