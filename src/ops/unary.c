/* Element-wise operators of one input. Formulas: unary_formulas.h. */
#include "ops/unary.h"

#include <string.h>

#include "ops/list.h"
#include "ops/loops.h"
#include "ops/unary_formulas.h"

/* ---- loops: `parameters` is a copy, so that the compiler knows that no store changes it ---- */

#define UNARY_LOOP(name, out_type, in_type, function)                                              \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {       \
        const iv_unary_params parameters = *(const iv_unary_params *)opaque;                       \
        if (steps[0] == sizeof(out_type) && steps[1] == sizeof(in_type)) {                         \
            out_type *restrict out = (out_type *)(void *)data[0];                                  \
            const in_type *restrict in = (const in_type *)(const void *)data[1];                   \
            for (int64_t i = 0; i < count; i++)                                                    \
                out[i] = function(in[i], parameters);                                              \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            IV_AT(out_type, data[0], steps[0], i) =                                                \
                function(IV_CONST_AT(in_type, data[1], steps[1], i), parameters);                  \
    }

#define FLOAT_LOOP(dtype, suffix, type, real, real_suffix, load, store, op)                        \
    static inline type value_##op##_##suffix(type x, iv_unary_params p) {                          \
        return store(iv_unary_##op##_##real_suffix(load(x), (real)p.a, (real)p.b));                \
    }                                                                                              \
    UNARY_LOOP(op##_##suffix, type, type, value_##op##_##suffix)
#define FLOAT_LOOPS_OF(op) IV_FLOAT_TYPES(FLOAT_LOOP, op)
IV_UNARY_FORMULAS(FLOAT_LOOPS_OF)

/* Integers wrap around: the least one is its own negative and its own magnitude. Shrink is computed
 * in f64 and cut back by the rules of Cast. */
#define NEGATIVE(type, wide) ((type)((wide)0 - (wide)x))
#define SIGNED_LOOP(dtype, suffix, type, wide, unused)                                             \
    static inline type value_Abs_##suffix(type x, iv_unary_params p) {                             \
        return x < 0 ? NEGATIVE(type, wide) : x;                                                   \
    }                                                                                              \
    static inline type value_Neg_##suffix(type x, iv_unary_params p) {                             \
        return NEGATIVE(type, wide);                                                               \
    }                                                                                              \
    static inline type value_Sign_##suffix(type x, iv_unary_params p) {                            \
        return (type)((x > 0) - (x < 0));                                                          \
    }                                                                                              \
    static inline type value_Relu_##suffix(type x, iv_unary_params p) {                            \
        return x < 0 ? 0 : x;                                                                      \
    }                                                                                              \
    UNARY_LOOP(Neg_##suffix, type, type, value_Neg_##suffix)
#define UNSIGNED_LOOP(dtype, suffix, type, wide, unused)                                           \
    static inline type value_Abs_##suffix(type x, iv_unary_params p) {                             \
        return x;                                                                                  \
    }                                                                                              \
    static inline type value_Sign_##suffix(type x, iv_unary_params p) {                            \
        return x != 0;                                                                             \
    }                                                                                              \
    static inline type value_Relu_##suffix(type x, iv_unary_params p) {                            \
        return x;                                                                                  \
    }
#define INTEGER_LOOP(dtype, suffix, type, wide, unused)                                            \
    static inline type value_Not_##suffix(type x, iv_unary_params p) {                             \
        return (type)~x;                                                                           \
    }                                                                                              \
    static inline type value_Shrink_##suffix(type x, iv_unary_params p) {                          \
        return CUT_##suffix(iv_unary_Shrink_f64((double)x, (double)p.a, (double)p.b));             \
    }                                                                                              \
    UNARY_LOOP(Abs_##suffix, type, type, value_Abs_##suffix)                                       \
    UNARY_LOOP(Sign_##suffix, type, type, value_Sign_##suffix)                                     \
    UNARY_LOOP(Relu_##suffix, type, type, value_Relu_##suffix)                                     \
    UNARY_LOOP(BitwiseNot_##suffix, type, type, value_Not_##suffix)                                \
    UNARY_LOOP(Shrink_##suffix, type, type, value_Shrink_##suffix)
#define CUT_s8 iv_i8_from_f64
#define CUT_s16 iv_i16_from_f64
#define CUT_s32 iv_i32_from_f64
#define CUT_s64 iv_i64_from_f64
#define CUT_u8 iv_u8_from_f64
#define CUT_u16 iv_u16_from_f64
#define CUT_u32 iv_u32_from_f64
#define CUT_u64 iv_u64_from_f64
IV_SIGNED_TYPES(SIGNED_LOOP, )
IV_UNSIGNED_TYPES(UNSIGNED_LOOP, )
IV_SIGNED_TYPES(INTEGER_LOOP, )
IV_UNSIGNED_TYPES(INTEGER_LOOP, )

/* Questions about floats; a and b say whether IsInf looks for -inf and for +inf. */
#define QUESTION_LOOP(dtype, suffix, type, real, real_suffix, load, store, unused)                 \
    static inline uint8_t value_IsNaN_##suffix(type x, iv_unary_params p) {                        \
        return iv_bits_is_nan_##real_suffix(load(x)) != 0;                                         \
    }                                                                                              \
    static inline uint8_t value_IsInf_##suffix(type x, iv_unary_params p) {                        \
        real value = load(x), infinity = iv_infinity_##real_suffix();                              \
        return (p.a != 0 && value == -infinity) || (p.b != 0 && value == infinity);                \
    }                                                                                              \
    UNARY_LOOP(IsNaN_##suffix, uint8_t, type, value_IsNaN_##suffix)                                \
    UNARY_LOOP(IsInf_##suffix, uint8_t, type, value_IsInf_##suffix)
IV_FLOAT_TYPES(QUESTION_LOOP, )

static inline uint8_t value_Not_bool(uint8_t x, iv_unary_params p) {
    return x == 0;
}
UNARY_LOOP(Not_bool, uint8_t, uint8_t, value_Not_bool)

/* ---- the operators ---- */

/* X(op): floats only, no parameters. */
#define PLAIN_OPS(X)                                                                               \
    X(Ceil)                                                                                        \
    X(Floor) X(Round) X(Sqrt) X(Reciprocal) X(Exp) X(Log) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos)     \
        X(Atan) X(Sinh) X(Cosh) X(Asinh) X(Acosh) X(Atanh) X(Erf) X(Sigmoid) X(Tanh) X(Softplus)   \
            X(Softsign) X(HardSwish) X(Mish)

typedef struct unary_traits {
    iv_dtype result;      /* IV_DTYPE_NONE: the input's dtype */
    const char *names[2]; /* of the attributes behind a and b */
    float defaults[2];
    bool integers; /* the attributes are integers */
    iv_walk_row *loops[IV_DTYPE_COUNT];
} unary_traits;

#define PLAIN_TRAITS(op) {.loops = {IV_FLOAT_LOOPS(op)}},

/* In the order of iv_ops_unary. */
static const unary_traits traits[] = {
    PLAIN_OPS(PLAIN_TRAITS){.loops = {IV_NUMBER_LOOPS(Abs)}},
    {.loops = {IV_FLOAT_LOOPS(Neg), IV_SIGNED_LOOPS(Neg)}},
    {.loops = {IV_NUMBER_LOOPS(Sign)}},
    {.loops = {IV_NUMBER_LOOPS(Relu)}},
    {.names = {"alpha"}, .defaults = {0.01f}, .loops = {IV_FLOAT_LOOPS(LeakyRelu)}},
    {.names = {"alpha"}, .defaults = {1.0f}, .loops = {IV_FLOAT_LOOPS(ThresholdedRelu)}},
    {.names = {"alpha"}, .defaults = {1.0f}, .loops = {IV_FLOAT_LOOPS(Elu)}},
    {.names = {"alpha", "gamma"},
     .defaults = {1.67326319217681884765625f, 1.05070102214813232421875f},
     .loops = {IV_FLOAT_LOOPS(Selu)}},
    {.names = {"alpha"}, .defaults = {1.0f}, .loops = {IV_FLOAT_LOOPS(Celu)}},
    {.names = {"alpha", "beta"}, .defaults = {0.2f, 0.5f}, .loops = {IV_FLOAT_LOOPS(HardSigmoid)}},
    {.names = {"alpha"}, .defaults = {1.0f}, .loops = {IV_FLOAT_LOOPS(Swish)}},
    {.names = {"lambd", "bias"}, .defaults = {0.5f, 0.0f}, .loops = {IV_NUMBER_LOOPS(Shrink)}},
    {.loops = {IV_FLOAT_LOOPS(Gelu)}},
    {.result = IV_BOOL, .loops = {IV_FLOAT_LOOPS(IsNaN)}},
    {.result = IV_BOOL,
     .names = {"detect_negative", "detect_positive"},
     .defaults = {1.0f, 1.0f},
     .integers = true,
     .loops = {IV_FLOAT_LOOPS(IsInf)}},
    {.loops = {[IV_BOOL] = Not_bool}},
    {.loops = {IV_INTEGER_LOOPS(BitwiseNot)}},
};

static const unary_traits gelu_by_tanh = {.loops = {IV_FLOAT_LOOPS(GeluTanh)}};

static const unary_traits *traits_of(const iv_node *node) {
    const iv_unary_params *params = node->params;
    return params->by_tanh ? &gelu_by_tanh : &traits[node->op - iv_ops_unary];
}

static iv_status read_parameter(const iv_node *node, const unary_traits *of, int index,
                                float *value, iv_error *error) {
    *value = of->defaults[index];
    if (of->names[index] == NULL)
        return IV_OK;
    if (!of->integers)
        return iv_node_float(node, of->names[index], of->defaults[index], value, error);
    int64_t number;
    IV_TRY(iv_node_int(node, of->names[index], (int64_t)of->defaults[index], &number, error));
    *value = number != 0 ? 1.0f : 0.0f;
    return IV_OK;
}

static iv_status prepare_unary(iv_node *node, iv_error *error) {
    iv_unary_params *params = node->params;
    const unary_traits *of = traits_of(node);
    IV_TRY(read_parameter(node, of, 0, &params->a, error));
    return read_parameter(node, of, 1, &params->b, error);
}

static iv_status prepare_gelu(iv_node *node, iv_error *error) {
    const char *how;
    IV_TRY(iv_node_string(node, "approximate", "none", &how, error));
    if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (Gelu): approximate is \"%s\"; it may be none or tanh", node->name,
                       how);
    ((iv_unary_params *)node->params)->by_tanh = strcmp(how, "tanh") == 0;
    return IV_OK;
}

static iv_status infer_unary(iv_infer *infer) {
    const unary_traits *of = traits_of(infer->node);
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, iv_loop_dtypes(of->loops), &input));
    iv_infer_shape_of(infer, 0, input, of->result != IV_DTYPE_NONE ? of->result : input->dtype);
    return IV_OK;
}

static iv_status eval_unary(iv_call *call) {
    const iv_tensor *operands[2] = {NULL, iv_call_input(call, 0)};
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    operands[0] = output;
    iv_walk walk;
    iv_walk_start(&walk, output->rank, output->dims, 2, operands);
    iv_walk_run(&walk, traits_of(call->node)->loops[operands[1]->dtype], call->node->params);
    return IV_OK;
}

/* ---- shape arithmetic ---- */

static iv_dim formula_abs(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands) {
    iv_dim negative = iv_dim_subtract(scope, iv_dim_constant(scope, 0), operands[0]);
    return iv_dim_maximum(scope, operands[0], negative);
}

static iv_dim formula_neg(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands) {
    return iv_dim_subtract(scope, iv_dim_constant(scope, 0), operands[0]);
}

static iv_dim formula_relu(const iv_node *node, iv_scope *scope, int count,
                           const iv_dim *operands) {
    return iv_dim_maximum(scope, operands[0], iv_dim_constant(scope, 0));
}

/* -1, 0 or 1: the value itself, held between those. */
static iv_dim formula_sign(const iv_node *node, iv_scope *scope, int count,
                           const iv_dim *operands) {
    iv_dim least = iv_dim_maximum(scope, operands[0], iv_dim_constant(scope, -1));
    return iv_dim_minimum(scope, least, iv_dim_constant(scope, 1));
}

/* clang-format off */
#define UNARY_OP(op_name, ...)                                                                     \
    {.name = op_name, .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,       \
     .most_outputs = 1, .flags = IV_OP_ELEMENTWISE, .params_size = sizeof(iv_unary_params),        \
     .prepare = prepare_unary, .infer = infer_unary, .eval = eval_unary, __VA_ARGS__}
#define PLAIN_OP(op) UNARY_OP(#op, .formula = NULL),

const iv_op iv_ops_unary[] = {
    PLAIN_OPS(PLAIN_OP)
    UNARY_OP("Abs", .formula = formula_abs),
    UNARY_OP("Neg", .formula = formula_neg),
    UNARY_OP("Sign", .formula = formula_sign),
    UNARY_OP("Relu", .formula = formula_relu),
    UNARY_OP("LeakyRelu", .formula = NULL),
    UNARY_OP("ThresholdedRelu", .formula = NULL),
    UNARY_OP("Elu", .formula = NULL),
    UNARY_OP("Selu", .formula = NULL),
    UNARY_OP("Celu", .formula = NULL),
    UNARY_OP("HardSigmoid", .formula = NULL),
    UNARY_OP("Swish", .formula = NULL),
    UNARY_OP("Shrink", .formula = NULL),
    {.name = "Gelu", .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,
     .most_outputs = 1, .flags = IV_OP_ELEMENTWISE, .params_size = sizeof(iv_unary_params),
     .prepare = prepare_gelu, .infer = infer_unary, .eval = eval_unary},
    UNARY_OP("IsNaN", .formula = NULL),
    UNARY_OP("IsInf", .formula = NULL),
    UNARY_OP("Not", .formula = NULL),
    UNARY_OP("BitwiseNot", .formula = NULL),
    {0},
};
/* clang-format on */

_Static_assert(sizeof traits / sizeof traits[0] + 1 == sizeof iv_ops_unary / sizeof iv_ops_unary[0],
               "every operator has its traits");
