/* Cast between any two element types but text, for the host and for devices:
 *
 *     SB_TO_<to>_FROM_<kind>(SB_FROM_<kind>(load(element)))
 *
 * SB_CONVERT_SOURCES lists the source types with their kind and load. */
#ifndef SB_OPS_CONVERT_VALUES_H
#define SB_OPS_CONVERT_VALUES_H

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

#endif
