/* The scalar arithmetic of attention (docs/numerics.md, section 10), once for the definition and for kernels.
 *
 * With m, the integer nearest to the largest s * c so far, the weight of a score s is a power of two close to 2^(s * c - m). For
 * weights that are stored in 16 bits the exponent is rounded to a multiple of 2^-12, so that what is stored is the power itself,
 * rounded once: whatever computes powers of two to 2^-21 gives its bits. Others are P(f) * 2^(n - m), with n and f of
 * numerics/exponent_split.h. The coefficients come from numerics/polynomials.sollya. */
#ifndef SB_OPS_ATTENTION_VALUES_H
#define SB_OPS_ATTENTION_VALUES_H

#include <samebit/dtype.h>

#include "numerics/elementary.h"
#include "numerics/exponent_split.h"

/* Keys that share one maximum, and blocks whose sums are one chain: both count from key 0, and are part of the
 * definition. */
#define SB_ATTENTION_BLOCK 128
#define SB_ATTENTION_SPLIT 512

/* Weights below 2^floor of the largest are +0. */
#define SB_ATTENTION_FLOOR_F32 (-64)
#define SB_ATTENTION_FLOOR_F64 (-1000)
/* Those of 16 bits below 2^floor are: the least power that is no subnormal float. */
#define SB_ATTENTION_FLOOR_HALF (-126)

/* 1.5 * 2^11: adding it rounds what lies within +-1024 to a multiple of 2^-12. */
#define SB_ATTENTION_GRID_SHIFT 3072.0f

/* 2^f to 2^-22: at all 4,097 multiples of 2^-12 its rounding to bf16 is that of 2^f, and its rounding to f16 with whatever exponent but
 * one, f = 742 / 4096 with 2^-15, where 2^f is nearer to the middle between two than floats tell (tests/ops/test_ops_attention.c). */
static SB_HD_HOT float sb_attention_power_half(float f) {
    float p = 0x1.5c08e6p-10f;
    p = sb_fma_f32(p, f, 0x1.3d0c52p-7f);
    p = sb_fma_f32(p, f, 0x1.c6b6e4p-5f);
    p = sb_fma_f32(p, f, 0x1.ebf918p-3f);
    p = sb_fma_f32(p, f, 0x1.62e428p-1f);
    return sb_fma_f32(p, f, 1.0f);
}

/* The exponent of a weight of 16 bits: s * scale - maximum, exact, rounded to a multiple of 2^-12. (Below -1024 to some number below
 * that, of which the weight is +0 all the same.) */
static SB_HD_HOT float sb_attention_exponent_half(float s, float scale, int32_t maximum) {
    return sb_fma_f32(s, scale, SB_ATTENTION_GRID_SHIFT - (float)maximum) - SB_ATTENTION_GRID_SHIFT;
}

/* P in f64, whatever weights are stored as: 2^f to 1.3e-16, which is the roundings'. */
static SB_HD_HOT double sb_attention_power_f64(double f) {
    double p = 0x1.e973178f84e2dp-32;
    p = sb_fma_f64(p, f, 0x1.e61d4332c8c78p-28);
    p = sb_fma_f64(p, f, 0x1.b52522bc19eeep-24);
    p = sb_fma_f64(p, f, 0x1.62bfc6596b95ap-20);
    p = sb_fma_f64(p, f, 0x1.ffcbfc6685efdp-17);
    p = sb_fma_f64(p, f, 0x1.4309130f6cbdcp-13);
    p = sb_fma_f64(p, f, 0x1.5d87fe789e96fp-10);
    p = sb_fma_f64(p, f, 0x1.3b2ab6fb9fda6p-7);
    p = sb_fma_f64(p, f, 0x1.c6b08d704a12cp-5);
    p = sb_fma_f64(p, f, 0x1.ebfbdff82c5a6p-3);
    p = sb_fma_f64(p, f, 0x1.62e42fefa39efp-1);
    return sb_fma_f64(p, f, 1.0);
}

/* The weight of 16 bits that has such an exponent, not rounded yet. */
static SB_HD_HOT float sb_attention_weight_of_exponent(float exponent) {
    float shifted = exponent + SB_ROUNDING_SHIFT_F32;
    float power = sb_attention_power_half(exponent - (shifted - SB_ROUNDING_SHIFT_F32)) *
                  sb_split_factor_f32(sb_shifted_integer_f32(shifted), 0);
    return exponent < SB_ATTENTION_FLOOR_HALF ? 0.0f : power;
}

/* The weight of a score that is seen, not rounded to `dtype` yet. */
static SB_HD_HOT float sb_attention_weight_half(float s, sb_split_scale_f32 split, int32_t maximum) {
    return sb_attention_weight_of_exponent(sb_attention_exponent_half(s, split.scale, maximum));
}

static SB_HD_HOT float sb_attention_weight_f32(sb_dtype dtype, float s, sb_split_scale_f32 split, int32_t maximum) {
    if (dtype == SB_F16 || dtype == SB_BF16)
        return sb_attention_weight_half(s, split, maximum);
    float held = sb_split_hold_f32(s, split), shifted = sb_split_shifted_f32(held, split);
    int32_t n = sb_split_exponent_f32(shifted);
    return n - maximum < SB_ATTENTION_FLOOR_F32
               ? 0.0f
               : sb_exp2_fraction_f32(sb_split_fraction_f32(held, shifted, split)) * sb_split_factor_f32(n, maximum);
}

static SB_HD_HOT double sb_attention_weight_f64(sb_dtype dtype, double s, sb_split_scale_f64 split, int32_t maximum) {
    double held = sb_split_hold_f64(s, split), shifted = sb_split_shifted_f64(held, split);
    int32_t n = sb_split_exponent_f64(shifted);
    (void)dtype;
    return n - maximum < SB_ATTENTION_FLOOR_F64
               ? 0.0
               : sb_attention_power_f64(sb_split_fraction_f64(held, shifted, split)) * sb_split_factor_f64(n, maximum);
}

/* ---- which keys a query sees ---- */

/* From `first` up to, and without, `last`. */
typedef struct sb_attention_reach {
    int64_t first, last;
} sb_attention_reach;

/* Of a query at `position` among the keys, of which there are `length`: bounds of -1 are none. */
static SB_HD sb_attention_reach sb_attention_reach_of(int64_t position, int64_t length, int64_t left, int64_t right) {
    sb_attention_reach reach;
    reach.first = left >= 0 && position > left ? position - left : 0;
    reach.last = right >= 0 && right < length - 1 - position ? position + right + 1 : length;
    return reach;
}

/* A given number of keys, held within those that there are. */
static SB_HD int64_t sb_attention_length(int64_t given, int64_t keys) {
    return given < 0 ? 0 : given < keys ? given : keys;
}

/* ---- scores ---- */

/* A factor that the exponents' scale can take over without a rounding for each score. */
static SB_HD int sb_attention_is_moderate(double scale) {
    return scale >= 0x1p-20 && scale <= 0x1p20;
}

/* A chain's end as a score: scaled; with a cap (not 0) of that; with the bias if there is one. */
static SB_HD float sb_attention_finish_f32(float s, float scale, float cap, int is_biased, float bias) {
    s = s * scale;
    if (cap != 0)
        s = cap * sb_tanh_f32(sb_div_f32(s, cap));
    return is_biased ? s + bias : s;
}

static SB_HD double sb_attention_finish_f64(double s, double scale, double cap, int is_biased, double bias) {
    s = s * scale;
    if (cap != 0)
        s = cap * sb_tanh_f64(sb_div_f64(s, cap));
    return is_biased ? s + bias : s;
}

#endif
