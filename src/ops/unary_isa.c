/* The loops of the element-wise operators of one float or truth value, compiled once per instruction set, and their
 * table. Formulas: unary_formulas.h and unary_values.h. Integers: integer_loops.h. */
#include "ops/common_loops.h"
#include "ops/half_loops.h"
#include "ops/integer_loops.h"
#include "ops/staged_loops.h"
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

#define OTHER_LOOPS_OF(op)                                                                                             \
    UNARY_LOOP(op##_f64, double, double, sb_unary_value_##op##_f64)                                                    \
    SB_HALF_LOOP(op, f16, SB_F16, 1)                                                                                   \
    SB_HALF_LOOP(op, bf16, SB_BF16, 1)
#define FLOAT_LOOPS(op, unused)                                                                                        \
    UNARY_LOOP(op##_f32, float, float, sb_unary_value_##op##_f32)                                                      \
    OTHER_LOOPS_OF(op)
SB_UNARY_LIGHT_FLOATS(FLOAT_LOOPS, )
SB_UNARY_EVEN_FLOATS(FLOAT_LOOPS, )

/* The arguments of the staged functions, and what becomes of their values, as in unary_formulas.h. */
#define ITSELF(x, a) (x)
#define SCALED(x, a) ((a) * (x))
#define GELU_ARGUMENT(x, a) ((x)*0.70710678118654752440f)
#define GELU_TANH_ARGUMENT(x, a) (0.79788456080286535588f * ((x) + 0.044715f * ((x) * (x) * (x))))
#define FUNCTION(x, y) (y)
#define PRODUCT(x, y) ((x) * (y))
#define GELU_VALUE(x, y) (0.5f * (x) * (1.0f + (y)))
#define STAGED(op, argument, function, value)                                                                          \
    SB_STAGED_UNARY(op##_f32, sb_unary_params, argument, sb_##function##_begin_f32, sb_##function##_end_f32, value)
STAGED(Sigmoid, ITSELF, sigmoid, FUNCTION)
STAGED(Tanh, ITSELF, tanh, FUNCTION)
STAGED(Erf, ITSELF, erf, FUNCTION)
STAGED(Swish, SCALED, sigmoid, PRODUCT)
STAGED(Gelu, GELU_ARGUMENT, erf, GELU_VALUE)
STAGED(GeluTanh, GELU_TANH_ARGUMENT, tanh, GELU_VALUE)
#define STAGED_LOOPS(op, unused) OTHER_LOOPS_OF(op)
SB_UNARY_STAGED_FLOATS(STAGED_LOOPS, )

#define NEAR_Sin sb_sin_near_f32
#define NEAR_Cos sb_cos_near_f32
#define NEAR_Tan sb_tan_near_f32
#define ANGLE_LOOPS(op, unused)                                                                                        \
    SB_COMMON_UNARY(op##_f32, sb_unary_value_##op##_f32, sb_angle_is_near, NEAR_##op)                                  \
    OTHER_LOOPS_OF(op)
SB_UNARY_ANGLE_FLOATS(ANGLE_LOOPS, )

#define QUESTION_LOOPS(op, unused)                                                                                     \
    UNARY_LOOP(op##_f32, uint8_t, float, sb_unary_value_##op##_f32)                                                    \
    UNARY_LOOP(op##_f64, uint8_t, double, sb_unary_value_##op##_f64)                                                   \
    SB_HALF_QUESTION(op, f16, SB_F16, 1)                                                                               \
    SB_HALF_QUESTION(op, bf16, SB_BF16, 1)
SB_UNARY_QUESTIONS(QUESTION_LOOPS, )

#define TRUTH_LOOP(op, unused) UNARY_LOOP(op##_bool, uint8_t, uint8_t, sb_unary_value_##op##_bool)
SB_UNARY_TRUTHS(TRUTH_LOOP, )

/* A row's entries come from one list for each kind of element. */
#define FLOAT_ENTRIES(op, unused)                                                                                      \
    [SB_UNARY_ROW_##op][SB_F16] = op##_f16, [SB_UNARY_ROW_##op][SB_BF16] = op##_bf16,                                  \
    [SB_UNARY_ROW_##op][SB_F32] = op##_f32, [SB_UNARY_ROW_##op][SB_F64] = op##_f64,
#define SIGNED_ENTRIES(op, unused)                                                                                     \
    [SB_UNARY_ROW_##op][SB_S8] = sb_unary_##op##_s8, [SB_UNARY_ROW_##op][SB_S16] = sb_unary_##op##_s16,                \
    [SB_UNARY_ROW_##op][SB_S32] = sb_unary_##op##_s32, [SB_UNARY_ROW_##op][SB_S64] = sb_unary_##op##_s64,
#define UNSIGNED_ENTRIES(op, unused)                                                                                   \
    [SB_UNARY_ROW_##op][SB_U8] = sb_unary_##op##_u8, [SB_UNARY_ROW_##op][SB_U16] = sb_unary_##op##_u16,                \
    [SB_UNARY_ROW_##op][SB_U32] = sb_unary_##op##_u32, [SB_UNARY_ROW_##op][SB_U64] = sb_unary_##op##_u64,
#define INTEGER_ENTRIES(op, unused) SIGNED_ENTRIES(op, unused) UNSIGNED_ENTRIES(op, unused)
#define TRUTH_ENTRY(op, unused) [SB_UNARY_ROW_##op][SB_BOOL] = op##_bool,

/* clang-format off */
sb_walk_row *const SB_ISA_NAME(sb_unary_loops)[SB_UNARY_ROWS][SB_DTYPE_COUNT] = {
    SB_UNARY_LIGHT_FLOATS(FLOAT_ENTRIES, )
    SB_UNARY_HEAVY_FLOATS(FLOAT_ENTRIES, )
    SB_UNARY_QUESTIONS(FLOAT_ENTRIES, )
    SB_UNARY_LIGHT_INTEGERS(INTEGER_ENTRIES, )
    SB_UNARY_HEAVY_INTEGERS(INTEGER_ENTRIES, )
    SB_UNARY_SIGNED(SIGNED_ENTRIES, )
    SB_UNARY_TRUTHS(TRUTH_ENTRY, )
};
/* clang-format on */
