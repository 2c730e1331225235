/* Elementary functions evaluated in double with about 2^-50 relative error: the inside of those f32 functions that
 * round once from double. Arguments are restricted; the callers settle the special cases. Branch-free. */
#ifndef SB_NUMERICS_WIDE_H
#define SB_NUMERICS_WIDE_H

#include "scalar.h"

#define SB_ROUNDING_SHIFT_F64 6755399441055744.0

/* The integer that 1.5 * 2^52 + n holds in its low bits, |n| < 2^31. */
static SB_HD_HOT int32_t sb_shifted_integer_f64(double shifted) {
    return (int32_t)(uint32_t)sb_bits_from_f64(shifted);
}

/* e^r - 1 for |r| <= 0.347. */
static SB_HD_HOT double sb_wide_expm1_reduced(double r) {
    double q = 0x1.af857bbca020ep-26;
    q = sb_fma_f64(q, r, 0x1.28afb39af5504p-22);
    q = sb_fma_f64(q, r, 0x1.71dddfd376d4fp-19);
    q = sb_fma_f64(q, r, 0x1.a01997516d3e1p-16);
    q = sb_fma_f64(q, r, 0x1.a01a01badee88p-13);
    q = sb_fma_f64(q, r, 0x1.6c16c185526bcp-10);
    q = sb_fma_f64(q, r, 0x1.111111110d643p-7);
    q = sb_fma_f64(q, r, 0x1.5555555550222p-5);
    q = sb_fma_f64(q, r, 0x1.5555555555561p-3);
    q = sb_fma_f64(q, r, 0x1.000000000000bp-1);
    return sb_fma_f64(q, r * r, r);
}

/* e^x - 1 for |x| <= 700. */
static SB_HD_HOT double sb_wide_expm1(double x) {
    double shifted = sb_fma_f64(x, 0x1.71547652b82fep+0, SB_ROUNDING_SHIFT_F64);
    double count = shifted - SB_ROUNDING_SHIFT_F64;
    double r = sb_fma_f64(count, -0x1.62e42fefa39efp-1, x);
    r = sb_fma_f64(count, -0x1.abc9e3b39803fp-56, r);
    double scale = sb_power_of_two_f64(sb_shifted_integer_f64(shifted));
    return sb_fma_f64(scale, sb_wide_expm1_reduced(r), scale - 1.0);
}

/* 2^(x / ln 2) for |x| <= 700. */
static SB_HD_HOT double sb_wide_exp(double x) {
    double shifted = sb_fma_f64(x, 0x1.71547652b82fep+0, SB_ROUNDING_SHIFT_F64);
    double count = shifted - SB_ROUNDING_SHIFT_F64;
    double r = sb_fma_f64(count, -0x1.62e42fefa39efp-1, x);
    r = sb_fma_f64(count, -0x1.abc9e3b39803fp-56, r);
    double scale = sb_power_of_two_f64(sb_shifted_integer_f64(shifted));
    return sb_fma_f64(scale, sb_wide_expm1_reduced(r), scale);
}

/* 2^x for |x| <= 1000. */
static SB_HD_HOT double sb_wide_exp2(double x) {
    double shifted = x + SB_ROUNDING_SHIFT_F64;
    double r = (x - (shifted - SB_ROUNDING_SHIFT_F64)) * 0x1.62e42fefa39efp-1;
    double scale = sb_power_of_two_f64(sb_shifted_integer_f64(shifted));
    return sb_fma_f64(scale, sb_wide_expm1_reduced(r), scale);
}

/* x = 2^exponent * (1 + fraction), 1 + fraction from sqrt(1/2) to sqrt(2), for normal positive x. */
typedef struct sb_wide_split {
    double fraction;
    double exponent;
} sb_wide_split;

static SB_HD_HOT sb_wide_split sb_wide_split_log(double x) {
    uint64_t bits = sb_bits_from_f64(x);
    uint32_t high = (uint32_t)(bits >> 32) - 0x3fe6a09eu;
    int32_t exponent = (int32_t)high >> 20;
    sb_wide_split split;
    split.exponent = (double)exponent;
    split.fraction = sb_bits_to_f64(bits - ((uint64_t)(uint32_t)exponent << 52)) - 1.0;
    return split;
}

/* log(1 + f) for 1 + f from sqrt(1/2) to sqrt(2): with s = f / (2 + f) it is 2s + s^3 L(s^2). */
static SB_HD_HOT double sb_wide_log_reduced(double f) {
    double s = sb_div_f64(f, 2.0 + f);
    double z = s * s;
    double l = 0x1.2f041b8c9d05cp-3;
    l = sb_fma_f64(l, z, 0x1.39a1e2db12308p-3);
    l = sb_fma_f64(l, z, 0x1.74663d0456acbp-3);
    l = sb_fma_f64(l, z, 0x1.c71c5214811ddp-3);
    l = sb_fma_f64(l, z, 0x1.24924941e0829p-2);
    l = sb_fma_f64(l, z, 0x1.999999997ff2bp-2);
    l = sb_fma_f64(l, z, 0x1.5555555555592p-1);
    return sb_fma_f64(s * z, l, s + s);
}

/* log(x) for normal positive x. */
static SB_HD_HOT double sb_wide_log(double x) {
    sb_wide_split split = sb_wide_split_log(x);
    return sb_fma_f64(split.exponent, 0x1.62e42fefa39efp-1, sb_wide_log_reduced(split.fraction));
}

/* log2(x) for normal positive x; exact at powers of two. */
static SB_HD_HOT double sb_wide_log2(double x) {
    sb_wide_split split = sb_wide_split_log(x);
    return sb_fma_f64(sb_wide_log_reduced(split.fraction), 0x1.71547652b82fep+0, split.exponent);
}

/* log(1 + x) for finite x with 1 + x normal and positive. What 1 + x rounds away is put back to first order. */
static SB_HD_HOT double sb_wide_log1p(double x) {
    double u = 1.0 + x;
    double lost = u > 2.0 ? 1.0 - (u - x) : x - (u - 1.0);
    return sb_wide_log(u) + sb_div_f64(lost, u);
}

#endif
