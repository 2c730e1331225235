/* Element types of 2 to 8 bits that only store numbers: floats of 4, 6 and 8 bits, powers of two, integers of 2 and 4
 * bits. An element is a byte whose low bits count; what is made here has zeros above them.
 *
 * To a float of a sign, e bits of exponent and m of mantissa: one rounding to nearest, ties to even, subnormals kept.
 * What is larger than the largest number after rounding, and an infinity, gives the largest number with the sign, or,
 * where the conversion does not saturate, an infinity (f8e5m2) or the NaN (the other 8-bit types); the types of 4 and 6
 * bits have neither and always saturate. NaN gives the NaN that digests see: 0x7f (f8e4m3fn), 0x7e (f8e5m2), 0x80 (the
 * fnuz types, whose only zero is +0), and -0 where there is none. This is what ONNX's Cast says in its tables, and, for
 * the types of 4 and 6 bits, what ml_dtypes does.
 *
 * To f8e8m0: the magnitude, rounded to a power of two: up, down, or to the nearer one, of two as near the larger. The
 * sign is dropped, which ONNX leaves open. Saturating, what is above 2^127 gives that, infinities too, and what is
 * below 2^-127 gives that, 0 too; otherwise all of these give NaN, before rounding as after it. */
#ifndef SB_NUMERICS_SMALL_H
#define SB_NUMERICS_SMALL_H

#include "convert.h"

/* X(suffix, bits of the mantissa, bias, largest magnitude, what overflows where nothing saturates, NaN, bits of the
 * magnitude, …). A type has -0 unless its NaN is that pattern. */
#define SB_SMALL_FLOATS(X, ...)                                                                                        \
    X(f8e4m3fn, F8E4M3FN, 3, 7, 0x7e, 0x7f, 0x7f, 7, __VA_ARGS__)                                                      \
    X(f8e4m3fnuz, F8E4M3FNUZ, 3, 8, 0x7f, 0x80, 0x80, 7, __VA_ARGS__)                                                  \
    X(f8e5m2, F8E5M2, 2, 15, 0x7b, 0x7c, 0x7e, 7, __VA_ARGS__)                                                         \
    X(f8e5m2fnuz, F8E5M2FNUZ, 2, 16, 0x7f, 0x80, 0x80, 7, __VA_ARGS__)                                                 \
    X(f6e2m3, F6E2M3, 3, 1, 0x1f, 0x1f, 0x20, 5, __VA_ARGS__)                                                          \
    X(f6e3m2, F6E3M2, 2, 3, 0x1f, 0x1f, 0x20, 5, __VA_ARGS__)                                                          \
    X(f4e2m1, F4E2M1, 1, 1, 7, 7, 8, 3, __VA_ARGS__)

/* X(suffix, dtype, bits, whether there is a sign, …) */
#define SB_SMALL_INTEGERS(X, ...)                                                                                      \
    X(s4, S4, 4, 1, __VA_ARGS__)                                                                                       \
    X(u4, U4, 4, 0, __VA_ARGS__)                                                                                       \
    X(s2, S2, 2, 1, __VA_ARGS__)                                                                                       \
    X(u2, U2, 2, 0, __VA_ARGS__)

/* How f8e8m0 rounds. */
enum { SB_ROUND_UP = 0, SB_ROUND_DOWN = 1, SB_ROUND_NEAREST = 2 };

/* The number that `magnitude`, in a format of so many bits of mantissa and that bias, stands for, without the sign. */
static SB_HD_HOT float sb_small_decode(uint32_t magnitude, int mantissa, int bias) {
    float normal = sb_bits_to_f32((magnitude << (23 - mantissa)) + ((uint32_t)(127 - bias) << 23));
    /* The unit of subnormals is 2^(1 - bias - mantissa). The product is exact. */
    float unit = sb_bits_to_f32((uint32_t)(128 - bias - mantissa) << 23);
    float subnormal = (float)(int32_t)magnitude * unit;
    return magnitude < (uint32_t)1 << mantissa ? subnormal : normal;
}

/* The other way for the bits of an f32 without its sign, rounded to nearest even, without an upper bound: larger
 * numbers give larger results. */
static SB_HD_HOT uint32_t sb_small_encode(uint32_t magnitude, int mantissa, int bias) {
    int dropped = 23 - mantissa;
    uint32_t half = ((uint32_t)1 << (dropped - 1)) - 1u + ((magnitude >> dropped) & 1u);
    uint32_t normal = (magnitude - ((uint32_t)(127 - bias) << 23) + half) >> dropped;
    /* Adding 2^23 units of subnormals leaves no bits below the unit, so the addition rounds. */
    uint32_t offset = (uint32_t)(151 - bias - mantissa) << 23;
    uint32_t subnormal = sb_bits_from_f32(sb_bits_to_f32(magnitude) + sb_bits_to_f32(offset)) - offset;
    return magnitude < (uint32_t)(128 - bias) << 23 ? subnormal : normal;
}

/* sb_<type>_to_f32: exact. sb_<type>_from_f32: as the head of this file says. Branch-free. */
#define SB_SMALL_FLOAT(type, name, mantissa, bias, largest, beyond, nan, bits, unused)                                 \
    static SB_HD_HOT float sb_##type##_to_f32(uint8_t code) {                                                          \
        uint32_t magnitude = code & ((1u << (bits)) - 1u), sign = (uint32_t)(code >> (bits)&1u) << 31;                 \
        float value = sb_small_decode(magnitude, mantissa, bias);                                                      \
        value = sb_bits_to_f32(sb_bits_from_f32(value) | sign);                                                        \
        value = (beyond) == 0x7c && magnitude == 0x7c ? sb_bits_to_f32(0x7f800000u | sign) : value;                    \
        int none = (bits) == 7 && ((nan) == 0x80 ? code == 0x80 : magnitude >= ((beyond) == 0x7c ? 0x7du : 0x7fu));    \
        return none ? sb_nan_f32() : value;                                                                            \
    }                                                                                                                  \
    static SB_HD_HOT uint8_t sb_##type##_from_f32(float value, int saturate) {                                         \
        uint32_t all = sb_bits_from_f32(value), magnitude = all & 0x7fffffffu;                                         \
        uint32_t sign = all >> 31 << (bits), code = sb_small_encode(magnitude, mantissa, bias);                        \
        uint32_t bound = saturate ? (largest) : (beyond);                                                              \
        code = code > (largest) ? bound : code;                                                                        \
        /* Where -0 is the NaN, there is no negative zero; and a NaN that overflow gives has no sign. */               \
        sign = ((nan) == 0x80 && code == 0) || ((beyond) == (nan) && code == (nan)) ? 0 : sign;                        \
        return (uint8_t)(magnitude > 0x7f800000u ? (nan) : (code | sign));                                             \
    }
SB_SMALL_FLOATS(SB_SMALL_FLOAT, )
#undef SB_SMALL_FLOAT

static SB_HD_HOT float sb_f8e8m0_to_f32(uint8_t code) {
    /* 2^-127 is a subnormal number of f32. */
    uint32_t bits = code == 0 ? 0x00400000u : (uint32_t)code << 23;
    return sb_bits_to_f32(code == 0xff ? 0x7fc00000u : bits);
}

static SB_HD_HOT uint8_t sb_f8e8m0_from_f32(float value, int saturate, int round) {
    uint32_t magnitude = sb_bits_from_f32(value) & 0x7fffffffu;
    /* Added to a number, these carry into the exponent where it rounds up. Among the subnormal numbers the step is from
     * 2^-127 to 2^-126, which is half of the significand: 2^-127 is 0x400000 there, and the tie 0x600000. */
    uint32_t normal = round == SB_ROUND_UP ? 0x7fffffu : round == SB_ROUND_NEAREST ? 0x400000u : 0u;
    uint32_t subnormal = round == SB_ROUND_UP ? 0x3fffffu : round == SB_ROUND_NEAREST ? 0x200000u : 0u;
    uint32_t code = (magnitude + (magnitude < 0x00800000u ? subnormal : normal)) >> 23;
    uint32_t low = saturate ? 0u : 0xffu, high = saturate ? 0xfeu : 0xffu;
    code = magnitude < 0x00400000u ? low : code;
    code = magnitude > 0x7f000000u && (!saturate || code > 0xfeu) ? high : code;
    return (uint8_t)(magnitude > 0x7f800000u ? 0xffu : code);
}

/* The integers: s8 or u8 and back; to fewer bits, the low ones are kept. */
#define SB_SMALL_INTEGER(type, name, bits, is_signed, unused)                                                          \
    static SB_HD_HOT int8_t sb_##type##_to_s8(uint8_t code) {                                                          \
        int low = code & ((1 << (bits)) - 1);                                                                          \
        return (int8_t)((is_signed) ? (low ^ 1 << ((bits)-1)) - (1 << ((bits)-1)) : low);                              \
    }                                                                                                                  \
    static SB_HD_HOT uint8_t sb_##type##_from_s8(int8_t value) {                                                       \
        return (uint8_t)((uint8_t)value & ((1u << (bits)) - 1u));                                                      \
    }
SB_SMALL_INTEGERS(SB_SMALL_INTEGER, )
#undef SB_SMALL_INTEGER

#endif
