/* log2, log1p and expm1 in f32, evaluated in double and rounded once: about 0.5 ulp. */
#ifndef SB_NUMERICS_WIDE_EXP_LOG_H
#define SB_NUMERICS_WIDE_EXP_LOG_H

#include "wide.h"

/* Logarithm to base 2, exact for powers of two. log2(+-0) = -inf, NaN below zero. */
static SB_HD float sb_log2_f32(float x) {
    float result = x > 0.0f ? (float)sb_wide_log2((double)x) : x == 0.0f ? -sb_infinity_f32() : sb_nan_f32();
    return x < sb_infinity_f32() ? result : x;
}

/* log(1 + x). log1p(-1) = -inf, NaN below -1; keeps the sign of zero. */
static SB_HD float sb_log1p_f32(float x) {
    float result = x > -1.0f ? (float)sb_wide_log1p((double)x) : x == -1.0f ? -sb_infinity_f32() : sb_nan_f32();
    return x < sb_infinity_f32() && x != 0.0f ? result : x;
}

/* e^x - 1; keeps the sign of zero. */
static SB_HD float sb_expm1_f32(float x) {
    double wide = (double)x;
    double clamped = wide > 100.0 ? 100.0 : wide < -100.0 ? -100.0 : wide;
    float result = (float)sb_wide_expm1(clamped);
    return x == x && x != 0.0f ? result : x;
}

#endif
