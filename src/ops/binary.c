/* Element-wise operators of two inputs, broadcast against each other by numpy's rule (before
 * operator set 7: by `axis`). Formulas and loops: binary_isa.c. */
#include "ops/binary.h"

#include <string.h>

#include "ops/list.h"

/* ---- the loops ---- */

static inline uint8_t same_text(iv_string left, iv_string right) {
    return left.bytes == right.bytes &&
           (left.bytes == 0 || memcmp(left.data, right.data, left.bytes) == 0);
}
IV_BINARY_LOOP(equal_text, iv_binary_context, uint8_t, iv_string, iv_string, same_text)

static int row_of(const iv_node *node) {
    int row = (int)(node->op - iv_ops_binary);
    if (!((const iv_binary_params *)node->params)->variant)
        return row;
    return row == IV_BINARY_ROW_Mod ? IV_BINARY_ROW_Fmod : IV_BINARY_ROW_ShiftRight;
}

static bool is_question(int row) {
    return row >= IV_BINARY_ROW_Equal && row <= IV_BINARY_ROW_LessOrEqual;
}

static uint32_t dtypes_of(int row) {
    return iv_loop_dtypes(iv_binary_loops_scalar[row]) |
           (row == IV_BINARY_ROW_Equal ? IV_SET(IV_STRING) : 0);
}

static iv_walk_row *loop_of(int row, iv_dtype dtype, iv_isa isa) {
    return dtype == IV_STRING ? equal_text : IV_PICK_LOOPS(iv_binary_loops, isa)[row][dtype];
}

/* ---- attributes and facts ---- */

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
    int row = row_of(infer->node);
    uint32_t dtypes = dtypes_of(row);
    const iv_fact *left, *right;
    IV_TRY(iv_infer_require(infer, 0, dtypes, &left));
    IV_TRY(iv_infer_require(infer, 1, dtypes, &right));
    if (left->dtype != right->dtype)
        return iv_infer_fail(
            infer, IV_ERROR_INVALID_MODEL,
            "inputs have dtypes %s and %s, which must be equal: put a Cast before one",
            iv_dtype_name(left->dtype), iv_dtype_name(right->dtype));
    return iv_binary_infer_shape(infer, is_question(row) ? IV_BOOL : left->dtype);
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
    iv_binary_context context = {false};
    iv_walk_start(&walk, output->rank, output->dims, 3, operands);
    iv_walk_run(&walk, loop_of(row_of(call->node), right.dtype, IV_ISA_SCALAR), &context);
    if (context.divided_by_zero)
        return iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT, "integer division by zero");
    return IV_OK;
}

/* Integer division reports a divisor of 0, and old models align shapes their own way: both are left
 * to evaluation. */
static iv_walk_row *loop_binary(const iv_node *node, const iv_dtype *dtypes, iv_isa isa,
                                void **context) {
    int row = row_of(node);
    bool divides =
        row == IV_BINARY_ROW_Div || row == IV_BINARY_ROW_Mod || row == IV_BINARY_ROW_Fmod;
    *context = NULL;
    if ((divides && iv_dtype_is_integer(dtypes[0])) || dtypes[0] == IV_STRING ||
        ((const iv_binary_params *)node->params)->axis >= 0)
        return NULL;
    return loop_of(row, dtypes[0], isa);
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
#define BINARY_OP(op, ...)                                                                         \
    [IV_BINARY_ROW_##op] = {                                                                       \
        .name = #op, .domain = "", .least_inputs = 2, .most_inputs = 2, .least_outputs = 1,        \
        .most_outputs = 1, .flags = IV_OP_ELEMENTWISE, .params_size = sizeof(iv_binary_params),    \
        .eval = eval_binary, .loop = loop_binary, __VA_ARGS__},
#define PLAIN .prepare = iv_binary_prepare, .infer = infer_binary

const iv_op iv_ops_binary[] = {
    BINARY_OP(Add, PLAIN, .formula = formula_add)
    BINARY_OP(Sub, PLAIN, .formula = formula_sub)
    BINARY_OP(Mul, PLAIN, .formula = formula_mul)
    BINARY_OP(Div, PLAIN, .formula = formula_div)
    BINARY_OP(Mod, .prepare = prepare_mod, .infer = infer_mod, .formula = formula_mod)
    BINARY_OP(PRelu, .prepare = prepare_prelu, .infer = infer_binary)
    BINARY_OP(And, PLAIN)
    BINARY_OP(Or, PLAIN)
    BINARY_OP(Xor, PLAIN)
    BINARY_OP(Equal, PLAIN)
    BINARY_OP(Greater, PLAIN)
    BINARY_OP(Less, PLAIN)
    BINARY_OP(GreaterOrEqual, PLAIN)
    BINARY_OP(LessOrEqual, PLAIN)
    BINARY_OP(BitShift, .prepare = prepare_shift, .infer = infer_binary)
    BINARY_OP(BitwiseAnd, PLAIN)
    BINARY_OP(BitwiseOr, PLAIN)
    BINARY_OP(BitwiseXor, PLAIN)
    {0},
};
/* clang-format on */
