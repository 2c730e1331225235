/* The loops of the element-wise operators of two floats or truth values, compiled once per instruction set, and their
 * table. Formulas: binary_values.h. Integers: integer_loops.h. */
#include "ops/binary.h"
#include "ops/binary_values.h"
#include "ops/dense_loops.h"
#include "ops/half_loops.h"
#include "ops/integer_loops.h"

#define LOOP(op, suffix, out_type, type)                                                                               \
    SB_BINARY_LOOP(op##_##suffix, sb_binary_context, out_type, type, type, sb_binary_value_##op##_##suffix)
#define COMPARISON_LOOPS(suffix, type)                                                                                 \
    LOOP(Equal, suffix, uint8_t, type)                                                                                 \
    LOOP(Greater, suffix, uint8_t, type)                                                                               \
    LOOP(Less, suffix, uint8_t, type)                                                                                  \
    LOOP(GreaterOrEqual, suffix, uint8_t, type)                                                                        \
    LOOP(LessOrEqual, suffix, uint8_t, type)

/* Powers and remainders are long: once each, so rows of other steps go by pieces. */
#define LONG_LOOP(op, suffix, type) static SB_DENSE_BINARY(op##_##suffix, type, type, sb_binary_value_##op##_##suffix)
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

LOOP(And, bool, uint8_t, uint8_t)
LOOP(Or, bool, uint8_t, uint8_t)
LOOP(Xor, bool, uint8_t, uint8_t)
LOOP(Equal, bool, uint8_t, uint8_t)

sb_walk_row *const SB_ISA_NAME(sb_binary_loops)[SB_BINARY_ROWS][SB_DTYPE_COUNT] = {
    [SB_BINARY_ROW_Add] = {SB_FLOAT_LOOPS(Add), SB_INTEGER_LOOPS(sb_binary_Add)},
    [SB_BINARY_ROW_Sub] = {SB_FLOAT_LOOPS(Sub), SB_INTEGER_LOOPS(sb_binary_Sub)},
    [SB_BINARY_ROW_Mul] = {SB_FLOAT_LOOPS(Mul), SB_INTEGER_LOOPS(sb_binary_Mul)},
    [SB_BINARY_ROW_Div] = {SB_FLOAT_LOOPS(Div), SB_INTEGER_LOOPS(sb_binary_Div)},
    [SB_BINARY_ROW_Mod] = {SB_FLOAT_LOOPS(Mod), SB_INTEGER_LOOPS(sb_binary_Mod)},
    [SB_BINARY_ROW_Fmod] = {SB_FLOAT_LOOPS(Fmod), SB_INTEGER_LOOPS(sb_binary_Fmod)},
    [SB_BINARY_ROW_PRelu] = {SB_FLOAT_LOOPS(PRelu), SB_INTEGER_LOOPS(sb_binary_PRelu)},
    [SB_BINARY_ROW_And] = {[SB_BOOL] = And_bool},
    [SB_BINARY_ROW_Or] = {[SB_BOOL] = Or_bool},
    [SB_BINARY_ROW_Xor] = {[SB_BOOL] = Xor_bool},
    [SB_BINARY_ROW_Equal] = {SB_FLOAT_LOOPS(Equal), SB_INTEGER_LOOPS(sb_binary_Equal), [SB_BOOL] = Equal_bool},
    [SB_BINARY_ROW_Greater] = {SB_FLOAT_LOOPS(Greater), SB_INTEGER_LOOPS(sb_binary_Greater)},
    [SB_BINARY_ROW_Less] = {SB_FLOAT_LOOPS(Less), SB_INTEGER_LOOPS(sb_binary_Less)},
    [SB_BINARY_ROW_GreaterOrEqual] = {SB_FLOAT_LOOPS(GreaterOrEqual), SB_INTEGER_LOOPS(sb_binary_GreaterOrEqual)},
    [SB_BINARY_ROW_LessOrEqual] = {SB_FLOAT_LOOPS(LessOrEqual), SB_INTEGER_LOOPS(sb_binary_LessOrEqual)},
    [SB_BINARY_ROW_BitShift] = {SB_UNSIGNED_LOOPS(sb_binary_ShiftLeft)},
    [SB_BINARY_ROW_ShiftRight] = {SB_UNSIGNED_LOOPS(sb_binary_ShiftRight)},
    [SB_BINARY_ROW_BitwiseAnd] = {SB_INTEGER_LOOPS(sb_binary_BitwiseAnd)},
    [SB_BINARY_ROW_BitwiseOr] = {SB_INTEGER_LOOPS(sb_binary_BitwiseOr)},
    [SB_BINARY_ROW_BitwiseXor] = {SB_INTEGER_LOOPS(sb_binary_BitwiseXor)},
    [SB_BINARY_ROW_Max] = {SB_FLOAT_LOOPS(Max), SB_INTEGER_LOOPS(sb_binary_Max)},
    [SB_BINARY_ROW_Min] = {SB_FLOAT_LOOPS(Min), SB_INTEGER_LOOPS(sb_binary_Min)},
    [SB_BINARY_ROW_Pow] = {SB_FLOAT_LOOPS(Pow)},
};
