/* The loops of Cast, compiled once per instruction set. */
#include "ops/convert_loops.h"
#include "ops/convert_values.h"
#include "ops/row_pieces.h"

/* One loop: `kind` is how the source is read, by `load`. */
#define CONVERT_LOOP(to, to_type, from, from_type, kind, load)                                                         \
    static void to##_from_##from(void *opaque, int64_t count, char *const *data, const int64_t *steps) {               \
        if (steps[0] != sizeof(to_type) || steps[1] != sizeof(from_type)) {                                            \
            const sb_row_pieces how = {                                                                                \
                .dense = to##_from_##from, .inputs = 1, .in_size = sizeof(from_type), .out_size = sizeof(to_type)};    \
            sb_run_pieces(&how, count, data, steps);                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        to_type *restrict out = (to_type *)(void *)data[0];                                                            \
        const from_type *restrict in = (const from_type *)(const void *)data[1];                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = (to_type)SB_TO_##to##_FROM_##kind(SB_FROM_##kind(load(in[i])));                                   \
    }

/* All loops to one type. A type to itself is a copy (below), so that NaNs keep their bits and
 * nothing is computed. */
#define TO_LOOP(from, from_type, kind, load, to, to_type) CONVERT_LOOP(to, to_type, from, from_type, kind, load)
#define TO_LOOPS(to, to_type) SB_CONVERT_SOURCES(TO_LOOP, to, to_type)

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
SB_UNARY_LOOP(copy_1, char, uint8_t, uint8_t, COPY)
SB_UNARY_LOOP(copy_2, char, uint16_t, uint16_t, COPY)
SB_UNARY_LOOP(copy_4, char, uint32_t, uint32_t, COPY)
SB_UNARY_LOOP(copy_8, char, uint64_t, uint64_t, COPY)

#define TO_TABLE(to)                                                                                                   \
    {                                                                                                                  \
        [SB_BOOL] = to##_from_b8, [SB_U8] = to##_from_u8, [SB_U16] = to##_from_u16, [SB_U32] = to##_from_u32,          \
        [SB_U64] = to##_from_u64, [SB_S8] = to##_from_s8, [SB_S16] = to##_from_s16, [SB_S32] = to##_from_s32,          \
        [SB_S64] = to##_from_s64, [SB_F16] = to##_from_f16, [SB_BF16] = to##_from_bf16, [SB_F32] = to##_from_f32,      \
        [SB_F64] = to##_from_f64                                                                                       \
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
