/* The loops of Cast from and to floats, compiled once per instruction set, and its table.
 * Among integers: integer_loops.h. */
#include "ops/convert_loops.h"
#include "ops/convert_values.h"
#include "ops/dense_loops.h"
#include "ops/integer_loops.h"

/* One loop: `kind` is how the source is read, by `load`. */
#define LOOP(from, from_type, kind, load, to, to_type)                                                                 \
    static inline to_type value_##to##_from_##from(from_type value) {                                                  \
        return (to_type)SB_TO_##to##_FROM_##kind(SB_FROM_##kind(load(value)));                                         \
    }                                                                                                                  \
    static SB_DENSE_UNARY(sb_cast_##to##_from_##from, to_type, from_type, value_##to##_from_##from)

/* All loops to one type. A type to itself is a copy (below), so that NaNs keep their bits and
 * nothing is computed. */
#define FROM_FLOATS(to, to_type) SB_CONVERT_FLOATS(LOOP, to, to_type)
#define FROM_ALL(to, to_type) SB_CONVERT_SOURCES(LOOP, to, to_type)

FROM_FLOATS(b8, uint8_t)
FROM_FLOATS(u8, uint8_t)
FROM_FLOATS(u16, uint16_t)
FROM_FLOATS(u32, uint32_t)
FROM_FLOATS(u64, uint64_t)
FROM_FLOATS(s8, int8_t)
FROM_FLOATS(s16, int16_t)
FROM_FLOATS(s32, int32_t)
FROM_FLOATS(s64, int64_t)
FROM_ALL(f16, uint16_t)
FROM_ALL(bf16, uint16_t)
FROM_ALL(f32, float)
FROM_ALL(f64, double)

/* The small types. */
#define IS_SATURATING (context == NULL || context->saturate)
#define SMALL_FLOAT(type, name, mantissa, bias, largest, beyond, nan, bits, unused)                                    \
    static SB_DENSE_UNARY(f32_from_##type, float, uint8_t, sb_##type##_to_f32) static inline uint8_t type##_of(        \
        const sb_conversion *context, float value) {                                                                   \
        return sb_##type##_from_f32(value, IS_SATURATING);                                                             \
    }                                                                                                                  \
    SB_UNARY_LOOP(type##_from_f32, const sb_conversion, uint8_t, float, OF_##type)
#define OF_f8e4m3fn(value) f8e4m3fn_of(context, value)
#define OF_f8e4m3fnuz(value) f8e4m3fnuz_of(context, value)
#define OF_f8e5m2(value) f8e5m2_of(context, value)
#define OF_f8e5m2fnuz(value) f8e5m2fnuz_of(context, value)
#define OF_f6e2m3(value) f6e2m3_of(context, value)
#define OF_f6e3m2(value) f6e3m2_of(context, value)
#define OF_f4e2m1(value) f4e2m1_of(context, value)
SB_SMALL_FLOATS(SMALL_FLOAT, )

static SB_DENSE_UNARY(f32_from_f8e8m0, float, uint8_t, sb_f8e8m0_to_f32)
#define OF_f8e8m0(value) sb_f8e8m0_from_f32(value, IS_SATURATING, context == NULL ? SB_ROUND_UP : context->round)
    SB_UNARY_LOOP(f8e8m0_from_f32, const sb_conversion, uint8_t, float, OF_f8e8m0)

#define SMALL_INTEGER(type, name, bits, is_signed, unused)                                                             \
    static inline uint8_t type##_of_s32(int32_t value) {                                                               \
        return sb_##type##_from_s8((int8_t)value);                                                                     \
    }                                                                                                                  \
    static SB_DENSE_UNARY(s8_from_##type, int8_t, uint8_t, sb_##type##_to_s8) static SB_DENSE_UNARY(                   \
        type##_from_s8, uint8_t, int8_t, sb_##type##_from_s8) static SB_DENSE_UNARY(type##_from_s32, uint8_t, int32_t, \
                                                                                    type##_of_s32)
        SB_SMALL_INTEGERS(SMALL_INTEGER, )

/* Same type, by its size: NaNs keep their bits. */
#define COPY(value) (value)
            SB_UNARY_LOOP(copy_1, char, uint8_t, uint8_t, COPY) SB_UNARY_LOOP(copy_2, char, uint16_t, uint16_t, COPY)
                SB_UNARY_LOOP(copy_4, char, uint32_t, uint32_t, COPY)
                    SB_UNARY_LOOP(copy_8, char, uint64_t, uint64_t, COPY)

#define TO_SMALL_FLOAT(type)                                                                                           \
    { [SB_F32] = type##_from_f32 }
#define TO_SMALL_INTEGER(type)                                                                                         \
    { [SB_S8] = type##_from_s8, [SB_S32] = type##_from_s32 }

#define TO_TABLE(to, ...)                                                                                              \
    {                                                                                                                  \
        [SB_BOOL] = sb_cast_##to##_from_b8, [SB_U8] = sb_cast_##to##_from_u8, [SB_U16] = sb_cast_##to##_from_u16,      \
        [SB_U32] = sb_cast_##to##_from_u32, [SB_U64] = sb_cast_##to##_from_u64, [SB_S8] = sb_cast_##to##_from_s8,      \
        [SB_S16] = sb_cast_##to##_from_s16, [SB_S32] = sb_cast_##to##_from_s32, [SB_S64] = sb_cast_##to##_from_s64,    \
        [SB_F16] = sb_cast_##to##_from_f16, [SB_BF16] = sb_cast_##to##_from_bf16, [SB_F32] = sb_cast_##to##_from_f32,  \
        [SB_F64] = sb_cast_##to##_from_f64, __VA_ARGS__                                                                \
    }

                        sb_walk_row *const
    SB_ISA_NAME(sb_convert_loops)[SB_DTYPE_COUNT][SB_DTYPE_COUNT] = {
        [SB_DTYPE_NONE] = {[1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8},
        [SB_BOOL] = TO_TABLE(b8, ),
        [SB_U8] = TO_TABLE(u8, ),
        [SB_U16] = TO_TABLE(u16, ),
        [SB_U32] = TO_TABLE(u32, ),
        [SB_U64] = TO_TABLE(u64, ),
        [SB_S8] = TO_TABLE(s8, [SB_S4] = s8_from_s4, [SB_U4] = s8_from_u4, [SB_S2] = s8_from_s2, [SB_U2] = s8_from_u2),
        [SB_S16] = TO_TABLE(s16, ),
        [SB_S32] = TO_TABLE(s32, ),
        [SB_S64] = TO_TABLE(s64, ),
        [SB_F16] = TO_TABLE(f16, ),
        [SB_BF16] = TO_TABLE(bf16, ),
        [SB_F32] = TO_TABLE(
            f32, [SB_F8E4M3FN] = f32_from_f8e4m3fn, [SB_F8E4M3FNUZ] = f32_from_f8e4m3fnuz,
            [SB_F8E5M2] = f32_from_f8e5m2, [SB_F8E5M2FNUZ] = f32_from_f8e5m2fnuz, [SB_F8E8M0] = f32_from_f8e8m0,
            [SB_F6E2M3] = f32_from_f6e2m3, [SB_F6E3M2] = f32_from_f6e3m2, [SB_F4E2M1] = f32_from_f4e2m1),
        [SB_F64] = TO_TABLE(f64, ),
        [SB_F8E4M3FN] = TO_SMALL_FLOAT(f8e4m3fn),
        [SB_F8E4M3FNUZ] = TO_SMALL_FLOAT(f8e4m3fnuz),
        [SB_F8E5M2] = TO_SMALL_FLOAT(f8e5m2),
        [SB_F8E5M2FNUZ] = TO_SMALL_FLOAT(f8e5m2fnuz),
        [SB_F8E8M0] = TO_SMALL_FLOAT(f8e8m0),
        [SB_F6E2M3] = TO_SMALL_FLOAT(f6e2m3),
        [SB_F6E3M2] = TO_SMALL_FLOAT(f6e3m2),
        [SB_F4E2M1] = TO_SMALL_FLOAT(f4e2m1),
        [SB_S4] = TO_SMALL_INTEGER(s4),
        [SB_U4] = TO_SMALL_INTEGER(u4),
        [SB_S2] = TO_SMALL_INTEGER(s2),
        [SB_U2] = TO_SMALL_INTEGER(u2),
};
