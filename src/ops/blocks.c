/* Elements rearranged within a tensor: CenterCropPad, DepthToSpace, ReverseSequence, SpaceToDepth,
 * Trilu. */
#include "ops/blocks.h"

#include "base/allocation.h"
#include "ops/axes.h"
#include "ops/list.h"
#include "ops/moving.h"

/* ---- DepthToSpace and SpaceToDepth ---- */

typedef struct block_params {
    int64_t size;
    bool columns_first; /* mode CRD: the channel is the outermost part of the depth, not the
                           innermost */
} block_params;

static iv_status prepare_block(iv_node *node, iv_error *error) {
    block_params *params = node->params;
    const char *mode;
    IV_TRY(iv_node_int(node, "blocksize", 0, &params->size, error));
    IV_TRY(iv_node_string(node, "mode", "DCR", &mode, error));
    params->columns_first = strcmp(mode, "CRD") == 0;
    if (params->size < 1 || params->size > INT32_MAX ||
        (!params->columns_first && strcmp(mode, "DCR") != 0))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): blocksize %lld must be positive, mode %s one of DCR, CRD",
                       node->name, node->op->name, (long long)params->size, mode);
    return IV_OK;
}

static iv_status require_image(const iv_infer *infer, const iv_fact **input) {
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, input));
    if ((*input)->rank != IV_RANK_UNKNOWN && (*input)->rank != 4)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the input has rank %d, not 4", (*input)->rank);
    return IV_OK;
}

static iv_status exact_part(const iv_infer *infer, iv_dim extent, int axis, int64_t divisor,
                            iv_dim *part) {
    int64_t length;
    if (iv_dim_is_constant(extent, &length) && length % divisor != 0)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "extent %lld of axis %d is not a multiple of %lld", (long long)length,
                             axis, (long long)divisor);
    *part = iv_dim_floor_divide(infer->scope, extent, iv_dim_constant(infer->scope, divisor));
    return IV_OK;
}

static iv_status infer_depth_to_space(iv_infer *infer) {
    const block_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(require_image(infer, &input));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_infer_open(infer, 0, input->dtype, 4);
        return IV_OK;
    }
    iv_dim size = iv_dim_constant(infer->scope, params->size), dims[4] = {input->dims[0]};
    IV_TRY(exact_part(infer, input->dims[1], 1, params->size * params->size, &dims[1]));
    dims[2] = iv_dim_multiply(infer->scope, input->dims[2], size);
    dims[3] = iv_dim_multiply(infer->scope, input->dims[3], size);
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, 4, dims);
    return IV_OK;
}

static iv_status infer_space_to_depth(iv_infer *infer) {
    const block_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(require_image(infer, &input));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_infer_open(infer, 0, input->dtype, 4);
        return IV_OK;
    }
    iv_dim area = iv_dim_constant(infer->scope, params->size * params->size),
           dims[4] = {input->dims[0]};
    dims[1] = iv_dim_multiply(infer->scope, input->dims[1], area);
    IV_TRY(exact_part(infer, input->dims[2], 2, params->size, &dims[2]));
    IV_TRY(exact_part(infer, input->dims[3], 3, params->size, &dims[3]));
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, 4, dims);
    return IV_OK;
}

/* The output is the input seen with 6 dimensions `split`, permuted, and written row-major. */
static iv_status rearrange(iv_call *call, const int64_t *split, const int *permutation,
                           const int64_t *dims) {
    iv_tensor *contiguous, *cut = NULL, *moved = NULL, *output = NULL, *target = NULL;
    int64_t order[6];
    IV_TRY(iv_call_contiguous(call, 0, &contiguous));
    for (int i = 0; i < 6; i++)
        order[i] = split[permutation[i]];
    iv_status status = iv_tensor_reshape(contiguous, 6, split, &cut, call->error);
    if (status == IV_OK)
        status = iv_tensor_transpose(cut, permutation, &moved, call->error);
    if (status == IV_OK)
        status = iv_move_output(call, 0, contiguous->dtype, 4, dims, &output);
    if (status == IV_OK) {
        status = iv_tensor_reshape(output, 6, order, &target, call->error);
        if (status == IV_OK)
            status = iv_call_copy(call, target, moved);
        iv_tensor_release(target);
        status = iv_move_finish(call, 0, output, status);
    }
    iv_tensor_release(contiguous);
    iv_tensor_release(cut);
    iv_tensor_release(moved);
    return status;
}

static iv_status eval_depth_to_space(iv_call *call) {
    const block_params *params = call->node->params;
    const int64_t *dims = iv_call_input(call, 0)->dims, size = params->size;
    int64_t channels = dims[1] / (size * size);
    const int64_t outer[6] = {dims[0], size, size, channels, dims[2], dims[3]};
    const int64_t inner[6] = {dims[0], channels, size, size, dims[2], dims[3]};
    static const int outer_order[6] = {0, 3, 4, 1, 5, 2}, inner_order[6] = {0, 1, 4, 2, 5, 3};
    const int64_t result[4] = {dims[0], channels, dims[2] * size, dims[3] * size};
    return rearrange(call, params->columns_first ? inner : outer,
                     params->columns_first ? inner_order : outer_order, result);
}

static iv_status eval_space_to_depth(iv_call *call) {
    const block_params *params = call->node->params;
    const int64_t *dims = iv_call_input(call, 0)->dims, size = params->size;
    const int64_t split[6] = {dims[0], dims[1], dims[2] / size, size, dims[3] / size, size};
    static const int order[6] = {0, 3, 5, 1, 2, 4}, channel_first[6] = {0, 1, 3, 5, 2, 4};
    const int64_t result[4] = {dims[0], dims[1] * size * size, dims[2] / size, dims[3] / size};
    return rearrange(call, split, params->columns_first ? channel_first : order, result);
}

/* ---- Trilu ---- */

static iv_status prepare_trilu(iv_node *node, iv_error *error) {
    return iv_node_int(node, "upper", 1, &((iv_trilu_params *)node->params)->upper, error);
}

static iv_status infer_trilu(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_PLAIN, &input));
    if (input->rank != IV_RANK_UNKNOWN && input->rank < 2)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the input has rank %d, not 2 or more",
                             input->rank);
    iv_infer_shape_of(infer, 0, input, input->dtype);
    return IV_OK;
}

static iv_status eval_trilu(iv_call *call) {
    bool upper = ((const iv_trilu_params *)call->node->params)->upper != 0;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t diagonal = 0;
    int count, rank = input->rank;
    if (iv_call_input(call, 1) != NULL)
        IV_TRY(iv_move_integers(call, 1, 1, &diagonal, &count));
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    iv_tensor_copy_elements(output, input);
    int64_t rows = input->dims[rank - 2], columns = input->dims[rank - 1];
    int64_t matrices = iv_move_product(input->dims, 0, rank - 2);
    size_t size = iv_dtype_size(input->dtype);
    /* Beyond the matrix, every diagonal is as good as the first one outside. */
    diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    for (int64_t m = 0; m < matrices; m++) {
        for (int64_t row = 0; row < rows; row++) {
            /* The upper triangle keeps columns from row + diagonal on, the lower one up to there.
             */
            int64_t edge = row + diagonal + (upper ? 0 : 1);
            edge = edge < 0 ? 0 : edge > columns ? columns : edge;
            char *line = output->data + (size_t)((m * rows + row) * columns) * size;
            if (upper)
                memset(line, 0, (size_t)edge * size);
            else
                memset(line + (size_t)edge * size, 0, (size_t)(columns - edge) * size);
        }
    }
    return IV_OK;
}

/* ---- ReverseSequence ---- */

static iv_status prepare_reverse(iv_node *node, iv_error *error) {
    iv_reverse_params *params = node->params;
    int64_t batch, time;
    IV_TRY(iv_node_int(node, "batch_axis", 1, &batch, error));
    IV_TRY(iv_node_int(node, "time_axis", 0, &time, error));
    if ((batch != 0 && batch != 1) || time != 1 - batch)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: batch_axis %lld and time_axis %lld must be 0 and 1", node->name,
                       (long long)batch, (long long)time);
    params->batch_axis = (int)batch;
    params->time_axis = (int)time;
    return IV_OK;
}

static iv_status infer_reverse(iv_infer *infer) {
    const iv_fact *input, *lengths;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_INDEX, &lengths));
    if (input->rank != IV_RANK_UNKNOWN && input->rank < 2)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the input has rank %d, not 2 or more",
                             input->rank);
    iv_infer_shape_of(infer, 0, input, input->dtype);
    return IV_OK;
}

static iv_status reverse_one(iv_call *call, iv_tensor *output, iv_tensor *input, int64_t batch,
                             int64_t length) {
    const iv_reverse_params *params = call->node->params;
    int axis = params->time_axis;
    iv_tensor *from, *to, *head = NULL, *target = NULL;
    IV_TRY(iv_tensor_slice(input, params->batch_axis, batch, 1, 1, &from, call->error));
    iv_status status = iv_tensor_slice(output, params->batch_axis, batch, 1, 1, &to, call->error);
    if (status == IV_OK) {
        iv_tensor_copy_elements(to, from);
        if (length > 1)
            status = iv_tensor_slice(from, axis, length - 1, length, -1, &head, call->error);
        if (status == IV_OK && length > 1)
            status = iv_tensor_slice(to, axis, 0, length, 1, &target, call->error);
        if (status == IV_OK && length > 1)
            iv_tensor_copy_elements(target, head);
        iv_tensor_release(to);
    }
    iv_tensor_release(from);
    iv_tensor_release(head);
    iv_tensor_release(target);
    return status;
}

static iv_status eval_reverse(iv_call *call) {
    const iv_reverse_params *params = call->node->params;
    iv_tensor *input = iv_call_input(call, 0), *output = NULL;
    const iv_tensor *list = iv_call_input(call, 1);
    int64_t *lengths, count, extent = input->dims[params->time_axis];
    if (list->rank != 1 || list->dims[0] != input->dims[params->batch_axis])
        return iv_call_fail(call, IV_ERROR_SHAPE, "input 1 must list %lld lengths",
                            (long long)input->dims[params->batch_axis]);
    IV_TRY(iv_move_indices(call, list, &lengths, &count));
    iv_status status = iv_move_output(call, 0, input->dtype, input->rank, input->dims, &output);
    for (int64_t b = 0; b < count && status == IV_OK; b++) {
        if (lengths[b] < 0 || lengths[b] > extent)
            status = iv_call_fail(call, IV_ERROR_SHAPE,
                                  "length %lld of sequence %lld is outside [0, %lld]",
                                  (long long)lengths[b], (long long)b, (long long)extent);
        else
            status = reverse_one(call, output, input, b, lengths[b]);
    }
    iv_free(lengths);
    return iv_move_finish(call, 0, output, status);
}

/* ---- CenterCropPad ---- */

static iv_status prepare_crop(iv_node *node, iv_error *error) {
    return iv_axis_list_read(node, node->params, error);
}

static iv_status infer_crop(iv_infer *infer) {
    const iv_axis_list *params = infer->node->params;
    const iv_fact *input;
    iv_dim wanted[IV_MAX_RANK], dims[IV_MAX_RANK];
    int count;
    bool known;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_PLAIN, &input));
    IV_TRY(iv_infer_integers(infer, 1, IV_MAX_RANK, wanted, &count, &known));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    int axes = params->given ? params->count : input->rank;
    if (count >= 0 && count != axes)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "%d extents for %d axes", count, axes);
    memcpy(dims, input->dims, sizeof dims);
    for (int i = 0; i < axes; i++) {
        int axis;
        int64_t extent;
        IV_TRY(iv_infer_axis(infer, params->given ? params->axes[i] : i, input->rank, &axis));
        dims[axis] = known ? wanted[i] : iv_infer_fresh(infer, 0, axis);
        if (iv_dim_is_constant(dims[axis], &extent) && extent < 0)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "extent %lld of axis %d is negative",
                                 (long long)extent, axis);
    }
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return IV_OK;
}

/* What is cut off or added is halved; the odd element is at the end. */
static iv_status eval_crop(iv_call *call) {
    iv_tensor *output, *source = iv_tensor_retain(iv_call_input(call, 0)), *part;
    iv_status status = iv_call_output(call, 0, &output);
    if (status != IV_OK) {
        iv_tensor_release(source);
        return status;
    }
    iv_tensor *target = iv_tensor_retain(output);
    memset(output->data, 0, (size_t)iv_tensor_elements(output) * iv_dtype_size(output->dtype));
    for (int d = 0; d < output->rank && status == IV_OK; d++) {
        int64_t have = source->dims[d], want = target->dims[d];
        iv_tensor **cut = have > want ? &source : &target;
        int64_t less = have > want ? want : have, more = have > want ? have : want;
        status =
            iv_tensor_slice(*cut, d, less > 0 ? (more - less) / 2 : 0, less, 1, &part, call->error);
        if (status == IV_OK) {
            iv_tensor_release(*cut);
            *cut = part;
        }
    }
    if (status == IV_OK)
        iv_tensor_copy_elements(target, source);
    iv_tensor_release(source);
    iv_tensor_release(target);
    return status;
}

#define BLOCK_OP(op_name, least, most, moved, params, prepare_function, infer_function,            \
                 eval_function)                                                                    \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = least, .most_inputs = most,                 \
        .least_outputs = 1, .most_outputs = 1, .moved_inputs = moved, .params_size = params,       \
        .prepare = prepare_function, .infer = infer_function, .eval = eval_function                \
    }

const iv_op iv_ops_blocks[] = {
    BLOCK_OP("CenterCropPad", 2, 2, 0, sizeof(iv_axis_list), prepare_crop, infer_crop, eval_crop),
    BLOCK_OP("DepthToSpace", 1, 1, 1, sizeof(block_params), prepare_block, infer_depth_to_space,
             eval_depth_to_space),
    BLOCK_OP("ReverseSequence", 2, 2, 1, sizeof(iv_reverse_params), prepare_reverse, infer_reverse,
             eval_reverse),
    BLOCK_OP("SpaceToDepth", 1, 1, 1, sizeof(block_params), prepare_block, infer_space_to_depth,
             eval_space_to_depth),
    BLOCK_OP("Trilu", 1, 2, 0, sizeof(iv_trilu_params), prepare_trilu, infer_trilu, eval_trilu),
    {0},
};
