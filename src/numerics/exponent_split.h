/* A score s as 2^(n + f): the integer n nearest to s * scale, and what is left, f from -1/2 to 1/2. What softmaxes share
 * whose maximum is an integer, so that changing from one maximum to another is exact (docs/numerics.md, sections 9 and
 * 10).
 *
 * `scale` is log2(e) times whatever multiplies all scores alike. n comes from a shift that rounds, f from one fma, so f
 * is exact to 2^-26 (2^-54) however large s is. */
#ifndef SB_NUMERICS_EXPONENT_SPLIT_H
#define SB_NUMERICS_EXPONENT_SPLIT_H

#include "exp_log.h"
#include "wide.h"

/* Exponents at or beyond it are not told apart: the shift that rounds floats to integers needs |x| < 2^22. */
#define SB_SPLIT_EXPONENT_LIMIT (1 << 21)

#define SB_LOG2_E_F64 0x1.71547652b82fep+0

typedef struct sb_split_scale_f32 {
    float scale;
    float bound; /* scores are held within ±bound, whose exponents are ±SB_SPLIT_EXPONENT_LIMIT */
} sb_split_scale_f32;

typedef struct sb_split_scale_f64 {
    double scale;
    double bound;
} sb_split_scale_f64;

/* For a factor of all scores from 2^-20 to 2^20. */
static SB_HD sb_split_scale_f32 sb_split_scale_of_f32(float factor) {
    sb_split_scale_f32 result;
    result.scale = factor * SB_LOG2_E_F32;
    result.bound = sb_div_f32((float)SB_SPLIT_EXPONENT_LIMIT, result.scale);
    return result;
}

static SB_HD sb_split_scale_f64 sb_split_scale_of_f64(double factor) {
    sb_split_scale_f64 result;
    result.scale = factor * SB_LOG2_E_F64;
    result.bound = sb_div_f64((double)SB_SPLIT_EXPONENT_LIMIT, result.scale);
    return result;
}

/* A NaN stays one. */
static SB_HD_HOT float sb_split_hold_f32(float s, sb_split_scale_f32 scale) {
#if defined(__CUDA_ARCH__)
    /* Two instructions in place of four; a NaN becomes the canonical one, which nothing depends on. */
    float held;
    asm("min.NaN.f32 %0, %1, %2;\n\tmax.NaN.f32 %0, %0, %3;"
        : "=&f"(held)
        : "f"(s), "f"(scale.bound), "f"(-scale.bound));
    return held;
#else
    float below = s > scale.bound ? scale.bound : s;
    return below < -scale.bound ? -scale.bound : below;
#endif
}

static SB_HD_HOT double sb_split_hold_f64(double s, sb_split_scale_f64 scale) {
    double below = s > scale.bound ? scale.bound : s;
    return below < -scale.bound ? -scale.bound : below;
}

/* The next ones take a score that is held. First the nearest integer to s * scale in the low bits of a float … */
static SB_HD_HOT float sb_split_shifted_f32(float s, sb_split_scale_f32 scale) {
    return sb_fma_f32(s, scale.scale, SB_ROUNDING_SHIFT_F32);
}

static SB_HD_HOT double sb_split_shifted_f64(double s, sb_split_scale_f64 scale) {
    return sb_fma_f64(s, scale.scale, SB_ROUNDING_SHIFT_F64);
}

/* … which is the exponent (of a NaN some number) … */
static SB_HD_HOT int32_t sb_split_exponent_f32(float shifted) {
    return sb_shifted_integer_f32(shifted);
}

static SB_HD_HOT int32_t sb_split_exponent_f64(double shifted) {
    return sb_shifted_integer_f64(shifted);
}

/* … and what is left. */
static SB_HD_HOT float sb_split_fraction_f32(float s, float shifted, sb_split_scale_f32 scale) {
    float count = shifted - SB_ROUNDING_SHIFT_F32;
    return sb_fma_f32(s, scale.scale, -count);
}

static SB_HD_HOT double sb_split_fraction_f64(double s, double shifted, sb_split_scale_f64 scale) {
    double count = shifted - SB_ROUNDING_SHIFT_F64;
    return sb_fma_f64(s, scale.scale, -count);
}

/* 2^(exponent - maximum), and +0 below 2^-126, for a maximum not below the exponent. Wraps: after a NaN both may be
 * anything. */
static SB_HD_HOT float sb_split_factor_f32(int32_t exponent, int32_t maximum) {
    int32_t biased = (int32_t)((uint32_t)exponent - (uint32_t)maximum + 127u);
    return sb_bits_to_f32((uint32_t)(biased < 0 ? 0 : biased) << 23);
}

/* The same, and +0 below 2^-1022. */
static SB_HD_HOT double sb_split_factor_f64(int32_t exponent, int32_t maximum) {
    int32_t biased = (int32_t)((uint32_t)exponent - (uint32_t)maximum + 1023u);
    return sb_bits_to_f64((uint64_t)(biased < 0 ? 0 : biased) << 52);
}

/* Sums of weights have four lanes: the columns that one of four threads holds of a row in the accumulators of mma.sync
 * and wgmma. The lane of a column: */
#define SB_SPLIT_LANES 4
static SB_HD_HOT int32_t sb_split_lane(int64_t column) {
    return (int32_t)(column % 8) / 2;
}

static SB_HD_HOT float sb_split_fold_f32(float lane0, float lane1, float lane2, float lane3) {
    return (lane0 + lane1) + (lane2 + lane3);
}

static SB_HD_HOT double sb_split_fold_f64(double lane0, double lane1, double lane2, double lane3) {
    return (lane0 + lane1) + (lane2 + lane3);
}

#endif
