/* Element-wise operators of two inputs, broadcast against each other by numpy's rule (before
 * operator set 7: by `axis`). */
#include "ops/binary.h"

#include <string.h>

#include "numerics/minmax.h"
#include "ops/list.h"
#include "ops/loops.h"

/* ---- loops ---- */

typedef struct row_context {
    bool divided_by_zero;
} row_context;

/* Floats: one rounding each. Comparisons with NaN are false, +0 equals -0. */
#define FLOAT_Add(x, y) ((x) + (y))
#define FLOAT_Sub(x, y) ((x) - (y))
#define FLOAT_Mul(x, y) ((x) * (y))
#define FLOAT_Div(x, y) ((x) / (y))
/* x < 0 ? y x : x */
#define FLOAT_PRelu(x, y) ((x) < 0 ? (y) * (x) : (x))
#define ANY_Equal(x, y) ((x) == (y))
#define ANY_Greater(x, y) ((x) > (y))
#define ANY_Less(x, y) ((x) < (y))
#define ANY_GreaterOrEqual(x, y) ((x) >= (y))
#define ANY_LessOrEqual(x, y) ((x) <= (y))

/* The remainder of the truncated quotient: exact, so every correct fmod gives these bits. */
static inline float truncated_remainder_f32(float x, float y) {
    return __builtin_fmodf(x, y);
}
static inline double truncated_remainder_f64(double x, double y) {
    return __builtin_fmod(x, y);
}
/* r = fmod(x, y); +-0 with the sign of y where r is 0; r + y where r and y have different signs. */
static inline float floored_remainder_f32(float x, float y) {
    float rest = truncated_remainder_f32(x, y);
    float moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest == 0 ? iv_copysign_f32(0.0f, y) : rest == rest ? moved : rest;
}
static inline double floored_remainder_f64(double x, double y) {
    double rest = truncated_remainder_f64(x, y);
    double moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest == 0 ? iv_copysign_f64(0.0, y) : rest == rest ? moved : rest;
}

#define FLOAT_FUNCTION(op, suffix, type, load, store, value)                                       \
    static inline type op##_of_##suffix(type left, type right) {                                   \
        return store(value);                                                                       \
    }                                                                                              \
    IV_BINARY_LOOP(op##_##suffix, row_context, type, type, type, op##_of_##suffix)
#define FLOAT_QUESTION(op, suffix, type, load)                                                     \
    static inline uint8_t op##_of_##suffix(type left, type right) {                                \
        return ANY_##op(load(left), load(right));                                                  \
    }                                                                                              \
    IV_BINARY_LOOP(op##_##suffix, row_context, uint8_t, type, type, op##_of_##suffix)
#define FLOAT_LOOPS(dtype, suffix, type, real, real_suffix, load, store, unused)                   \
    FLOAT_FUNCTION(Add, suffix, type, load, store, FLOAT_Add(load(left), load(right)))             \
    FLOAT_FUNCTION(Sub, suffix, type, load, store, FLOAT_Sub(load(left), load(right)))             \
    FLOAT_FUNCTION(Mul, suffix, type, load, store, FLOAT_Mul(load(left), load(right)))             \
    FLOAT_FUNCTION(Div, suffix, type, load, store, FLOAT_Div(load(left), load(right)))             \
    FLOAT_FUNCTION(PRelu, suffix, type, load, store, FLOAT_PRelu(load(left), load(right)))         \
    FLOAT_FUNCTION(Mod, suffix, type, load, store,                                                 \
                   floored_remainder_##real_suffix(load(left), load(right)))                       \
    FLOAT_FUNCTION(Fmod, suffix, type, load, store,                                                \
                   truncated_remainder_##real_suffix(load(left), load(right)))                     \
    FLOAT_QUESTION(Equal, suffix, type, load)                                                      \
    FLOAT_QUESTION(Greater, suffix, type, load)                                                    \
    FLOAT_QUESTION(Less, suffix, type, load)                                                       \
    FLOAT_QUESTION(GreaterOrEqual, suffix, type, load)                                             \
    FLOAT_QUESTION(LessOrEqual, suffix, type, load)
IV_FLOAT_TYPES(FLOAT_LOOPS, )

/* Integers: modulo 2^bits. */
#define INTEGER_LOOPS(dtype, suffix, type, wide, unused)                                           \
    static inline type Add_of_##suffix(type x, type y) {                                           \
        return (type)((wide)x + (wide)y);                                                          \
    }                                                                                              \
    static inline type Sub_of_##suffix(type x, type y) {                                           \
        return (type)((wide)x - (wide)y);                                                          \
    }                                                                                              \
    static inline type Mul_of_##suffix(type x, type y) {                                           \
        return (type)((wide)x * (wide)y);                                                          \
    }                                                                                              \
    static inline type And_of_##suffix(type x, type y) {                                           \
        return x & y;                                                                              \
    }                                                                                              \
    static inline type Or_of_##suffix(type x, type y) {                                            \
        return x | y;                                                                              \
    }                                                                                              \
    static inline type Xor_of_##suffix(type x, type y) {                                           \
        return x ^ y;                                                                              \
    }                                                                                              \
    IV_BINARY_LOOP(Add_##suffix, row_context, type, type, type, Add_of_##suffix)                   \
    IV_BINARY_LOOP(Sub_##suffix, row_context, type, type, type, Sub_of_##suffix)                   \
    IV_BINARY_LOOP(Mul_##suffix, row_context, type, type, type, Mul_of_##suffix)                   \
    IV_BINARY_LOOP(BitwiseAnd_##suffix, row_context, type, type, type, And_of_##suffix)            \
    IV_BINARY_LOOP(BitwiseOr_##suffix, row_context, type, type, type, Or_of_##suffix)              \
    IV_BINARY_LOOP(BitwiseXor_##suffix, row_context, type, type, type, Xor_of_##suffix)            \
    IV_BINARY_LOOP(Equal_##suffix, row_context, uint8_t, type, type, ANY_Equal)                    \
    IV_BINARY_LOOP(Greater_##suffix, row_context, uint8_t, type, type, ANY_Greater)                \
    IV_BINARY_LOOP(Less_##suffix, row_context, uint8_t, type, type, ANY_Less)                      \
    IV_BINARY_LOOP(GreaterOrEqual_##suffix, row_context, uint8_t, type, type, ANY_GreaterOrEqual)  \
    IV_BINARY_LOOP(LessOrEqual_##suffix, row_context, uint8_t, type, type, ANY_LessOrEqual)

IV_SIGNED_TYPES(INTEGER_LOOPS, )
IV_UNSIGNED_TYPES(INTEGER_LOOPS, )

/* Quotients are truncated toward zero. A divisor of 0 is noted, and reported once the walk is over.
 * The least integer divided by -1 wraps around to itself. */
#define DIVISION_LOOP(name, type, function)                                                        \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {       \
        for (int64_t i = 0; i < count; i++)                                                        \
            IV_AT(type, data[0], steps[0], i) =                                                    \
                function(IV_CONST_AT(type, data[1], steps[1], i),                                  \
                         IV_CONST_AT(type, data[2], steps[2], i), (row_context *)opaque);          \
    }
#define DIVISION_LOOPS(suffix, type)                                                               \
    DIVISION_LOOP(Div_##suffix, type, divide_##suffix)                                             \
    DIVISION_LOOP(Mod_##suffix, type, floored_##suffix)                                            \
    DIVISION_LOOP(Fmod_##suffix, type, truncated_##suffix)                                         \
    IV_BINARY_LOOP(PRelu_##suffix, row_context, type, type, type, prelu_##suffix)
#define SIGNED_DIVISION(dtype, suffix, type, wide, unused)                                         \
    static inline type divide_##suffix(type x, type y, row_context *context) {                     \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 ? 0 : y == -1 ? (type)((wide)0 - (wide)x) : (type)(x / y);                   \
    }                                                                                              \
    static inline type truncated_##suffix(type x, type y, row_context *context) {                  \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 || y == -1 ? 0 : (type)(x % y);                                              \
    }                                                                                              \
    static inline type floored_##suffix(type x, type y, row_context *context) {                    \
        type rest = truncated_##suffix(x, y, context);                                             \
        return rest != 0 && (rest < 0) != (y < 0) ? (type)(rest + y) : rest;                       \
    }                                                                                              \
    static inline type prelu_##suffix(type x, type y) {                                            \
        return x < 0 ? (type)((wide)x * (wide)y) : x;                                              \
    }                                                                                              \
    DIVISION_LOOPS(suffix, type)
#define UNSIGNED_DIVISION(dtype, suffix, type, wide, unused)                                       \
    static inline type divide_##suffix(type x, type y, row_context *context) {                     \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 ? 0 : (type)(x / y);                                                         \
    }                                                                                              \
    static inline type truncated_##suffix(type x, type y, row_context *context) {                  \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 ? 0 : (type)(x % y);                                                         \
    }                                                                                              \
    static inline type floored_##suffix(type x, type y, row_context *context) {                    \
        return truncated_##suffix(x, y, context);                                                  \
    }                                                                                              \
    static inline type prelu_##suffix(type x, type y) {                                            \
        return x;                                                                                  \
    }                                                                                              \
    /* Shifts by the width or more push every bit out. */                                          \
    static inline type left_##suffix(type x, type y) {                                             \
        return y < 8 * sizeof(type) ? (type)((wide)x << y) : 0;                                    \
    }                                                                                              \
    static inline type right_##suffix(type x, type y) {                                            \
        return y < 8 * sizeof(type) ? (type)((wide)x >> y) : 0;                                    \
    }                                                                                              \
    IV_BINARY_LOOP(ShiftLeft_##suffix, row_context, type, type, type, left_##suffix)               \
    IV_BINARY_LOOP(ShiftRight_##suffix, row_context, type, type, type, right_##suffix)             \
    DIVISION_LOOPS(suffix, type)
IV_SIGNED_TYPES(SIGNED_DIVISION, )
IV_UNSIGNED_TYPES(UNSIGNED_DIVISION, )

/* Truth values, which are 0 or 1. */
#define TRUTH_And(x, y) ((x) & (y))
#define TRUTH_Or(x, y) ((x) | (y))
#define TRUTH_Xor(x, y) ((x) ^ (y))
IV_BINARY_LOOP(And_bool, row_context, uint8_t, uint8_t, uint8_t, TRUTH_And)
IV_BINARY_LOOP(Or_bool, row_context, uint8_t, uint8_t, uint8_t, TRUTH_Or)
IV_BINARY_LOOP(Xor_bool, row_context, uint8_t, uint8_t, uint8_t, TRUTH_Xor)
IV_BINARY_LOOP(Equal_bool, row_context, uint8_t, uint8_t, uint8_t, ANY_Equal)

static inline uint8_t same_text(iv_string left, iv_string right) {
    return left.bytes == right.bytes &&
           (left.bytes == 0 || memcmp(left.data, right.data, left.bytes) == 0);
}
IV_BINARY_LOOP(Equal_text, row_context, uint8_t, iv_string, iv_string, same_text)

/* ---- the operators ---- */

typedef struct binary_traits {
    bool question; /* the result is a truth value */
    iv_walk_row *loops[IV_DTYPE_COUNT];
    iv_walk_row *variant[IV_DTYPE_COUNT];
} binary_traits;

/* In the order of iv_ops_binary. */
static const binary_traits traits[] = {
    {.loops = {IV_NUMBER_LOOPS(Add)}},
    {.loops = {IV_NUMBER_LOOPS(Sub)}},
    {.loops = {IV_NUMBER_LOOPS(Mul)}},
    {.loops = {IV_NUMBER_LOOPS(Div)}},
    {.loops = {IV_NUMBER_LOOPS(Mod)}, .variant = {IV_NUMBER_LOOPS(Fmod)}},
    {.loops = {IV_NUMBER_LOOPS(PRelu)}},
    {.loops = {[IV_BOOL] = And_bool}},
    {.loops = {[IV_BOOL] = Or_bool}},
    {.loops = {[IV_BOOL] = Xor_bool}},
    {.question = true,
     .loops = {IV_NUMBER_LOOPS(Equal), [IV_BOOL] = Equal_bool, [IV_STRING] = Equal_text}},
    {.question = true, .loops = {IV_NUMBER_LOOPS(Greater)}},
    {.question = true, .loops = {IV_NUMBER_LOOPS(Less)}},
    {.question = true, .loops = {IV_NUMBER_LOOPS(GreaterOrEqual)}},
    {.question = true, .loops = {IV_NUMBER_LOOPS(LessOrEqual)}},
    {.loops = {IV_UNSIGNED_LOOPS(ShiftLeft)}, .variant = {IV_UNSIGNED_LOOPS(ShiftRight)}},
    {.loops = {IV_INTEGER_LOOPS(BitwiseAnd)}},
    {.loops = {IV_INTEGER_LOOPS(BitwiseOr)}},
    {.loops = {IV_INTEGER_LOOPS(BitwiseXor)}},
};

static iv_walk_row *const *loops_of(const iv_node *node) {
    const binary_traits *of = &traits[node->op - iv_ops_binary];
    return ((const iv_binary_params *)node->params)->variant ? of->variant : of->loops;
}

iv_status iv_binary_prepare(iv_node *node, iv_error *error) {
    iv_binary_params *params = node->params;
    params->axis = -1;
    if (node->version >= 7)
        return IV_OK;
    int64_t broadcast;
    IV_TRY(iv_node_int(node, "broadcast", 0, &broadcast, error));
    IV_TRY(iv_node_int(node, "axis", -1, &params->axis, error));
    if (broadcast == 0)
        params->axis = -1;
    return IV_OK;
}

static iv_status prepare_mod(iv_node *node, iv_error *error) {
    iv_binary_params *params = node->params;
    int64_t truncated;
    params->axis = -1;
    IV_TRY(iv_node_int(node, "fmod", 0, &truncated, error));
    params->variant = truncated != 0;
    return IV_OK;
}

static iv_status prepare_shift(iv_node *node, iv_error *error) {
    iv_binary_params *params = node->params;
    const char *direction;
    params->axis = -1;
    IV_TRY(iv_node_string(node, "direction", "", &direction, error));
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (BitShift): direction is \"%s\"; it must be LEFT or RIGHT",
                       node->name, direction);
    params->variant = strcmp(direction, "RIGHT") == 0;
    return IV_OK;
}

/* Before operator set 7 a slope of more than one element is one per channel. */
static iv_status prepare_prelu(iv_node *node, iv_error *error) {
    ((iv_binary_params *)node->params)->axis = node->version < 7 ? 1 : -1;
    return IV_OK;
}

/* How many extents of 1 go behind a second input of rank `right` to put it at `axis` of a first one
 * of rank `left`. */
static int trailing_ones(int64_t axis, int left, int right) {
    return axis >= 0 && right > 0 && axis + right < left ? (int)(left - axis - right) : 0;
}

iv_status iv_binary_infer_shape(iv_infer *infer, iv_dtype dtype) {
    const iv_binary_params *params = infer->node->params;
    iv_fact right = *iv_infer_input(infer, 1);
    const iv_fact *facts[2] = {iv_infer_input(infer, 0), &right};
    int64_t only = 0;
    bool single = right.rank == 1 && iv_dim_is_constant(right.dims[0], &only) && only == 1;
    if (facts[0]->rank != IV_RANK_UNKNOWN && right.rank != IV_RANK_UNKNOWN && !single) {
        int ones = trailing_ones(params->axis, facts[0]->rank, right.rank);
        for (int i = 0; i < ones; i++)
            right.dims[right.rank++] = iv_dim_constant(infer->scope, 1);
    }
    return iv_infer_broadcast(infer, 0, dtype, 2, facts);
}

void iv_binary_align(const iv_call *call, iv_tensor *aligned) {
    const iv_binary_params *params = call->node->params;
    const iv_tensor *left = iv_call_input(call, 0), *right = iv_call_input(call, 1);
    memcpy(aligned, right, sizeof *aligned);
    if (right->rank == 1 && right->dims[0] == 1)
        return;
    int ones = trailing_ones(params->axis, left->rank, right->rank);
    for (int i = 0; i < ones; i++) {
        aligned->dims[aligned->rank] = 1;
        aligned->strides[aligned->rank++] = 0;
    }
}

static iv_status infer_binary(iv_infer *infer) {
    const binary_traits *of = &traits[infer->node->op - iv_ops_binary];
    uint32_t dtypes = iv_loop_dtypes(loops_of(infer->node));
    const iv_fact *left, *right;
    IV_TRY(iv_infer_require(infer, 0, dtypes, &left));
    IV_TRY(iv_infer_require(infer, 1, dtypes, &right));
    if (left->dtype != right->dtype)
        return iv_infer_fail(
            infer, IV_ERROR_INVALID_MODEL,
            "inputs have dtypes %s and %s, which must be equal: put a Cast before one",
            iv_dtype_name(left->dtype), iv_dtype_name(right->dtype));
    return iv_binary_infer_shape(infer, of->question ? IV_BOOL : left->dtype);
}

/* Only since operator set 28 is the floored remainder of floats defined. */
static iv_status infer_mod(iv_infer *infer) {
    const iv_binary_params *params = infer->node->params;
    const iv_fact *left;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_NUMBER, &left));
    if (!params->variant && iv_dtype_is_float(left->dtype) && infer->node->version < 28)
        return iv_infer_fail(infer, IV_ERROR_INVALID_MODEL,
                             "fmod must be 1 for %s before operator set 28",
                             iv_dtype_name(left->dtype));
    return infer_binary(infer);
}

static iv_status eval_binary(iv_call *call) {
    iv_tensor *output, right;
    iv_binary_align(call, &right);
    IV_TRY(iv_call_output(call, 0, &output));
    const iv_tensor *operands[3] = {output, iv_call_input(call, 0), &right};
    iv_walk walk;
    row_context context = {false};
    iv_walk_start(&walk, output->rank, output->dims, 3, operands);
    iv_walk_run(&walk, loops_of(call->node)[right.dtype], &context);
    if (context.divided_by_zero)
        return iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT, "integer division by zero");
    return IV_OK;
}

/* ---- shape arithmetic ---- */

static iv_dim formula_add(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands) {
    return iv_dim_add(scope, operands[0], operands[1]);
}

static iv_dim formula_sub(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands) {
    return iv_dim_subtract(scope, operands[0], operands[1]);
}

static iv_dim formula_mul(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands) {
    return iv_dim_multiply(scope, operands[0], operands[1]);
}

/* Truncation is the floor only where neither operand is negative. */
static iv_dim formula_div(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands) {
    if (!iv_dim_at_least(operands[0], 0) || !iv_dim_at_least(operands[1], 1))
        return NULL;
    return iv_dim_floor_divide(scope, operands[0], operands[1]);
}

/* x - floor(x / y) y; the truncated remainder is the same where neither is negative. */
static iv_dim formula_mod(const iv_node *node, iv_scope *scope, int count, const iv_dim *operands) {
    bool truncated = ((const iv_binary_params *)node->params)->variant;
    if (!iv_dim_at_least(operands[1], 1) || (truncated && !iv_dim_at_least(operands[0], 0)))
        return NULL;
    iv_dim quotient = iv_dim_floor_divide(scope, operands[0], operands[1]);
    return iv_dim_subtract(scope, operands[0], iv_dim_multiply(scope, quotient, operands[1]));
}

/* clang-format off */
#define BINARY_OP(op_name, ...)                                                                    \
    {.name = op_name, .domain = "", .least_inputs = 2, .most_inputs = 2, .least_outputs = 1,       \
     .most_outputs = 1, .flags = IV_OP_ELEMENTWISE, .params_size = sizeof(iv_binary_params),       \
     .eval = eval_binary, __VA_ARGS__}
#define COMMON .prepare = iv_binary_prepare, .infer = infer_binary

const iv_op iv_ops_binary[] = {
    BINARY_OP("Add", COMMON, .formula = formula_add),
    BINARY_OP("Sub", COMMON, .formula = formula_sub),
    BINARY_OP("Mul", COMMON, .formula = formula_mul),
    BINARY_OP("Div", COMMON, .formula = formula_div),
    BINARY_OP("Mod", .prepare = prepare_mod, .infer = infer_mod, .formula = formula_mod),
    BINARY_OP("PRelu", .prepare = prepare_prelu, .infer = infer_binary),
    BINARY_OP("And", COMMON),
    BINARY_OP("Or", COMMON),
    BINARY_OP("Xor", COMMON),
    BINARY_OP("Equal", COMMON),
    BINARY_OP("Greater", COMMON),
    BINARY_OP("Less", COMMON),
    BINARY_OP("GreaterOrEqual", COMMON),
    BINARY_OP("LessOrEqual", COMMON),
    BINARY_OP("BitShift", .prepare = prepare_shift, .infer = infer_binary),
    BINARY_OP("BitwiseAnd", COMMON),
    BINARY_OP("BitwiseOr", COMMON),
    BINARY_OP("BitwiseXor", COMMON),
    {0},
};
/* clang-format on */

_Static_assert(sizeof traits / sizeof traits[0] + 1 ==
                   sizeof iv_ops_binary / sizeof iv_ops_binary[0],
               "every operator has its traits");
