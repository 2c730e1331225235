/* Elements set side by side: Concat and Tile. */
#include "ops/joins.h"
#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"

/* Copies `source` to the part of `target` that starts at `start` along `axis`. */
static sb_status copy_part(sb_call *call, const sb_tensor *target, int axis, int64_t start, const sb_tensor *source) {
    sb_tensor part;
    memcpy(&part, target,
           sizeof part); /* borrowed, so that several threads may copy parts without memory of their own */
    part.dims[axis] = source->dims[axis];
    part.data += start * target->strides[axis] * (int64_t)sb_dtype_size(target->dtype);
    return sb_call_copy(call, &part, source);
}

/* ---- Concat ---- */

typedef struct concat_params {
    int64_t axis;
} concat_params;

static sb_status prepare_concat(sb_node *node, sb_error *error) {
    /* Opset 1 had 1 as the default; later the attribute is required. */
    return sb_node_int(node, "axis", 1, &((concat_params *)node->params)->axis, error);
}

/* Joins what is known of an extent that two inputs must share. */
static sb_status join_extent(sb_infer *infer, int input, int dimension, sb_dim *extent, sb_dim other) {
    int64_t left, right;
    bool known = sb_dim_is_constant(*extent, &left), also = sb_dim_is_constant(other, &right);
    if (known && also && left != right)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "input %d has extent %lld in dimension %d where the others have %lld", input,
                             (long long)right, dimension, (long long)left);
    if (also)
        *extent = other;
    return SB_OK;
}

static sb_status infer_concat(sb_infer *infer) {
    int count = infer->input_count, axis = 0, rank = SB_RANK_UNKNOWN;
    const sb_fact *first = NULL;
    sb_dim dims[SB_MAX_RANK], total = sb_dim_constant(infer->scope, 0);
    sb_dtype dtype = SB_DTYPE_NONE;
    for (int i = 0; i < count; i++) {
        const sb_fact *input;
        SB_TRY(sb_infer_require(infer, i, SB_SET_ANY, &input));
        if (i > 0 && input->dtype != dtype)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is %s, input 0 is %s", i, sb_dtype_name(input->dtype),
                                 sb_dtype_name(dtype));
        dtype = input->dtype;
        if (input->rank == SB_RANK_UNKNOWN) {
            total = NULL;
            continue;
        }
        if (first == NULL) {
            first = input;
            rank = input->rank;
            SB_TRY(sb_infer_axis(infer, ((const concat_params *)infer->node->params)->axis, rank, &axis));
            memcpy(dims, input->dims, sizeof dims);
        } else if (input->rank != rank) {
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d, the others have %d", i, input->rank,
                                 rank);
        }
        for (int d = 0; d < rank; d++) {
            if (d != axis)
                SB_TRY(join_extent(infer, i, d, &dims[d], input->dims[d]));
        }
        if (total != NULL)
            total = sb_dim_add(infer->scope, total, input->dims[axis]);
    }
    if (rank != SB_RANK_UNKNOWN)
        dims[axis] = total != NULL ? total : sb_infer_fresh(infer, 0, axis);
    sb_fact_set_tensor(&infer->outputs[0], dtype, rank, dims);
    return SB_OK;
}

sb_status sb_concat_axis(const sb_call *call, int *axis) {
    return sb_move_axis(call, ((const concat_params *)call->node->params)->axis, sb_call_input(call, 0)->rank, axis);
}

sb_status sb_concat_output(sb_call *call, int axis, const int *order, sb_tensor **output) {
    const sb_tensor *first = sb_call_input(call, 0);
    int64_t dims[SB_MAX_RANK];
    memcpy(dims, first->dims, sizeof dims);
    for (int i = 1; i < call->input_count; i++) {
        const sb_tensor *input = sb_call_input(call, i);
        bool fits = input->rank == first->rank;
        for (int d = 0; fits && d < first->rank; d++)
            fits = d == axis || input->dims[d] == first->dims[d];
        char left[SB_DIMS_TEXT_BYTES], right[SB_DIMS_TEXT_BYTES];
        if (!fits || __builtin_add_overflow(dims[axis], input->dims[axis], &dims[axis]))
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d %s does not fit input 0 %s along axis %d", i,
                                sb_dims_text(input->rank, input->dims, left),
                                sb_dims_text(first->rank, first->dims, right), axis);
    }
    int64_t known[SB_MAX_RANK];
    if (order != NULL && call->outputs[0].kind != SB_KIND_TENSOR && sb_fact_is_concrete(&call->facts[0], known))
        return sb_call_output_ordered(call, 0, order, output);
    return sb_move_output(call, 0, first->dtype, first->rank, dims, output);
}

bool sb_concat_is_there(const sb_tensor *output, int axis, int64_t start, const sb_tensor *input) {
    bool there = input->data == output->data + start * output->strides[axis] * (int64_t)sb_dtype_size(output->dtype);
    for (int d = 0; d < input->rank; d++)
        there = there && (input->strides[d] == output->strides[d] || input->dims[d] == 1);
    return there;
}

sb_status sb_concat_copy(sb_call *call, sb_tensor *output, int axis, int64_t start, const sb_tensor *input) {
    return sb_concat_is_there(output, axis, start, input) ? SB_OK : copy_part(call, output, axis, start, input);
}

static sb_status eval_concat(sb_call *call) {
    int axis;
    int64_t start = 0;
    sb_tensor *output = NULL;
    SB_TRY(sb_concat_axis(call, &axis));
    SB_TRY(sb_concat_output(call, axis, NULL, &output));
    sb_status status = SB_OK;
    for (int i = 0; i < call->input_count && status == SB_OK; i++) {
        const sb_tensor *input = sb_call_input(call, i);
        status = sb_concat_copy(call, output, axis, start, input);
        start += input->dims[axis];
    }
    return sb_move_finish(call, 0, output, status);
}

/* ---- Tile ---- */

/* How often each axis is repeated, as formulas: input 1, or before opset 6 the scalars tiles and axis. */
static sb_status read_repeats(sb_infer *infer, const sb_fact *input, sb_dim *repeats, bool *known) {
    int count, axis;
    if (infer->node->version >= 6 || sb_infer_input(infer, 2) == NULL) {
        SB_TRY(sb_infer_integers(infer, 1, SB_MAX_RANK, repeats, &count, known));
        if (count >= 0 && count != input->rank)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "%d repeats for an input of rank %d", count, input->rank);
        return SB_OK;
    }
    sb_dim tiles;
    int64_t where;
    bool axis_known;
    SB_TRY(sb_infer_integers(infer, 1, 1, &tiles, &count, known));
    SB_TRY(sb_infer_numbers(infer, 2, 1, &where, &count, &axis_known));
    *known = *known && axis_known;
    for (int i = 0; i < input->rank; i++)
        repeats[i] = sb_dim_constant(infer->scope, 1);
    if (!*known)
        return SB_OK;
    SB_TRY(sb_infer_axis(infer, where, input->rank, &axis));
    repeats[axis] = tiles;
    return SB_OK;
}

static sb_status infer_tile(sb_infer *infer) {
    const sb_fact *input;
    sb_dim dims[SB_MAX_RANK];
    bool known;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    SB_TRY(read_repeats(infer, input, dims, &known));
    if (!known) {
        sb_infer_open(infer, 0, input->dtype, input->rank);
        return SB_OK;
    }
    for (int i = 0; i < input->rank; i++) {
        int64_t repeats;
        if (sb_dim_is_constant(dims[i], &repeats) && repeats < 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %d is repeated %lld times", i, (long long)repeats);
        dims[i] = sb_dim_multiply(infer->scope, dims[i], input->dims[i]);
    }
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

static sb_status tile_repeats(sb_call *call, int rank, int64_t *repeats) {
    int count, axis;
    if (call->node->version >= 6 || sb_call_input(call, 2) == NULL) {
        SB_TRY(sb_move_integers(call, 1, SB_MAX_RANK, repeats, &count));
        if (count != rank)
            return sb_call_fail(call, SB_ERROR_SHAPE, "%d repeats for an input of rank %d", count, rank);
        return SB_OK;
    }
    int64_t tiles[1] = {0}, where[1] = {0};
    SB_TRY(sb_move_integers(call, 1, 1, tiles, &count));
    SB_TRY(sb_move_integers(call, 2, 1, where, &count));
    SB_TRY(sb_move_axis(call, where[0], rank, &axis));
    for (int i = 0; i < rank; i++)
        repeats[i] = i == axis ? tiles[0] : 1;
    return SB_OK;
}

/* The input is copied to the first corner, and then what is there is repeated along one axis after the other. */
static sb_status repeat_corner(sb_call *call, sb_tensor *output, const sb_tensor *input) {
    sb_tensor *corner = sb_tensor_retain(output), *part;
    sb_status status = SB_OK;
    for (int axis = 0; axis < input->rank && status == SB_OK; axis++) {
        status = sb_tensor_slice(corner, axis, 0, input->dims[axis], 1, &part, call->error);
        if (status == SB_OK) {
            sb_tensor_release(corner);
            corner = part;
        }
    }
    if (status == SB_OK)
        status = sb_call_copy(call, corner, input);
    sb_tensor_release(corner);
    for (int axis = input->rank - 1; axis >= 0 && status == SB_OK; axis--) {
        /* Along the axes before this one only the corner is filled yet. */
        sb_tensor *filled = sb_tensor_retain(output), *source = NULL;
        for (int d = 0; d < axis && status == SB_OK; d++) {
            status = sb_tensor_slice(filled, d, 0, input->dims[d], 1, &part, call->error);
            if (status == SB_OK) {
                sb_tensor_release(filled);
                filled = part;
            }
        }
        if (status == SB_OK)
            status = sb_tensor_slice(filled, axis, 0, input->dims[axis], 1, &source, call->error);
        for (int64_t at = input->dims[axis]; status == SB_OK && at < output->dims[axis]; at += input->dims[axis])
            status = copy_part(call, filled, axis, at, source);
        sb_tensor_release(source);
        sb_tensor_release(filled);
    }
    return status;
}

sb_status sb_tile_extents(sb_call *call, int64_t *dims) {
    const sb_tensor *input = sb_call_input(call, 0);
    SB_TRY(tile_repeats(call, input->rank, dims));
    for (int i = 0; i < input->rank; i++) {
        if (dims[i] < 0 || __builtin_mul_overflow(dims[i], input->dims[i], &dims[i]))
            return sb_call_fail(call, SB_ERROR_SHAPE, "axis %d cannot be repeated that often", i);
    }
    return SB_OK;
}

static sb_status eval_tile(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t dims[SB_MAX_RANK];
    SB_TRY(sb_tile_extents(call, dims));
    sb_tensor *output = NULL;
    SB_TRY(sb_move_output(call, 0, input->dtype, input->rank, dims, &output));
    sb_status status = SB_OK;
    if (sb_tensor_elements(output) != 0)
        status = repeat_corner(call, output, input);
    return sb_move_finish(call, 0, output, status);
}

const sb_op sb_ops_joins[] = {
    {.name = "Concat",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = 1,
     .moved_inputs = SB_ALL_INPUTS,
     .params_size = sizeof(concat_params),
     .prepare = prepare_concat,
     .infer = infer_concat,
     .eval = eval_concat},
    {.name = "Tile",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .moved_inputs = 1,
     .infer = infer_tile,
     .eval = eval_tile},
    {0},
};
