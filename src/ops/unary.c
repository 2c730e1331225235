/* Element-wise operators of one input. Formulas: unary_formulas.h; loops: unary_isa.c. */
#include "ops/unary.h"

#include <string.h>

#include "ops/list.h"

/* The attributes behind a and b. Without an entry there are none. */
typedef struct unary_traits {
    sb_dtype result; /* SB_DTYPE_NONE: the input's dtype */
    const char *names[2];
    float defaults[2];
    bool integers; /* the attributes are integers */
} unary_traits;

static const unary_traits traits[SB_UNARY_ROWS] = {
    [SB_UNARY_ROW_LeakyRelu] = {.names = {"alpha"}, .defaults = {0.01f}},
    [SB_UNARY_ROW_ThresholdedRelu] = {.names = {"alpha"}, .defaults = {1.0f}},
    [SB_UNARY_ROW_Elu] = {.names = {"alpha"}, .defaults = {1.0f}},
    [SB_UNARY_ROW_Selu] = {.names = {"alpha", "gamma"},
                           .defaults = {1.67326319217681884765625f, 1.05070102214813232421875f}},
    [SB_UNARY_ROW_Celu] = {.names = {"alpha"}, .defaults = {1.0f}},
    [SB_UNARY_ROW_HardSigmoid] = {.names = {"alpha", "beta"}, .defaults = {0.2f, 0.5f}},
    [SB_UNARY_ROW_Swish] = {.names = {"alpha"}, .defaults = {1.0f}},
    [SB_UNARY_ROW_Shrink] = {.names = {"lambd", "bias"}, .defaults = {0.5f, 0.0f}},
    [SB_UNARY_ROW_IsNaN] = {.result = SB_BOOL},
    [SB_UNARY_ROW_IsInf] = {.result = SB_BOOL,
                            .names = {"detect_negative", "detect_positive"},
                            .defaults = {1.0f, 1.0f},
                            .integers = true},
};

static int row_of(const sb_node *node) {
    const sb_unary_params *params = node->params;
    return params->by_tanh ? SB_UNARY_ROW_GeluTanh : (int)(node->op - sb_ops_unary);
}

static sb_status read_parameter(const sb_node *node, const unary_traits *of, int index, float *value, sb_error *error) {
    *value = of->defaults[index];
    if (of->names[index] == NULL)
        return SB_OK;
    if (!of->integers)
        return sb_node_float(node, of->names[index], of->defaults[index], value, error);
    int64_t number;
    SB_TRY(sb_node_int(node, of->names[index], (int64_t)of->defaults[index], &number, error));
    *value = number != 0 ? 1.0f : 0.0f;
    return SB_OK;
}

static sb_status prepare_unary(sb_node *node, sb_error *error) {
    sb_unary_params *params = node->params;
    const unary_traits *of = &traits[row_of(node)];
    SB_TRY(read_parameter(node, of, 0, &params->a, error));
    return read_parameter(node, of, 1, &params->b, error);
}

static sb_status prepare_gelu(sb_node *node, sb_error *error) {
    const char *how;
    SB_TRY(sb_node_string(node, "approximate", "none", &how, error));
    if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (Gelu): approximate is \"%s\"; it may be none or tanh",
                       node->name, how);
    ((sb_unary_params *)node->params)->by_tanh = strcmp(how, "tanh") == 0;
    return SB_OK;
}

static sb_status infer_unary(sb_infer *infer) {
    int row = row_of(infer->node);
    const unary_traits *of = &traits[row];
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, sb_loop_dtypes(sb_unary_loops_scalar[row]), &input));
    sb_infer_shape_of(infer, 0, input, of->result != SB_DTYPE_NONE ? of->result : input->dtype);
    return SB_OK;
}

static sb_status eval_unary(sb_call *call) {
    const sb_tensor *operands[2] = {NULL, sb_call_input(call, 0)};
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    operands[0] = output;
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 2, operands);
    sb_walk_run(&walk, sb_unary_loops_scalar[row_of(call->node)][operands[1]->dtype], call->node->params);
    return SB_OK;
}

static sb_walk_row *loop_unary(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    *context = node->params;
    return SB_PICK_LOOPS(sb_unary_loops, isa)[row_of(node)][dtypes[0]];
}

/* ---- shape arithmetic ---- */

static sb_dim formula_abs(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    sb_dim negative = sb_dim_subtract(scope, sb_dim_constant(scope, 0), operands[0]);
    return sb_dim_maximum(scope, operands[0], negative);
}

static sb_dim formula_neg(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    return sb_dim_subtract(scope, sb_dim_constant(scope, 0), operands[0]);
}

static sb_dim formula_relu(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    return sb_dim_maximum(scope, operands[0], sb_dim_constant(scope, 0));
}

/* -1, 0 or 1: the value itself, held between those. */
static sb_dim formula_sign(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    sb_dim least = sb_dim_maximum(scope, operands[0], sb_dim_constant(scope, -1));
    return sb_dim_minimum(scope, least, sb_dim_constant(scope, 1));
}

/* clang-format off */
#define UNARY_OP(op, ...)                                                                          \
    [SB_UNARY_ROW_##op] = {                                                                        \
        .name = #op, .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,        \
        .most_outputs = 1, .flags = SB_OP_ELEMENTWISE, .params_size = sizeof(sb_unary_params),     \
        .infer = infer_unary, .eval = eval_unary, .loop = loop_unary, __VA_ARGS__},
#define PLAIN_OP(op) UNARY_OP(op, .prepare = prepare_unary)

const sb_op sb_ops_unary[] = {
    SB_UNARY_PLAIN_OPS(PLAIN_OP)
    UNARY_OP(Abs, .prepare = prepare_unary, .formula = formula_abs)
    UNARY_OP(Neg, .prepare = prepare_unary, .formula = formula_neg)
    UNARY_OP(Sign, .prepare = prepare_unary, .formula = formula_sign)
    UNARY_OP(Relu, .prepare = prepare_unary, .formula = formula_relu)
    UNARY_OP(Gelu, .prepare = prepare_gelu)
    [SB_UNARY_ROW_GeluTanh] = {0}, /* the row behind the last operator */
};
/* clang-format on */
