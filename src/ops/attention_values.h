/* The scalar arithmetic of attention (docs/numerics.md, section 10), once for the definition and for kernels.
 *
 * A weight is P(f) * 2^(n - m): n and f of numerics/exponent_split.h, m the largest n so far. P is a polynomial for 2^f on
 * [-1/2, 1/2] whose error is a small part of the rounding to the type in which weights are stored. The coefficients come
 * from numerics/polynomials.sollya. */
#ifndef SB_OPS_ATTENTION_VALUES_H
#define SB_OPS_ATTENTION_VALUES_H

#include <samebit/dtype.h>

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

#endif
