/* Parts along axes: Slice and Split. All outputs are views. */
#include "ops/slices.h"
#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"

/* ---- Slice ---- */

typedef struct slice_params {
    bool has_bounds; /* starts, ends and axes are attributes (before opset 10) */
    bool has_axes;
    int count, axis_count;
    int64_t starts[SB_MAX_RANK], ends[SB_MAX_RANK], axes[SB_MAX_RANK];
} slice_params;

static sb_status prepare_slice(sb_node *node, sb_error *error) {
    slice_params *params = node->params;
    int64_t starts, ends, axes;
    const int64_t *start, *end, *axis;
    SB_TRY(sb_node_ints(node, "starts", &starts, &start, error));
    SB_TRY(sb_node_ints(node, "ends", &ends, &end, error));
    SB_TRY(sb_node_ints(node, "axes", &axes, &axis, error));
    int inputs = node->input_count - node->capture_count;
    params->has_bounds = inputs == 1;
    if (inputs == 2)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: Slice has starts but no ends", node->name);
    if (!params->has_bounds)
        return SB_OK;
    params->has_axes = sb_node_has(node, "axes");
    if (starts > SB_MAX_RANK || starts != ends || (params->has_axes && axes != starts))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: Slice has %lld starts, %lld ends and %lld axes",
                       node->name, (long long)starts, (long long)ends, (long long)axes);
    params->count = (int)starts;
    for (int64_t i = 0; i < starts; i++) {
        params->starts[i] = start[i];
        params->ends[i] = end[i];
        params->axes[i] = params->has_axes ? axis[i] : i;
    }
    return SB_OK;
}

/* sb_slice_clamp of formulas; NULL when the sign of the bound is not known. */
static sb_dim clamp_formula(sb_scope *scope, sb_dim bound, sb_dim extent, bool back) {
    sb_dim least = sb_dim_constant(scope, back ? -1 : 0);
    sb_dim most = back ? sb_dim_subtract(scope, extent, sb_dim_constant(scope, 1)) : extent;
    int64_t number;
    bool known = sb_dim_is_constant(bound, &number);
    if (known && number >= INT32_MAX)
        return most;
    if (known && number <= INT32_MIN)
        return least;
    if (sb_dim_at_least(bound, 0))
        return sb_dim_minimum(scope, bound, most);
    sb_dim opposite = sb_dim_subtract(scope, sb_dim_constant(scope, 0), bound);
    if (!sb_dim_at_least(opposite, 1))
        return NULL;
    return sb_dim_maximum(scope, sb_dim_add(scope, bound, extent), least);
}

static int64_t slice_count(int64_t start, int64_t end, int64_t step) {
    /* Both bounds lie in [-1, extent], so the difference cannot overflow; the step may be any number. */
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    return start > end ? (int64_t)((uint64_t)(start - end - 1) / ((uint64_t)0 - (uint64_t)step)) + 1 : 0;
}

/* The extent along one axis; a fresh one when the bounds are not known well enough. */
static sb_dim sliced_extent(sb_infer *infer, int axis, sb_dim extent, sb_dim start, sb_dim end, sb_dim step) {
    sb_scope *scope = infer->scope;
    int64_t stride, length, first, last;
    if (start == NULL || end == NULL || step == NULL || !sb_dim_is_constant(step, &stride))
        return sb_infer_fresh(infer, 0, axis);
    if (sb_dim_is_constant(extent, &length) && sb_dim_is_constant(start, &first) && sb_dim_is_constant(end, &last))
        return sb_dim_constant(scope, slice_count(sb_slice_clamp(first, length, stride < 0),
                                                  sb_slice_clamp(last, length, stride < 0), stride));
    sb_dim from = clamp_formula(scope, start, extent, stride < 0);
    sb_dim to = clamp_formula(scope, end, extent, stride < 0);
    if (from == NULL || to == NULL || stride == INT64_MIN)
        return sb_infer_fresh(infer, 0, axis);
    sb_dim span = stride < 0 ? sb_dim_subtract(scope, from, to) : sb_dim_subtract(scope, to, from);
    sb_dim pace = sb_dim_constant(scope, stride < 0 ? -stride : stride);
    return sb_dim_maximum(scope, sb_dim_constant(scope, 0), sb_dim_ceiling_divide(scope, span, pace));
}

/* The four lists of a Slice as formulas: entries are NULL where not known. */
typedef struct slice_lists {
    int count; /* -1: unknown */
    bool axes_known;
    sb_dim starts[SB_MAX_RANK], ends[SB_MAX_RANK], steps[SB_MAX_RANK];
    int64_t axes[SB_MAX_RANK];
} slice_lists;

static sb_status read_formulas(sb_infer *infer, int index, slice_lists *lists, sb_dim *formulas) {
    int count;
    bool known;
    sb_dim found[SB_MAX_RANK];
    SB_TRY(sb_infer_integers(infer, index, SB_MAX_RANK, found, &count, &known));
    if (count >= 0 && lists->count >= 0 && count != lists->count)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has %d entries where %d are expected", index, count,
                             lists->count);
    if (lists->count < 0)
        lists->count = count;
    for (int i = 0; i < SB_MAX_RANK; i++)
        formulas[i] = known && i < count ? found[i] : NULL;
    return SB_OK;
}

static sb_status read_slice(sb_infer *infer, slice_lists *lists) {
    const slice_params *params = infer->node->params;
    *lists = (slice_lists){.count = params->has_bounds ? params->count : -1, .axes_known = true};
    for (int i = 0; i < SB_MAX_RANK; i++) {
        lists->steps[i] = sb_dim_constant(infer->scope, 1);
        lists->axes[i] = params->has_axes ? params->axes[i] : i;
    }
    if (params->has_bounds) {
        for (int i = 0; i < params->count; i++) {
            lists->starts[i] = sb_dim_constant(infer->scope, params->starts[i]);
            lists->ends[i] = sb_dim_constant(infer->scope, params->ends[i]);
        }
        return SB_OK;
    }
    SB_TRY(read_formulas(infer, 1, lists, lists->starts));
    SB_TRY(read_formulas(infer, 2, lists, lists->ends));
    if (sb_infer_input(infer, 4) != NULL)
        SB_TRY(read_formulas(infer, 4, lists, lists->steps));
    if (sb_infer_input(infer, 3) == NULL)
        return SB_OK;
    int count;
    SB_TRY(sb_infer_numbers(infer, 3, SB_MAX_RANK, lists->axes, &count, &lists->axes_known));
    if (count >= 0 && lists->count >= 0 && count != lists->count)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%d axes for %d starts", count, lists->count);
    return SB_OK;
}

static sb_status infer_slice(sb_infer *infer) {
    const sb_fact *input;
    slice_lists lists;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    SB_TRY(read_slice(infer, &lists));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (!lists.axes_known || lists.count < 0) {
        sb_infer_open(infer, 0, input->dtype, input->rank);
        return SB_OK;
    }
    sb_dim dims[SB_MAX_RANK];
    memcpy(dims, input->dims, sizeof dims);
    unsigned seen = 0;
    for (int i = 0; i < lists.count; i++) {
        int axis;
        int64_t step = 1;
        SB_TRY(sb_infer_axis(infer, lists.axes[i], input->rank, &axis));
        if ((seen >> axis & 1) != 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %d is listed twice", axis);
        if (lists.steps[i] != NULL && sb_dim_is_constant(lists.steps[i], &step) && step == 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "the step along axis %d is 0", axis);
        seen |= 1u << axis;
        dims[axis] = sliced_extent(infer, axis, dims[axis], lists.starts[i], lists.ends[i], lists.steps[i]);
    }
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

static sb_status read_numbers(const sb_call *call, int index, int expected, int64_t *values) {
    int count;
    SB_TRY(sb_move_integers(call, index, SB_MAX_RANK, values, &count));
    if (count != expected)
        return sb_call_fail(call, SB_ERROR_SHAPE, "input %d has %d entries where %d are expected", index, count,
                            expected);
    return SB_OK;
}

/* Replaces `*view` by `count` of its elements along an axis. */
static sb_status narrow(sb_call *call, sb_tensor **view, int axis, int64_t start, int64_t count, int64_t step) {
    sb_tensor *part;
    SB_TRY(sb_tensor_slice(*view, axis, start, count, step, &part, call->error));
    sb_tensor_release(*view);
    *view = part;
    return SB_OK;
}

sb_status sb_slice_read(const sb_call *call, sb_slice_bounds *bounds) {
    const slice_params *params = call->node->params;
    int64_t axes[SB_MAX_RANK];
    *bounds = (sb_slice_bounds){.count = params->count};
    for (int i = 0; i < SB_MAX_RANK; i++) {
        bounds->starts[i] = params->starts[i];
        bounds->ends[i] = params->ends[i];
        bounds->steps[i] = 1;
        axes[i] = params->has_bounds ? params->axes[i] : i;
    }
    if (!params->has_bounds) {
        SB_TRY(sb_move_integers(call, 1, SB_MAX_RANK, bounds->starts, &bounds->count));
        SB_TRY(read_numbers(call, 2, bounds->count, bounds->ends));
        if (sb_call_input(call, 3) != NULL)
            SB_TRY(read_numbers(call, 3, bounds->count, axes));
        if (sb_call_input(call, 4) != NULL)
            SB_TRY(read_numbers(call, 4, bounds->count, bounds->steps));
    }
    for (int i = 0; i < bounds->count; i++) {
        SB_TRY(sb_move_axis(call, axes[i], sb_call_input(call, 0)->rank, &bounds->axes[i]));
        if (bounds->steps[i] == 0)
            return sb_call_fail(call, SB_ERROR_SHAPE, "the step along axis %d is 0", bounds->axes[i]);
    }
    return SB_OK;
}

static sb_status eval_slice(sb_call *call) {
    sb_tensor *input = sb_call_input(call, 0);
    sb_slice_bounds bounds;
    SB_TRY(sb_slice_read(call, &bounds));
    sb_tensor *view = sb_tensor_retain(input);
    sb_status status = SB_OK;
    for (int i = 0; i < bounds.count && status == SB_OK; i++) {
        int64_t step = bounds.steps[i], extent = input->dims[bounds.axes[i]];
        int64_t start = sb_slice_clamp(bounds.starts[i], extent, step < 0);
        int64_t length = slice_count(start, sb_slice_clamp(bounds.ends[i], extent, step < 0), step);
        status = narrow(call, &view, bounds.axes[i], length > 0 ? start : 0, length, step);
    }
    if (status != SB_OK) {
        sb_tensor_release(view);
        return status;
    }
    return sb_call_set_output(call, 0, view);
}

/* ---- Split ---- */

typedef struct split_params {
    int64_t axis;
    bool has_sizes; /* sizes are an attribute (before opset 13) */
    bool rounds_up; /* num_outputs is given (opset 18): parts of ceil(extent / n), the last one smaller */
    int64_t size_count;
    const int64_t *sizes; /* the attribute's */
} split_params;

static sb_status prepare_split(sb_node *node, sb_error *error) {
    split_params *params = node->params;
    int64_t parts;
    SB_TRY(sb_node_int(node, "axis", 0, &params->axis, error));
    SB_TRY(sb_node_int(node, "num_outputs", node->output_count, &parts, error));
    SB_TRY(sb_node_ints(node, "split", &params->size_count, &params->sizes, error));
    params->has_sizes = params->sizes != NULL && node->input_count - node->capture_count == 1;
    params->rounds_up = sb_node_has(node, "num_outputs");
    if (parts != node->output_count)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: num_outputs is %lld, but it has %d", node->name,
                       (long long)parts, node->output_count);
    if (params->has_sizes && params->size_count != node->output_count)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %lld split sizes for %d outputs", node->name,
                       (long long)params->size_count, node->output_count);
    return SB_OK;
}

/* The extent of part `index` of `parts` when no sizes are given. */
static sb_status equal_part(sb_infer *infer, sb_dim extent, int axis, int index, int parts, sb_dim *part) {
    const split_params *params = infer->node->params;
    sb_scope *scope = infer->scope;
    sb_dim count = sb_dim_constant(scope, parts);
    int64_t length;
    bool known = sb_dim_is_constant(extent, &length);
    if (!params->rounds_up) {
        if (known && length % parts != 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "extent %lld of axis %d does not split into %d equal parts",
                                 (long long)length, axis, parts);
        *part = sb_dim_floor_divide(scope, extent, count);
        return SB_OK;
    }
    *part = sb_dim_ceiling_divide(scope, extent, count);
    if (index == parts - 1)
        *part = sb_dim_subtract(scope, extent, sb_dim_multiply(scope, *part, sb_dim_constant(scope, parts - 1)));
    if (sb_dim_is_constant(*part, &length) && length < 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %d is too short for %d parts", axis, parts);
    return SB_OK;
}

/* The sizes from the attribute or the input as formulas; *known false when they are not known. */
static sb_status read_sizes(sb_infer *infer, sb_dim *sizes, bool *known) {
    const split_params *params = infer->node->params;
    int parts = infer->output_count, count = parts;
    *known = true;
    if (params->has_sizes) {
        for (int i = 0; i < parts; i++)
            sizes[i] = sb_dim_constant(infer->scope, params->sizes[i]);
    } else {
        SB_TRY(sb_infer_integers(infer, 1, parts, sizes, &count, known));
    }
    if (count >= 0 && count != parts)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%d split sizes for %d outputs", count, parts);
    return SB_OK;
}

/* Numbers must not be negative, and together they are the extent. */
static sb_status check_sizes(sb_infer *infer, const sb_dim *sizes, sb_dim extent, int axis) {
    int64_t sum = 0, size, length;
    for (int i = 0; i < infer->output_count; i++) {
        if (!sb_dim_is_constant(sizes[i], &size))
            return SB_OK;
        if (size < 0 || __builtin_add_overflow(sum, size, &sum))
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "split size %d is %lld", i, (long long)size);
    }
    if (sb_dim_is_constant(extent, &length) && length != sum)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the split sizes add up to %lld, axis %d has extent %lld",
                             (long long)sum, axis, (long long)length);
    return SB_OK;
}

static sb_status infer_parts(sb_infer *infer, const sb_fact *input, sb_dim *sizes) {
    const split_params *params = infer->node->params;
    bool given = params->has_sizes || sb_infer_input(infer, 1) != NULL, known = true;
    int axis = 0;
    if (given)
        SB_TRY(read_sizes(infer, sizes, &known));
    if (input->rank != SB_RANK_UNKNOWN) {
        SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
        if (given && known)
            SB_TRY(check_sizes(infer, sizes, input->dims[axis], axis));
    }
    for (int i = 0; i < infer->output_count; i++) {
        if (input->rank == SB_RANK_UNKNOWN) {
            sb_fact_set_tensor(&infer->outputs[i], input->dtype, SB_RANK_UNKNOWN, NULL);
            continue;
        }
        sb_dim dims[SB_MAX_RANK];
        memcpy(dims, input->dims, sizeof dims);
        if (!given)
            SB_TRY(equal_part(infer, dims[axis], axis, i, infer->output_count, &dims[axis]));
        else
            dims[axis] = known ? sizes[i] : sb_infer_fresh(infer, i, axis);
        sb_fact_set_tensor(&infer->outputs[i], input->dtype, input->rank, dims);
    }
    return SB_OK;
}

static sb_status infer_split(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    sb_dim *sizes = sb_allocate_array((size_t)infer->output_count, sizeof *sizes);
    if (sizes == NULL)
        return sb_fail_memory(infer->error, (size_t)infer->output_count * sizeof *sizes);
    sb_status status = infer_parts(infer, input, sizes);
    sb_free(sizes);
    return status;
}

/* The extents of the parts: the node's, the input's, or equal ones. Unwanted outputs have no facts to ask. */
static sb_status part_sizes(sb_call *call, int64_t extent, int64_t *sizes) {
    const split_params *params = call->node->params;
    int parts = call->output_count, count = parts;
    if (!params->has_sizes && sb_call_input(call, 1) != NULL) {
        SB_TRY(sb_move_integers(call, 1, parts, sizes, &count));
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
            return sb_call_fail(call, SB_ERROR_SHAPE, "split size %d is %lld", i, (long long)sizes[i]);
    }
    if (count != parts || sum != extent)
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "%d split sizes add up to %lld where %d outputs share the extent %lld", count,
                            (long long)sum, parts, (long long)extent);
    return SB_OK;
}

static sb_status eval_split(sb_call *call) {
    const split_params *params = call->node->params;
    sb_tensor *input = sb_call_input(call, 0);
    int axis;
    SB_TRY(sb_move_axis(call, params->axis, input->rank, &axis));
    int64_t on_stack[8], start = 0; /* room for what networks have, so that their runs allocate nothing */
    size_t count = (size_t)call->output_count;
    int64_t *sizes = count <= sizeof on_stack / sizeof on_stack[0] ? on_stack : sb_allocate_array(count, sizeof *sizes);
    if (sizes == NULL)
        return sb_fail_memory(call->error, count * sizeof *sizes);
    sb_status status = part_sizes(call, input->dims[axis], sizes);
    for (int i = 0; i < call->output_count && status == SB_OK; i++) {
        sb_tensor *part;
        status = sb_tensor_slice(input, axis, start, sizes[i], 1, &part, call->error);
        if (status == SB_OK)
            status = sb_call_set_output(call, i, part);
        start += sizes[i];
    }
    if (sizes != on_stack)
        sb_free(sizes);
    return status;
}

const sb_op sb_ops_slices[] = {
    {.name = "Slice",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 5,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_VIEW,
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
     .flags = SB_OP_VIEW,
     .moved_inputs = 1,
     .params_size = sizeof(split_params),
     .prepare = prepare_split,
     .infer = infer_split,
     .eval = eval_split},
    {0},
};
