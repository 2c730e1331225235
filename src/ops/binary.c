/* Element-wise operators of two inputs, broadcast against each other by numpy's rule (before
 * operator set 7: by `axis`). Formulas and loops: binary_isa.c. */
#include "ops/binary.h"

#include <string.h>

#include "ops/list.h"

/* ---- the loops ---- */

static inline uint8_t same_text(sb_string left, sb_string right) {
    return left.bytes == right.bytes && (left.bytes == 0 || memcmp(left.data, right.data, left.bytes) == 0);
}
SB_BINARY_LOOP(equal_text, sb_binary_context, uint8_t, sb_string, sb_string, same_text)

static int row_of(const sb_node *node) {
    int row = (int)(node->op - sb_ops_binary);
    if (!((const sb_binary_params *)node->params)->variant)
        return row;
    return row == SB_BINARY_ROW_Mod ? SB_BINARY_ROW_Fmod : SB_BINARY_ROW_ShiftRight;
}

#define COMPARISON(op, unused) case SB_BINARY_ROW_##op:
static bool is_comparison(int row) {
    switch (row) {
        SB_BINARY_COMPARISONS(COMPARISON, )
        return true;
    default:
        return false;
    }
}

static uint32_t dtypes_of(int row) {
    return sb_loop_dtypes(sb_binary_loops_scalar[row]) | (row == SB_BINARY_ROW_Equal ? SB_SET(SB_STRING) : 0);
}

static sb_walk_row *loop_of(int row, sb_dtype dtype, sb_isa isa) {
    return dtype == SB_STRING ? equal_text : SB_PICK_LOOPS(sb_binary_loops, isa)[row][dtype];
}

/* ---- attributes and facts ---- */

sb_status sb_binary_prepare(sb_node *node, sb_error *error) {
    sb_binary_params *params = node->params;
    params->axis = -1;
    if (node->version >= 7)
        return SB_OK;
    int64_t broadcast;
    SB_TRY(sb_node_int(node, "broadcast", 0, &broadcast, error));
    SB_TRY(sb_node_int(node, "axis", -1, &params->axis, error));
    if (broadcast == 0)
        params->axis = -1;
    return SB_OK;
}

static sb_status prepare_mod(sb_node *node, sb_error *error) {
    sb_binary_params *params = node->params;
    int64_t truncated;
    params->axis = -1;
    SB_TRY(sb_node_int(node, "fmod", 0, &truncated, error));
    params->variant = truncated != 0;
    return SB_OK;
}

static sb_status prepare_shift(sb_node *node, sb_error *error) {
    sb_binary_params *params = node->params;
    const char *direction;
    params->axis = -1;
    SB_TRY(sb_node_string(node, "direction", "", &direction, error));
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (BitShift): direction is \"%s\"; it must be LEFT or RIGHT", node->name, direction);
    params->variant = strcmp(direction, "RIGHT") == 0;
    return SB_OK;
}

/* Before operator set 7 a slope of more than one element is one per channel. */
static sb_status prepare_prelu(sb_node *node, sb_error *error) {
    ((sb_binary_params *)node->params)->axis = node->version < 7 ? 1 : -1;
    return SB_OK;
}

/* How many extents of 1 go behind a second input of rank `right` to put it at `axis` of a first one
 * of rank `left`. */
static int trailing_ones(int64_t axis, int left, int right) {
    return axis >= 0 && right > 0 && axis + right < left ? (int)(left - axis - right) : 0;
}

sb_status sb_binary_infer_shape(sb_infer *infer, sb_dtype dtype) {
    const sb_binary_params *params = infer->node->params;
    sb_fact right = *sb_infer_input(infer, 1);
    const sb_fact *facts[2] = {sb_infer_input(infer, 0), &right};
    int64_t only = 0;
    bool single = right.rank == 1 && sb_dim_is_constant(right.dims[0], &only) && only == 1;
    if (facts[0]->rank != SB_RANK_UNKNOWN && right.rank != SB_RANK_UNKNOWN && !single) {
        int ones = trailing_ones(params->axis, facts[0]->rank, right.rank);
        for (int i = 0; i < ones; i++)
            right.dims[right.rank++] = sb_dim_constant(infer->scope, 1);
    }
    return sb_infer_broadcast(infer, 0, dtype, 2, facts);
}

void sb_binary_align(const sb_call *call, sb_tensor *aligned) {
    const sb_binary_params *params = call->node->params;
    const sb_tensor *left = sb_call_input(call, 0), *right = sb_call_input(call, 1);
    memcpy(aligned, right, sizeof *aligned);
    if (right->rank == 1 && right->dims[0] == 1)
        return;
    int ones = trailing_ones(params->axis, left->rank, right->rank);
    for (int i = 0; i < ones; i++) {
        aligned->dims[aligned->rank] = 1;
        aligned->strides[aligned->rank++] = 0;
    }
}

static sb_status infer_binary(sb_infer *infer) {
    int row = row_of(infer->node);
    uint32_t dtypes = dtypes_of(row);
    const sb_fact *left, *right;
    SB_TRY(sb_infer_require(infer, 0, dtypes, &left));
    SB_TRY(sb_infer_require(infer, 1, dtypes, &right));
    if (left->dtype != right->dtype)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL,
                             "inputs have dtypes %s and %s, which must be equal: put a Cast before one",
                             sb_dtype_name(left->dtype), sb_dtype_name(right->dtype));
    return sb_binary_infer_shape(infer, is_comparison(row) ? SB_BOOL : left->dtype);
}

/* Only since operator set 28 is the floored remainder of floats defined. */
static sb_status infer_mod(sb_infer *infer) {
    const sb_binary_params *params = infer->node->params;
    const sb_fact *left;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_NUMBER, &left));
    if (!params->variant && sb_dtype_is_float(left->dtype) && infer->node->version < 28)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "fmod must be 1 for %s before operator set 28",
                             sb_dtype_name(left->dtype));
    return infer_binary(infer);
}

static sb_status eval_binary(sb_call *call) {
    sb_tensor *output, right;
    sb_binary_align(call, &right);
    SB_TRY(sb_call_output(call, 0, &output));
    const sb_tensor *operands[3] = {output, sb_call_input(call, 0), &right};
    sb_walk walk;
    sb_binary_context context = {false};
    sb_walk_start(&walk, output->rank, output->dims, 3, operands);
    sb_walk_run(&walk, loop_of(row_of(call->node), right.dtype, SB_ISA_SCALAR), &context);
    if (context.divided_by_zero)
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "integer division by zero");
    return SB_OK;
}

/* Integer division reports a divisor of 0, and old models align shapes their own way: both are left to evaluation. */
static sb_walk_row *loop_binary(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    int row = row_of(node);
    bool divides = row == SB_BINARY_ROW_Div || row == SB_BINARY_ROW_Mod || row == SB_BINARY_ROW_Fmod;
    *context = NULL;
    if ((divides && sb_dtype_is_integer(dtypes[0])) || dtypes[0] == SB_STRING ||
        ((const sb_binary_params *)node->params)->axis >= 0)
        return NULL;
    return loop_of(row, dtypes[0], isa);
}

/* ---- shape arithmetic ---- */

static sb_dim formula_add(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    return sb_dim_add(scope, operands[0], operands[1]);
}

static sb_dim formula_sub(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    return sb_dim_subtract(scope, operands[0], operands[1]);
}

static sb_dim formula_mul(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    return sb_dim_multiply(scope, operands[0], operands[1]);
}

/* Truncation is the floor only where neither operand is negative. */
static sb_dim formula_div(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    if (!sb_dim_at_least(operands[0], 0) || !sb_dim_at_least(operands[1], 1))
        return NULL;
    return sb_dim_floor_divide(scope, operands[0], operands[1]);
}

/* x - floor(x / y) y; the truncated remainder is the same where neither is negative. */
static sb_dim formula_mod(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    bool truncated = ((const sb_binary_params *)node->params)->variant;
    if (!sb_dim_at_least(operands[1], 1) || (truncated && !sb_dim_at_least(operands[0], 0)))
        return NULL;
    sb_dim quotient = sb_dim_floor_divide(scope, operands[0], operands[1]);
    return sb_dim_subtract(scope, operands[0], sb_dim_multiply(scope, quotient, operands[1]));
}

/* ---- questions about shapes ---- */

static sb_answer yes_or_no(bool yes, bool no) {
    return yes ? SB_ANSWER_YES : no ? SB_ANSWER_NO : SB_ANSWER_OPEN;
}

static sb_answer is_equal(sb_scope *scope, const sb_dim *operands) {
    sb_dim more = sb_dim_subtract(scope, operands[0], operands[1]);
    sb_dim less = sb_dim_subtract(scope, operands[1], operands[0]);
    if (more == NULL || less == NULL)
        return SB_ANSWER_OPEN;
    return yes_or_no(sb_dim_equal(operands[0], operands[1]), sb_dim_at_least(more, 1) || sb_dim_at_least(less, 1));
}

/* Whether left - right >= least. */
static sb_answer exceeds(sb_scope *scope, sb_dim left, sb_dim right, int64_t least) {
    sb_dim more = sb_dim_subtract(scope, left, right), less = sb_dim_subtract(scope, right, left);
    if (more == NULL || less == NULL)
        return SB_ANSWER_OPEN;
    return yes_or_no(sb_dim_at_least(more, least), sb_dim_at_least(less, 1 - least));
}

static sb_answer is_greater(sb_scope *scope, const sb_dim *operands) {
    return exceeds(scope, operands[0], operands[1], 1);
}

static sb_answer is_less(sb_scope *scope, const sb_dim *operands) {
    return exceeds(scope, operands[1], operands[0], 1);
}

static sb_answer is_not_less(sb_scope *scope, const sb_dim *operands) {
    return exceeds(scope, operands[0], operands[1], 0);
}

static sb_answer is_not_greater(sb_scope *scope, const sb_dim *operands) {
    return exceeds(scope, operands[1], operands[0], 0);
}

/* clang-format off */
#define BINARY_OP(op, ...)                                                                         \
    [SB_BINARY_ROW_##op] = {                                                                       \
        .name = #op, .domain = "", .least_inputs = 2, .most_inputs = 2, .least_outputs = 1,        \
        .most_outputs = 1, .flags = SB_OP_ELEMENTWISE, .params_size = sizeof(sb_binary_params),    \
        .eval = eval_binary, .loop = loop_binary, __VA_ARGS__},
#define PLAIN .prepare = sb_binary_prepare, .infer = infer_binary
#define PLAIN_OP(op) BINARY_OP(op, PLAIN)

const sb_op sb_ops_binary[] = {
    BINARY_OP(Add, PLAIN, .formula = formula_add)
    BINARY_OP(Sub, PLAIN, .formula = formula_sub)
    BINARY_OP(Mul, PLAIN, .formula = formula_mul)
    BINARY_OP(Div, PLAIN, .formula = formula_div)
    BINARY_OP(Mod, .prepare = prepare_mod, .infer = infer_mod, .formula = formula_mod)
    BINARY_OP(PRelu, .prepare = prepare_prelu, .infer = infer_binary)
    BINARY_OP(Equal, PLAIN, .answer = is_equal)
    BINARY_OP(Greater, PLAIN, .answer = is_greater)
    BINARY_OP(Less, PLAIN, .answer = is_less)
    BINARY_OP(GreaterOrEqual, PLAIN, .answer = is_not_less)
    BINARY_OP(LessOrEqual, PLAIN, .answer = is_not_greater)
    BINARY_OP(BitShift, .prepare = prepare_shift, .infer = infer_binary)
    SB_BINARY_PLAIN_OPS(PLAIN_OP)
    [SB_BINARY_ROW_Fmod] = {0}, /* the row behind the last operator */
};
/* clang-format on */
