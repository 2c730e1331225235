/* exp and log with about 70 good bits, the inside of the f64 functions. Arguments are restricted;
 * the callers settle the special cases. */
#ifndef IV_NUMERICS_EXTENDED_EXP_LOG_H
#define IV_NUMERICS_EXTENDED_EXP_LOG_H

#include "double_double.h"
#include "wide.h"

/* e^x = 2^exponent * (1 + minus_one), 1 + minus_one from sqrt(1/2) to sqrt(2). */
typedef struct iv_extended_exp {
    iv_dd minus_one;
    int32_t exponent;
} iv_extended_exp;

/* e^r - 1 for |r| <= 0.35: Taylor's series, where the terms from r^6/6! on need no extra precision.
 */
static IV_HD iv_dd iv_extended_expm1_reduced(iv_dd r) {
    double x = r.high;
    double tail = 0x1.952c77030ad4ap-49;
    tail = iv_fma_f64(tail, x, 0x1.ae7f3e733b81fp-45);
    tail = iv_fma_f64(tail, x, 0x1.ae7f3e733b81fp-41);
    tail = iv_fma_f64(tail, x, 0x1.93974a8c07c9dp-37);
    tail = iv_fma_f64(tail, x, 0x1.6124613a86d09p-33);
    tail = iv_fma_f64(tail, x, 0x1.1eed8eff8d898p-29);
    tail = iv_fma_f64(tail, x, 0x1.ae64567f544e4p-26);
    tail = iv_fma_f64(tail, x, 0x1.27e4fb7789f5cp-22);
    tail = iv_fma_f64(tail, x, 0x1.71de3a556c734p-19);
    tail = iv_fma_f64(tail, x, 0x1.a01a01a01a01ap-16);
    tail = iv_fma_f64(tail, x, 0x1.a01a01a01a01ap-13);
    tail = iv_fma_f64(tail, x, 0x1.6c16c16c16c17p-10);
    iv_dd sum = iv_dd_make(tail, 0.0);
    sum = iv_dd_horner(r, sum, 0x1.1111111111111p-7, 0x1.1111111111111p-63);
    sum = iv_dd_horner(r, sum, 0x1.5555555555555p-5, 0x1.5555555555555p-59);
    sum = iv_dd_horner(r, sum, 0x1.5555555555555p-3, 0x1.5555555555555p-57);
    sum = iv_dd_horner(r, sum, 0.5, 0.0);
    return iv_dd_add(r, iv_dd_multiply(iv_dd_multiply(r, r), sum));
}

/* For |x| <= 2000. ln 2 comes in pieces whose products with the exponent are exact. */
static IV_HD iv_extended_exp iv_extended_exp_reduce(iv_dd x) {
    double shifted = iv_fma_f64(x.high, 0x1.71547652b82fep+0, IV_ROUNDING_SHIFT_F64);
    double count = shifted - IV_ROUNDING_SHIFT_F64;
    double first = iv_fma_f64(count, -0x1.62e42fefa4000p-1, x.high);
    iv_dd r = iv_dd_sum(first, count * 0x1.8432a1b0e2000p-43);
    r = iv_dd_add_double(r, iv_fma_f64(count, 0x1.8cff81a12a17ep-85, x.low));
    iv_extended_exp result;
    result.minus_one = iv_extended_expm1_reduced(r);
    result.exponent = iv_shifted_integer_f64(shifted);
    return result;
}

/* e^x for |x| <= 700. */
static IV_HD iv_dd iv_extended_exp_value(iv_dd x) {
    iv_extended_exp e = iv_extended_exp_reduce(x);
    return iv_dd_scale(iv_dd_add_double(e.minus_one, 1.0), iv_power_of_two_f64(e.exponent));
}

/* e^x - 1 for |x| <= 700, relative accuracy kept near 0. */
static IV_HD iv_dd iv_extended_expm1_value(iv_dd x) {
    iv_extended_exp e = iv_extended_exp_reduce(x);
    double scale = iv_power_of_two_f64(e.exponent);
    return iv_dd_add(iv_dd_sum(scale, -1.0), iv_dd_scale(e.minus_one, scale));
}

/* e^x * 2^shift rounded to f64, for |x| <= 2000 and |shift| <= 1. */
static IV_HD double iv_extended_exp_round(iv_dd x, int32_t shift) {
    iv_extended_exp e = iv_extended_exp_reduce(x);
    iv_dd value = iv_dd_add_double(e.minus_one, 1.0);
    int32_t exponent = e.exponent + shift;
    exponent = exponent > 1200 ? 1200 : exponent < -1200 ? -1200 : exponent;
    return iv_scale_f64(value.high, exponent);
}

/* log(1 + f) for 1 + f from 0.7 to 1.42: with s = f / (2 + f) it is 2s + 2s^3/3 + 2s^5/5 + ...,
 * where the terms from s^9 on need no extra precision. */
static IV_HD iv_dd iv_extended_log_reduced(iv_dd f) {
    iv_dd s = iv_dd_divide(f, iv_dd_add_double(f, 2.0));
    iv_dd z = iv_dd_multiply(s, s);
    double x = z.high;
    double tail = 0x1.0842108421084p-4;
    tail = iv_fma_f64(tail, x, 0x1.1a7b9611a7b96p-4);
    tail = iv_fma_f64(tail, x, 0x1.2f684bda12f68p-4);
    tail = iv_fma_f64(tail, x, 0x1.47ae147ae147bp-4);
    tail = iv_fma_f64(tail, x, 0x1.642c8590b2164p-4);
    tail = iv_fma_f64(tail, x, 0x1.8618618618618p-4);
    tail = iv_fma_f64(tail, x, 0x1.af286bca1af28p-4);
    tail = iv_fma_f64(tail, x, 0x1.e1e1e1e1e1e1ep-4);
    tail = iv_fma_f64(tail, x, 0x1.1111111111111p-3);
    tail = iv_fma_f64(tail, x, 0x1.3b13b13b13b14p-3);
    tail = iv_fma_f64(tail, x, 0x1.745d1745d1746p-3);
    tail = iv_fma_f64(tail, x, 0x1.c71c71c71c71cp-3);
    iv_dd sum = iv_dd_make(tail, 0.0);
    sum = iv_dd_horner(z, sum, 0x1.2492492492492p-2, 0x1.2492492492492p-56);
    sum = iv_dd_horner(z, sum, 0x1.999999999999ap-2, -0x1.999999999999ap-56);
    sum = iv_dd_horner(z, sum, 0x1.5555555555555p-1, 0x1.5555555555555p-55);
    return iv_dd_add(iv_dd_scale(s, 2.0), iv_dd_multiply(iv_dd_multiply(s, z), sum));
}

/* x = 2^exponent * (1 + fraction), 1 + fraction from sqrt(1/2) to sqrt(2), for finite positive x.
 */
typedef struct iv_extended_split {
    iv_dd fraction;
    double exponent;
} iv_extended_split;

static IV_HD iv_extended_split iv_extended_split_log(iv_dd x) {
    int is_small = x.high < 0x1p-1022;
    x = is_small ? iv_dd_scale(x, 0x1p54) : x;
    uint32_t high = (uint32_t)(iv_bits_from_f64(x.high) >> 32) - 0x3fe6a09eu;
    int32_t exponent = (int32_t)high >> 20;
    /* The power of two in two steps: 2^-1023 would be subnormal. */
    x = iv_dd_scale(x, iv_power_of_two_f64(-(exponent / 2)));
    x = iv_dd_scale(x, iv_power_of_two_f64(exponent / 2 - exponent));
    iv_extended_split split;
    split.fraction = iv_dd_add_double(x, -1.0);
    split.exponent = (double)(is_small ? exponent - 54 : exponent);
    return split;
}

/* log(x) for finite positive x. */
static IV_HD iv_dd iv_extended_log(iv_dd x) {
    iv_extended_split split = iv_extended_split_log(x);
    iv_dd whole = iv_dd_multiply_double(iv_dd_make(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56),
                                        split.exponent);
    return iv_dd_add(whole, iv_extended_log_reduced(split.fraction));
}

/* log(1 + x) for x > -1, relative accuracy kept near 0. */
static IV_HD iv_dd iv_extended_log1p(iv_dd x) {
    if (iv_abs_f64(x.high) < 0.25) {
        return iv_extended_log_reduced(x);
    }
    return iv_extended_log(iv_dd_add(iv_dd_make(1.0, 0.0), x));
}

#endif
