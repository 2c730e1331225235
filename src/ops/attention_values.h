/* The scalar arithmetic of attention (docs/numerics.md, section 10), once for the definition and for kernels.
 *
 * A weight is P(f) * 2^(n - m): n and f of numerics/exponent_split.h, m the largest n so far. P is a polynomial for 2^f on
 * [-1/2, 1/2] whose error is a small part of the rounding to the type in which weights are stored. The coefficients come
 * from numerics/polynomials.sollya. */
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

/* 2^f to 7.5e-5, where rounding to bf16 changes up to 3.9e-3. */
static SB_HD_HOT float sb_attention_power_bf16(float f) {
    float p = 0x1.c3f798p-5f;
    p = sb_fma_f32(p, f, 0x1.f0de26p-3f);
    p = sb_fma_f32(p, f, 0x1.62f31ap-1f);
    return sb_fma_f32(p, f, 0x1.fff692p-1f);
}

/* 2^f to 2.7e-6, where rounding to f16 changes up to 4.9e-4. */
static SB_HD_HOT float sb_attention_power_f16(float f) {
    float p = 0x1.39a2a2p-7f;
    p = sb_fma_f32(p, f, 0x1.ca147ep-5f);
    p = sb_fma_f32(p, f, 0x1.ec06a6p-3f);
    p = sb_fma_f32(p, f, 0x1.62e0dcp-1f);
    return sb_fma_f32(p, f, 0x1.ffffe8p-1f);
}

/* P in f32, for weights that are stored as `dtype`. */
static SB_HD_HOT float sb_attention_power_f32(sb_dtype dtype, float f) {
    return dtype == SB_BF16  ? sb_attention_power_bf16(f)
           : dtype == SB_F16 ? sb_attention_power_f16(f)
                             : sb_exp2_fraction_f32(f);
}

/* P in f64, whatever weights are stored as: 2^f to 1.3e-16, which is the roundings'. */
static SB_HD_HOT double sb_attention_power_f64(sb_dtype dtype, double f) {
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

/* The weight of a key, not rounded to `dtype` yet. */
static SB_HD_HOT float sb_attention_weight_f32(sb_dtype dtype, int32_t n, float f, int32_t maximum) {
    return n - maximum < SB_ATTENTION_FLOOR_F32 ? 0.0f
                                                : sb_attention_power_f32(dtype, f) * sb_split_factor_f32(n, maximum);
}

static SB_HD_HOT double sb_attention_weight_f64(sb_dtype dtype, int32_t n, double f, int32_t maximum) {
    return n - maximum < SB_ATTENTION_FLOOR_F64 ? 0.0
                                                : sb_attention_power_f64(dtype, f) * sb_split_factor_f64(n, maximum);
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
