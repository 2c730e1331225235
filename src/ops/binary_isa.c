/* The loops of the element-wise operators of two inputs, compiled once per instruction set.
 * Formulas: binary_values.h. */
#include "ops/binary.h"
#include "ops/binary_values.h"
#include "ops/half_loops.h"

#define LOOP(op, suffix, out_type, type)                                                           \
    IV_BINARY_LOOP(op##_##suffix, iv_binary_context, out_type, type, type,                         \
                   iv_binary_value_##op##_##suffix)
#define COMPARISON_LOOPS(suffix, type)                                                             \
    LOOP(Equal, suffix, uint8_t, type)                                                             \
    LOOP(Greater, suffix, uint8_t, type)                                                           \
    LOOP(Less, suffix, uint8_t, type)                                                              \
    LOOP(GreaterOrEqual, suffix, uint8_t, type)                                                    \
    LOOP(LessOrEqual, suffix, uint8_t, type)

/* Powers and remainders are long: once each, so rows of other steps go by pieces. */
#define LONG_LOOP(op, suffix, type)                                                                \
    static void op##_##suffix(void *opaque, int64_t count, char *const *data,                      \
                              const int64_t *steps) {                                              \
        if (steps[0] != sizeof(type) || steps[1] != sizeof(type) || steps[2] != sizeof(type)) {    \
            const iv_row_pieces how = {.dense = op##_##suffix,                                     \
                                       .context = opaque,                                          \
                                       .inputs = 2,                                                \
                                       .in_size = sizeof(type),                                    \
                                       .out_size = sizeof(type)};                                  \
            iv_run_pieces(&how, count, data, steps);                                               \
            return;                                                                                \
        }                                                                                          \
        type *restrict out = (type *)(void *)data[0];                                              \
        const type *restrict left = (const type *)(const void *)data[1];                           \
        const type *restrict right = (const type *)(const void *)data[2];                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = iv_binary_value_##op##_##suffix(left[i], right[i]);                           \
    }
#define REAL_LOOPS(suffix, type)                                                                   \
    LOOP(Add, suffix, type, type)                                                                  \
    LOOP(Sub, suffix, type, type)                                                                  \
    LOOP(Mul, suffix, type, type)                                                                  \
    LOOP(Div, suffix, type, type)                                                                  \
    LOOP(PRelu, suffix, type, type)                                                                \
    LOOP(Max, suffix, type, type)                                                                  \
    LOOP(Min, suffix, type, type)                                                                  \
    LONG_LOOP(Mod, suffix, type)                                                                   \
    LONG_LOOP(Fmod, suffix, type)                                                                  \
    LONG_LOOP(Pow, suffix, type)                                                                   \
    COMPARISON_LOOPS(suffix, type)
REAL_LOOPS(f32, float)
REAL_LOOPS(f64, double)

#define HALF_LOOPS(suffix, dtype)                                                                  \
    IV_HALF_LOOP(Add, suffix, dtype, 2)                                                            \
    IV_HALF_LOOP(Sub, suffix, dtype, 2)                                                            \
    IV_HALF_LOOP(Mul, suffix, dtype, 2)                                                            \
    IV_HALF_LOOP(Div, suffix, dtype, 2)                                                            \
    IV_HALF_LOOP(PRelu, suffix, dtype, 2)                                                          \
    IV_HALF_LOOP(Max, suffix, dtype, 2)                                                            \
    IV_HALF_LOOP(Min, suffix, dtype, 2)                                                            \
    IV_HALF_LOOP(Mod, suffix, dtype, 2)                                                            \
    IV_HALF_LOOP(Fmod, suffix, dtype, 2)                                                           \
    IV_HALF_LOOP(Pow, suffix, dtype, 2)                                                            \
    IV_HALF_QUESTION(Equal, suffix, dtype, 2)                                                      \
    IV_HALF_QUESTION(Greater, suffix, dtype, 2)                                                    \
    IV_HALF_QUESTION(Less, suffix, dtype, 2)                                                       \
    IV_HALF_QUESTION(GreaterOrEqual, suffix, dtype, 2)                                             \
    IV_HALF_QUESTION(LessOrEqual, suffix, dtype, 2)
HALF_LOOPS(f16, IV_F16)
HALF_LOOPS(bf16, IV_BF16)

/* A divisor of 0 is noted, and reported once the walk is over. */
#define DIVISION_LOOP(op, suffix, type)                                                            \
    static void op##_##suffix(void *opaque, int64_t count, char *const *data,                      \
                              const int64_t *steps) {                                              \
        iv_binary_context *context = opaque;                                                       \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type left = IV_CONST_AT(type, data[1], steps[1], i);                                   \
            type right = IV_CONST_AT(type, data[2], steps[2], i);                                  \
            context->divided_by_zero |= right == 0;                                                \
            IV_AT(type, data[0], steps[0], i) = iv_binary_value_##op##_##suffix(left, right);      \
        }                                                                                          \
    }
#define INTEGER_LOOPS(dtype, suffix, type, wide, unused)                                           \
    LOOP(Add, suffix, type, type)                                                                  \
    LOOP(Sub, suffix, type, type)                                                                  \
    LOOP(Mul, suffix, type, type)                                                                  \
    LOOP(PRelu, suffix, type, type)                                                                \
    LOOP(BitwiseAnd, suffix, type, type)                                                           \
    LOOP(BitwiseOr, suffix, type, type)                                                            \
    LOOP(BitwiseXor, suffix, type, type)                                                           \
    LOOP(Max, suffix, type, type)                                                                  \
    LOOP(Min, suffix, type, type)                                                                  \
    COMPARISON_LOOPS(suffix, type)                                                                 \
    DIVISION_LOOP(Div, suffix, type)                                                               \
    DIVISION_LOOP(Mod, suffix, type)                                                               \
    DIVISION_LOOP(Fmod, suffix, type)
#define SHIFT_LOOPS(dtype, suffix, type, wide, unused)                                             \
    LOOP(ShiftLeft, suffix, type, type)                                                            \
    LOOP(ShiftRight, suffix, type, type)
IV_SIGNED_TYPES(INTEGER_LOOPS, )
IV_UNSIGNED_TYPES(INTEGER_LOOPS, )
IV_UNSIGNED_TYPES(SHIFT_LOOPS, )

LOOP(And, bool, uint8_t, uint8_t)
LOOP(Or, bool, uint8_t, uint8_t)
LOOP(Xor, bool, uint8_t, uint8_t)
LOOP(Equal, bool, uint8_t, uint8_t)

iv_walk_row *const IV_ISA_NAME(iv_binary_loops)[IV_BINARY_ROWS][IV_DTYPE_COUNT] = {
    [IV_BINARY_ROW_Add] = {IV_NUMBER_LOOPS(Add)},
    [IV_BINARY_ROW_Sub] = {IV_NUMBER_LOOPS(Sub)},
    [IV_BINARY_ROW_Mul] = {IV_NUMBER_LOOPS(Mul)},
    [IV_BINARY_ROW_Div] = {IV_NUMBER_LOOPS(Div)},
    [IV_BINARY_ROW_Mod] = {IV_NUMBER_LOOPS(Mod)},
    [IV_BINARY_ROW_Fmod] = {IV_NUMBER_LOOPS(Fmod)},
    [IV_BINARY_ROW_PRelu] = {IV_NUMBER_LOOPS(PRelu)},
    [IV_BINARY_ROW_And] = {[IV_BOOL] = And_bool},
    [IV_BINARY_ROW_Or] = {[IV_BOOL] = Or_bool},
    [IV_BINARY_ROW_Xor] = {[IV_BOOL] = Xor_bool},
    [IV_BINARY_ROW_Equal] = {IV_NUMBER_LOOPS(Equal), [IV_BOOL] = Equal_bool},
    [IV_BINARY_ROW_Greater] = {IV_NUMBER_LOOPS(Greater)},
    [IV_BINARY_ROW_Less] = {IV_NUMBER_LOOPS(Less)},
    [IV_BINARY_ROW_GreaterOrEqual] = {IV_NUMBER_LOOPS(GreaterOrEqual)},
    [IV_BINARY_ROW_LessOrEqual] = {IV_NUMBER_LOOPS(LessOrEqual)},
    [IV_BINARY_ROW_BitShift] = {IV_UNSIGNED_LOOPS(ShiftLeft)},
    [IV_BINARY_ROW_ShiftRight] = {IV_UNSIGNED_LOOPS(ShiftRight)},
    [IV_BINARY_ROW_BitwiseAnd] = {IV_INTEGER_LOOPS(BitwiseAnd)},
    [IV_BINARY_ROW_BitwiseOr] = {IV_INTEGER_LOOPS(BitwiseOr)},
    [IV_BINARY_ROW_BitwiseXor] = {IV_INTEGER_LOOPS(BitwiseXor)},
    [IV_BINARY_ROW_Max] = {IV_NUMBER_LOOPS(Max)},
    [IV_BINARY_ROW_Min] = {IV_NUMBER_LOOPS(Min)},
    [IV_BINARY_ROW_Pow] = {IV_FLOAT_LOOPS(Pow)},
};
