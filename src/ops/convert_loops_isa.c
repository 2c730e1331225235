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

/* Same type, by its size: NaNs keep their bits. */
#define COPY(value) (value)
SB_UNARY_LOOP(copy_1, char, uint8_t, uint8_t, COPY)
SB_UNARY_LOOP(copy_2, char, uint16_t, uint16_t, COPY)
SB_UNARY_LOOP(copy_4, char, uint32_t, uint32_t, COPY)
SB_UNARY_LOOP(copy_8, char, uint64_t, uint64_t, COPY)

#define TO_TABLE(to)                                                                                                   \
    {                                                                                                                  \
        [SB_BOOL] = sb_cast_##to##_from_b8, [SB_U8] = sb_cast_##to##_from_u8, [SB_U16] = sb_cast_##to##_from_u16,      \
        [SB_U32] = sb_cast_##to##_from_u32, [SB_U64] = sb_cast_##to##_from_u64, [SB_S8] = sb_cast_##to##_from_s8,      \
        [SB_S16] = sb_cast_##to##_from_s16, [SB_S32] = sb_cast_##to##_from_s32, [SB_S64] = sb_cast_##to##_from_s64,    \
        [SB_F16] = sb_cast_##to##_from_f16, [SB_BF16] = sb_cast_##to##_from_bf16, [SB_F32] = sb_cast_##to##_from_f32,  \
        [SB_F64] = sb_cast_##to##_from_f64                                                                             \
    }

sb_walk_row *const SB_ISA_NAME(sb_convert_loops)[SB_DTYPE_COUNT][SB_DTYPE_COUNT] = {
    [SB_DTYPE_NONE] = {[1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8},
    [SB_BOOL] = TO_TABLE(b8),
    [SB_U8] = TO_TABLE(u8),
    [SB_U16] = TO_TABLE(u16),
    [SB_U32] = TO_TABLE(u32),
    [SB_U64] = TO_TABLE(u64),
    [SB_S8] = TO_TABLE(s8),
    [SB_S16] = TO_TABLE(s16),
    [SB_S32] = TO_TABLE(s32),
    [SB_S64] = TO_TABLE(s64),
    [SB_F16] = TO_TABLE(f16),
    [SB_BF16] = TO_TABLE(bf16),
    [SB_F32] = TO_TABLE(f32),
    [SB_F64] = TO_TABLE(f64),
};
