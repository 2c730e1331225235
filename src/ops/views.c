/* New shapes over the same elements: Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze.
 *
 * All give views. A reshaped view whose elements would have to move (a transposed input, say) is a
 * copy, for which the runtime has a place from the second run on. */
#include "base/allocation.h"
#include "ops/axes.h"
#include "ops/list.h"
#include "ops/moving.h"

/* A dimension before those that change, whose elements are adjacent in the input, such as the channels of most images, or -1:
 * always where the output has a place already, and on a device. */
static int adjacent_dimension(const sb_call *call, const sb_tensor *input) {
    const sb_fact *fact = &call->facts[0];
    if (call->target != NULL || call->outputs[0].kind != SB_KIND_NONE)
        return -1;
    for (int d = 0; d < input->rank && d < fact->rank; d++) {
        int64_t extent;
        if (!sb_dim_is_constant(fact->dims[d], &extent) || extent != input->dims[d])
            break;
        if (extent > 1 && input->strides[d] == 1)
            return d;
    }
    return -1;
}

/* Output 0, row-major but for dimension `inner`, if there is one, whose elements are adjacent; and strides for the input's extents
 * over the same memory. */
static sb_status create_around(sb_call *call, int inner, const sb_tensor *input, int64_t *strides, sb_tensor **output) {
    int order[SB_MAX_RANK], count = 0;
    int64_t stride = inner < 0 ? 1 : input->dims[inner];
    for (int d = input->rank - 1; d >= 0; d--) {
        strides[d] = d == inner ? 1 : stride;
        stride *= d == inner ? 1 : input->dims[d];
    }
    if (inner < 0)
        return sb_call_output(call, 0, output);
    for (int d = 0; d < call->facts[0].rank; d++) {
        if (d != inner)
            order[count++] = d;
    }
    order[count] = inner;
    return sb_call_output_ordered(call, 0, order, output);
}

/* A copy with the input's elements in their order. Channels that are innermost in memory stay there where the shape keeps them:
 * whole runs are copied, and what comes next finds them as convolutions want them. */
static sb_status copy_reshaped(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output, *unshaped;
    int64_t strides[SB_MAX_RANK];
    SB_TRY(create_around(call, adjacent_dimension(call, input), input, strides, &output));
    SB_TRY(sb_tensor_over(output->storage, output->data, input->dtype, input->rank, input->dims, strides, &unshaped,
                          call->error));
    sb_status status = sb_call_copy(call, unshaped, input);
    sb_tensor_release(unshaped);
    return status;
}

/* The same for text, whose elements own memory. */
static sb_status reshape_text(sb_call *call, int rank, const int64_t *dims) {
    sb_tensor *contiguous, *output = NULL;
    SB_TRY(sb_tensor_contiguous(sb_call_input(call, 0), &contiguous, call->error));
    sb_status status = sb_tensor_reshape(contiguous, rank, dims, &output, call->error);
    sb_tensor_release(contiguous);
    return status == SB_OK ? sb_call_set_output(call, 0, output) : status;
}

/* Output 0 is input 0 with the extents that its fact says: as a view where strides allow it, else
 * as a copy. */
static sb_status eval_reshaped(sb_call *call) {
    int64_t dims[SB_MAX_RANK];
    const sb_fact *fact = &call->facts[0];
    if (!sb_fact_is_concrete(fact, dims))
        return sb_call_fail(call, SB_ERROR_INTERNAL, "the new shape was not inferred");
    sb_tensor *input = sb_call_input(call, 0), *output = NULL;
    sb_error refused;
    sb_status status = sb_tensor_reshape(input, fact->rank, dims, &output, &refused);
    if (status == SB_ERROR_UNSUPPORTED)
        return input->dtype == SB_STRING ? reshape_text(call, fact->rank, dims) : copy_reshaped(call);
    if (status != SB_OK)
        return sb_call_fail(call, status, "%s", refused.message);
    return sb_call_set_output(call, 0, output);
}

/* ---- Reshape ---- */

typedef struct reshape_params {
    bool has_shape; /* the shape is an attribute (before opset 5) */
    bool zero_is_zero;
    int rank;
    int64_t shape[SB_MAX_RANK];
} reshape_params;

static sb_status prepare_reshape(sb_node *node, sb_error *error) {
    reshape_params *params = node->params;
    int64_t allow_zero, count;
    const int64_t *shape;
    SB_TRY(sb_node_int(node, "allowzero", 0, &allow_zero, error));
    SB_TRY(sb_node_ints(node, "shape", &count, &shape, error));
    params->zero_is_zero = allow_zero != 0;
    params->has_shape = node->input_count - node->capture_count < 2;
    if (!params->has_shape)
        return SB_OK;
    if (!sb_node_has(node, "shape") || count > SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: Reshape needs its shape, of at most %d extents, as input 1", node->name, SB_MAX_RANK);
    params->rank = (int)count;
    if (count != 0)
        memcpy(params->shape, shape, (size_t)count * sizeof *shape);
    return SB_OK;
}

/* A shape on its way: which entries are settled, and the entry that takes what is left. */
typedef struct new_shape {
    sb_dim dims[SB_MAX_RANK]; /* NULL where not settled */
    int rest;                 /* the entry that takes what is left of the elements; -1: none */
    bool surely_rest;         /* `rest` is a written -1 */
    int open;                 /* entries that may be a number or "what is left" */
} new_shape;

/* Settles the entries that are numbers, or formulas that cannot be negative. */
static sb_status settle_entries(sb_infer *infer, const sb_fact *input, int rank, const sb_dim *wanted,
                                new_shape *shape) {
    const reshape_params *params = infer->node->params;
    *shape = (new_shape){.rest = -1};
    for (int i = 0; i < rank; i++) {
        int64_t number = 1;
        bool known = sb_dim_is_constant(wanted[i], &number);
        shape->dims[i] = wanted[i];
        if (known && number == -1) {
            if (shape->rest >= 0)
                return sb_infer_fail(infer, SB_ERROR_SHAPE, "both extent %d and extent %d are -1", shape->rest, i);
            shape->rest = i;
            shape->surely_rest = true;
            shape->dims[i] = NULL;
        } else if (known && number < 0) {
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "extent %d is %lld", i, (long long)number);
        } else if (known && number == 0 && !params->zero_is_zero) {
            if (input->rank != SB_RANK_UNKNOWN && i >= input->rank)
                return sb_infer_fail(infer, SB_ERROR_SHAPE, "extent %d is copied from an input of rank %d", i,
                                     input->rank);
            shape->dims[i] = input->rank == SB_RANK_UNKNOWN ? NULL : input->dims[i];
        } else if (!known && !sb_dim_at_least(wanted[i], 0)) {
            shape->open++;
        }
    }
    return SB_OK;
}

/* The entry `rest` becomes the number of elements over the product of the others. */
static sb_status settle_rest(sb_infer *infer, const sb_fact *input, int rank, new_shape *shape) {
    sb_scope *scope = infer->scope;
    sb_dim others = sb_dim_constant(scope, 1);
    for (int i = 0; i < rank; i++) {
        if (i != shape->rest && shape->dims[i] == NULL)
            return SB_OK;
        if (i != shape->rest)
            others = sb_dim_multiply(scope, others, shape->dims[i]);
    }
    sb_dim total = sb_dim_product(scope, input->dims, 0, input->rank);
    SB_TRY(sb_scope_check(scope, infer->error));
    int64_t have, each;
    bool numbers = sb_dim_is_constant(total, &have);
    if (sb_dim_is_constant(others, &each) && each == 0 && !shape->surely_rest)
        return SB_OK;
    if (sb_dim_is_constant(others, &each) && (each == 0 || (numbers && have % each != 0)))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the extent -1 cannot be found: the others have the product %lld",
                             (long long)each);
    shape->dims[shape->rest] = sb_dim_floor_divide(scope, total, others);
    return SB_OK;
}

static sb_status infer_reshape(sb_infer *infer) {
    const reshape_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    sb_dim wanted[SB_MAX_RANK];
    int rank = params->rank;
    bool known = true;
    if (params->has_shape) {
        for (int i = 0; i < rank; i++)
            wanted[i] = sb_dim_constant(infer->scope, params->shape[i]);
    } else {
        SB_TRY(sb_infer_integers(infer, 1, SB_MAX_RANK, wanted, &rank, &known));
    }
    if (rank < 0) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (!known) {
        sb_infer_open(infer, 0, input->dtype, rank);
        return SB_OK;
    }
    new_shape shape;
    SB_TRY(settle_entries(infer, input, rank, wanted, &shape));
    /* With a -1 elsewhere, a formula must be an extent. Without one, a single formula that might be
     * -1 is what is left in either case; of several nothing is known. */
    if (shape.rest < 0 && shape.open > 0) {
        for (int i = 0; i < rank; i++) {
            if (shape.dims[i] == NULL || sb_dim_at_least(shape.dims[i], 0))
                continue;
            shape.dims[i] = NULL;
            shape.rest = shape.open == 1 ? i : -1;
        }
    }
    if (shape.rest >= 0 && input->rank != SB_RANK_UNKNOWN)
        SB_TRY(settle_rest(infer, input, rank, &shape));
    for (int i = 0; i < rank; i++) {
        if (shape.dims[i] == NULL)
            shape.dims[i] = sb_infer_fresh(infer, 0, i);
    }
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, rank, shape.dims);
    return SB_OK;
}

/* ---- Flatten ---- */

typedef struct axis_params {
    int64_t axis;
} axis_params;

static sb_status prepare_flatten(sb_node *node, sb_error *error) {
    return sb_node_int(node, "axis", 1, &((axis_params *)node->params)->axis, error);
}

static sb_status infer_flatten(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_infer_open(infer, 0, input->dtype, 2);
        return SB_OK;
    }
    int64_t axis = ((const axis_params *)infer->node->params)->axis;
    if (axis < -input->rank || axis > input->rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %lld is outside [-%d, %d]", (long long)axis, input->rank,
                             input->rank);
    int cut = (int)(axis < 0 ? axis + input->rank : axis);
    sb_dim dims[2] = {sb_dim_product(infer->scope, input->dims, 0, cut),
                      sb_dim_product(infer->scope, input->dims, cut, input->rank)};
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, 2, dims);
    return SB_OK;
}

/* ---- Squeeze and Unsqueeze ---- */

/* node->params is an sb_axis_list: axes are an attribute before operator set 13. */
static sb_status prepare_axes(sb_node *node, sb_error *error) {
    return sb_axis_list_read(node, node->params, error);
}

/* The axes from the attribute or from input 1. *given: whether there are any; *count: how many, -1
 * if unknown; *known: whether `axes` is filled. */
static sb_status find_axes(sb_infer *infer, bool *given, int *count, bool *known, int64_t *axes) {
    const sb_axis_list *params = infer->node->params;
    *given = params->given || sb_infer_input(infer, 1) != NULL;
    *known = true;
    *count = params->count;
    if (params->given)
        memcpy(axes, params->axes, sizeof params->axes);
    else if (*given)
        SB_TRY(sb_infer_numbers(infer, 1, SB_MAX_RANK, axes, count, known));
    return SB_OK;
}

static sb_status mark_axes(sb_infer *infer, int rank, int count, const int64_t *axes, bool *marked) {
    for (int i = 0; i < rank; i++)
        marked[i] = false;
    for (int i = 0; i < count; i++) {
        int axis;
        SB_TRY(sb_infer_axis(infer, axes[i], rank, &axis));
        if (marked[axis])
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %d is listed twice", axis);
        marked[axis] = true;
    }
    return SB_OK;
}

/* Without axes every extent of 1 goes; the rank is open when an extent may or may not be 1. */
static void mark_ones(const sb_fact *input, bool *marked, bool *known) {
    *known = true;
    for (int i = 0; i < input->rank; i++) {
        int64_t extent;
        bool number = sb_dim_is_constant(input->dims[i], &extent);
        marked[i] = number && extent == 1;
        *known = *known && (number || sb_dim_at_least(input->dims[i], 2));
    }
}

static sb_status infer_squeeze(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    int64_t axes[SB_MAX_RANK];
    bool given, known, marked[SB_MAX_RANK];
    int count;
    SB_TRY(find_axes(infer, &given, &count, &known, axes));
    if (input->rank == SB_RANK_UNKNOWN || count < 0 || (given && !known && count > input->rank)) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (given && !known) {
        sb_infer_open(infer, 0, input->dtype, input->rank - count);
        return SB_OK;
    }
    if (given)
        SB_TRY(mark_axes(infer, input->rank, count, axes, marked));
    else
        mark_ones(input, marked, &known);
    sb_dim dims[SB_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < input->rank; i++) {
        int64_t extent = 1;
        if (!marked[i])
            dims[rank++] = input->dims[i];
        else if (sb_dim_is_constant(input->dims[i], &extent) && extent != 1)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %d has the extent %lld, not 1", i, (long long)extent);
    }
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, known ? rank : SB_RANK_UNKNOWN, dims);
    return SB_OK;
}

static sb_status infer_unsqueeze(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    int64_t axes[SB_MAX_RANK];
    bool given, known, marked[SB_MAX_RANK];
    int count;
    SB_TRY(find_axes(infer, &given, &count, &known, axes));
    if (!given)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "the axes are missing");
    if (input->rank == SB_RANK_UNKNOWN || count < 0) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int rank = input->rank + count;
    if (rank > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most", rank, SB_MAX_RANK);
    if (!known) {
        sb_infer_open(infer, 0, input->dtype, rank);
        return SB_OK;
    }
    SB_TRY(mark_axes(infer, rank, count, axes, marked));
    sb_dim dims[SB_MAX_RANK];
    int from = 0;
    for (int i = 0; i < rank; i++)
        dims[i] = marked[i] ? sb_dim_constant(infer->scope, 1) : input->dims[from++];
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, rank, dims);
    return SB_OK;
}

/* ---- Transpose ---- */

typedef struct transpose_params {
    int rank; /* -1: all dimensions in reverse order */
    int permutation[SB_MAX_RANK];
} transpose_params;

static sb_status prepare_transpose(sb_node *node, sb_error *error) {
    transpose_params *params = node->params;
    int64_t count;
    const int64_t *permutation;
    SB_TRY(sb_node_ints(node, "perm", &count, &permutation, error));
    params->rank = sb_node_has(node, "perm") ? (int)count : -1;
    if (count > SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: a permutation of %lld dimensions", node->name,
                       (long long)count);
    unsigned seen = 0;
    for (int i = 0; i < params->rank; i++) {
        if (permutation[i] < 0 || permutation[i] >= count || (seen >> permutation[i] & 1) != 0)
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "node %s: entry %d of perm, %lld, is out of range or repeated", node->name, i,
                           (long long)permutation[i]);
        seen |= 1u << permutation[i];
        params->permutation[i] = (int)permutation[i];
    }
    return SB_OK;
}

static int transposed_from(const transpose_params *params, int rank, int dimension) {
    return params->rank < 0 ? rank - 1 - dimension : params->permutation[dimension];
}

static sb_status infer_transpose(sb_infer *infer) {
    const transpose_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        if (params->rank < 0)
            sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        else
            sb_infer_open(infer, 0, input->dtype, params->rank);
        return SB_OK;
    }
    if (params->rank >= 0 && params->rank != input->rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "perm has %d entries for an input of rank %d", params->rank,
                             input->rank);
    sb_dim dims[SB_MAX_RANK];
    for (int i = 0; i < input->rank; i++)
        dims[i] = input->dims[transposed_from(params, input->rank, i)];
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

static sb_status eval_transpose(sb_call *call) {
    const transpose_params *params = call->node->params;
    sb_tensor *input = sb_call_input(call, 0), *output;
    if (params->rank >= 0 && params->rank != input->rank)
        return sb_call_fail(call, SB_ERROR_SHAPE, "perm has %d entries for an input of rank %d", params->rank,
                            input->rank);
    int permutation[SB_MAX_RANK];
    for (int i = 0; i < input->rank; i++)
        permutation[i] = transposed_from(params, input->rank, i);
    SB_TRY(sb_tensor_transpose(input, permutation, &output, call->error));
    return sb_call_set_output(call, 0, output);
}

/* ---- Expand ---- */

static sb_status infer_expand(sb_infer *infer) {
    const sb_fact *input;
    sb_dim dims[SB_MAX_RANK];
    int rank;
    bool known;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    SB_TRY(sb_infer_integers(infer, 1, SB_MAX_RANK, dims, &rank, &known));
    if (rank < 0 || input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (!known) {
        sb_infer_open(infer, 0, input->dtype, rank > input->rank ? rank : input->rank);
        return SB_OK;
    }
    for (int i = 0; i < rank; i++) {
        int64_t extent;
        if (sb_dim_is_constant(dims[i], &extent) && extent < 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "extent %d is %lld", i, (long long)extent);
    }
    sb_fact shape = {0};
    sb_fact_set_tensor(&shape, input->dtype, rank, dims);
    return sb_infer_broadcast(infer, 0, input->dtype, 2, (const sb_fact *const[]){input, &shape});
}

static sb_status eval_expand(sb_call *call) {
    int64_t shape[SB_MAX_RANK], dims[SB_MAX_RANK];
    int count;
    sb_tensor *input = sb_call_input(call, 0), *output;
    SB_TRY(sb_move_integers(call, 1, SB_MAX_RANK, shape, &count));
    int rank = input->rank > count ? input->rank : count;
    for (int i = 0; i < rank; i++) {
        int64_t have = i < rank - input->rank ? 1 : input->dims[i - (rank - input->rank)];
        int64_t want = i < rank - count ? 1 : shape[i - (rank - count)];
        dims[i] = want == 1 ? have : want;
    }
    sb_error refused;
    sb_status status = sb_tensor_broadcast(input, rank, dims, &output, &refused);
    if (status != SB_OK)
        return sb_call_fail(call, status, "%s", refused.message);
    return sb_call_set_output(call, 0, output);
}

#define VIEW_OP(op_name, inputs, params, prepare_function, infer_function, eval_function)                              \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = 1, .most_inputs = inputs, .least_outputs = 1,                   \
        .most_outputs = 1, .flags = SB_OP_VIEW, .moved_inputs = 1, .params_size = params, .prepare = prepare_function, \
        .infer = infer_function, .eval = eval_function                                                                 \
    }

const sb_op sb_ops_views[] = {
    VIEW_OP("Expand", 2, 0, NULL, infer_expand, eval_expand),
    VIEW_OP("Flatten", 1, sizeof(axis_params), prepare_flatten, infer_flatten, eval_reshaped),
    VIEW_OP("Reshape", 2, sizeof(reshape_params), prepare_reshape, infer_reshape, eval_reshaped),
    VIEW_OP("Squeeze", 2, sizeof(sb_axis_list), prepare_axes, infer_squeeze, eval_reshaped),
    VIEW_OP("Transpose", 1, sizeof(transpose_params), prepare_transpose, infer_transpose, eval_transpose),
    VIEW_OP("Unsqueeze", 2, sizeof(sb_axis_list), prepare_axes, infer_unsqueeze, eval_reshaped),
    {0},
};
