/* exp and log with about 70 good bits, the inside of the f64 functions. Arguments are restricted;
 * the callers settle the special cases. */
#ifndef SB_NUMERICS_EXTENDED_EXP_LOG_H
#define SB_NUMERICS_EXTENDED_EXP_LOG_H

#include "double_double.h"
#include "wide.h"

/* e^x = 2^exponent * (1 + minus_one), 1 + minus_one from sqrt(1/2) to sqrt(2). */
typedef struct sb_extended_exp {
    sb_dd minus_one;
    int32_t exponent;
} sb_extended_exp;

/* e^r - 1 for |r| <= 0.35: Taylor's series, where the terms from r^6/6! on need no extra precision. */
static SB_HD sb_dd sb_extended_expm1_reduced(sb_dd r) {
    double x = r.high;
    double tail = 0x1.952c77030ad4ap-49;
    tail = sb_fma_f64(tail, x, 0x1.ae7f3e733b81fp-45);
    tail = sb_fma_f64(tail, x, 0x1.ae7f3e733b81fp-41);
    tail = sb_fma_f64(tail, x, 0x1.93974a8c07c9dp-37);
    tail = sb_fma_f64(tail, x, 0x1.6124613a86d09p-33);
    tail = sb_fma_f64(tail, x, 0x1.1eed8eff8d898p-29);
    tail = sb_fma_f64(tail, x, 0x1.ae64567f544e4p-26);
    tail = sb_fma_f64(tail, x, 0x1.27e4fb7789f5cp-22);
    tail = sb_fma_f64(tail, x, 0x1.71de3a556c734p-19);
    tail = sb_fma_f64(tail, x, 0x1.a01a01a01a01ap-16);
    tail = sb_fma_f64(tail, x, 0x1.a01a01a01a01ap-13);
    tail = sb_fma_f64(tail, x, 0x1.6c16c16c16c17p-10);
    sb_dd sum = sb_dd_make(tail, 0.0);
    sum = sb_dd_horner(r, sum, 0x1.1111111111111p-7, 0x1.1111111111111p-63);
    sum = sb_dd_horner(r, sum, 0x1.5555555555555p-5, 0x1.5555555555555p-59);
    sum = sb_dd_horner(r, sum, 0x1.5555555555555p-3, 0x1.5555555555555p-57);
    sum = sb_dd_horner(r, sum, 0.5, 0.0);
    return sb_dd_add(r, sb_dd_multiply(sb_dd_multiply(r, r), sum));
}

/* For |x| <= 2000. ln 2 comes in pieces whose products with the exponent are exact. */
static SB_HD sb_extended_exp sb_extended_exp_reduce(sb_dd x) {
    double shifted = sb_fma_f64(x.high, 0x1.71547652b82fep+0, SB_ROUNDING_SHIFT_F64);
    double count = shifted - SB_ROUNDING_SHIFT_F64;
    double first = sb_fma_f64(count, -0x1.62e42fefa4000p-1, x.high);
    sb_dd r = sb_dd_sum(first, count * 0x1.8432a1b0e2000p-43);
    r = sb_dd_add_double(r, sb_fma_f64(count, 0x1.8cff81a12a17ep-85, x.low));
    sb_extended_exp result;
    result.minus_one = sb_extended_expm1_reduced(r);
    result.exponent = sb_shifted_integer_f64(shifted);
    return result;
}

/* e^x for |x| <= 700. */
static SB_HD sb_dd sb_extended_exp_value(sb_dd x) {
    sb_extended_exp e = sb_extended_exp_reduce(x);
    return sb_dd_scale(sb_dd_add_double(e.minus_one, 1.0), sb_power_of_two_f64(e.exponent));
}

/* e^x - 1 for |x| <= 700, relative accuracy kept near 0. */
static SB_HD sb_dd sb_extended_expm1_value(sb_dd x) {
    sb_extended_exp e = sb_extended_exp_reduce(x);
    double scale = sb_power_of_two_f64(e.exponent);
    return sb_dd_add(sb_dd_sum(scale, -1.0), sb_dd_scale(e.minus_one, scale));
}

/* e^x * 2^shift rounded to f64, for |x| <= 2000 and |shift| <= 1. */
static SB_HD double sb_extended_exp_round(sb_dd x, int32_t shift) {
    sb_extended_exp e = sb_extended_exp_reduce(x);
    sb_dd value = sb_dd_add_double(e.minus_one, 1.0);
    int32_t exponent = e.exponent + shift;
    exponent = exponent > 1200 ? 1200 : exponent < -1200 ? -1200 : exponent;
    return sb_scale_f64(value.high, exponent);
}

/* log(1 + f) for 1 + f from 0.7 to 1.42: with s = f / (2 + f) it is 2s + 2s^3/3 + 2s^5/5 + ...,
 * where the terms from s^9 on need no extra precision. */
static SB_HD sb_dd sb_extended_log_reduced(sb_dd f) {
    sb_dd s = sb_dd_divide(f, sb_dd_add_double(f, 2.0));
    sb_dd z = sb_dd_multiply(s, s);
    double x = z.high;
    double tail = 0x1.0842108421084p-4;
    tail = sb_fma_f64(tail, x, 0x1.1a7b9611a7b96p-4);
    tail = sb_fma_f64(tail, x, 0x1.2f684bda12f68p-4);
    tail = sb_fma_f64(tail, x, 0x1.47ae147ae147bp-4);
    tail = sb_fma_f64(tail, x, 0x1.642c8590b2164p-4);
    tail = sb_fma_f64(tail, x, 0x1.8618618618618p-4);
    tail = sb_fma_f64(tail, x, 0x1.af286bca1af28p-4);
    tail = sb_fma_f64(tail, x, 0x1.e1e1e1e1e1e1ep-4);
    tail = sb_fma_f64(tail, x, 0x1.1111111111111p-3);
    tail = sb_fma_f64(tail, x, 0x1.3b13b13b13b14p-3);
    tail = sb_fma_f64(tail, x, 0x1.745d1745d1746p-3);
    tail = sb_fma_f64(tail, x, 0x1.c71c71c71c71cp-3);
    sb_dd sum = sb_dd_make(tail, 0.0);
    sum = sb_dd_horner(z, sum, 0x1.2492492492492p-2, 0x1.2492492492492p-56);
    sum = sb_dd_horner(z, sum, 0x1.999999999999ap-2, -0x1.999999999999ap-56);
    sum = sb_dd_horner(z, sum, 0x1.5555555555555p-1, 0x1.5555555555555p-55);
    return sb_dd_add(sb_dd_scale(s, 2.0), sb_dd_multiply(sb_dd_multiply(s, z), sum));
}

/* x = 2^exponent * (1 + fraction), 1 + fraction from sqrt(1/2) to sqrt(2), for finite positive x. */
typedef struct sb_extended_split {
    sb_dd fraction;
    double exponent;
} sb_extended_split;

static SB_HD sb_extended_split sb_extended_split_log(sb_dd x) {
    int is_small = x.high < 0x1p-1022;
    x = is_small ? sb_dd_scale(x, 0x1p54) : x;
    uint32_t high = (uint32_t)(sb_bits_from_f64(x.high) >> 32) - 0x3fe6a09eu;
    int32_t exponent = (int32_t)high >> 20;
    /* The power of two in two steps: 2^-1023 would be subnormal. */
    x = sb_dd_scale(x, sb_power_of_two_f64(-(exponent / 2)));
    x = sb_dd_scale(x, sb_power_of_two_f64(exponent / 2 - exponent));
    sb_extended_split split;
    split.fraction = sb_dd_add_double(x, -1.0);
    split.exponent = (double)(is_small ? exponent - 54 : exponent);
    return split;
}

/* log(x) for finite positive x. */
static SB_HD sb_dd sb_extended_log(sb_dd x) {
    sb_extended_split split = sb_extended_split_log(x);
    sb_dd whole = sb_dd_multiply_double(sb_dd_make(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56), split.exponent);
    return sb_dd_add(whole, sb_extended_log_reduced(split.fraction));
}

/* log(1 + x) for x > -1, relative accuracy kept near 0. */
static SB_HD sb_dd sb_extended_log1p(sb_dd x) {
    if (sb_abs_f64(x.high) < 0.25) {
        return sb_extended_log_reduced(x);
    }
    return sb_extended_log(sb_dd_add(sb_dd_make(1.0, 0.0), x));
}

#endif
