/* Elements picked by index: Gather, GatherElements, GatherND. Indices count from the end when negative. */
#include "ops/gather.h"

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"

static sb_status prepare_axis(sb_node *node, sb_error *error) {
    return sb_node_int(node, "axis", 0, &((sb_gather_params *)node->params)->axis, error);
}

static int64_t node_axis(const sb_node *node) {
    return ((const sb_gather_params *)node->params)->axis;
}

static sb_status open_result(sb_infer *infer, sb_dtype dtype) {
    sb_fact_set_tensor(&infer->outputs[0], dtype, SB_RANK_UNKNOWN, NULL);
    return SB_OK;
}

/* ---- Gather ---- */

static sb_status infer_gather(sb_infer *infer) {
    const sb_fact *data, *indices;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &data));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_INDEX, &indices));
    if (data->rank == SB_RANK_UNKNOWN || indices->rank == SB_RANK_UNKNOWN)
        return open_result(infer, data->dtype);
    int axis, rank = data->rank + indices->rank - 1;
    SB_TRY(sb_infer_axis(infer, node_axis(infer->node), data->rank, &axis));
    if (rank > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most", rank, SB_MAX_RANK);
    sb_dim dims[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i < axis                   ? data->dims[i]
                  : i < axis + indices->rank ? indices->dims[i - axis]
                                             : data->dims[i - indices->rank + 1];
    sb_fact_set_tensor(&infer->outputs[0], data->dtype, rank, dims);
    return SB_OK;
}

static sb_status gather_blocks(const sb_call *call, const sb_tensor *data, int axis, int64_t count, int64_t *indices,
                               char *to) {
    int64_t extent = data->dims[axis], outer = sb_move_product(data->dims, 0, axis);
    size_t block = (size_t)sb_move_product(data->dims, axis + 1, data->rank) * sb_dtype_size(data->dtype);
    for (int64_t i = 0; i < count; i++)
        SB_TRY(sb_move_check(call, axis, indices[i], extent, &indices[i]));
    for (int64_t o = 0; o < outer; o++) {
        const char *from = data->data + (size_t)(o * extent) * block;
        for (int64_t i = 0; i < count; i++, to += block)
            sb_move_element(to, from + (size_t)indices[i] * block, block);
    }
    return SB_OK;
}

static sb_status eval_gather(sb_call *call) {
    const sb_tensor *picks = sb_call_input(call, 1);
    sb_tensor *data, *output = NULL;
    int64_t *indices = NULL, count;
    int axis;
    SB_TRY(sb_move_axis(call, node_axis(call->node), sb_call_input(call, 0)->rank, &axis));
    SB_TRY(sb_call_contiguous(call, 0, &data));
    sb_status status = sb_move_indices(call, picks, &indices, &count);
    if (status == SB_OK)
        status = sb_move_output_fact(call, 0, &output);
    if (status == SB_OK && sb_tensor_elements(output) == 0)
        count = 0;
    if (status == SB_OK)
        status = gather_blocks(call, data, axis, count, indices, output->data);
    status = sb_move_finish(call, 0, output, status);
    sb_free(indices);
    sb_tensor_release(data);
    return status;
}

/* ---- GatherElements ---- */

static sb_status infer_gather_elements(sb_infer *infer) {
    const sb_fact *data, *indices;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &data));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_INDEX, &indices));
    if (data->rank != SB_RANK_UNKNOWN && indices->rank != SB_RANK_UNKNOWN) {
        int axis;
        SB_TRY(sb_infer_axis(infer, node_axis(infer->node), data->rank, &axis));
        if (indices->rank != data->rank)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "the indices have rank %d, the data %d", indices->rank,
                                 data->rank);
    }
    sb_infer_shape_of(infer, 0, indices, data->dtype);
    return SB_OK;
}

/* Every element comes from the place of its index, with the index itself along the axis. */
static sb_status gather_elements(const sb_call *call, const sb_tensor *data, int axis, const sb_tensor *picks,
                                 const int64_t *indices, char *to) {
    int64_t at[SB_MAX_RANK] = {0}, element = 0;
    size_t size = sb_dtype_size(data->dtype);
    for (int d = 0; d < data->rank; d++) {
        if (d != axis && picks->dims[d] > data->dims[d])
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "the indices have extent %lld in dimension %d, the data only %lld",
                                (long long)picks->dims[d], d, (long long)data->dims[d]);
    }
    if (sb_tensor_elements(picks) == 0)
        return SB_OK;
    do {
        int64_t position, offset = 0;
        SB_TRY(sb_move_check(call, axis, indices[element++], data->dims[axis], &position));
        for (int d = 0; d < data->rank; d++)
            offset += (d == axis ? position : at[d]) * data->strides[d];
        sb_move_element(to, data->data + offset * (int64_t)size, size);
        to += size;
    } while (sb_move_next(picks->rank, picks->dims, at));
    return SB_OK;
}

static sb_status eval_gather_elements(sb_call *call) {
    const sb_tensor *data = sb_call_input(call, 0), *picks = sb_call_input(call, 1);
    sb_tensor *output = NULL;
    int64_t *indices, count;
    int axis;
    SB_TRY(sb_move_axis(call, node_axis(call->node), data->rank, &axis));
    SB_TRY(sb_move_indices(call, picks, &indices, &count));
    sb_status status = sb_move_output_fact(call, 0, &output);
    if (status == SB_OK)
        status = gather_elements(call, data, axis, picks, indices, output->data);
    sb_free(indices);
    return sb_move_finish(call, 0, output, status);
}

/* ---- GatherND ---- */

static sb_status prepare_gather_nd(sb_node *node, sb_error *error) {
    sb_gather_params *params = node->params;
    SB_TRY(sb_node_int(node, "batch_dims", 0, &params->axis, error));
    if (params->axis < 0 || params->axis >= SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: batch_dims is %lld", node->name,
                       (long long)params->axis);
    return SB_OK;
}

static sb_status infer_gather_nd(sb_infer *infer) {
    const sb_fact *data, *indices;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &data));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_INDEX, &indices));
    int64_t depth, shared = node_axis(infer->node);
    if (data->rank == SB_RANK_UNKNOWN || indices->rank == SB_RANK_UNKNOWN)
        return open_result(infer, data->dtype);
    if (indices->rank < 1 || shared >= indices->rank || shared >= data->rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "batch_dims %lld does not fit data of rank %d and indices of rank %d", (long long)shared,
                             data->rank, indices->rank);
    if (!sb_dim_is_constant(indices->dims[indices->rank - 1], &depth))
        return open_result(infer, data->dtype);
    if (depth < 1 || depth > data->rank - shared)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "index tuples of %lld do not fit data of rank %d", (long long)depth,
                             data->rank);
    int rank = 0, rest = data->rank - (int)shared - (int)depth;
    sb_dim dims[2 * SB_MAX_RANK];
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = 0; i < rest; i++)
        dims[rank++] = data->dims[shared + depth + i];
    if (rank > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most", rank, SB_MAX_RANK);
    sb_fact_set_tensor(&infer->outputs[0], data->dtype, rank, dims);
    return SB_OK;
}

static sb_status gather_tuples(const sb_call *call, const sb_tensor *data, const sb_tensor *picks,
                               const int64_t *indices, char *to) {
    int shared = (int)node_axis(call->node), depth = (int)picks->dims[picks->rank - 1];
    int64_t batches = sb_move_product(data->dims, 0, shared);
    int64_t tuples = sb_move_product(picks->dims, shared, picks->rank - 1);
    int64_t inside = sb_move_product(data->dims, shared, data->rank);
    size_t size = sb_dtype_size(data->dtype);
    size_t block = (size_t)sb_move_product(data->dims, shared + depth, data->rank) * size;
    for (int d = 0; d < shared; d++) {
        if (picks->dims[d] != data->dims[d])
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "the shared dimension %d has extents %lld in the data, %lld in the indices", d,
                                (long long)data->dims[d], (long long)picks->dims[d]);
    }
    for (int64_t b = 0; b < batches; b++) {
        for (int64_t t = 0; t < tuples; t++, to += block) {
            int64_t offset = 0;
            for (int d = 0; d < depth; d++) {
                int64_t position;
                SB_TRY(sb_move_check(call, shared + d, *indices++, data->dims[shared + d], &position));
                offset = offset * data->dims[shared + d] + position;
            }
            sb_move_element(to, data->data + (size_t)(b * inside) * size + (size_t)offset * block, block);
        }
    }
    return SB_OK;
}

static sb_status eval_gather_nd(sb_call *call) {
    const sb_tensor *picks = sb_call_input(call, 1);
    sb_tensor *data, *output = NULL;
    int64_t *indices = NULL, count;
    SB_TRY(sb_call_contiguous(call, 0, &data));
    sb_status status = sb_move_indices(call, picks, &indices, &count);
    if (status == SB_OK)
        status = sb_move_output_fact(call, 0, &output);
    if (status == SB_OK && sb_tensor_elements(output) != 0)
        status = gather_tuples(call, data, picks, indices, output->data);
    status = sb_move_finish(call, 0, output, status);
    sb_free(indices);
    sb_tensor_release(data);
    return status;
}

#define GATHER_OP(op_name, prepare_function, infer_function, eval_function)                                            \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = 2, .most_inputs = 2, .least_outputs = 1, .most_outputs = 1,     \
        .moved_inputs = 1, .params_size = sizeof(sb_gather_params), .prepare = prepare_function,                       \
        .infer = infer_function, .eval = eval_function                                                                 \
    }

const sb_op sb_ops_gather[] = {
    GATHER_OP("Gather", prepare_axis, infer_gather, eval_gather),
    GATHER_OP("GatherElements", prepare_axis, infer_gather_elements, eval_gather_elements),
    GATHER_OP("GatherND", prepare_gather_nd, infer_gather_nd, eval_gather_nd),
    {0},
};
