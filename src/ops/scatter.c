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

static iv_status prepare_scatter(iv_node *node, iv_error *error) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    iv_scatter_params *params = node->params;
    const char *name;
    IV_TRY(iv_node_int(node, "axis", 0, &params->axis, error));
    IV_TRY(iv_node_string(node, "reduction", "none", &name, error));
    for (params->how = IV_SCATTER_SET; strcmp(name, names[params->how]) != 0; params->how++) {
        if (params->how == IV_SCATTER_MIN)
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "node %s (%s): reduction %s is not one of none, add, mul, max, min",
                           node->name, node->op->name, name);
    }
    return IV_OK;
}

static void apply(iv_scatter_how how, iv_dtype dtype, char *to, const char *from, int64_t count) {
    size_t size = iv_dtype_size(dtype);
    if (how == IV_SCATTER_SET) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++, to += size, from += size)
        iv_scatter_combine(how, dtype, to, from);
}

static iv_status infer_scatter(iv_infer *infer) {
    const iv_scatter_params *params = infer->node->params;
    const iv_fact *data, *indices, *updates;
    uint32_t allowed = params->how == IV_SCATTER_SET ? IV_SET_ANY : IV_SET_PLAIN;
    IV_TRY(iv_infer_require(infer, 0, allowed, &data));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_INDEX, &indices));
    IV_TRY(iv_infer_require(infer, 2, allowed, &updates));
    if (updates->dtype != data->dtype)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the updates are %s, the data %s",
                             iv_dtype_name(updates->dtype), iv_dtype_name(data->dtype));
    iv_infer_shape_of(infer, 0, data, data->dtype);
    return IV_OK;
}

/* ---- ScatterElements ---- */

iv_status iv_scatter_check_elements(const iv_call *call, const iv_tensor *data,
                                    const iv_tensor *picks, const iv_tensor *updates, int axis) {
    bool fits = picks->rank == data->rank && updates->rank == picks->rank;
    for (int d = 0; d < data->rank && fits; d++)
        fits = updates->dims[d] == picks->dims[d] && (d == axis || picks->dims[d] <= data->dims[d]);
    char first[IV_DIMS_TEXT_BYTES], second[IV_DIMS_TEXT_BYTES], third[IV_DIMS_TEXT_BYTES];
    if (!fits)
        return iv_call_fail(call, IV_ERROR_SHAPE, "data %s, indices %s and updates %s do not fit",
                            iv_dims_text(data->rank, data->dims, first),
                            iv_dims_text(picks->rank, picks->dims, second),
                            iv_dims_text(updates->rank, updates->dims, third));
    return IV_OK;
}

static iv_status scatter_elements(const iv_call *call, iv_tensor *output, int axis,
                                  const iv_tensor *picks, const int64_t *indices,
                                  const iv_tensor *updates) {
    iv_scatter_how how = ((const iv_scatter_params *)call->node->params)->how;
    int64_t at[IV_MAX_RANK] = {0}, element = 0;
    size_t size = iv_dtype_size(output->dtype);
    if (iv_tensor_elements(picks) == 0)
        return IV_OK;
    do {
        int64_t position, offset = 0;
        IV_TRY(iv_move_check(call, axis, indices[element], output->dims[axis], &position));
        for (int d = 0; d < output->rank; d++)
            offset += (d == axis ? position : at[d]) * output->strides[d];
        apply(how, output->dtype, output->data + offset * (int64_t)size,
              updates->data + (size_t)element++ * size, 1);
    } while (iv_move_next(picks->rank, picks->dims, at));
    return IV_OK;
}

/* ---- ScatterND ---- */

iv_status iv_scatter_check_tuples(const iv_call *call, const iv_tensor *data,
                                  const iv_tensor *picks, const iv_tensor *updates) {
    int depth = picks->rank < 1 ? -1 : (int)picks->dims[picks->rank - 1], outer = picks->rank - 1;
    bool fits = depth >= 0 && picks->dims[outer] <= data->rank &&
                updates->rank == outer + data->rank - depth;
    for (int d = 0; fits && d < updates->rank; d++)
        fits = updates->dims[d] == (d < outer ? picks->dims[d] : data->dims[depth + d - outer]);
    char first[IV_DIMS_TEXT_BYTES], second[IV_DIMS_TEXT_BYTES], third[IV_DIMS_TEXT_BYTES];
    if (!fits)
        return iv_call_fail(call, IV_ERROR_SHAPE, "data %s, indices %s and updates %s do not fit",
                            iv_dims_text(data->rank, data->dims, first),
                            iv_dims_text(picks->rank, picks->dims, second),
                            iv_dims_text(updates->rank, updates->dims, third));
    return IV_OK;
}

static iv_status scatter_tuples(const iv_call *call, iv_tensor *output, const iv_tensor *picks,
                                const int64_t *indices, const iv_tensor *updates) {
    iv_scatter_how how = ((const iv_scatter_params *)call->node->params)->how;
    int depth = (int)picks->dims[picks->rank - 1];
    int64_t tuples = iv_move_product(picks->dims, 0, picks->rank - 1);
    int64_t block = iv_move_product(output->dims, depth, output->rank);
    size_t bytes = (size_t)block * iv_dtype_size(output->dtype);
    for (int64_t t = 0; t < tuples && block != 0; t++) {
        int64_t offset = 0;
        for (int d = 0; d < depth; d++) {
            int64_t position;
            IV_TRY(iv_move_check(call, d, *indices++, output->dims[d], &position));
            offset = offset * output->dims[d] + position;
        }
        apply(how, output->dtype, output->data + (size_t)offset * bytes,
              updates->data + (size_t)t * bytes, block);
    }
    return IV_OK;
}

/* ---- both ---- */

static iv_status scatter(iv_call *call, bool tuples) {
    const iv_tensor *data = iv_call_input(call, 0), *picks = iv_call_input(call, 1);
    iv_tensor *updates, *output = NULL;
    int64_t *indices = NULL, count;
    int axis = 0;
    if (!tuples)
        IV_TRY(iv_move_axis(call, ((const iv_scatter_params *)call->node->params)->axis, data->rank,
                            &axis));
    IV_TRY(iv_call_contiguous(call, 2, &updates));
    iv_status status = tuples ? iv_scatter_check_tuples(call, data, picks, updates)
                              : iv_scatter_check_elements(call, data, picks, updates, axis);
    if (status == IV_OK)
        status = iv_move_indices(call, picks, &indices, &count);
    if (status == IV_OK)
        status = iv_move_output(call, 0, data->dtype, data->rank, data->dims, &output);
    if (status == IV_OK) {
        iv_tensor_copy_elements(output, data);
        status = tuples ? scatter_tuples(call, output, picks, indices, updates)
                        : scatter_elements(call, output, axis, picks, indices, updates);
    }
    status = iv_move_finish(call, 0, output, status);
    iv_free(indices);
    iv_tensor_release(updates);
    return status;
}

static iv_status eval_scatter_elements(iv_call *call) {
    return scatter(call, false);
}

static iv_status eval_scatter_nd(iv_call *call) {
    return scatter(call, true);
}

#define SCATTER_OP(op_name, eval_function)                                                         \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = 3, .most_inputs = 3, .least_outputs = 1,    \
        .most_outputs = 1, .params_size = sizeof(iv_scatter_params), .prepare = prepare_scatter,   \
        .infer = infer_scatter, .eval = eval_function                                              \
    }

const iv_op iv_ops_scatter[] = {
    SCATTER_OP("Scatter", eval_scatter_elements),
    SCATTER_OP("ScatterElements", eval_scatter_elements),
    SCATTER_OP("ScatterND", eval_scatter_nd),
    {0},
};
