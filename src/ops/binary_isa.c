/* The loops of the element-wise operators of two inputs, compiled once per instruction set.
 * Formulas: binary_values.h. */
#include "ops/binary.h"
#include "ops/binary_values.h"
#include "ops/half_loops.h"

#define LOOP(op, suffix, out_type, type)                                                                               \
    SB_BINARY_LOOP(op##_##suffix, sb_binary_context, out_type, type, type, sb_binary_value_##op##_##suffix)
#define COMPARISON_LOOPS(suffix, type)                                                                                 \
    LOOP(Equal, suffix, uint8_t, type)                                                                                 \
    LOOP(Greater, suffix, uint8_t, type)                                                                               \
    LOOP(Less, suffix, uint8_t, type)                                                                                  \
    LOOP(GreaterOrEqual, suffix, uint8_t, type)                                                                        \
    LOOP(LessOrEqual, suffix, uint8_t, type)

/* Powers and remainders are long: once each, so rows of other steps go by pieces. */
#define LONG_LOOP(op, suffix, type)                                                                                    \
    static void op##_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                  \
        if (steps[0] != sizeof(type) || steps[1] != sizeof(type) || steps[2] != sizeof(type)) {                        \
            const sb_row_pieces how = {.dense = op##_##suffix,                                                         \
                                       .context = opaque,                                                              \
                                       .inputs = 2,                                                                    \
                                       .in_size = sizeof(type),                                                        \
                                       .out_size = sizeof(type)};                                                      \
            sb_run_pieces(&how, count, data, steps);                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        type *restrict out = (type *)(void *)data[0];                                                                  \
        const type *restrict left = (const type *)(const void *)data[1];                                               \
        const type *restrict right = (const type *)(const void *)data[2];                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = sb_binary_value_##op##_##suffix(left[i], right[i]);                                               \
    }
#define REAL_LOOPS(suffix, type)                                                                                       \
    LOOP(Add, suffix, type, type)                                                                                      \
    LOOP(Sub, suffix, type, type)                                                                                      \
    LOOP(Mul, suffix, type, type)                                                                                      \
    LOOP(Div, suffix, type, type)                                                                                      \
    LOOP(PRelu, suffix, type, type)                                                                                    \
    LOOP(Max, suffix, type, type)                                                                                      \
    LOOP(Min, suffix, type, type)                                                                                      \
    LONG_LOOP(Mod, suffix, type)                                                                                       \
    LONG_LOOP(Fmod, suffix, type)                                                                                      \
    LONG_LOOP(Pow, suffix, type)                                                                                       \
    COMPARISON_LOOPS(suffix, type)
REAL_LOOPS(f32, float)
REAL_LOOPS(f64, double)

#define HALF_LOOPS(suffix, dtype)                                                                                      \
    SB_HALF_LOOP(Add, suffix, dtype, 2)                                                                                \
    SB_HALF_LOOP(Sub, suffix, dtype, 2)                                                                                \
    SB_HALF_LOOP(Mul, suffix, dtype, 2)                                                                                \
    SB_HALF_LOOP(Div, suffix, dtype, 2)                                                                                \
    SB_HALF_LOOP(PRelu, suffix, dtype, 2)                                                                              \
    SB_HALF_LOOP(Max, suffix, dtype, 2)                                                                                \
    SB_HALF_LOOP(Min, suffix, dtype, 2)                                                                                \
    SB_HALF_LOOP(Mod, suffix, dtype, 2)                                                                                \
    SB_HALF_LOOP(Fmod, suffix, dtype, 2)                                                                               \
    SB_HALF_LOOP(Pow, suffix, dtype, 2)                                                                                \
    SB_HALF_QUESTION(Equal, suffix, dtype, 2)                                                                          \
    SB_HALF_QUESTION(Greater, suffix, dtype, 2)                                                                        \
    SB_HALF_QUESTION(Less, suffix, dtype, 2)                                                                           \
    SB_HALF_QUESTION(GreaterOrEqual, suffix, dtype, 2)                                                                 \
    SB_HALF_QUESTION(LessOrEqual, suffix, dtype, 2)
HALF_LOOPS(f16, SB_F16)
HALF_LOOPS(bf16, SB_BF16)

/* A divisor of 0 is noted, and reported once the walk is over. */
#define DIVISION_LOOP(op, suffix, type)                                                                                \
    static void op##_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                  \
        sb_binary_context *context = opaque;                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            type left = SB_CONST_AT(type, data[1], steps[1], i);                                                       \
            type right = SB_CONST_AT(type, data[2], steps[2], i);                                                      \
            context->divided_by_zero |= right == 0;                                                                    \
            SB_AT(type, data[0], steps[0], i) = sb_binary_value_##op##_##suffix(left, right);                          \
        }                                                                                                              \
    }
#define INTEGER_LOOPS(dtype, suffix, type, wide, unused)                                                               \
    LOOP(Add, suffix, type, type)                                                                                      \
    LOOP(Sub, suffix, type, type)                                                                                      \
    LOOP(Mul, suffix, type, type)                                                                                      \
    LOOP(PRelu, suffix, type, type)                                                                                    \
    LOOP(BitwiseAnd, suffix, type, type)                                                                               \
    LOOP(BitwiseOr, suffix, type, type)                                                                                \
    LOOP(BitwiseXor, suffix, type, type)                                                                               \
    LOOP(Max, suffix, type, type)                                                                                      \
    LOOP(Min, suffix, type, type)                                                                                      \
    COMPARISON_LOOPS(suffix, type)                                                                                     \
    DIVISION_LOOP(Div, suffix, type)                                                                                   \
    DIVISION_LOOP(Mod, suffix, type)                                                                                   \
    DIVISION_LOOP(Fmod, suffix, type)
#define SHIFT_LOOPS(dtype, suffix, type, wide, unused)                                                                 \
    LOOP(ShiftLeft, suffix, type, type)                                                                                \
    LOOP(ShiftRight, suffix, type, type)
SB_SIGNED_TYPES(INTEGER_LOOPS, )
SB_UNSIGNED_TYPES(INTEGER_LOOPS, )
SB_UNSIGNED_TYPES(SHIFT_LOOPS, )

LOOP(And, bool, uint8_t, uint8_t)
LOOP(Or, bool, uint8_t, uint8_t)
LOOP(Xor, bool, uint8_t, uint8_t)
LOOP(Equal, bool, uint8_t, uint8_t)

sb_walk_row *const SB_ISA_NAME(sb_binary_loops)[SB_BINARY_ROWS][SB_DTYPE_COUNT] = {
    [SB_BINARY_ROW_Add] = {SB_NUMBER_LOOPS(Add)},
    [SB_BINARY_ROW_Sub] = {SB_NUMBER_LOOPS(Sub)},
    [SB_BINARY_ROW_Mul] = {SB_NUMBER_LOOPS(Mul)},
    [SB_BINARY_ROW_Div] = {SB_NUMBER_LOOPS(Div)},
    [SB_BINARY_ROW_Mod] = {SB_NUMBER_LOOPS(Mod)},
    [SB_BINARY_ROW_Fmod] = {SB_NUMBER_LOOPS(Fmod)},
    [SB_BINARY_ROW_PRelu] = {SB_NUMBER_LOOPS(PRelu)},
    [SB_BINARY_ROW_And] = {[SB_BOOL] = And_bool},
    [SB_BINARY_ROW_Or] = {[SB_BOOL] = Or_bool},
    [SB_BINARY_ROW_Xor] = {[SB_BOOL] = Xor_bool},
    [SB_BINARY_ROW_Equal] = {SB_NUMBER_LOOPS(Equal), [SB_BOOL] = Equal_bool},
    [SB_BINARY_ROW_Greater] = {SB_NUMBER_LOOPS(Greater)},
    [SB_BINARY_ROW_Less] = {SB_NUMBER_LOOPS(Less)},
    [SB_BINARY_ROW_GreaterOrEqual] = {SB_NUMBER_LOOPS(GreaterOrEqual)},
    [SB_BINARY_ROW_LessOrEqual] = {SB_NUMBER_LOOPS(LessOrEqual)},
    [SB_BINARY_ROW_BitShift] = {SB_UNSIGNED_LOOPS(ShiftLeft)},
    [SB_BINARY_ROW_ShiftRight] = {SB_UNSIGNED_LOOPS(ShiftRight)},
    [SB_BINARY_ROW_BitwiseAnd] = {SB_INTEGER_LOOPS(BitwiseAnd)},
    [SB_BINARY_ROW_BitwiseOr] = {SB_INTEGER_LOOPS(BitwiseOr)},
    [SB_BINARY_ROW_BitwiseXor] = {SB_INTEGER_LOOPS(BitwiseXor)},
    [SB_BINARY_ROW_Max] = {SB_NUMBER_LOOPS(Max)},
    [SB_BINARY_ROW_Min] = {SB_NUMBER_LOOPS(Min)},
    [SB_BINARY_ROW_Pow] = {SB_FLOAT_LOOPS(Pow)},
};
