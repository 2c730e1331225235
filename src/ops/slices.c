/* Parts along axes: Slice and Split. All outputs are views. */
#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"

/* ---- Slice ---- */

typedef struct slice_params {
    bool has_bounds; /* starts, ends and axes are attributes (before opset 10) */
    bool has_axes;
    int count, axis_count;
    int64_t starts[IV_MAX_RANK], ends[IV_MAX_RANK], axes[IV_MAX_RANK];
} slice_params;

static iv_status prepare_slice(iv_node *node, iv_error *error) {
    slice_params *params = node->params;
    int64_t starts, ends, axes;
    const int64_t *start, *end, *axis;
    IV_TRY(iv_node_ints(node, "starts", &starts, &start, error));
    IV_TRY(iv_node_ints(node, "ends", &ends, &end, error));
    IV_TRY(iv_node_ints(node, "axes", &axes, &axis, error));
    int inputs = node->input_count - node->capture_count;
    params->has_bounds = inputs == 1;
    if (inputs == 2)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: Slice has starts but no ends",
                       node->name);
    if (!params->has_bounds)
        return IV_OK;
    params->has_axes = iv_node_has(node, "axes");
    if (starts > IV_MAX_RANK || starts != ends || (params->has_axes && axes != starts))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: Slice has %lld starts, %lld ends and %lld axes", node->name,
                       (long long)starts, (long long)ends, (long long)axes);
    params->count = (int)starts;
    for (int64_t i = 0; i < starts; i++) {
        params->starts[i] = start[i];
        params->ends[i] = end[i];
        params->axes[i] = params->has_axes ? axis[i] : i;
    }
    return IV_OK;
}

/* A start or end is counted from the end of the axis when negative, then clamped: to [0, extent]
 * for steps forward, to
 * [-1, extent - 1] for steps back. INT32_MAX and above, and INT32_MIN and below, mean "to the end"
 * (the standard recommends them for that), whatever the extent. */
static int64_t clamp_number(int64_t bound, int64_t extent, bool back) {
    int64_t least = back ? -1 : 0, most = back ? extent - 1 : extent;
    if (bound >= INT32_MAX)
        return most;
    if (bound <= INT32_MIN)
        return least;
    bound = bound < 0 ? bound + extent : bound;
    return bound < least ? least : bound > most ? most : bound;
}

/* The same of formulas; NULL when the sign of the bound is not known. */
static iv_dim clamp_formula(iv_scope *scope, iv_dim bound, iv_dim extent, bool back) {
    iv_dim least = iv_dim_constant(scope, back ? -1 : 0);
    iv_dim most = back ? iv_dim_subtract(scope, extent, iv_dim_constant(scope, 1)) : extent;
    int64_t number;
    bool known = iv_dim_is_constant(bound, &number);
    if (known && number >= INT32_MAX)
        return most;
    if (known && number <= INT32_MIN)
        return least;
    if (iv_dim_at_least(bound, 0))
        return iv_dim_minimum(scope, bound, most);
    iv_dim opposite = iv_dim_subtract(scope, iv_dim_constant(scope, 0), bound);
    if (!iv_dim_at_least(opposite, 1))
        return NULL;
    return iv_dim_maximum(scope, iv_dim_add(scope, bound, extent), least);
}

static int64_t slice_count(int64_t start, int64_t end, int64_t step) {
    /* Both bounds lie in [-1, extent], so the difference cannot overflow; the step may be any
     * number. */
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    return start > end ? (int64_t)((uint64_t)(start - end - 1) / ((uint64_t)0 - (uint64_t)step)) + 1
                       : 0;
}

/* The extent along one axis; a fresh one when the bounds are not known well enough. */
static iv_dim sliced_extent(iv_infer *infer, int axis, iv_dim extent, iv_dim start, iv_dim end,
                            iv_dim step) {
    iv_scope *scope = infer->scope;
    int64_t stride, length, first, last;
    if (start == NULL || end == NULL || step == NULL || !iv_dim_is_constant(step, &stride))
        return iv_infer_fresh(infer, 0, axis);
    if (iv_dim_is_constant(extent, &length) && iv_dim_is_constant(start, &first) &&
        iv_dim_is_constant(end, &last))
        return iv_dim_constant(scope, slice_count(clamp_number(first, length, stride < 0),
                                                  clamp_number(last, length, stride < 0), stride));
    iv_dim from = clamp_formula(scope, start, extent, stride < 0);
    iv_dim to = clamp_formula(scope, end, extent, stride < 0);
    if (from == NULL || to == NULL || stride == INT64_MIN)
        return iv_infer_fresh(infer, 0, axis);
    iv_dim span = stride < 0 ? iv_dim_subtract(scope, from, to) : iv_dim_subtract(scope, to, from);
    iv_dim pace = iv_dim_constant(scope, stride < 0 ? -stride : stride);
    return iv_dim_maximum(scope, iv_dim_constant(scope, 0),
                          iv_dim_ceiling_divide(scope, span, pace));
}

/* The four lists of a Slice as formulas: entries are NULL where not known. */
typedef struct slice_lists {
    int count; /* -1: unknown */
    bool axes_known;
    iv_dim starts[IV_MAX_RANK], ends[IV_MAX_RANK], steps[IV_MAX_RANK];
    int64_t axes[IV_MAX_RANK];
} slice_lists;

static iv_status read_formulas(iv_infer *infer, int index, slice_lists *lists, iv_dim *formulas) {
    int count;
    bool known;
    iv_dim found[IV_MAX_RANK];
    IV_TRY(iv_infer_integers(infer, index, IV_MAX_RANK, found, &count, &known));
    if (count >= 0 && lists->count >= 0 && count != lists->count)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d has %d entries where %d are expected",
                             index, count, lists->count);
    if (lists->count < 0)
        lists->count = count;
    for (int i = 0; i < IV_MAX_RANK; i++)
        formulas[i] = known && i < count ? found[i] : NULL;
    return IV_OK;
}

static iv_status read_slice(iv_infer *infer, slice_lists *lists) {
    const slice_params *params = infer->node->params;
    *lists = (slice_lists){.count = params->has_bounds ? params->count : -1, .axes_known = true};
    for (int i = 0; i < IV_MAX_RANK; i++) {
        lists->steps[i] = iv_dim_constant(infer->scope, 1);
        lists->axes[i] = params->has_axes ? params->axes[i] : i;
    }
    if (params->has_bounds) {
        for (int i = 0; i < params->count; i++) {
            lists->starts[i] = iv_dim_constant(infer->scope, params->starts[i]);
            lists->ends[i] = iv_dim_constant(infer->scope, params->ends[i]);
        }
        return IV_OK;
    }
    IV_TRY(read_formulas(infer, 1, lists, lists->starts));
    IV_TRY(read_formulas(infer, 2, lists, lists->ends));
    if (iv_infer_input(infer, 4) != NULL)
        IV_TRY(read_formulas(infer, 4, lists, lists->steps));
    if (iv_infer_input(infer, 3) == NULL)
        return IV_OK;
    int count;
    IV_TRY(iv_infer_numbers(infer, 3, IV_MAX_RANK, lists->axes, &count, &lists->axes_known));
    if (count >= 0 && lists->count >= 0 && count != lists->count)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "%d axes for %d starts", count, lists->count);
    return IV_OK;
}

static iv_status infer_slice(iv_infer *infer) {
    const iv_fact *input;
    slice_lists lists;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    IV_TRY(read_slice(infer, &lists));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    if (!lists.axes_known || lists.count < 0) {
        iv_infer_open(infer, 0, input->dtype, input->rank);
        return IV_OK;
    }
    iv_dim dims[IV_MAX_RANK];
    memcpy(dims, input->dims, sizeof dims);
    unsigned seen = 0;
    for (int i = 0; i < lists.count; i++) {
        int axis;
        int64_t step = 1;
        IV_TRY(iv_infer_axis(infer, lists.axes[i], input->rank, &axis));
        if ((seen >> axis & 1) != 0)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "axis %d is listed twice", axis);
        if (lists.steps[i] != NULL && iv_dim_is_constant(lists.steps[i], &step) && step == 0)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "the step along axis %d is 0", axis);
        seen |= 1u << axis;
        dims[axis] =
            sliced_extent(infer, axis, dims[axis], lists.starts[i], lists.ends[i], lists.steps[i]);
    }
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return IV_OK;
}

static iv_status read_numbers(const iv_call *call, int index, int expected, int64_t *values) {
    int count;
    IV_TRY(iv_move_integers(call, index, IV_MAX_RANK, values, &count));
    if (count != expected)
        return iv_call_fail(call, IV_ERROR_SHAPE, "input %d has %d entries where %d are expected",
                            index, count, expected);
    return IV_OK;
}

/* Replaces `*view` by `count` of its elements along an axis. */
static iv_status narrow(iv_call *call, iv_tensor **view, int axis, int64_t start, int64_t count,
                        int64_t step) {
    iv_tensor *part;
    IV_TRY(iv_tensor_slice(*view, axis, start, count, step, &part, call->error));
    iv_tensor_release(*view);
    *view = part;
    return IV_OK;
}

static iv_status eval_slice(iv_call *call) {
    const slice_params *params = call->node->params;
    iv_tensor *input = iv_call_input(call, 0);
    int64_t starts[IV_MAX_RANK], ends[IV_MAX_RANK], axes[IV_MAX_RANK], steps[IV_MAX_RANK];
    int count = params->count;
    for (int i = 0; i < IV_MAX_RANK; i++) {
        starts[i] = params->starts[i];
        ends[i] = params->ends[i];
        axes[i] = params->has_bounds ? params->axes[i] : i;
        steps[i] = 1;
    }
    if (!params->has_bounds) {
        IV_TRY(iv_move_integers(call, 1, IV_MAX_RANK, starts, &count));
        IV_TRY(read_numbers(call, 2, count, ends));
        if (iv_call_input(call, 3) != NULL)
            IV_TRY(read_numbers(call, 3, count, axes));
        if (iv_call_input(call, 4) != NULL)
            IV_TRY(read_numbers(call, 4, count, steps));
    }
    iv_tensor *view = iv_tensor_retain(input);
    iv_status status = IV_OK;
    for (int i = 0; i < count && status == IV_OK; i++) {
        int axis = 0;
        status = iv_move_axis(call, axes[i], input->rank, &axis);
        if (status == IV_OK && steps[i] == 0)
            status = iv_call_fail(call, IV_ERROR_SHAPE, "the step along axis %d is 0", axis);
        if (status != IV_OK)
            break;
        int64_t start = clamp_number(starts[i], input->dims[axis], steps[i] < 0);
        int64_t end = clamp_number(ends[i], input->dims[axis], steps[i] < 0);
        int64_t length = slice_count(start, end, steps[i]);
        status = narrow(call, &view, axis, length > 0 ? start : 0, length, steps[i]);
    }
    if (status != IV_OK) {
        iv_tensor_release(view);
        return status;
    }
    return iv_call_set_output(call, 0, view);
}

/* ---- Split ---- */

typedef struct split_params {
    int64_t axis;
    bool has_sizes; /* sizes are an attribute (before opset 13) */
    bool rounds_up; /* num_outputs is given (opset 18): parts of ceil(extent / n), the last one
                       smaller */
    int64_t size_count;
    const int64_t *sizes; /* the attribute's */
} split_params;

static iv_status prepare_split(iv_node *node, iv_error *error) {
    split_params *params = node->params;
    int64_t parts;
    IV_TRY(iv_node_int(node, "axis", 0, &params->axis, error));
    IV_TRY(iv_node_int(node, "num_outputs", node->output_count, &parts, error));
    IV_TRY(iv_node_ints(node, "split", &params->size_count, &params->sizes, error));
    params->has_sizes = params->sizes != NULL && node->input_count - node->capture_count == 1;
    params->rounds_up = iv_node_has(node, "num_outputs");
    if (parts != node->output_count)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: num_outputs is %lld, but it has %d",
                       node->name, (long long)parts, node->output_count);
    if (params->has_sizes && params->size_count != node->output_count)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: %lld split sizes for %d outputs",
                       node->name, (long long)params->size_count, node->output_count);
    return IV_OK;
}

/* The extent of part `index` of `parts` when no sizes are given. */
static iv_status equal_part(iv_infer *infer, iv_dim extent, int axis, int index, int parts,
                            iv_dim *part) {
    const split_params *params = infer->node->params;
    iv_scope *scope = infer->scope;
    iv_dim count = iv_dim_constant(scope, parts);
    int64_t length;
    bool known = iv_dim_is_constant(extent, &length);
    if (!params->rounds_up) {
        if (known && length % parts != 0)
            return iv_infer_fail(infer, IV_ERROR_SHAPE,
                                 "extent %lld of axis %d does not split into %d equal parts",
                                 (long long)length, axis, parts);
        *part = iv_dim_floor_divide(scope, extent, count);
        return IV_OK;
    }
    *part = iv_dim_ceiling_divide(scope, extent, count);
    if (index == parts - 1)
        *part = iv_dim_subtract(scope, extent,
                                iv_dim_multiply(scope, *part, iv_dim_constant(scope, parts - 1)));
    if (iv_dim_is_constant(*part, &length) && length < 0)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "axis %d is too short for %d parts", axis,
                             parts);
    return IV_OK;
}

/* The sizes from the attribute or the input as formulas; *known false when they are not known. */
static iv_status read_sizes(iv_infer *infer, iv_dim *sizes, bool *known) {
    const split_params *params = infer->node->params;
    int parts = infer->output_count, count = parts;
    *known = true;
    if (params->has_sizes) {
        for (int i = 0; i < parts; i++)
            sizes[i] = iv_dim_constant(infer->scope, params->sizes[i]);
    } else {
        IV_TRY(iv_infer_integers(infer, 1, parts, sizes, &count, known));
    }
    if (count >= 0 && count != parts)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "%d split sizes for %d outputs", count, parts);
    return IV_OK;
}

/* Numbers must not be negative, and together they are the extent. */
static iv_status check_sizes(iv_infer *infer, const iv_dim *sizes, iv_dim extent, int axis) {
    int64_t sum = 0, size, length;
    for (int i = 0; i < infer->output_count; i++) {
        if (!iv_dim_is_constant(sizes[i], &size))
            return IV_OK;
        if (size < 0 || __builtin_add_overflow(sum, size, &sum))
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "split size %d is %lld", i,
                                 (long long)size);
    }
    if (iv_dim_is_constant(extent, &length) && length != sum)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "the split sizes add up to %lld, axis %d has extent %lld",
                             (long long)sum, axis, (long long)length);
    return IV_OK;
}

static iv_status infer_parts(iv_infer *infer, const iv_fact *input, iv_dim *sizes) {
    const split_params *params = infer->node->params;
    bool given = params->has_sizes || iv_infer_input(infer, 1) != NULL, known = true;
    int axis = 0;
    if (given)
        IV_TRY(read_sizes(infer, sizes, &known));
    if (input->rank != IV_RANK_UNKNOWN) {
        IV_TRY(iv_infer_axis(infer, params->axis, input->rank, &axis));
        if (given && known)
            IV_TRY(check_sizes(infer, sizes, input->dims[axis], axis));
    }
    for (int i = 0; i < infer->output_count; i++) {
        if (input->rank == IV_RANK_UNKNOWN) {
            iv_fact_set_tensor(&infer->outputs[i], input->dtype, IV_RANK_UNKNOWN, NULL);
            continue;
        }
        iv_dim dims[IV_MAX_RANK];
        memcpy(dims, input->dims, sizeof dims);
        if (!given)
            IV_TRY(equal_part(infer, dims[axis], axis, i, infer->output_count, &dims[axis]));
        else
            dims[axis] = known ? sizes[i] : iv_infer_fresh(infer, i, axis);
        iv_fact_set_tensor(&infer->outputs[i], input->dtype, input->rank, dims);
    }
    return IV_OK;
}

static iv_status infer_split(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    iv_dim *sizes = iv_allocate_array((size_t)infer->output_count, sizeof *sizes);
    if (sizes == NULL)
        return iv_fail_memory(infer->error, (size_t)infer->output_count * sizeof *sizes);
    iv_status status = infer_parts(infer, input, sizes);
    iv_free(sizes);
    return status;
}

/* The extents of the parts: the node's, the input's, or equal ones. Unwanted outputs have no facts
 * to ask. */
static iv_status part_sizes(iv_call *call, int64_t extent, int64_t *sizes) {
    const split_params *params = call->node->params;
    int parts = call->output_count, count = parts;
    if (!params->has_sizes && iv_call_input(call, 1) != NULL) {
        IV_TRY(iv_move_integers(call, 1, parts, sizes, &count));
    } else {
        int64_t each = params->rounds_up ? (extent + parts - 1) / parts : extent / parts;
        for (int i = 0; i < parts; i++)
            sizes[i] = params->has_sizes ? params->sizes[i] : each;
        if (params->rounds_up)
            sizes[parts - 1] = extent - each * (parts - 1);
    }
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        if (sizes[i] < 0 || __builtin_add_overflow(sum, sizes[i], &sum))
            return iv_call_fail(call, IV_ERROR_SHAPE, "split size %d is %lld", i,
                                (long long)sizes[i]);
    }
    if (count != parts || sum != extent)
        return iv_call_fail(call, IV_ERROR_SHAPE,
                            "%d split sizes add up to %lld where %d outputs share the extent %lld",
                            count, (long long)sum, parts, (long long)extent);
    return IV_OK;
}

static iv_status eval_split(iv_call *call) {
    const split_params *params = call->node->params;
    iv_tensor *input = iv_call_input(call, 0);
    int axis;
    IV_TRY(iv_move_axis(call, params->axis, input->rank, &axis));
    int64_t few[8], start = 0; /* room for what networks have, so that their runs allocate nothing */
    size_t count = (size_t)call->output_count;
    int64_t *sizes = count <= sizeof few / sizeof few[0] ? few : iv_allocate_array(count, sizeof *sizes);
    if (sizes == NULL)
        return iv_fail_memory(call->error, count * sizeof *sizes);
    iv_status status = part_sizes(call, input->dims[axis], sizes);
    for (int i = 0; i < call->output_count && status == IV_OK; i++) {
        iv_tensor *part;
        status = iv_tensor_slice(input, axis, start, sizes[i], 1, &part, call->error);
        if (status == IV_OK)
            status = iv_call_set_output(call, i, part);
        start += sizes[i];
    }
    if (sizes != few)
        iv_free(sizes);
    return status;
}

const iv_op iv_ops_slices[] = {
    {.name = "Slice",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 5,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = IV_OP_VIEW,
     .moved_inputs = 1,
     .params_size = sizeof(slice_params),
     .prepare = prepare_slice,
     .infer = infer_slice,
     .eval = eval_slice},
    {.name = "Split",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = -1,
     .flags = IV_OP_VIEW,
     .moved_inputs = 1,
     .params_size = sizeof(split_params),
     .prepare = prepare_split,
     .infer = infer_split,
     .eval = eval_split},
    {0},
};
