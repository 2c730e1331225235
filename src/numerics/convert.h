/* Conversions between scalar types: one rounding each, to nearest even, subnormals kept, never saturating between
 * floating-point types (overflow gives an infinity). NaN converts to the quiet NaN 0x7e00 (f16), 0x7fc0 (bf16) or
 * 0x7fc00000 (f32): payload and sign are dropped, so that every path agrees.
 *
 * Floating point to integer truncates toward zero; a value out of range saturates to the nearest bound of the integer
 * type and NaN gives 0. This is what CUDA's cvt.rzi does for 32- and 64-bit integers; the narrower types follow the
 * same rule at their own bounds. Conversion to bool is "not equal to zero", so NaN gives true. Integer to integer keeps
 * the low bits (two's complement). Integer to floating point rounds to nearest even, once. */
#ifndef SB_NUMERICS_CONVERT_H
#define SB_NUMERICS_CONVERT_H

#include "scalar.h"

/* Exact value of an f16 bit pattern. Branch-free, so that loops over it vectorise. Devices have an instruction for
 * three of these four, which differs from the definition in nothing but the NaN that it gives. */
static SB_HD_HOT float sb_f16_to_f32(uint16_t half) {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value == value ? value : sb_nan_f32();
#else
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7fffu;
    /* Re-bias by 2^112: exact for normal values. */
    uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
    /* A subnormal is magnitude * 2^-24: the integer conversion and the product are exact. */
    uint32_t subnormal = sb_bits_from_f32((float)(int32_t)magnitude * 5.9604644775390625e-08f);
    uint32_t special = magnitude > 0x7c00u ? 0x7fc00000u : 0x7f800000u;
    uint32_t bits = magnitude >= 0x7c00u ? special : magnitude < 0x0400u ? subnormal : normal;
    uint32_t kept_sign = magnitude > 0x7c00u ? 0u : sign;
    return sb_bits_to_f32(bits | kept_sign);
#endif
}

/* Nearest f16, ties to even. Branch-free. */
static SB_HD_HOT uint16_t sb_f16_from_f32(float value) {
#if defined(__CUDA_ARCH__)
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return value == value ? half : (uint16_t)0x7e00u;
#else
    uint32_t bits = sb_bits_from_f32(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    /* Normal results: round the 13 discarded bits with integer carries into the exponent. */
    uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    /* Subnormal results: adding 0.5 puts the unit of 2^-24 in the last place, so the addition rounds. */
    uint32_t subnormal = sb_bits_from_f32(sb_bits_to_f32(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
    /* 65520 is the first magnitude that rounds to infinity. */
    result = magnitude >= 0x477ff000u ? 0x7c00u : result;
    result = magnitude > 0x7f800000u ? 0x7e00u : result | sign;
    return (uint16_t)result;
#endif
}

static SB_HD_HOT float sb_bf16_to_f32(uint16_t brain) {
    uint32_t bits = (uint32_t)brain << 16;
    return sb_bits_to_f32((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits);
}

static SB_HD_HOT uint16_t sb_bf16_from_f32(float value) {
#if defined(__CUDA_ARCH__)
    uint16_t brain;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(brain) : "f"(value));
    return value == value ? brain : (uint16_t)0x7fc0u;
#else
    uint32_t bits = sb_bits_from_f32(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
#endif
}

/* f64 to f32 rounded to odd: the result keeps whether anything was discarded, so that a second
 * rounding to a format at least two bits shorter gives what one rounding from f64 would give. */
static SB_HD_HOT float sb_f32_from_f64_to_odd(double value) {
    float nearest = (float)value;
    uint32_t bits = sb_bits_from_f32(nearest);
    double back = (double)nearest;
    double magnitude = sb_abs_f64(value);
    /* An infinity made by overflow steps back to the largest finite value, which is odd. */
    uint32_t away = sb_abs_f64(back) > magnitude ? 1u : 0u;
    uint32_t inexact = back != value && value == value ? 1u : 0u;
    bits -= away;
    return sb_bits_to_f32(bits | inexact);
}

static SB_HD_HOT uint16_t sb_f16_from_f64(double value) {
    return sb_f16_from_f32(sb_f32_from_f64_to_odd(value));
}

static SB_HD_HOT uint16_t sb_bf16_from_f64(double value) {
    return sb_bf16_from_f32(sb_f32_from_f64_to_odd(value));
}

static SB_HD_HOT double sb_f16_to_f64(uint16_t half) {
    return (double)sb_f16_to_f32(half);
}

static SB_HD_HOT double sb_bf16_to_f64(uint16_t brain) {
    return (double)sb_bf16_to_f32(brain);
}

/* Integers wider than 53 bits to f16/bf16: through f64 rounded to odd, for the same one rounding. */
static SB_HD_HOT double sb_f64_from_u64_to_odd(uint64_t value) {
    /* Keep 53 significant bits at most, the last one sticky. */
    uint64_t high = value >> 11;
    uint64_t sticky = (value & 0x7ffu) != 0u ? 1u : 0u;
    return value < ((uint64_t)1 << 53) ? (double)value : (double)(high | sticky) * 2048.0;
}

static SB_HD_HOT double sb_f64_from_i64_to_odd(int64_t value) {
    uint64_t magnitude = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    double result = sb_f64_from_u64_to_odd(magnitude);
    return value < 0 ? -result : result;
}

static SB_HD_HOT uint16_t sb_f16_from_i64(int64_t value) {
    return sb_f16_from_f64(sb_f64_from_i64_to_odd(value));
}

static SB_HD_HOT uint16_t sb_f16_from_u64(uint64_t value) {
    return sb_f16_from_f64(sb_f64_from_u64_to_odd(value));
}

static SB_HD_HOT uint16_t sb_bf16_from_i64(int64_t value) {
    return sb_bf16_from_f64(sb_f64_from_i64_to_odd(value));
}

static SB_HD_HOT uint16_t sb_bf16_from_u64(uint64_t value) {
    return sb_bf16_from_f64(sb_f64_from_u64_to_odd(value));
}

static SB_HD_HOT float sb_f32_from_i64(int64_t value) {
    return (float)value;
}

static SB_HD_HOT float sb_f32_from_u64(uint64_t value) {
    return (float)value;
}

static SB_HD_HOT double sb_f64_from_i64(int64_t value) {
    return (double)value;
}

static SB_HD_HOT double sb_f64_from_u64(uint64_t value) {
    return (double)value;
}

/* Floating point to integer: the bounds are compared before the C conversion, which is undefined outside. */
static SB_HD_HOT int64_t sb_i64_from_f64(double value) {
    int in_range = value > -9223372036854775808.0 && value < 9223372036854775808.0;
    int64_t bound = value > 0.0 ? INT64_MAX : value < 0.0 ? INT64_MIN : 0;
    return in_range ? (int64_t)(in_range ? value : 0.0) : bound;
}

static SB_HD_HOT uint64_t sb_u64_from_f64(double value) {
    int in_range = value > -1.0 && value < 18446744073709551616.0;
    uint64_t bound = value > 0.0 ? UINT64_MAX : 0;
    /* Above 2^63 the offset is removed first: not every machine converts to unsigned directly. */
    int high = value >= 9223372036854775808.0;
    double reduced = in_range ? value - (high ? 9223372036854775808.0 : 0.0) : 0.0;
    uint64_t converted = (uint64_t)(int64_t)reduced + (high ? (uint64_t)1 << 63 : 0);
    return in_range ? converted : bound;
}

/* Truncation and saturation at bounds that int32_t holds; NaN gives 0. */
static SB_HD_HOT int32_t sb_saturate_f64(double value, double lowest, double highest) {
    double clamped = value < lowest ? lowest : value;
    clamped = clamped > highest ? highest : clamped;
    return (int32_t)(value == value ? clamped : 0.0);
}

static SB_HD_HOT int32_t sb_i32_from_f64(double value) {
    return sb_saturate_f64(value, -2147483648.0, 2147483647.0);
}

static SB_HD_HOT uint32_t sb_u32_from_f64(double value) {
    double clamped = value > 4294967295.0 ? 4294967295.0 : value;
    return (uint32_t)(int64_t)(clamped > 0.0 ? clamped : 0.0);
}

static SB_HD_HOT int16_t sb_i16_from_f64(double value) {
    return (int16_t)sb_saturate_f64(value, -32768.0, 32767.0);
}

static SB_HD_HOT uint16_t sb_u16_from_f64(double value) {
    return (uint16_t)sb_saturate_f64(value, 0.0, 65535.0);
}

static SB_HD_HOT int8_t sb_i8_from_f64(double value) {
    return (int8_t)sb_saturate_f64(value, -128.0, 127.0);
}

static SB_HD_HOT uint8_t sb_u8_from_f64(double value) {
    return (uint8_t)sb_saturate_f64(value, 0.0, 255.0);
}

static SB_HD_HOT uint8_t sb_bool_from_f64(double value) {
    return value != 0.0 ? 1 : 0;
}

/* The f32 forms widen exactly and follow the f64 rules. */
static SB_HD_HOT int64_t sb_i64_from_f32(float value) {
    return sb_i64_from_f64((double)value);
}

static SB_HD_HOT uint64_t sb_u64_from_f32(float value) {
    return sb_u64_from_f64((double)value);
}

static SB_HD_HOT int32_t sb_i32_from_f32(float value) {
    return sb_i32_from_f64((double)value);
}

static SB_HD_HOT uint32_t sb_u32_from_f32(float value) {
    return sb_u32_from_f64((double)value);
}

static SB_HD_HOT int16_t sb_i16_from_f32(float value) {
    return sb_i16_from_f64((double)value);
}

static SB_HD_HOT uint16_t sb_u16_from_f32(float value) {
    return sb_u16_from_f64((double)value);
}

static SB_HD_HOT int8_t sb_i8_from_f32(float value) {
    return sb_i8_from_f64((double)value);
}

static SB_HD_HOT uint8_t sb_u8_from_f32(float value) {
    return sb_u8_from_f64((double)value);
}

static SB_HD_HOT uint8_t sb_bool_from_f32(float value) {
    return value != 0.0f ? 1 : 0;
}

/* Round to an integral value, ties to even; keeps the sign of zero, infinities and NaN. */
static SB_HD_HOT float sb_round_half_even_f32(float x) {
    float magnitude = sb_abs_f32(x);
    /* Adding 2^23 leaves no fraction bits, so the addition itself rounds to nearest even. */
    float rounded = (magnitude + 8388608.0f) - 8388608.0f;
    return magnitude < 8388608.0f ? sb_copysign_f32(rounded, x) : x;
}

static SB_HD_HOT double sb_round_half_even_f64(double x) {
    double magnitude = sb_abs_f64(x);
    double rounded = (magnitude + 4503599627370496.0) - 4503599627370496.0;
    return magnitude < 4503599627370496.0 ? sb_copysign_f64(rounded, x) : x;
}

#endif
