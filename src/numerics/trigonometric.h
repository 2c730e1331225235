/* sin, cos, tan and their inverses in f32, evaluated in double and rounded once: about 0.5 ulp, for
 * arguments of any size. */
#ifndef SB_NUMERICS_TRIGONOMETRIC_H
#define SB_NUMERICS_TRIGONOMETRIC_H

#include "quadrant.h"

static SB_HD_HOT double sb_wide_sin_reduced(double r) {
    double z = r * r;
    double p = 0x1.5d778699ed0a2p-33;
    p = sb_fma_f64(p, z, -0x1.ae5e07ab95bd8p-26);
    p = sb_fma_f64(p, z, 0x1.71de34ff22666p-19);
    p = sb_fma_f64(p, z, -0x1.a01a019b8685dp-13);
    p = sb_fma_f64(p, z, 0x1.111111110f41dp-7);
    p = sb_fma_f64(p, z, -0x1.5555555555546p-3);
    return sb_fma_f64(p * z, r, r);
}

static SB_HD_HOT double sb_wide_cos_reduced(double r) {
    double z = r * r;
    double p = 0x1.1b755731763dap-29;
    p = sb_fma_f64(p, z, -0x1.27def9c5636e7p-22);
    p = sb_fma_f64(p, z, 0x1.a019f75b5be36p-16);
    p = sb_fma_f64(p, z, -0x1.6c16c1632d9c1p-10);
    p = sb_fma_f64(p, z, 0x1.555555554e2fdp-5);
    p = sb_fma_f64(p, z, -0x1.fffffffffff85p-2);
    return sb_fma_f64(p, z, 1.0);
}

typedef struct sb_wide_angle {
    double sine;
    double cosine;
} sb_wide_angle;

/* From the remainder of a quarter turn, and which one it is of. */
static SB_HD_HOT sb_wide_angle sb_wide_sin_cos_reduced(double r, int32_t quadrant) {
    double sine = sb_wide_sin_reduced(r);
    double cosine = sb_wide_cos_reduced(r);
    sb_wide_angle angle;
    angle.sine = (quadrant & 1) ? cosine : sine;
    angle.cosine = (quadrant & 1) ? sine : cosine;
    angle.sine = (quadrant & 2) ? -angle.sine : angle.sine;
    angle.cosine = ((quadrant + 1) & 2) ? -angle.cosine : angle.cosine;
    return angle;
}

/* Floats below 2^28 need two pieces of pi/2: none comes nearer than 2^-30 to a multiple of it. Branch-free. */
static SB_HD_HOT double sb_angle_remainder_near(double x, int32_t *quadrant) {
    double shifted = sb_fma_f64(x, 0x1.45f306dc9c883p-1, SB_ROUNDING_SHIFT_F64);
    double count = shifted - SB_ROUNDING_SHIFT_F64;
    double r = sb_fma_f64(count, -0x1.921fb54442d18p+0, x);
    *quadrant = sb_shifted_integer_f64(shifted) & 3;
    return sb_fma_f64(count, -0x1.1a62633145c07p-54, r);
}

static SB_HD_HOT int sb_angle_is_near(float x) {
    return sb_abs_f32(x) < 268435456.0f;
}

static SB_HD_HOT sb_wide_angle sb_wide_sin_cos_near(double x) {
    int32_t quadrant;
    double r = sb_angle_remainder_near(x, &quadrant);
    return sb_wide_sin_cos_reduced(r, quadrant);
}

static SB_HD sb_wide_angle sb_wide_sin_cos(double x) {
    int32_t quadrant;
    double r = sb_angle_remainder_near(x, &quadrant);
    if (sb_abs_f64(x) >= 268435456.0) {
        sb_quadrant reduced = sb_quadrant_reduce(x);
        r = reduced.remainder.high;
        quadrant = reduced.quadrant;
    }
    return sb_wide_sin_cos_reduced(r, quadrant);
}

/* For |x| < 2^28 these are sb_sin_f32 and its like, without a branch: for loops over rows. */
static SB_HD_HOT float sb_sin_near_f32(float x) {
    float sine = (float)sb_wide_sin_cos_near((double)x).sine;
    return x == 0.0f ? x : sine;
}

static SB_HD_HOT float sb_cos_near_f32(float x) {
    return (float)sb_wide_sin_cos_near((double)x).cosine;
}

static SB_HD_HOT float sb_tan_near_f32(float x) {
    sb_wide_angle angle = sb_wide_sin_cos_near((double)x);
    float tangent = (float)sb_div_f64(angle.sine, angle.cosine);
    return x == 0.0f ? x : tangent;
}

/* Sine; NaN for infinities, keeps the sign of zero. */
static SB_HD float sb_sin_f32(float x) {
    if (!(sb_abs_f32(x) < sb_infinity_f32())) {
        return sb_nan_f32();
    }
    return x == 0.0f ? x : (float)sb_wide_sin_cos((double)x).sine;
}

static SB_HD float sb_cos_f32(float x) {
    if (!(sb_abs_f32(x) < sb_infinity_f32())) {
        return sb_nan_f32();
    }
    return (float)sb_wide_sin_cos((double)x).cosine;
}

static SB_HD float sb_tan_f32(float x) {
    if (!(sb_abs_f32(x) < sb_infinity_f32())) {
        return sb_nan_f32();
    }
    sb_wide_angle angle = sb_wide_sin_cos((double)x);
    return x == 0.0f ? x : (float)sb_div_f64(angle.sine, angle.cosine);
}

/* asin(a) for 0 <= a <= 1/2, about 2^-51 relative. */
static SB_HD_HOT double sb_wide_asin_half(double a) {
    double z = a * a;
    double p = 0x1.023490305e5adp-5;
    p = sb_fma_f64(p, z, -0x1.7f682dd00ed2ap-7);
    p = sb_fma_f64(p, z, 0x1.2b084d98a3a7cp-6);
    p = sb_fma_f64(p, z, 0x1.336c9e65ef524p-7);
    p = sb_fma_f64(p, z, 0x1.d54ed2649ea2ep-7);
    p = sb_fma_f64(p, z, 0x1.1baccf1324fa1p-6);
    p = sb_fma_f64(p, z, 0x1.6e97027cbd9b2p-6);
    p = sb_fma_f64(p, z, 0x1.f1c69c91c988bp-6);
    p = sb_fma_f64(p, z, 0x1.6db6dd0dde88ep-5);
    p = sb_fma_f64(p, z, 0x1.3333333091739p-4);
    p = sb_fma_f64(p, z, 0x1.5555555556cffp-3);
    return sb_fma_f64(p * z, a, a);
}

/* asin(a) for 0 <= a <= 1; above 1/2 it is pi/2 - 2 asin(sqrt((1-a)/2)). */
static SB_HD double sb_wide_asin(double a) {
    int is_large = a > 0.5;
    double inner = is_large ? sb_sqrt_f64(0.5 * (1.0 - a)) : a;
    double arc = sb_wide_asin_half(inner);
    return is_large ? sb_fma_f64(-2.0, arc, 0x1.921fb54442d18p+0) : arc;
}

/* acos(x) for |x| <= 1, relative accuracy kept near 1. */
static SB_HD double sb_wide_acos(double x) {
    double a = sb_abs_f64(x);
    int is_large = a > 0.5;
    double inner = is_large ? sb_sqrt_f64(0.5 * (1.0 - a)) : a;
    double arc = sb_wide_asin_half(inner);
    double large = x > 0.0 ? 2.0 * arc : sb_fma_f64(-2.0, arc, 0x1.921fb54442d18p+1);
    double small = 0x1.921fb54442d18p+0 - sb_copysign_f64(arc, x);
    return is_large ? large : small;
}

/* atan(a) for a >= 0, infinity included: folded at tan(pi/8) and its inverse. */
static SB_HD double sb_wide_atan(double a) {
    int is_large = a > 0x1.3504f333f9de6p+1;
    int is_middle = a > 0x1.a827999fcef32p-2;
    double bounded = a < 1e300 ? a : 1e300;
    double numerator = is_large ? -1.0 : is_middle ? bounded - 1.0 : bounded;
    double denominator = is_large ? bounded : is_middle ? bounded + 1.0 : 1.0;
    double offset = is_large ? 0x1.921fb54442d18p+0 : is_middle ? 0x1.921fb54442d18p-1 : 0.0;
    double t = sb_div_f64(numerator, denominator);
    double z = t * t;
    double p = -0x1.25570a177dfa8p-6;
    p = sb_fma_f64(p, z, 0x1.37cd21b9295e8p-5);
    p = sb_fma_f64(p, z, -0x1.9ccf8630c4864p-5);
    p = sb_fma_f64(p, z, 0x1.df0e9d906e09cp-5);
    p = sb_fma_f64(p, z, -0x1.10ebad12e245bp-4);
    p = sb_fma_f64(p, z, 0x1.3b11183416505p-4);
    p = sb_fma_f64(p, z, -0x1.745cf8d0ca308p-4);
    p = sb_fma_f64(p, z, 0x1.c71c70e5b84a1p-4);
    p = sb_fma_f64(p, z, -0x1.24924922acb78p-3);
    p = sb_fma_f64(p, z, 0x1.999999999585bp-3);
    p = sb_fma_f64(p, z, -0x1.555555555553dp-2);
    return offset + sb_fma_f64(p * z, t, t);
}

/* Arc sine; NaN beyond 1, keeps the sign of zero. */
static SB_HD float sb_asin_f32(float x) {
    float a = sb_abs_f32(x);
    return a <= 1.0f ? sb_copysign_f32((float)sb_wide_asin((double)a), x) : sb_nan_f32();
}

static SB_HD float sb_acos_f32(float x) {
    return sb_abs_f32(x) <= 1.0f ? (float)sb_wide_acos((double)x) : sb_nan_f32();
}

static SB_HD float sb_atan_f32(float x) {
    float result = sb_copysign_f32((float)sb_wide_atan((double)sb_abs_f32(x)), x);
    return x == x ? result : x;
}

#endif
