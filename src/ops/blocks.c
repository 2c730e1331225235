/* Elements rearranged within a tensor: CenterCropPad, DepthToSpace, ReverseSequence, SpaceToDepth, Trilu. */
#include "ops/blocks.h"

#include "base/allocation.h"
#include "ops/axes.h"
#include "ops/list.h"
#include "ops/moving.h"

/* ---- DepthToSpace and SpaceToDepth ---- */

typedef struct block_params {
    int64_t size;
    bool columns_first; /* mode CRD: the channel is the outermost part of the depth, not the innermost */
} block_params;

static sb_status prepare_block(sb_node *node, sb_error *error) {
    block_params *params = node->params;
    const char *mode;
    SB_TRY(sb_node_int(node, "blocksize", 0, &params->size, error));
    SB_TRY(sb_node_string(node, "mode", "DCR", &mode, error));
    params->columns_first = strcmp(mode, "CRD") == 0;
    if (params->size < 1 || params->size > INT32_MAX || (!params->columns_first && strcmp(mode, "DCR") != 0))
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): blocksize %lld must be positive, mode %s one of DCR, CRD", node->name,
                       node->op->name, (long long)params->size, mode);
    return SB_OK;
}

static sb_status require_image(const sb_infer *infer, const sb_fact **input) {
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, input));
    if ((*input)->rank != SB_RANK_UNKNOWN && (*input)->rank != 4)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 4", (*input)->rank);
    return SB_OK;
}

static sb_status exact_part(const sb_infer *infer, sb_dim extent, int axis, int64_t divisor, sb_dim *part) {
    int64_t length;
    if (sb_dim_is_constant(extent, &length) && length % divisor != 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "extent %lld of axis %d is not a multiple of %lld",
                             (long long)length, axis, (long long)divisor);
    *part = sb_dim_floor_divide(infer->scope, extent, sb_dim_constant(infer->scope, divisor));
    return SB_OK;
}

static sb_status infer_depth_to_space(sb_infer *infer) {
    const block_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(require_image(infer, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_infer_open(infer, 0, input->dtype, 4);
        return SB_OK;
    }
    sb_dim size = sb_dim_constant(infer->scope, params->size), dims[4] = {input->dims[0]};
    SB_TRY(exact_part(infer, input->dims[1], 1, params->size * params->size, &dims[1]));
    dims[2] = sb_dim_multiply(infer->scope, input->dims[2], size);
    dims[3] = sb_dim_multiply(infer->scope, input->dims[3], size);
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, 4, dims);
    return SB_OK;
}

static sb_status infer_space_to_depth(sb_infer *infer) {
    const block_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(require_image(infer, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_infer_open(infer, 0, input->dtype, 4);
        return SB_OK;
    }
    sb_dim area = sb_dim_constant(infer->scope, params->size * params->size), dims[4] = {input->dims[0]};
    dims[1] = sb_dim_multiply(infer->scope, input->dims[1], area);
    SB_TRY(exact_part(infer, input->dims[2], 2, params->size, &dims[2]));
    SB_TRY(exact_part(infer, input->dims[3], 3, params->size, &dims[3]));
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, 4, dims);
    return SB_OK;
}

/* The output is the input seen with 6 dimensions `split`, permuted, and written row-major. Splitting dimensions asks nothing of the
 * order in memory. */
static sb_status rearrange(sb_call *call, const int64_t *split, const int *permutation, const int64_t *dims) {
    sb_tensor *input = sb_call_input(call, 0), *cut, *moved = NULL, *output = NULL, *target = NULL;
    int64_t order[6];
    SB_TRY(sb_tensor_reshape(input, 6, split, &cut, call->error));
    for (int i = 0; i < 6; i++)
        order[i] = split[permutation[i]];
    sb_status status = sb_tensor_transpose(cut, permutation, &moved, call->error);
    if (status == SB_OK)
        status = sb_move_output(call, 0, input->dtype, 4, dims, &output);
    if (status == SB_OK) {
        status = sb_tensor_reshape(output, 6, order, &target, call->error);
        if (status == SB_OK)
            status = sb_call_copy(call, target, moved);
        sb_tensor_release(target);
        status = sb_move_finish(call, 0, output, status);
    }
    sb_tensor_release(cut);
    sb_tensor_release(moved);
    return status;
}

static sb_status eval_depth_to_space(sb_call *call) {
    const block_params *params = call->node->params;
    const int64_t *dims = sb_call_input(call, 0)->dims, size = params->size;
    int64_t channels = dims[1] / (size * size);
    const int64_t outer[6] = {dims[0], size, size, channels, dims[2], dims[3]};
    const int64_t inner[6] = {dims[0], channels, size, size, dims[2], dims[3]};
    static const int outer_order[6] = {0, 3, 4, 1, 5, 2}, inner_order[6] = {0, 1, 4, 2, 5, 3};
    const int64_t result[4] = {dims[0], channels, dims[2] * size, dims[3] * size};
    return rearrange(call, params->columns_first ? inner : outer, params->columns_first ? inner_order : outer_order,
                     result);
}

static sb_status eval_space_to_depth(sb_call *call) {
    const block_params *params = call->node->params;
    const int64_t *dims = sb_call_input(call, 0)->dims, size = params->size;
    const int64_t split[6] = {dims[0], dims[1], dims[2] / size, size, dims[3] / size, size};
    static const int order[6] = {0, 3, 5, 1, 2, 4}, channel_first[6] = {0, 1, 3, 5, 2, 4};
    const int64_t result[4] = {dims[0], dims[1] * size * size, dims[2] / size, dims[3] / size};
    return rearrange(call, split, params->columns_first ? channel_first : order, result);
}

/* ---- Trilu: zeros outside of the triangle, of text empty ones ---- */

static sb_status prepare_trilu(sb_node *node, sb_error *error) {
    return sb_node_int(node, "upper", 1, &((sb_trilu_params *)node->params)->upper, error);
}

static sb_status infer_trilu(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    if (input->rank != SB_RANK_UNKNOWN && input->rank < 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 2 or more", input->rank);
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

static sb_status eval_trilu(sb_call *call) {
    bool upper = ((const sb_trilu_params *)call->node->params)->upper != 0;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t diagonal = 0;
    int count, rank = input->rank;
    if (sb_call_input(call, 1) != NULL)
        SB_TRY(sb_move_integers(call, 1, 1, &diagonal, &count));
    sb_tensor *output;
    SB_TRY(sb_move_output_fact(call, 0, &output));
    sb_tensor_copy_elements(output, input);
    int64_t rows = input->dims[rank - 2], columns = input->dims[rank - 1];
    int64_t matrices = sb_move_product(input->dims, 0, rank - 2);
    size_t size = sb_dtype_size(input->dtype);
    /* Beyond the matrix, every diagonal is as good as the first one outside. */
    diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    for (int64_t m = 0; m < matrices; m++) {
        for (int64_t row = 0; row < rows; row++) {
            /* The upper triangle keeps columns from row + diagonal on, the lower one up to there. */
            int64_t edge = row + diagonal + (upper ? 0 : 1);
            edge = edge < 0 ? 0 : edge > columns ? columns : edge;
            char *line = output->data + (size_t)((m * rows + row) * columns) * size;
            if (upper)
                memset(line, 0, (size_t)edge * size);
            else
                memset(line + (size_t)edge * size, 0, (size_t)(columns - edge) * size);
        }
    }
    return sb_move_finish(call, 0, output, SB_OK);
}

/* ---- ReverseSequence ---- */

static sb_status prepare_reverse(sb_node *node, sb_error *error) {
    sb_reverse_params *params = node->params;
    int64_t batch, time;
    SB_TRY(sb_node_int(node, "batch_axis", 1, &batch, error));
    SB_TRY(sb_node_int(node, "time_axis", 0, &time, error));
    if ((batch != 0 && batch != 1) || time != 1 - batch)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: batch_axis %lld and time_axis %lld must be 0 and 1",
                       node->name, (long long)batch, (long long)time);
    params->batch_axis = (int)batch;
    params->time_axis = (int)time;
    return SB_OK;
}

static sb_status infer_reverse(sb_infer *infer) {
    const sb_fact *input, *lengths;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_INDEX, &lengths));
    if (input->rank != SB_RANK_UNKNOWN && input->rank < 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 2 or more", input->rank);
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

static sb_status reverse_one(sb_call *call, sb_tensor *output, sb_tensor *input, int64_t batch, int64_t length) {
    const sb_reverse_params *params = call->node->params;
    int axis = params->time_axis;
    sb_tensor *from, *to, *head = NULL, *target = NULL;
    SB_TRY(sb_tensor_slice(input, params->batch_axis, batch, 1, 1, &from, call->error));
    sb_status status = sb_tensor_slice(output, params->batch_axis, batch, 1, 1, &to, call->error);
    if (status == SB_OK) {
        sb_tensor_copy_elements(to, from);
        if (length > 1)
            status = sb_tensor_slice(from, axis, length - 1, length, -1, &head, call->error);
        if (status == SB_OK && length > 1)
            status = sb_tensor_slice(to, axis, 0, length, 1, &target, call->error);
        if (status == SB_OK && length > 1)
            sb_tensor_copy_elements(target, head);
        sb_tensor_release(to);
    }
    sb_tensor_release(from);
    sb_tensor_release(head);
    sb_tensor_release(target);
    return status;
}

static sb_status eval_reverse(sb_call *call) {
    const sb_reverse_params *params = call->node->params;
    sb_tensor *input = sb_call_input(call, 0), *output = NULL;
    const sb_tensor *list = sb_call_input(call, 1);
    int64_t *lengths, count, extent = input->dims[params->time_axis];
    if (list->rank != 1 || list->dims[0] != input->dims[params->batch_axis])
        return sb_call_fail(call, SB_ERROR_SHAPE, "input 1 must list %lld lengths",
                            (long long)input->dims[params->batch_axis]);
    SB_TRY(sb_move_indices(call, list, &lengths, &count));
    sb_status status = sb_move_output(call, 0, input->dtype, input->rank, input->dims, &output);
    for (int64_t b = 0; b < count && status == SB_OK; b++) {
        if (lengths[b] < 0 || lengths[b] > extent)
            status = sb_call_fail(call, SB_ERROR_SHAPE, "length %lld of sequence %lld is outside [0, %lld]",
                                  (long long)lengths[b], (long long)b, (long long)extent);
        else
            status = reverse_one(call, output, input, b, lengths[b]);
    }
    sb_free(lengths);
    return sb_move_finish(call, 0, output, status);
}

/* ---- CenterCropPad ---- */

static sb_status prepare_crop(sb_node *node, sb_error *error) {
    return sb_axis_list_read(node, node->params, error);
}

static sb_status infer_crop(sb_infer *infer) {
    const sb_axis_list *params = infer->node->params;
    const sb_fact *input;
    sb_dim wanted[SB_MAX_RANK], dims[SB_MAX_RANK];
    int count;
    bool known;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    SB_TRY(sb_infer_integers(infer, 1, SB_MAX_RANK, wanted, &count, &known));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int axes = params->given ? params->count : input->rank;
    if (count >= 0 && count != axes)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%d extents for %d axes", count, axes);
    memcpy(dims, input->dims, sizeof dims);
    for (int i = 0; i < axes; i++) {
        int axis;
        int64_t extent;
        SB_TRY(sb_infer_axis(infer, params->given ? params->axes[i] : i, input->rank, &axis));
        dims[axis] = known ? wanted[i] : sb_infer_fresh(infer, 0, axis);
        if (sb_dim_is_constant(dims[axis], &extent) && extent < 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "extent %lld of axis %d is negative", (long long)extent, axis);
    }
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

/* What is cut off or added is halved; the odd element is at the end. Zeros are added, of text empty ones. */
static sb_status eval_crop(sb_call *call) {
    sb_tensor *output, *source = sb_tensor_retain(sb_call_input(call, 0)), *part;
    sb_status status = sb_move_output_fact(call, 0, &output);
    if (status != SB_OK) {
        sb_tensor_release(source);
        return status;
    }
    sb_tensor *target = sb_tensor_retain(output);
    memset(output->data, 0, (size_t)sb_tensor_elements(output) * sb_dtype_size(output->dtype));
    for (int d = 0; d < output->rank && status == SB_OK; d++) {
        int64_t have = source->dims[d], want = target->dims[d];
        sb_tensor **cut = have > want ? &source : &target;
        int64_t less = have > want ? want : have, more = have > want ? have : want;
        status = sb_tensor_slice(*cut, d, less > 0 ? (more - less) / 2 : 0, less, 1, &part, call->error);
        if (status == SB_OK) {
            sb_tensor_release(*cut);
            *cut = part;
        }
    }
    if (status == SB_OK)
        sb_tensor_copy_elements(target, source);
    sb_tensor_release(source);
    sb_tensor_release(target);
    return sb_move_finish(call, 0, output, status);
}

#define BLOCK_OP(op_name, least, most, moved, params, prepare_function, infer_function, eval_function)                 \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = least, .most_inputs = most, .least_outputs = 1,                 \
        .most_outputs = 1, .moved_inputs = moved, .params_size = params, .prepare = prepare_function,                  \
        .infer = infer_function, .eval = eval_function                                                                 \
    }

const sb_op sb_ops_blocks[] = {
    BLOCK_OP("CenterCropPad", 2, 2, 0, sizeof(sb_axis_list), prepare_crop, infer_crop, eval_crop),
    BLOCK_OP("DepthToSpace", 1, 1, 1, sizeof(block_params), prepare_block, infer_depth_to_space, eval_depth_to_space),
    BLOCK_OP("ReverseSequence", 2, 2, 1, sizeof(sb_reverse_params), prepare_reverse, infer_reverse, eval_reverse),
    BLOCK_OP("SpaceToDepth", 1, 1, 1, sizeof(block_params), prepare_block, infer_space_to_depth, eval_space_to_depth),
    BLOCK_OP("Trilu", 1, 2, 0, sizeof(sb_trilu_params), prepare_trilu, infer_trilu, eval_trilu),
    {0},
};
