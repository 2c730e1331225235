/* Argument reduction for the trigonometric functions: x = quadrant * pi/2 + remainder, |remainder|
 * about pi/4 at most, exact enough for every finite double. */
#ifndef SB_NUMERICS_QUADRANT_H
#define SB_NUMERICS_QUADRANT_H

#include "double_double.h"
#include "wide.h"

typedef struct sb_quadrant {
    sb_dd remainder;
    int32_t quadrant; /* modulo 4 */
} sb_quadrant;

/* Bits of 2/pi after the binary point, 64 to a word. A local array, so that the device has it too. */
static SB_HD uint64_t sb_two_over_pi_word(int32_t index) {
    const uint64_t words[20] = {0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
                                0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u,
                                0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu,
                                0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu,
                                0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu, 0xf0cfbc209af4361du};
    return words[index];
}

/* 64 bits of 2/pi whose first one has the weight 2^-(1+start), start >= -64. */
static SB_HD uint64_t sb_two_over_pi_bits(int32_t start) {
    int32_t word = (start + 64) / 64 - 1;
    int32_t offset = (start + 64) % 64;
    uint64_t first = word < 0 ? 0 : sb_two_over_pi_word(word);
    uint64_t second = sb_two_over_pi_word(word + 1);
    return offset == 0 ? first : first << offset | second >> (64 - offset);
}

/* High 64 bits of a 64 x 64 bit product. */
static SB_HD uint64_t sb_multiply_high(uint64_t a, uint64_t b) {
    uint64_t a_low = a & 0xffffffffu, a_high = a >> 32;
    uint64_t b_low = b & 0xffffffffu, b_high = b >> 32;
    uint64_t low = a_low * b_low;
    uint64_t middle = a_high * b_low + (low >> 32);
    uint64_t cross = a_low * b_high + (middle & 0xffffffffu);
    return a_high * b_high + (middle >> 32) + (cross >> 32);
}

/* An unsigned 64-bit integer as the exact sum of two doubles. */
static SB_HD sb_dd sb_dd_from_u64(uint64_t value) {
    sb_dd result;
    result.high = (double)(uint32_t)(value >> 32) * 4294967296.0;
    result.low = (double)(uint32_t)value;
    return sb_dd_ordered_sum(result.high, result.low);
}

/* Payne and Hanek: of the product x * 2/pi only the bits from 4 quadrants down to 2^-137 are
 * formed, so that the multiples of four quadrants are never computed. For finite x >= 1. No double
 * comes nearer than 2^-62 to a multiple of pi/2, which leaves 75 good bits. */
static SB_HD sb_quadrant sb_quadrant_huge(double x) {
    uint64_t bits = sb_bits_from_f64(x);
    int32_t exponent = (int32_t)(bits >> 52) - 1075;
    uint64_t significand = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
    /* x = significand * 2^exponent. Window bit 0 has the weight 2 once multiplied by 2^exponent. */
    int32_t start = exponent - 2;
    uint64_t w0 = sb_two_over_pi_bits(start);
    uint64_t w1 = sb_two_over_pi_bits(start + 64);
    uint64_t w2 = sb_two_over_pi_bits(start + 128);
    uint64_t p2 = sb_multiply_high(significand, w2);
    uint64_t p1 = significand * w1 + p2;
    uint64_t carry = p1 < p2 ? 1u : 0u;
    uint64_t p0 = significand * w0 + sb_multiply_high(significand, w1) + carry;
    /* p0:p1 is the product modulo 4, in units of 2^-126. Round to the nearest quadrant. */
    uint64_t quadrant = (p0 + 0x2000000000000000u) >> 62;
    uint64_t top = p0 - (quadrant << 62);
    int negative = (top >> 63) != 0;
    uint64_t low = negative ? (uint64_t)0 - p1 : p1;
    uint64_t high = negative ? ~top + (p1 == 0 ? 1u : 0u) : top;
    sb_dd fraction = sb_dd_from_u64(high);
    sb_dd tail = sb_dd_from_u64(low);
    fraction = sb_dd_scale(fraction, 0x1p-62);
    fraction = sb_dd_add(fraction, sb_dd_scale(tail, 0x1p-126));
    sb_dd half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    sb_quadrant result;
    result.remainder = sb_dd_multiply(fraction, half_pi);
    if (negative) {
        result.remainder = sb_dd_negate(result.remainder);
    }
    result.quadrant = (int32_t)(quadrant & 3u);
    return result;
}

/* For |x| below 2^20: pi/2 in pieces of 33 bits, whose products with the quadrant count are exact. */
static SB_HD sb_quadrant sb_quadrant_small(double x) {
    double shifted = sb_fma_f64(x, 0x1.45f306dc9c883p-1, SB_ROUNDING_SHIFT_F64);
    double count = shifted - SB_ROUNDING_SHIFT_F64;
    double first = sb_fma_f64(count, -0x1.921fb54400000p+0, x);
    sb_dd remainder = sb_dd_sum(first, count * -0x1.0b4611a600000p-34);
    remainder = sb_dd_add_double(remainder, count * -0x1.3198a2e000000p-69);
    remainder = sb_dd_add_double(remainder, count * -0x1.b839a252049c1p-104);
    sb_quadrant result;
    result.remainder = remainder;
    result.quadrant = sb_shifted_integer_f64(shifted) & 3;
    return result;
}

/* For finite x of either sign. */
static SB_HD sb_quadrant sb_quadrant_reduce(double x) {
    double a = sb_abs_f64(x);
    if (a < 1048576.0) {
        return sb_quadrant_small(x);
    }
    sb_quadrant result = sb_quadrant_huge(a);
    if (x < 0.0) {
        result.remainder = sb_dd_negate(result.remainder);
        result.quadrant = (4 - result.quadrant) & 3;
    }
    return result;
}

#endif
