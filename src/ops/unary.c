/* Element-wise operators of one input. Formulas: unary_formulas.h; loops: unary_isa.c. */
#include "ops/unary.h"

#include <string.h>

#include "ops/list.h"

/* The attributes behind a and b. Without an entry there are none. */
typedef struct unary_traits {
    iv_dtype result; /* IV_DTYPE_NONE: the input's dtype */
    const char *names[2];
    float defaults[2];
    bool integers; /* the attributes are integers */
} unary_traits;

static const unary_traits traits[IV_UNARY_ROWS] = {
    [IV_UNARY_ROW_LeakyRelu] = {.names = {"alpha"}, .defaults = {0.01f}},
    [IV_UNARY_ROW_ThresholdedRelu] = {.names = {"alpha"}, .defaults = {1.0f}},
    [IV_UNARY_ROW_Elu] = {.names = {"alpha"}, .defaults = {1.0f}},
    [IV_UNARY_ROW_Selu] = {.names = {"alpha", "gamma"},
                           .defaults = {1.67326319217681884765625f, 1.05070102214813232421875f}},
    [IV_UNARY_ROW_Celu] = {.names = {"alpha"}, .defaults = {1.0f}},
    [IV_UNARY_ROW_HardSigmoid] = {.names = {"alpha", "beta"}, .defaults = {0.2f, 0.5f}},
    [IV_UNARY_ROW_Swish] = {.names = {"alpha"}, .defaults = {1.0f}},
    [IV_UNARY_ROW_Shrink] = {.names = {"lambd", "bias"}, .defaults = {0.5f, 0.0f}},
    [IV_UNARY_ROW_IsNaN] = {.result = IV_BOOL},
    [IV_UNARY_ROW_IsInf] = {.result = IV_BOOL,
                            .names = {"detect_negative", "detect_positive"},
                            .defaults = {1.0f, 1.0f},
                            .integers = true},
};

static int row_of(const iv_node *node) {
    const iv_unary_params *params = node->params;
    return params->by_tanh ? IV_UNARY_ROW_GeluTanh : (int)(node->op - iv_ops_unary);
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
    const unary_traits *of = &traits[row_of(node)];
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
    int row = row_of(infer->node);
    const unary_traits *of = &traits[row];
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, iv_loop_dtypes(iv_unary_loops_scalar[row]), &input));
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
    iv_walk_run(&walk, iv_unary_loops_scalar[row_of(call->node)][operands[1]->dtype],
                call->node->params);
    return IV_OK;
}

static iv_walk_row *loop_unary(const iv_node *node, const iv_dtype *dtypes, iv_isa isa,
                               void **context) {
    *context = node->params;
    return IV_PICK_LOOPS(iv_unary_loops, isa)[row_of(node)][dtypes[0]];
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
#define UNARY_OP(op, ...)                                                                          \
    [IV_UNARY_ROW_##op] = {                                                                        \
        .name = #op, .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,        \
        .most_outputs = 1, .flags = IV_OP_ELEMENTWISE, .params_size = sizeof(iv_unary_params),     \
        .infer = infer_unary, .eval = eval_unary, .loop = loop_unary, __VA_ARGS__},
#define PLAIN_OP(op) UNARY_OP(op, .prepare = prepare_unary)

const iv_op iv_ops_unary[] = {
    IV_UNARY_PLAIN_OPS(PLAIN_OP)
    UNARY_OP(Abs, .prepare = prepare_unary, .formula = formula_abs)
    UNARY_OP(Neg, .prepare = prepare_unary, .formula = formula_neg)
    UNARY_OP(Sign, .prepare = prepare_unary, .formula = formula_sign)
    UNARY_OP(Relu, .prepare = prepare_unary, .formula = formula_relu)
    PLAIN_OP(LeakyRelu)
    PLAIN_OP(ThresholdedRelu)
    PLAIN_OP(Elu)
    PLAIN_OP(Selu)
    PLAIN_OP(Celu)
    PLAIN_OP(HardSigmoid)
    PLAIN_OP(Swish)
    PLAIN_OP(Shrink)
    UNARY_OP(Gelu, .prepare = prepare_gelu)
    PLAIN_OP(IsNaN)
    PLAIN_OP(IsInf)
    PLAIN_OP(Not)
    PLAIN_OP(BitwiseNot)
    {0},
};
/* clang-format on */
