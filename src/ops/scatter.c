/* Elements placed by index into a copy of the data: Scatter, ScatterElements, ScatterND.
 *
 * Updates are applied one after the other in the row-major order of the updates. Without a
 * reduction the last one to a place stays; with one, each is combined with what is there and
 * rounded to the dtype: f16 and bf16 through f32, integers wrap around, max and min as the numerics
 * contract orders them (NaN wins, +0 > -0). */
#include "ops/scatter.h"

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"

static sb_status prepare_scatter(sb_node *node, sb_error *error) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    sb_scatter_params *params = node->params;
    const char *name;
    SB_TRY(sb_node_int(node, "axis", 0, &params->axis, error));
    SB_TRY(sb_node_string(node, "reduction", "none", &name, error));
    for (params->how = SB_SCATTER_SET; strcmp(name, names[params->how]) != 0; params->how++) {
        if (params->how == SB_SCATTER_MIN)
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "node %s (%s): reduction %s is not one of none, add, mul, max, min", node->name,
                           node->op->name, name);
    }
    return SB_OK;
}

static void apply(sb_scatter_how how, sb_dtype dtype, char *to, const char *from, int64_t count) {
    size_t size = sb_dtype_size(dtype);
    if (how == SB_SCATTER_SET) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++, to += size, from += size)
        sb_scatter_combine(how, dtype, to, from);
}

static sb_status infer_scatter(sb_infer *infer) {
    const sb_scatter_params *params = infer->node->params;
    const sb_fact *data, *indices, *updates;
    uint32_t allowed = params->how == SB_SCATTER_SET ? SB_SET_ANY : SB_SET_PLAIN;
    SB_TRY(sb_infer_require(infer, 0, allowed, &data));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_INDEX, &indices));
    SB_TRY(sb_infer_require(infer, 2, allowed, &updates));
    if (updates->dtype != data->dtype)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the updates are %s, the data %s", sb_dtype_name(updates->dtype),
                             sb_dtype_name(data->dtype));
    sb_infer_shape_of(infer, 0, data, data->dtype);
    return SB_OK;
}

/* ---- ScatterElements ---- */

sb_status sb_scatter_check_elements(const sb_call *call, const sb_tensor *data, const sb_tensor *picks,
                                    const sb_tensor *updates, int axis) {
    bool fits = picks->rank == data->rank && updates->rank == picks->rank;
    for (int d = 0; d < data->rank && fits; d++)
        fits = updates->dims[d] == picks->dims[d] && (d == axis || picks->dims[d] <= data->dims[d]);
    char first[SB_DIMS_TEXT_BYTES], second[SB_DIMS_TEXT_BYTES], third[SB_DIMS_TEXT_BYTES];
    if (!fits)
        return sb_call_fail(call, SB_ERROR_SHAPE, "data %s, indices %s and updates %s do not fit",
                            sb_dims_text(data->rank, data->dims, first), sb_dims_text(picks->rank, picks->dims, second),
                            sb_dims_text(updates->rank, updates->dims, third));
    return SB_OK;
}

static sb_status scatter_elements(const sb_call *call, sb_tensor *output, int axis, const sb_tensor *picks,
                                  const int64_t *indices, const sb_tensor *updates) {
    sb_scatter_how how = ((const sb_scatter_params *)call->node->params)->how;
    int64_t at[SB_MAX_RANK] = {0}, element = 0;
    size_t size = sb_dtype_size(output->dtype);
    if (sb_tensor_elements(picks) == 0)
        return SB_OK;
    do {
        int64_t position, offset = 0;
        SB_TRY(sb_move_check(call, axis, indices[element], output->dims[axis], &position));
        for (int d = 0; d < output->rank; d++)
            offset += (d == axis ? position : at[d]) * output->strides[d];
        apply(how, output->dtype, output->data + offset * (int64_t)size, updates->data + (size_t)element++ * size, 1);
    } while (sb_move_next(picks->rank, picks->dims, at));
    return SB_OK;
}

/* ---- ScatterND ---- */

sb_status sb_scatter_check_tuples(const sb_call *call, const sb_tensor *data, const sb_tensor *picks,
                                  const sb_tensor *updates) {
    int depth = picks->rank < 1 ? -1 : (int)picks->dims[picks->rank - 1], outer = picks->rank - 1;
    bool fits = depth >= 0 && picks->dims[outer] <= data->rank && updates->rank == outer + data->rank - depth;
    for (int d = 0; fits && d < updates->rank; d++)
        fits = updates->dims[d] == (d < outer ? picks->dims[d] : data->dims[depth + d - outer]);
    char first[SB_DIMS_TEXT_BYTES], second[SB_DIMS_TEXT_BYTES], third[SB_DIMS_TEXT_BYTES];
    if (!fits)
        return sb_call_fail(call, SB_ERROR_SHAPE, "data %s, indices %s and updates %s do not fit",
                            sb_dims_text(data->rank, data->dims, first), sb_dims_text(picks->rank, picks->dims, second),
                            sb_dims_text(updates->rank, updates->dims, third));
    return SB_OK;
}

static sb_status scatter_tuples(const sb_call *call, sb_tensor *output, const sb_tensor *picks, const int64_t *indices,
                                const sb_tensor *updates) {
    sb_scatter_how how = ((const sb_scatter_params *)call->node->params)->how;
    int depth = (int)picks->dims[picks->rank - 1];
    int64_t tuples = sb_move_product(picks->dims, 0, picks->rank - 1);
    int64_t block = sb_move_product(output->dims, depth, output->rank);
    size_t bytes = (size_t)block * sb_dtype_size(output->dtype);
    for (int64_t t = 0; t < tuples && block != 0; t++) {
        int64_t offset = 0;
        for (int d = 0; d < depth; d++) {
            int64_t position;
            SB_TRY(sb_move_check(call, d, *indices++, output->dims[d], &position));
            offset = offset * output->dims[d] + position;
        }
        apply(how, output->dtype, output->data + (size_t)offset * bytes, updates->data + (size_t)t * bytes, block);
    }
    return SB_OK;
}

/* ---- both ---- */

static sb_status scatter(sb_call *call, bool tuples) {
    const sb_tensor *data = sb_call_input(call, 0), *picks = sb_call_input(call, 1);
    sb_tensor *updates, *output = NULL;
    int64_t *indices = NULL, count;
    int axis = 0;
    if (!tuples)
        SB_TRY(sb_move_axis(call, ((const sb_scatter_params *)call->node->params)->axis, data->rank, &axis));
    SB_TRY(sb_call_contiguous(call, 2, &updates));
    sb_status status = tuples ? sb_scatter_check_tuples(call, data, picks, updates)
                              : sb_scatter_check_elements(call, data, picks, updates, axis);
    if (status == SB_OK)
        status = sb_move_indices(call, picks, &indices, &count);
    if (status == SB_OK)
        status = sb_move_output(call, 0, data->dtype, data->rank, data->dims, &output);
    if (status == SB_OK) {
        sb_tensor_copy_elements(output, data);
        status = tuples ? scatter_tuples(call, output, picks, indices, updates)
                        : scatter_elements(call, output, axis, picks, indices, updates);
    }
    status = sb_move_finish(call, 0, output, status);
    sb_free(indices);
    sb_tensor_release(updates);
    return status;
}

static sb_status eval_scatter_elements(sb_call *call) {
    return scatter(call, false);
}

static sb_status eval_scatter_nd(sb_call *call) {
    return scatter(call, true);
}

#define SCATTER_OP(op_name, eval_function)                                                                             \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = 3, .most_inputs = 3, .least_outputs = 1, .most_outputs = 1,     \
        .params_size = sizeof(sb_scatter_params), .prepare = prepare_scatter, .infer = infer_scatter,                  \
        .eval = eval_function                                                                                          \
    }

const sb_op sb_ops_scatter[] = {
    SCATTER_OP("Scatter", eval_scatter_elements),
    SCATTER_OP("ScatterElements", eval_scatter_elements),
    SCATTER_OP("ScatterND", eval_scatter_nd),
    {0},
};
