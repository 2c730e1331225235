/* The loops of the element-wise operators of two floats or truth values, compiled once per instruction set, and their
 * table. Formulas: binary_values.h. Integers: integer_loops.h. */
#include "ops/binary.h"
#include "ops/binary_values.h"
#include "ops/common_loops.h"
#include "ops/half_loops.h"
#include "ops/integer_loops.h"

#define LOOP(op, suffix, out_type, type)                                                                               \
    SB_BINARY_LOOP(op##_##suffix, sb_binary_context, out_type, type, type, sb_binary_value_##op##_##suffix)
/* Heavy ones are long: once each, so rows of other steps go by pieces. */
#define LONG_LOOP(op, suffix, type) static SB_DENSE_BINARY(op##_##suffix, type, type, sb_binary_value_##op##_##suffix)

#define LIGHT_LOOPS(op, unused)                                                                                        \
    LOOP(op, f32, float, float)                                                                                        \
    LOOP(op, f64, double, double)                                                                                      \
    SB_HALF_LOOP(op, f16, SB_F16, 2)                                                                                   \
    SB_HALF_LOOP(op, bf16, SB_BF16, 2)
SB_BINARY_LIGHT_FLOATS(LIGHT_LOOPS, )

#define OTHER_LONG_LOOPS(op)                                                                                           \
    LONG_LOOP(op, f64, double)                                                                                         \
    SB_HALF_LOOP(op, f16, SB_F16, 2)                                                                                   \
    SB_HALF_LOOP(op, bf16, SB_BF16, 2)
#define REMAINDER_LOOPS(op, unused)                                                                                    \
    LONG_LOOP(op, f32, float)                                                                                          \
    OTHER_LONG_LOOPS(op)
SB_BINARY_REMAINDER_FLOATS(REMAINDER_LOOPS, )

#define IS_TWO(y) ((y) == 2.0f)
#define SQUARE(x) ((x) * (x))
#define IS_THREE(y) ((y) == 3.0f)
SB_COMMON_BINARY(Pow_f32, sb_binary_value_Pow_f32, sb_power_is_common, sb_power_common_f32, IS_TWO, SQUARE, IS_THREE,
                 sb_cube_f32)
OTHER_LONG_LOOPS(Pow)

#define COMPARISON_LOOPS(op, unused)                                                                                   \
    LOOP(op, f32, uint8_t, float)                                                                                      \
    LOOP(op, f64, uint8_t, double)                                                                                     \
    SB_HALF_QUESTION(op, f16, SB_F16, 2)                                                                               \
    SB_HALF_QUESTION(op, bf16, SB_BF16, 2)
SB_BINARY_COMPARISONS(COMPARISON_LOOPS, )

#define TRUTH_LOOP(op, unused) LOOP(op, bool, uint8_t, uint8_t)
SB_BINARY_TRUTHS(TRUTH_LOOP, )

/* A row's entries come from one list for each kind of element. */
#define FLOAT_ENTRIES(op, unused)                                                                                      \
    [SB_BINARY_ROW_##op][SB_F16] = op##_f16, [SB_BINARY_ROW_##op][SB_BF16] = op##_bf16,                                \
    [SB_BINARY_ROW_##op][SB_F32] = op##_f32, [SB_BINARY_ROW_##op][SB_F64] = op##_f64,
#define SIGNED_ENTRIES(op, unused)                                                                                     \
    [SB_BINARY_ROW_##op][SB_S8] = sb_binary_##op##_s8, [SB_BINARY_ROW_##op][SB_S16] = sb_binary_##op##_s16,            \
    [SB_BINARY_ROW_##op][SB_S32] = sb_binary_##op##_s32, [SB_BINARY_ROW_##op][SB_S64] = sb_binary_##op##_s64,
#define UNSIGNED_ENTRIES(op, unused)                                                                                   \
    [SB_BINARY_ROW_##op][SB_U8] = sb_binary_##op##_u8, [SB_BINARY_ROW_##op][SB_U16] = sb_binary_##op##_u16,            \
    [SB_BINARY_ROW_##op][SB_U32] = sb_binary_##op##_u32, [SB_BINARY_ROW_##op][SB_U64] = sb_binary_##op##_u64,
#define INTEGER_ENTRIES(op, unused) SIGNED_ENTRIES(op, unused) UNSIGNED_ENTRIES(op, unused)
#define TRUTH_ENTRY(op, unused) [SB_BINARY_ROW_##op][SB_BOOL] = op##_bool,

/* clang-format off */
sb_walk_row *const SB_ISA_NAME(sb_binary_loops)[SB_BINARY_ROWS][SB_DTYPE_COUNT] = {
    SB_BINARY_LIGHT_FLOATS(FLOAT_ENTRIES, )
    SB_BINARY_HEAVY_FLOATS(FLOAT_ENTRIES, )
    SB_BINARY_COMPARISONS(FLOAT_ENTRIES, )
    SB_BINARY_INTEGERS(INTEGER_ENTRIES, )
    SB_BINARY_INTEGER_QUOTIENTS(INTEGER_ENTRIES, )
    SB_BINARY_COMPARISONS(INTEGER_ENTRIES, )
    SB_BINARY_TRUTHS(TRUTH_ENTRY, )
};
/* clang-format on */
