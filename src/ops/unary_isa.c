/* The loops of the element-wise operators of one input, compiled once per instruction set.
 * Formulas: unary_formulas.h and unary_values.h. */
#include "ops/half_loops.h"
#include "ops/unary.h"
#include "ops/unary_values.h"

/* Values are always inlined: in a file this large the compiler would otherwise call some of them
 * (Erf: 10.8 ns an element instead of 0.8). `parameters` is a copy, so that the compiler knows that
 * no store changes it. */
#define UNARY_LOOP(name, out_type, in_type, function)                                              \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {       \
        const iv_unary_params parameters = *(const iv_unary_params *)opaque;                       \
        if (steps[0] != sizeof(out_type) || steps[1] != sizeof(in_type)) {                         \
            const iv_row_pieces how = {.dense = name,                                              \
                                       .context = opaque,                                          \
                                       .inputs = 1,                                                \
                                       .in_size = sizeof(in_type),                                 \
                                       .out_size = sizeof(out_type)};                              \
            iv_run_pieces(&how, count, data, steps);                                               \
            return;                                                                                \
        }                                                                                          \
        out_type *restrict out = (out_type *)(void *)data[0];                                      \
        const in_type *restrict in = (const in_type *)(const void *)data[1];                       \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = function(in[i], parameters.a, parameters.b);                                  \
    }

#define FLOAT_LOOPS_OF(op)                                                                         \
    UNARY_LOOP(op##_f32, float, float, iv_unary_value_##op##_f32)                                  \
    UNARY_LOOP(op##_f64, double, double, iv_unary_value_##op##_f64)                                \
    IV_HALF_LOOP(op, f16, IV_F16, 1)                                                               \
    IV_HALF_LOOP(op, bf16, IV_BF16, 1)
IV_UNARY_FORMULAS(FLOAT_LOOPS_OF)

#define INTEGER_LOOP(suffix, type, op)                                                             \
    UNARY_LOOP(op##_##suffix, type, type, iv_unary_value_##op##_##suffix)
#define SIGNED_LOOPS(dtype, suffix, type, wide, unused) INTEGER_LOOP(suffix, type, Neg)
#define INTEGER_LOOPS(dtype, suffix, type, wide, unused)                                           \
    INTEGER_LOOP(suffix, type, Abs)                                                                \
    INTEGER_LOOP(suffix, type, Sign)                                                               \
    INTEGER_LOOP(suffix, type, Relu)                                                               \
    INTEGER_LOOP(suffix, type, BitwiseNot)                                                         \
    INTEGER_LOOP(suffix, type, Shrink)
IV_SIGNED_TYPES(SIGNED_LOOPS, )
IV_SIGNED_TYPES(INTEGER_LOOPS, )
IV_UNSIGNED_TYPES(INTEGER_LOOPS, )

#define QUESTION_LOOPS(op)                                                                         \
    UNARY_LOOP(op##_f32, uint8_t, float, iv_unary_value_##op##_f32)                                \
    UNARY_LOOP(op##_f64, uint8_t, double, iv_unary_value_##op##_f64)                               \
    IV_HALF_QUESTION(op, f16, IV_F16, 1)                                                           \
    IV_HALF_QUESTION(op, bf16, IV_BF16, 1)
QUESTION_LOOPS(IsNaN)
QUESTION_LOOPS(IsInf)

UNARY_LOOP(Not_bool, uint8_t, uint8_t, iv_unary_value_Not_bool)

#define PLAIN_LOOPS(op) [IV_UNARY_ROW_##op] = {IV_FLOAT_LOOPS(op)},

iv_walk_row *const IV_ISA_NAME(iv_unary_loops)[IV_UNARY_ROWS][IV_DTYPE_COUNT] = {
    IV_UNARY_PLAIN_OPS(PLAIN_LOOPS)[IV_UNARY_ROW_Abs] = {IV_NUMBER_LOOPS(Abs)},
    [IV_UNARY_ROW_Neg] = {IV_FLOAT_LOOPS(Neg), IV_SIGNED_LOOPS(Neg)},
    [IV_UNARY_ROW_Sign] = {IV_NUMBER_LOOPS(Sign)},
    [IV_UNARY_ROW_Relu] = {IV_NUMBER_LOOPS(Relu)},
    [IV_UNARY_ROW_LeakyRelu] = {IV_FLOAT_LOOPS(LeakyRelu)},
    [IV_UNARY_ROW_ThresholdedRelu] = {IV_FLOAT_LOOPS(ThresholdedRelu)},
    [IV_UNARY_ROW_Elu] = {IV_FLOAT_LOOPS(Elu)},
    [IV_UNARY_ROW_Selu] = {IV_FLOAT_LOOPS(Selu)},
    [IV_UNARY_ROW_Celu] = {IV_FLOAT_LOOPS(Celu)},
    [IV_UNARY_ROW_HardSigmoid] = {IV_FLOAT_LOOPS(HardSigmoid)},
    [IV_UNARY_ROW_Swish] = {IV_FLOAT_LOOPS(Swish)},
    [IV_UNARY_ROW_Shrink] = {IV_NUMBER_LOOPS(Shrink)},
    [IV_UNARY_ROW_Gelu] = {IV_FLOAT_LOOPS(Gelu)},
    [IV_UNARY_ROW_IsNaN] = {IV_FLOAT_LOOPS(IsNaN)},
    [IV_UNARY_ROW_IsInf] = {IV_FLOAT_LOOPS(IsInf)},
    [IV_UNARY_ROW_Not] = {[IV_BOOL] = Not_bool},
    [IV_UNARY_ROW_BitwiseNot] = {IV_INTEGER_LOOPS(BitwiseNot)},
    [IV_UNARY_ROW_GeluTanh] = {IV_FLOAT_LOOPS(GeluTanh)},
};
