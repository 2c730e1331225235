/* The loops of Cast, compiled once per instruction set. */
#include "ops/convert_loops.h"
#include "ops/row_pieces.h"

/* Every source type is first read, without loss, as one of four: s64, u64, f32, f64. Both 64-bit
 * integer kinds are needed for the one rounding to a float; bool reads as u64. */
#define FROM_s64(value) ((int64_t)(value))
#define FROM_u64(value) ((uint64_t)(value))
#define FROM_f32(value) (value)
#define FROM_f64(value) (value)

/* A bool that came in with other bits than 0 and 1 still counts as 1. */
#define TRUTH(value) ((value) != 0)

/* What each kind becomes. Integers keep their low bits; only zero is false. */
#define TO_b8_FROM_s64(value) ((value) != 0)
#define TO_b8_FROM_u64(value) ((value) != 0)
#define TO_b8_FROM_f32(value) iv_bool_from_f32(value)
#define TO_b8_FROM_f64(value) iv_bool_from_f64(value)

#define TO_u8_FROM_s64(value) ((uint8_t)(value))
#define TO_u8_FROM_u64(value) ((uint8_t)(value))
#define TO_u8_FROM_f32(value) iv_u8_from_f32(value)
#define TO_u8_FROM_f64(value) iv_u8_from_f64(value)
#define TO_u16_FROM_s64(value) ((uint16_t)(value))
#define TO_u16_FROM_u64(value) ((uint16_t)(value))
#define TO_u16_FROM_f32(value) iv_u16_from_f32(value)
#define TO_u16_FROM_f64(value) iv_u16_from_f64(value)
#define TO_u32_FROM_s64(value) ((uint32_t)(value))
#define TO_u32_FROM_u64(value) ((uint32_t)(value))
#define TO_u32_FROM_f32(value) iv_u32_from_f32(value)
#define TO_u32_FROM_f64(value) iv_u32_from_f64(value)
#define TO_u64_FROM_s64(value) ((uint64_t)(value))
#define TO_u64_FROM_u64(value) ((uint64_t)(value))
#define TO_u64_FROM_f32(value) iv_u64_from_f32(value)
#define TO_u64_FROM_f64(value) iv_u64_from_f64(value)

#define TO_s8_FROM_s64(value) ((int8_t)(value))
#define TO_s8_FROM_u64(value) ((int8_t)(value))
#define TO_s8_FROM_f32(value) iv_i8_from_f32(value)
#define TO_s8_FROM_f64(value) iv_i8_from_f64(value)
#define TO_s16_FROM_s64(value) ((int16_t)(value))
#define TO_s16_FROM_u64(value) ((int16_t)(value))
#define TO_s16_FROM_f32(value) iv_i16_from_f32(value)
#define TO_s16_FROM_f64(value) iv_i16_from_f64(value)
#define TO_s32_FROM_s64(value) ((int32_t)(value))
#define TO_s32_FROM_u64(value) ((int32_t)(value))
#define TO_s32_FROM_f32(value) iv_i32_from_f32(value)
#define TO_s32_FROM_f64(value) iv_i32_from_f64(value)
#define TO_s64_FROM_s64(value) (value)
#define TO_s64_FROM_u64(value) ((int64_t)(value))
#define TO_s64_FROM_f32(value) iv_i64_from_f32(value)
#define TO_s64_FROM_f64(value) iv_i64_from_f64(value)

#define TO_f16_FROM_s64(value) iv_f16_from_i64(value)
#define TO_f16_FROM_u64(value) iv_f16_from_u64(value)
#define TO_f16_FROM_f32(value) iv_f16_from_f32(value)
#define TO_f16_FROM_f64(value) iv_f16_from_f64(value)
#define TO_bf16_FROM_s64(value) iv_bf16_from_i64(value)
#define TO_bf16_FROM_u64(value) iv_bf16_from_u64(value)
#define TO_bf16_FROM_f32(value) iv_bf16_from_f32(value)
#define TO_bf16_FROM_f64(value) iv_bf16_from_f64(value)
#define TO_f32_FROM_s64(value) iv_f32_from_i64(value)
#define TO_f32_FROM_u64(value) iv_f32_from_u64(value)
#define TO_f32_FROM_f32(value) (value)
#define TO_f32_FROM_f64(value) ((float)(value))
#define TO_f64_FROM_s64(value) iv_f64_from_i64(value)
#define TO_f64_FROM_u64(value) iv_f64_from_u64(value)
#define TO_f64_FROM_f32(value) ((double)(value))
#define TO_f64_FROM_f64(value) (value)

/* One loop: `kind` is how the source is read, by `load`. */
#define CONVERT_LOOP(to, to_type, from, from_type, kind, load)                                     \
    static void to##_from_##from(void *opaque, int64_t count, char *const *data,                   \
                                 const int64_t *steps) {                                           \
        if (steps[0] != sizeof(to_type) || steps[1] != sizeof(from_type)) {                        \
            const iv_row_pieces how = {.dense = to##_from_##from,                                  \
                                       .inputs = 1,                                                \
                                       .in_size = sizeof(from_type),                               \
                                       .out_size = sizeof(to_type)};                               \
            iv_run_pieces(&how, count, data, steps);                                               \
            return;                                                                                \
        }                                                                                          \
        to_type *restrict out = (to_type *)(void *)data[0];                                        \
        const from_type *restrict in = (const from_type *)(const void *)data[1];                   \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = (to_type)TO_##to##_FROM_##kind(FROM_##kind(load(in[i])));                     \
    }

/* All loops to one type. A type to itself is a copy (below), so that NaNs keep their bits and
 * nothing is computed. */
#define TO_LOOPS(to, to_type)                                                                      \
    CONVERT_LOOP(to, to_type, b8, uint8_t, u64, TRUTH)                                             \
    CONVERT_LOOP(to, to_type, u8, uint8_t, u64, IV_SAME)                                           \
    CONVERT_LOOP(to, to_type, u16, uint16_t, u64, IV_SAME)                                         \
    CONVERT_LOOP(to, to_type, u32, uint32_t, u64, IV_SAME)                                         \
    CONVERT_LOOP(to, to_type, u64, uint64_t, u64, IV_SAME)                                         \
    CONVERT_LOOP(to, to_type, s8, int8_t, s64, IV_SAME)                                            \
    CONVERT_LOOP(to, to_type, s16, int16_t, s64, IV_SAME)                                          \
    CONVERT_LOOP(to, to_type, s32, int32_t, s64, IV_SAME)                                          \
    CONVERT_LOOP(to, to_type, s64, int64_t, s64, IV_SAME)                                          \
    CONVERT_LOOP(to, to_type, f16, uint16_t, f32, iv_f16_to_f32)                                   \
    CONVERT_LOOP(to, to_type, bf16, uint16_t, f32, iv_bf16_to_f32)                                 \
    CONVERT_LOOP(to, to_type, f32, float, f32, IV_SAME)                                            \
    CONVERT_LOOP(to, to_type, f64, double, f64, IV_SAME)

TO_LOOPS(b8, uint8_t)
TO_LOOPS(u8, uint8_t)
TO_LOOPS(u16, uint16_t)
TO_LOOPS(u32, uint32_t)
TO_LOOPS(u64, uint64_t)
TO_LOOPS(s8, int8_t)
TO_LOOPS(s16, int16_t)
TO_LOOPS(s32, int32_t)
TO_LOOPS(s64, int64_t)
TO_LOOPS(f16, uint16_t)
TO_LOOPS(bf16, uint16_t)
TO_LOOPS(f32, float)
TO_LOOPS(f64, double)

/* Same type, by its size: NaNs keep their bits. */
#define COPY(value) (value)
IV_UNARY_LOOP(copy_1, char, uint8_t, uint8_t, COPY)
IV_UNARY_LOOP(copy_2, char, uint16_t, uint16_t, COPY)
IV_UNARY_LOOP(copy_4, char, uint32_t, uint32_t, COPY)
IV_UNARY_LOOP(copy_8, char, uint64_t, uint64_t, COPY)

#define TO_TABLE(to)                                                                               \
    {                                                                                              \
        [IV_BOOL] = to##_from_b8, [IV_U8] = to##_from_u8, [IV_U16] = to##_from_u16,                \
        [IV_U32] = to##_from_u32, [IV_U64] = to##_from_u64, [IV_S8] = to##_from_s8,                \
        [IV_S16] = to##_from_s16, [IV_S32] = to##_from_s32, [IV_S64] = to##_from_s64,              \
        [IV_F16] = to##_from_f16, [IV_BF16] = to##_from_bf16, [IV_F32] = to##_from_f32,            \
        [IV_F64] = to##_from_f64                                                                   \
    }

iv_walk_row *const IV_ISA_NAME(iv_convert_loops)[IV_DTYPE_COUNT][IV_DTYPE_COUNT] = {
    [IV_DTYPE_NONE] = {[1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8},
    [IV_BOOL] = TO_TABLE(b8),
    [IV_U8] = TO_TABLE(u8),
    [IV_U16] = TO_TABLE(u16),
    [IV_U32] = TO_TABLE(u32),
    [IV_U64] = TO_TABLE(u64),
    [IV_S8] = TO_TABLE(s8),
    [IV_S16] = TO_TABLE(s16),
    [IV_S32] = TO_TABLE(s32),
    [IV_S64] = TO_TABLE(s64),
    [IV_F16] = TO_TABLE(f16),
    [IV_BF16] = TO_TABLE(bf16),
    [IV_F32] = TO_TABLE(f32),
    [IV_F64] = TO_TABLE(f64),
};
