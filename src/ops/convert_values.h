/* Cast between any two element types but text, for the host and for devices:
 *
 *     SB_TO_<to>_FROM_<kind>(SB_FROM_<kind>(load(element)))
 *
 * SB_CONVERT_SOURCES lists the source types with their kind and load. */
#ifndef SB_OPS_CONVERT_VALUES_H
#define SB_OPS_CONVERT_VALUES_H

#include "numerics/small.h"
#include "ops/type_lists.h"

/* Every source type is first read, without loss, as one of five: s32, s64, u64, f32, f64. Both 64-bit
 * integer kinds are needed for the one rounding to a float; whatever an s32 holds reads as that, since
 * processors convert it to a float in one instruction each for more elements. */
#define SB_FROM_s32(value) ((int32_t)(value))
#define SB_FROM_s64(value) ((int64_t)(value))
#define SB_FROM_u64(value) ((uint64_t)(value))
#define SB_FROM_f32(value) (value)
#define SB_FROM_f64(value) (value)

/* A bool that came in with other bits than 0 and 1 still counts as 1. */
#define SB_TRUTH(value) ((value) != 0)

/* What each kind becomes. Integers keep their low bits; only zero is false. */
#define SB_TO_b8_FROM_s32(value) ((value) != 0)
#define SB_TO_b8_FROM_s64(value) ((value) != 0)
#define SB_TO_b8_FROM_u64(value) ((value) != 0)
#define SB_TO_b8_FROM_f32(value) sb_bool_from_f32(value)
#define SB_TO_b8_FROM_f64(value) sb_bool_from_f64(value)

#define SB_TO_u8_FROM_s32(value) ((uint8_t)(value))
#define SB_TO_u8_FROM_s64(value) ((uint8_t)(value))
#define SB_TO_u8_FROM_u64(value) ((uint8_t)(value))
#define SB_TO_u8_FROM_f32(value) sb_u8_from_f32(value)
#define SB_TO_u8_FROM_f64(value) sb_u8_from_f64(value)
#define SB_TO_u16_FROM_s32(value) ((uint16_t)(value))
#define SB_TO_u16_FROM_s64(value) ((uint16_t)(value))
#define SB_TO_u16_FROM_u64(value) ((uint16_t)(value))
#define SB_TO_u16_FROM_f32(value) sb_u16_from_f32(value)
#define SB_TO_u16_FROM_f64(value) sb_u16_from_f64(value)
#define SB_TO_u32_FROM_s32(value) ((uint32_t)(value))
#define SB_TO_u32_FROM_s64(value) ((uint32_t)(value))
#define SB_TO_u32_FROM_u64(value) ((uint32_t)(value))
#define SB_TO_u32_FROM_f32(value) sb_u32_from_f32(value)
#define SB_TO_u32_FROM_f64(value) sb_u32_from_f64(value)
#define SB_TO_u64_FROM_s32(value) ((uint64_t)(int64_t)(value))
#define SB_TO_u64_FROM_s64(value) ((uint64_t)(value))
#define SB_TO_u64_FROM_u64(value) ((uint64_t)(value))
#define SB_TO_u64_FROM_f32(value) sb_u64_from_f32(value)
#define SB_TO_u64_FROM_f64(value) sb_u64_from_f64(value)

#define SB_TO_s8_FROM_s32(value) ((int8_t)(value))
#define SB_TO_s8_FROM_s64(value) ((int8_t)(value))
#define SB_TO_s8_FROM_u64(value) ((int8_t)(value))
#define SB_TO_s8_FROM_f32(value) sb_i8_from_f32(value)
#define SB_TO_s8_FROM_f64(value) sb_i8_from_f64(value)
#define SB_TO_s16_FROM_s32(value) ((int16_t)(value))
#define SB_TO_s16_FROM_s64(value) ((int16_t)(value))
#define SB_TO_s16_FROM_u64(value) ((int16_t)(value))
#define SB_TO_s16_FROM_f32(value) sb_i16_from_f32(value)
#define SB_TO_s16_FROM_f64(value) sb_i16_from_f64(value)
#define SB_TO_s32_FROM_s32(value) (value)
#define SB_TO_s32_FROM_s64(value) ((int32_t)(value))
#define SB_TO_s32_FROM_u64(value) ((int32_t)(value))
#define SB_TO_s32_FROM_f32(value) sb_i32_from_f32(value)
#define SB_TO_s32_FROM_f64(value) sb_i32_from_f64(value)
#define SB_TO_s64_FROM_s32(value) ((int64_t)(value))
#define SB_TO_s64_FROM_s64(value) (value)
#define SB_TO_s64_FROM_u64(value) ((int64_t)(value))
#define SB_TO_s64_FROM_f32(value) sb_i64_from_f32(value)
#define SB_TO_s64_FROM_f64(value) sb_i64_from_f64(value)

#define SB_TO_f16_FROM_s32(value) sb_f16_from_i64(value)
#define SB_TO_f16_FROM_s64(value) sb_f16_from_i64(value)
#define SB_TO_f16_FROM_u64(value) sb_f16_from_u64(value)
#define SB_TO_f16_FROM_f32(value) sb_f16_from_f32(value)
#define SB_TO_f16_FROM_f64(value) sb_f16_from_f64(value)
#define SB_TO_bf16_FROM_s32(value) sb_bf16_from_i64(value)
#define SB_TO_bf16_FROM_s64(value) sb_bf16_from_i64(value)
#define SB_TO_bf16_FROM_u64(value) sb_bf16_from_u64(value)
#define SB_TO_bf16_FROM_f32(value) sb_bf16_from_f32(value)
#define SB_TO_bf16_FROM_f64(value) sb_bf16_from_f64(value)
#define SB_TO_f32_FROM_s32(value) ((float)(value))
#define SB_TO_f32_FROM_s64(value) sb_f32_from_i64(value)
#define SB_TO_f32_FROM_u64(value) sb_f32_from_u64(value)
#define SB_TO_f32_FROM_f32(value) (value)
#define SB_TO_f32_FROM_f64(value) ((float)(value))
#define SB_TO_f64_FROM_s32(value) ((double)(value))
#define SB_TO_f64_FROM_s64(value) sb_f64_from_i64(value)
#define SB_TO_f64_FROM_u64(value) sb_f64_from_u64(value)
#define SB_TO_f64_FROM_f32(value) ((double)(value))
#define SB_TO_f64_FROM_f64(value) (value)

/* On the way to the small types: f32 rounded to odd, from which one more rounding to so few bits is the only one; and
 * the low bits of an integer, to which floats are cut as if to an s32. */
#define SB_TO_odd_FROM_s32(value) sb_f32_from_f64_to_odd((double)(value))
#define SB_TO_odd_FROM_s64(value) sb_f32_from_f64_to_odd(sb_f64_from_i64_to_odd(value))
#define SB_TO_odd_FROM_u64(value) sb_f32_from_f64_to_odd(sb_f64_from_u64_to_odd(value))
#define SB_TO_odd_FROM_f32(value) (value)
#define SB_TO_odd_FROM_f64(value) sb_f32_from_f64_to_odd(value)
#define SB_TO_low_FROM_s32(value) ((int8_t)(value))
#define SB_TO_low_FROM_s64(value) ((int8_t)(value))
#define SB_TO_low_FROM_u64(value) ((int8_t)(value))
#define SB_TO_low_FROM_f32(value) ((int8_t)sb_i32_from_f32(value))
#define SB_TO_low_FROM_f64(value) ((int8_t)sb_i32_from_f64(value))

/* X(name, stored type, kind, load, …) */
#define SB_CONVERT_INTEGERS(X, ...)                                                                                    \
    X(b8, uint8_t, s32, SB_TRUTH, __VA_ARGS__)                                                                         \
    X(u8, uint8_t, s32, SB_SAME, __VA_ARGS__)                                                                          \
    X(u16, uint16_t, s32, SB_SAME, __VA_ARGS__)                                                                        \
    X(u32, uint32_t, u64, SB_SAME, __VA_ARGS__)                                                                        \
    X(u64, uint64_t, u64, SB_SAME, __VA_ARGS__)                                                                        \
    X(s8, int8_t, s32, SB_SAME, __VA_ARGS__)                                                                           \
    X(s16, int16_t, s32, SB_SAME, __VA_ARGS__)                                                                         \
    X(s32, int32_t, s32, SB_SAME, __VA_ARGS__)                                                                         \
    X(s64, int64_t, s64, SB_SAME, __VA_ARGS__)
#define SB_CONVERT_FLOATS(X, ...)                                                                                      \
    X(f16, uint16_t, f32, sb_f16_to_f32, __VA_ARGS__)                                                                  \
    X(bf16, uint16_t, f32, sb_bf16_to_f32, __VA_ARGS__)                                                                \
    X(f32, float, f32, SB_SAME, __VA_ARGS__)                                                                           \
    X(f64, double, f64, SB_SAME, __VA_ARGS__)
#define SB_CONVERT_SOURCES(X, ...)                                                                                     \
    SB_CONVERT_INTEGERS(X, __VA_ARGS__)                                                                                \
    SB_CONVERT_FLOATS(X, __VA_ARGS__)

/* The small types: as sources. */
#define SB_CONVERT_SMALL(X, ...)                                                                                       \
    X(f8e4m3fn, uint8_t, f32, sb_f8e4m3fn_to_f32, __VA_ARGS__)                                                         \
    X(f8e4m3fnuz, uint8_t, f32, sb_f8e4m3fnuz_to_f32, __VA_ARGS__)                                                     \
    X(f8e5m2, uint8_t, f32, sb_f8e5m2_to_f32, __VA_ARGS__)                                                             \
    X(f8e5m2fnuz, uint8_t, f32, sb_f8e5m2fnuz_to_f32, __VA_ARGS__)                                                     \
    X(f8e8m0, uint8_t, f32, sb_f8e8m0_to_f32, __VA_ARGS__)                                                             \
    X(f6e2m3, uint8_t, f32, sb_f6e2m3_to_f32, __VA_ARGS__)                                                             \
    X(f6e3m2, uint8_t, f32, sb_f6e3m2_to_f32, __VA_ARGS__)                                                             \
    X(f4e2m1, uint8_t, f32, sb_f4e2m1_to_f32, __VA_ARGS__)                                                             \
    X(s4, uint8_t, s32, sb_s4_to_s8, __VA_ARGS__)                                                                      \
    X(u4, uint8_t, s32, sb_u4_to_s8, __VA_ARGS__)                                                                      \
    X(s2, uint8_t, s32, sb_s2_to_s8, __VA_ARGS__)                                                                      \
    X(u2, uint8_t, s32, sb_u2_to_s8, __VA_ARGS__)

#endif
