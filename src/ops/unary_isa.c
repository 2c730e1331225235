/* The loops of the element-wise operators of one float or truth value, compiled once per instruction set, and their
 * table. Formulas: unary_formulas.h and unary_values.h. Integers: integer_loops.h. */
#include "ops/dense_loops.h"
#include "ops/half_loops.h"
#include "ops/integer_loops.h"
#include "ops/unary.h"
#include "ops/unary_values.h"

/* Values are always inlined: in a file this large the compiler would otherwise call some of them
 * (Erf: 10.8 ns an element instead of 0.8). `parameters` is a copy, so that the compiler knows that
 * no store changes it. */
#define UNARY_LOOP(name, out_type, in_type, function)                                                                  \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        const sb_unary_params parameters = *(const sb_unary_params *)opaque;                                           \
        if (steps[0] != sizeof(out_type) || steps[1] != sizeof(in_type))                                               \
            SB_DENSE_PIECES(name, out_type, in_type, 1);                                                               \
        out_type *restrict out = (out_type *)(void *)data[0];                                                          \
        const in_type *restrict in = (const in_type *)(const void *)data[1];                                           \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = function(in[i], parameters.a, parameters.b);                                                      \
    }

#define FLOAT_LOOPS_OF(op)                                                                                             \
    UNARY_LOOP(op##_f32, float, float, sb_unary_value_##op##_f32)                                                      \
    UNARY_LOOP(op##_f64, double, double, sb_unary_value_##op##_f64)                                                    \
    SB_HALF_LOOP(op, f16, SB_F16, 1)                                                                                   \
    SB_HALF_LOOP(op, bf16, SB_BF16, 1)
SB_UNARY_FORMULAS(FLOAT_LOOPS_OF)

#define QUESTION_LOOPS(op)                                                                                             \
    UNARY_LOOP(op##_f32, uint8_t, float, sb_unary_value_##op##_f32)                                                    \
    UNARY_LOOP(op##_f64, uint8_t, double, sb_unary_value_##op##_f64)                                                   \
    SB_HALF_QUESTION(op, f16, SB_F16, 1)                                                                               \
    SB_HALF_QUESTION(op, bf16, SB_BF16, 1)
QUESTION_LOOPS(IsNaN)
QUESTION_LOOPS(IsInf)

UNARY_LOOP(Not_bool, uint8_t, uint8_t, sb_unary_value_Not_bool)

#define ROWS_OF(op) [SB_UNARY_ROW_##op] = {SB_FLOAT_LOOPS(op)},

sb_walk_row *const SB_ISA_NAME(sb_unary_loops)[SB_UNARY_ROWS][SB_DTYPE_COUNT] = {
    SB_UNARY_FLOAT_OPS(ROWS_OF)[SB_UNARY_ROW_Abs] = {SB_FLOAT_LOOPS(Abs), SB_INTEGER_LOOPS(sb_unary_Abs)},
    [SB_UNARY_ROW_Neg] = {SB_FLOAT_LOOPS(Neg), SB_SIGNED_LOOPS(sb_unary_Neg)},
    [SB_UNARY_ROW_Sign] = {SB_FLOAT_LOOPS(Sign), SB_INTEGER_LOOPS(sb_unary_Sign)},
    [SB_UNARY_ROW_Relu] = {SB_FLOAT_LOOPS(Relu), SB_INTEGER_LOOPS(sb_unary_Relu)},
    [SB_UNARY_ROW_Shrink] = {SB_FLOAT_LOOPS(Shrink), SB_INTEGER_LOOPS(sb_unary_Shrink)},
    [SB_UNARY_ROW_Gelu] = {SB_FLOAT_LOOPS(Gelu)},
    [SB_UNARY_ROW_IsNaN] = {SB_FLOAT_LOOPS(IsNaN)},
    [SB_UNARY_ROW_IsInf] = {SB_FLOAT_LOOPS(IsInf)},
    [SB_UNARY_ROW_Not] = {[SB_BOOL] = Not_bool},
    [SB_UNARY_ROW_BitwiseNot] = {SB_INTEGER_LOOPS(sb_unary_BitwiseNot)},
    [SB_UNARY_ROW_GeluTanh] = {SB_FLOAT_LOOPS(GeluTanh)},
};
