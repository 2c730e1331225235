/* Elements set side by side: Concat and Tile. */
#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"

/* Copies `source` to the part of `target` that starts at `start` along `axis`. */
static iv_status copy_part(iv_call *call, iv_tensor *target, int axis, int64_t start,
                           const iv_tensor *source) {
    iv_tensor *part;
    IV_TRY(iv_tensor_slice(target, axis, start, source->dims[axis], 1, &part, call->error));
    iv_status status = iv_call_copy(call, part, source);
    iv_tensor_release(part);
    return status;
}

/* ---- Concat ---- */

typedef struct concat_params {
    int64_t axis;
} concat_params;

static iv_status prepare_concat(iv_node *node, iv_error *error) {
    /* Opset 1 had 1 as the default; later the attribute is required. */
    return iv_node_int(node, "axis", 1, &((concat_params *)node->params)->axis, error);
}

/* Joins what is known of an extent that two inputs must share. */
static iv_status join_extent(iv_infer *infer, int input, int dimension, iv_dim *extent,
                             iv_dim other) {
    int64_t left, right;
    bool known = iv_dim_is_constant(*extent, &left), also = iv_dim_is_constant(other, &right);
    if (known && also && left != right)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "input %d has extent %lld in dimension %d where the others have %lld",
                             input, (long long)right, dimension, (long long)left);
    if (also)
        *extent = other;
    return IV_OK;
}

static iv_status infer_concat(iv_infer *infer) {
    int count = infer->input_count, axis = 0, rank = IV_RANK_UNKNOWN;
    const iv_fact *first = NULL;
    iv_dim dims[IV_MAX_RANK], total = iv_dim_constant(infer->scope, 0);
    iv_dtype dtype = IV_DTYPE_NONE;
    for (int i = 0; i < count; i++) {
        const iv_fact *input;
        IV_TRY(iv_infer_require(infer, i, IV_SET_ANY, &input));
        if (i > 0 && input->dtype != dtype)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d is %s, input 0 is %s", i,
                                 iv_dtype_name(input->dtype), iv_dtype_name(dtype));
        dtype = input->dtype;
        if (input->rank == IV_RANK_UNKNOWN) {
            total = NULL;
            continue;
        }
        if (first == NULL) {
            first = input;
            rank = input->rank;
            IV_TRY(iv_infer_axis(infer, ((const concat_params *)infer->node->params)->axis, rank,
                                 &axis));
            memcpy(dims, input->dims, sizeof dims);
        } else if (input->rank != rank) {
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d has rank %d, the others have %d",
                                 i, input->rank, rank);
        }
        for (int d = 0; d < rank; d++) {
            if (d != axis)
                IV_TRY(join_extent(infer, i, d, &dims[d], input->dims[d]));
        }
        if (total != NULL)
            total = iv_dim_add(infer->scope, total, input->dims[axis]);
    }
    if (rank != IV_RANK_UNKNOWN)
        dims[axis] = total != NULL ? total : iv_infer_fresh(infer, 0, axis);
    iv_fact_set_tensor(&infer->outputs[0], dtype, rank, dims);
    return IV_OK;
}

static iv_status eval_concat(iv_call *call) {
    int axis;
    const iv_tensor *first = iv_call_input(call, 0);
    int64_t dims[IV_MAX_RANK], start = 0;
    IV_TRY(
        iv_move_axis(call, ((const concat_params *)call->node->params)->axis, first->rank, &axis));
    memcpy(dims, first->dims, sizeof dims);
    for (int i = 1; i < call->input_count; i++) {
        const iv_tensor *input = iv_call_input(call, i);
        bool fits = input->rank == first->rank;
        for (int d = 0; fits && d < first->rank; d++)
            fits = d == axis || input->dims[d] == first->dims[d];
        char left[IV_DIMS_TEXT_BYTES], right[IV_DIMS_TEXT_BYTES];
        if (!fits || __builtin_add_overflow(dims[axis], input->dims[axis], &dims[axis]))
            return iv_call_fail(call, IV_ERROR_SHAPE,
                                "input %d %s does not fit input 0 %s along axis %d", i,
                                iv_dims_text(input->rank, input->dims, left),
                                iv_dims_text(first->rank, first->dims, right), axis);
    }
    iv_tensor *output = NULL;
    IV_TRY(iv_move_output(call, 0, first->dtype, first->rank, dims, &output));
    iv_status status = IV_OK;
    for (int i = 0; i < call->input_count && status == IV_OK; i++) {
        const iv_tensor *input = iv_call_input(call, i);
        status = copy_part(call, output, axis, start, input);
        start += input->dims[axis];
    }
    return iv_move_finish(call, 0, output, status);
}

/* ---- Tile ---- */

/* How often each axis is repeated, as formulas: input 1, or before opset 6 the scalars tiles and
 * axis. */
static iv_status read_repeats(iv_infer *infer, const iv_fact *input, iv_dim *repeats, bool *known) {
    int count, axis;
    if (infer->node->version >= 6 || iv_infer_input(infer, 2) == NULL) {
        IV_TRY(iv_infer_integers(infer, 1, IV_MAX_RANK, repeats, &count, known));
        if (count >= 0 && count != input->rank)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "%d repeats for an input of rank %d", count,
                                 input->rank);
        return IV_OK;
    }
    iv_dim tiles;
    int64_t where;
    bool axis_known;
    IV_TRY(iv_infer_integers(infer, 1, 1, &tiles, &count, known));
    IV_TRY(iv_infer_numbers(infer, 2, 1, &where, &count, &axis_known));
    *known = *known && axis_known;
    for (int i = 0; i < input->rank; i++)
        repeats[i] = iv_dim_constant(infer->scope, 1);
    if (!*known)
        return IV_OK;
    IV_TRY(iv_infer_axis(infer, where, input->rank, &axis));
    repeats[axis] = tiles;
    return IV_OK;
}

static iv_status infer_tile(iv_infer *infer) {
    const iv_fact *input;
    iv_dim dims[IV_MAX_RANK];
    bool known;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    IV_TRY(read_repeats(infer, input, dims, &known));
    if (!known) {
        iv_infer_open(infer, 0, input->dtype, input->rank);
        return IV_OK;
    }
    for (int i = 0; i < input->rank; i++) {
        int64_t repeats;
        if (iv_dim_is_constant(dims[i], &repeats) && repeats < 0)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "axis %d is repeated %lld times", i,
                                 (long long)repeats);
        dims[i] = iv_dim_multiply(infer->scope, dims[i], input->dims[i]);
    }
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return IV_OK;
}

static iv_status tile_repeats(iv_call *call, int rank, int64_t *repeats) {
    int count, axis;
    if (call->node->version >= 6 || iv_call_input(call, 2) == NULL) {
        IV_TRY(iv_move_integers(call, 1, IV_MAX_RANK, repeats, &count));
        if (count != rank)
            return iv_call_fail(call, IV_ERROR_SHAPE, "%d repeats for an input of rank %d", count,
                                rank);
        return IV_OK;
    }
    int64_t tiles[1] = {0}, where[1] = {0};
    IV_TRY(iv_move_integers(call, 1, 1, tiles, &count));
    IV_TRY(iv_move_integers(call, 2, 1, where, &count));
    IV_TRY(iv_move_axis(call, where[0], rank, &axis));
    for (int i = 0; i < rank; i++)
        repeats[i] = i == axis ? tiles[0] : 1;
    return IV_OK;
}

/* The input is copied to the first corner, and then what is there is repeated along one axis after
 * the other. */
static iv_status repeat_corner(iv_call *call, iv_tensor *output, const iv_tensor *input) {
    iv_tensor *corner = iv_tensor_retain(output), *part;
    iv_status status = IV_OK;
    for (int axis = 0; axis < input->rank && status == IV_OK; axis++) {
        status = iv_tensor_slice(corner, axis, 0, input->dims[axis], 1, &part, call->error);
        if (status == IV_OK) {
            iv_tensor_release(corner);
            corner = part;
        }
    }
    if (status == IV_OK)
        status = iv_call_copy(call, corner, input);
    iv_tensor_release(corner);
    for (int axis = input->rank - 1; axis >= 0 && status == IV_OK; axis--) {
        /* Along the axes before this one only the corner is filled yet. */
        iv_tensor *filled = iv_tensor_retain(output), *source = NULL;
        for (int d = 0; d < axis && status == IV_OK; d++) {
            status = iv_tensor_slice(filled, d, 0, input->dims[d], 1, &part, call->error);
            if (status == IV_OK) {
                iv_tensor_release(filled);
                filled = part;
            }
        }
        if (status == IV_OK)
            status = iv_tensor_slice(filled, axis, 0, input->dims[axis], 1, &source, call->error);
        for (int64_t at = input->dims[axis]; status == IV_OK && at < output->dims[axis];
             at += input->dims[axis])
            status = copy_part(call, filled, axis, at, source);
        iv_tensor_release(source);
        iv_tensor_release(filled);
    }
    return status;
}

static iv_status eval_tile(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t dims[IV_MAX_RANK];
    IV_TRY(tile_repeats(call, input->rank, dims));
    for (int i = 0; i < input->rank; i++) {
        if (dims[i] < 0 || __builtin_mul_overflow(dims[i], input->dims[i], &dims[i]))
            return iv_call_fail(call, IV_ERROR_SHAPE, "axis %d cannot be repeated that often", i);
    }
    iv_tensor *output = NULL;
    IV_TRY(iv_move_output(call, 0, input->dtype, input->rank, dims, &output));
    iv_status status = IV_OK;
    if (iv_tensor_elements(output) != 0)
        status = repeat_corner(call, output, input);
    return iv_move_finish(call, 0, output, status);
}

const iv_op iv_ops_joins[] = {
    {.name = "Concat",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = 1,
     .moved_inputs = IV_ALL_INPUTS,
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
