/* Contractions: one chain of roundings per output element, over k ascending from 0.
 *
 * f32 and f64: acc = fma(a[k], b[k], acc). Blocking over k continues the same chain; partial sums are never added.
 *
 * f16 and bf16 (sb_chain16_*): k is cut, from 0, into groups of 16, the last padded with zeros, and each group is one
 * step of the tensor core of NVIDIA Hopper (mma.sync.m16n8k16, wgmma with f32 accumulation):
 *
 *     E   = max(-133, e_a + e_b of the products that are not zero, e of acc if it is not zero)
 *     S   = sum of trunc(a*b * 2^(25-E)) + trunc(acc * 2^(25-E))    toward zero, exact integer sum
 *     acc = S * 2^(E-25), truncated toward zero to f32
 *
 * An exponent is that of the stored format: products are not normalised, and a subnormal keeps its format's lowest
 * exponent (-14 for f16, -126 for bf16 and f32). The order inside a group does not matter. The corner rules are named
 * functions below, so that each can be read and changed alone. */
#ifndef SB_NUMERICS_CHAIN_H
#define SB_NUMERICS_CHAIN_H

#include "scalar.h"

/* acc = fma(a[k], b[k], acc) for k = 0 ... count-1; strides are in elements. */
static SB_HD float sb_chain_f32(const float *a, int64_t a_stride, const float *b, int64_t b_stride, int64_t count,
                                float accumulator) {
    for (int64_t k = 0; k < count; k++) {
        accumulator = sb_fma_f32(a[k * a_stride], b[k * b_stride], accumulator);
    }
    return accumulator;
}

static SB_HD double sb_chain_f64(const double *a, int64_t a_stride, const double *b, int64_t b_stride, int64_t count,
                                 double accumulator) {
    for (int64_t k = 0; k < count; k++) {
        accumulator = sb_fma_f64(a[k * a_stride], b[k * b_stride], accumulator);
    }
    return accumulator;
}

#define SB_CHAIN16_GROUP 16
/* Bits kept below the largest exponent, and the lowest exponent that alignment uses. */
#define SB_CHAIN16_ALIGNMENT_BITS 25
#define SB_CHAIN16_EXPONENT_FLOOR (-133)

/* A 16-bit number taken apart: value = significand * 2^(exponent - fraction bits of the format). */
typedef struct sb_chain16_part {
    int32_t significand;
    int32_t exponent;
} sb_chain16_part;

/* The two 16-bit formats, so that one model serves both. */
typedef struct sb_chain16_format {
    int32_t fraction_bits;
    int32_t exponent_mask;
    int32_t bias;
} sb_chain16_format;

static SB_HD_HOT sb_chain16_format sb_chain16_format_bf16(void) {
    sb_chain16_format format = {7, 0xff, 127};
    return format;
}

static SB_HD_HOT sb_chain16_format sb_chain16_format_f16(void) {
    sb_chain16_format format = {10, 0x1f, 15};
    return format;
}

/* Finite numbers only; infinities and NaN are settled before. */
static SB_HD_HOT sb_chain16_part sb_chain16_unpack(uint16_t bits, sb_chain16_format format) {
    int32_t stored = (bits >> format.fraction_bits) & format.exponent_mask;
    int32_t fraction = bits & ((1 << format.fraction_bits) - 1);
    int32_t significand = stored != 0 ? fraction | (1 << format.fraction_bits) : fraction;
    sb_chain16_part part;
    part.significand = (bits & 0x8000) ? -significand : significand;
    part.exponent = (stored != 0 ? stored : 1) - format.bias;
    return part;
}

/* Rule: the class of every product and of acc decides first. NaN if any input is NaN, any product is 0 * infinity, or
 * infinities of both signs meet; else infinity if there is one. The classes are bits: */
#define SB_CHAIN16_POSITIVE_INFINITY 1
#define SB_CHAIN16_NEGATIVE_INFINITY 2
#define SB_CHAIN16_NAN 4

static SB_HD_HOT int sb_chain16_class_of_product(uint16_t a, uint16_t b, sb_chain16_format format) {
    uint32_t infinity = (uint32_t)format.exponent_mask << format.fraction_bits;
    uint32_t a_magnitude = a & 0x7fffu;
    uint32_t b_magnitude = b & 0x7fffu;
    int is_nan = a_magnitude > infinity || b_magnitude > infinity || (a_magnitude == infinity && b_magnitude == 0) ||
                 (b_magnitude == infinity && a_magnitude == 0);
    int is_infinite = a_magnitude == infinity || b_magnitude == infinity;
    int sign_class = ((a ^ b) & 0x8000) ? SB_CHAIN16_NEGATIVE_INFINITY : SB_CHAIN16_POSITIVE_INFINITY;
    return is_nan ? SB_CHAIN16_NAN : is_infinite ? sign_class : 0;
}

static SB_HD_HOT int sb_chain16_class_of_accumulator(float accumulator) {
    uint32_t bits = sb_bits_from_f32(accumulator);
    uint32_t magnitude = bits & 0x7fffffffu;
    int sign_class = (bits >> 31) != 0 ? SB_CHAIN16_NEGATIVE_INFINITY : SB_CHAIN16_POSITIVE_INFINITY;
    return magnitude > 0x7f800000u ? SB_CHAIN16_NAN : magnitude == 0x7f800000u ? sign_class : 0;
}

/* The result for a non-empty set of special classes. */
static SB_HD_HOT float sb_chain16_special(int classes) {
    return classes == SB_CHAIN16_POSITIVE_INFINITY   ? sb_infinity_f32()
           : classes == SB_CHAIN16_NEGATIVE_INFINITY ? -sb_infinity_f32()
                                                     : sb_nan_f32();
}

/* Rule: a result of zero is +0, whatever the signs of the zeros that entered, and also when a
 * negative sum is too small for f32 and truncates to zero. */
static SB_HD_HOT float sb_chain16_zero(void) {
    return 0.0f;
}

/* Rule: a magnitude of 2^128 or more becomes an infinity, although the result is otherwise truncated. */
static SB_HD_HOT float sb_chain16_overflow(int negative) {
    return negative ? -sb_infinity_f32() : sb_infinity_f32();
}

/* Rule: a product with a zero factor does not take part in the largest exponent, however large the
 * other factor is. */
static SB_HD_HOT int32_t sb_chain16_raise(int32_t largest, int32_t significand, int32_t exponent) {
    return significand != 0 && exponent > largest ? exponent : largest;
}

/* trunc(significand * 2^shift) toward zero. Left shifts are at most 11 and cannot overflow, but for
 * a zero, whose exponent may lie anywhere: its shift is reduced to one that C defines. */
static SB_HD_HOT int32_t sb_chain16_align(int32_t significand, int32_t shift) {
    int32_t magnitude = significand < 0 ? -significand : significand;
    int32_t aligned = shift >= 0    ? (int32_t)((uint32_t)magnitude << (shift & 31))
                      : shift > -32 ? magnitude >> -shift
                                    : 0;
    return significand < 0 ? -aligned : aligned;
}

/* Position of the highest set bit of a value that is not zero. */
static SB_HD_HOT int32_t sb_chain16_highest_bit(uint64_t value) {
#if defined(__CUDA_ARCH__)
    return 63 - __clzll((long long)value);
#else
    return 63 - __builtin_clzll(value);
#endif
}

/* sum * 2^unit, truncated toward zero to f32. */
static SB_HD_HOT float sb_chain16_truncate(int64_t sum, int32_t unit) {
    if (sum == 0) {
        return sb_chain16_zero();
    }
    int negative = sum < 0;
    uint64_t magnitude = negative ? (uint64_t)-sum : (uint64_t)sum;
    int32_t exponent = sb_chain16_highest_bit(magnitude) + unit;
    if (exponent > 127) {
        return sb_chain16_overflow(negative);
    }
    int32_t last_place = exponent - 23 > -149 ? exponent - 23 : -149;
    int32_t drop = last_place - unit;
    uint64_t kept = drop >= 0 ? magnitude >> drop : magnitude << -drop;
    if (kept == 0) {
        return sb_chain16_zero();
    }
    uint32_t bits = (uint32_t)kept;
    if (exponent >= -126) {
        bits = (bits & 0x007fffffu) | ((uint32_t)(exponent + 127) << 23);
    }
    return sb_bits_to_f32(bits | (negative ? 0x80000000u : 0u));
}

/* A group of 16 products and the accumulator. */
static SB_HD_HOT float sb_chain16_step(const uint16_t a[SB_CHAIN16_GROUP], const uint16_t b[SB_CHAIN16_GROUP],
                                       float accumulator, sb_chain16_format format) {
    int32_t products[SB_CHAIN16_GROUP];
    int32_t exponents[SB_CHAIN16_GROUP];
    int classes = sb_chain16_class_of_accumulator(accumulator);
    uint32_t bits = sb_bits_from_f32(accumulator);
    int32_t stored = (int32_t)((bits >> 23) & 0xffu);
    int32_t significand = (int32_t)(bits & 0x007fffffu) | (stored != 0 ? 0x00800000 : 0);
    int32_t exponent = (stored != 0 ? stored : 1) - 127;
    int32_t largest = sb_chain16_raise(SB_CHAIN16_EXPONENT_FLOOR, significand, exponent);
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        sb_chain16_part left = sb_chain16_unpack(a[k], format);
        sb_chain16_part right = sb_chain16_unpack(b[k], format);
        classes |= sb_chain16_class_of_product(a[k], b[k], format);
        products[k] = left.significand * right.significand;
        exponents[k] = left.exponent + right.exponent;
        largest = sb_chain16_raise(largest, products[k], exponents[k]);
    }
    if (classes != 0) {
        return sb_chain16_special(classes);
    }
    /* Each aligned term is below 2^27 in magnitude, so the sum of 17 needs more than 32 bits. */
    int32_t signed_significand = (bits >> 31) != 0 ? -significand : significand;
    int32_t unit = largest - SB_CHAIN16_ALIGNMENT_BITS;
    int64_t sum = sb_chain16_align(signed_significand, exponent - unit - 23);
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        sum += sb_chain16_align(products[k], exponents[k] - unit - 2 * format.fraction_bits);
    }
    return sb_chain16_truncate(sum, unit);
}

static SB_HD float sb_chain16_step_bf16(const uint16_t a[SB_CHAIN16_GROUP], const uint16_t b[SB_CHAIN16_GROUP],
                                        float accumulator) {
    return sb_chain16_step(a, b, accumulator, sb_chain16_format_bf16());
}

static SB_HD float sb_chain16_step_f16(const uint16_t a[SB_CHAIN16_GROUP], const uint16_t b[SB_CHAIN16_GROUP],
                                       float accumulator) {
    return sb_chain16_step(a, b, accumulator, sb_chain16_format_f16());
}

/* The whole chain over `count` pairs; strides are in elements. Nothing leaves the accumulator as it is. */
static SB_HD float sb_chain16(const uint16_t *a, int64_t a_stride, const uint16_t *b, int64_t b_stride, int64_t count,
                              float accumulator, sb_chain16_format format) {
    for (int64_t start = 0; start < count; start += SB_CHAIN16_GROUP) {
        uint16_t left[SB_CHAIN16_GROUP];
        uint16_t right[SB_CHAIN16_GROUP];
        for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
            int64_t index = start + k;
            left[k] = index < count ? a[index * a_stride] : (uint16_t)0;
            right[k] = index < count ? b[index * b_stride] : (uint16_t)0;
        }
        accumulator = sb_chain16_step(left, right, accumulator, format);
    }
    return accumulator;
}

static SB_HD float sb_chain16_bf16(const uint16_t *a, int64_t a_stride, const uint16_t *b, int64_t b_stride,
                                   int64_t count, float accumulator) {
    return sb_chain16(a, a_stride, b, b_stride, count, accumulator, sb_chain16_format_bf16());
}

static SB_HD float sb_chain16_f16(const uint16_t *a, int64_t a_stride, const uint16_t *b, int64_t b_stride,
                                  int64_t count, float accumulator) {
    return sb_chain16(a, a_stride, b, b_stride, count, accumulator, sb_chain16_format_f16());
}

#endif
