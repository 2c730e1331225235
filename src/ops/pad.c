/* Pad: more elements before and after, or fewer where a pad is negative.
 *
 * Along each axis, output position o looks at input position p = o - (elements added before).
 * Outside [0, extent) mode `constant` gives the constant, `edge` the nearest element, `wrap` p
 * modulo the extent, and `reflect` mirrors at the first and last element as often as it takes (an
 * extent of 1 mirrors to itself). */
#include "ops/pad.h"

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"

static iv_status prepare_pad(iv_node *node, iv_error *error) {
    iv_pad_params *params = node->params;
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode;
    int64_t count;
    const int64_t *pads;
    IV_TRY(iv_node_string(node, "mode", "constant", &mode, error));
    IV_TRY(iv_node_float(node, "value", 0.0f, &params->value, error));
    IV_TRY(
        iv_node_ints(node, iv_node_has(node, "pads") ? "pads" : "paddings", &count, &pads, error));
    for (params->mode = IV_PAD_CONSTANT; strcmp(mode, modes[params->mode]) != 0; params->mode++) {
        if (params->mode == IV_PAD_WRAP)
            return iv_fail(
                error, IV_ERROR_INVALID_MODEL,
                "node %s: Pad has the mode %s; it is one of constant, reflect, edge, wrap",
                node->name, mode);
    }
    params->has_pads = node->input_count - node->capture_count == 1;
    if (!params->has_pads)
        return IV_OK;
    if (pads == NULL || count > 2 * IV_MAX_RANK)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: Pad needs at most %d pads",
                       node->name, 2 * IV_MAX_RANK);
    params->count = (int)count;
    memcpy(params->pads, pads, (size_t)count * sizeof *pads);
    return IV_OK;
}

static iv_status infer_pad(iv_infer *infer) {
    const iv_pad_params *params = infer->node->params;
    const iv_fact *input;
    iv_dim pads[2 * IV_MAX_RANK], dims[IV_MAX_RANK];
    int count = params->count, axis_count = 0;
    int64_t axes[IV_MAX_RANK];
    bool known = true, axes_known = true, has_axes = iv_infer_input(infer, 3) != NULL;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    for (int i = 0; i < count; i++)
        pads[i] = iv_dim_constant(infer->scope, params->pads[i]);
    if (!params->has_pads)
        IV_TRY(iv_infer_integers(infer, 1, 2 * IV_MAX_RANK, pads, &count, &known));
    if (has_axes)
        IV_TRY(iv_infer_numbers(infer, 3, IV_MAX_RANK, axes, &axis_count, &axes_known));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    if (!known || !axes_known || count < 0) {
        iv_infer_open(infer, 0, input->dtype, input->rank);
        return IV_OK;
    }
    int padded = has_axes ? axis_count : input->rank;
    if (count != 2 * padded)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "%d pads for %d axes", count, padded);
    memcpy(dims, input->dims, sizeof dims);
    for (int i = 0; i < padded; i++) {
        int axis = i;
        int64_t extent;
        if (has_axes)
            IV_TRY(iv_infer_axis(infer, axes[i], input->rank, &axis));
        dims[axis] = iv_dim_add(infer->scope, dims[axis],
                                iv_dim_add(infer->scope, pads[i], pads[i + padded]));
        if (iv_dim_is_constant(dims[axis], &extent) && extent < 0)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "the pads leave extent %lld of axis %d",
                                 (long long)extent, axis);
    }
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return IV_OK;
}

/* Per axis, the input position that each output position looks at, as byte offsets (INT64_MIN: the
 * constant). */
typedef struct pad_maps {
    int64_t before[IV_MAX_RANK];
    int64_t *offsets[IV_MAX_RANK];
} pad_maps;

static iv_status read_pads(const iv_call *call, int64_t *before, int64_t *after) {
    const iv_pad_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t pads[2 * IV_MAX_RANK], axes[IV_MAX_RANK];
    int count = params->count, padded = input->rank;
    memcpy(pads, params->pads, sizeof pads);
    for (int i = 0; i < IV_MAX_RANK; i++)
        axes[i] = i;
    if (!params->has_pads)
        IV_TRY(iv_move_integers(call, 1, 2 * IV_MAX_RANK, pads, &count));
    if (iv_call_input(call, 3) != NULL)
        IV_TRY(iv_move_integers(call, 3, IV_MAX_RANK, axes, &padded));
    if (count != 2 * padded)
        return iv_call_fail(call, IV_ERROR_SHAPE, "%d pads for %d axes", count, padded);
    for (int i = 0; i < padded; i++) {
        int axis;
        IV_TRY(iv_move_axis(call, axes[i], input->rank, &axis));
        before[axis] = pads[i];
        after[axis] = pads[i + padded];
    }
    return IV_OK;
}

static iv_status map_axis(iv_call *call, pad_maps *maps, int axis, int64_t extent) {
    const iv_pad_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t length = input->dims[axis];
    int64_t *offsets = iv_allocate_array((size_t)extent, sizeof *offsets);
    if (offsets == NULL)
        return iv_fail_memory(call->error, (size_t)extent * sizeof *offsets);
    maps->offsets[axis] = offsets;
    int64_t step = input->strides[axis] * (int64_t)iv_dtype_size(input->dtype);
    for (int64_t i = 0; i < extent; i++) {
        int64_t from = iv_pad_look(params->mode, i - maps->before[axis], length);
        offsets[i] = from < 0 ? INT64_MIN : from * step;
    }
    return IV_OK;
}

static void copy_padded(const pad_maps *maps, const iv_tensor *input, const char *constant,
                        iv_tensor *output) {
    size_t size = iv_dtype_size(input->dtype);
    int rank = output->rank;
    int64_t index[IV_MAX_RANK] = {0}, inner = rank > 0 ? output->dims[rank - 1] : 1;
    char *to = output->data;
    if (iv_tensor_elements(output) == 0)
        return;
    do {
        const char *from = input->data;
        bool outside = false;
        for (int d = 0; d < rank - 1 && !outside; d++) {
            outside = maps->offsets[d][index[d]] == INT64_MIN;
            from += outside ? 0 : maps->offsets[d][index[d]];
        }
        for (int64_t i = 0; i < inner; i++, to += size) {
            int64_t offset = rank > 0 ? maps->offsets[rank - 1][i] : 0;
            iv_move_element(to, outside || offset == INT64_MIN ? constant : from + offset, size);
        }
    } while (iv_move_next(rank - 1, output->dims, index));
}

iv_status iv_pad_constant(const iv_call *call, char *bits) {
    const iv_pad_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0), *value = iv_call_input(call, 2);
    memset(bits, 0, sizeof(iv_string));
    if (value != NULL) {
        if (value->dtype != input->dtype || iv_tensor_elements(value) != 1)
            return iv_call_fail(call, IV_ERROR_SHAPE, "the constant must be one %s element",
                                iv_dtype_name(input->dtype));
        memcpy(bits, value->data, iv_dtype_size(input->dtype));
    } else if (params->value != 0.0f) {
        iv_number_store(input->dtype, bits, 0, params->value);
    }
    return IV_OK;
}

iv_status iv_pad_extents(const iv_call *call, int64_t *before, int64_t *dims) {
    const iv_pad_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t after[IV_MAX_RANK] = {0};
    memset(before, 0, (size_t)input->rank * sizeof *before);
    IV_TRY(read_pads(call, before, after));
    for (int d = 0; d < input->rank; d++) {
        /* Pads of more than 2^60 elements either way cannot be meant, and would overflow. */
        int64_t most = INT64_C(1) << 60;
        dims[d] = -1;
        if (before[d] > -most && before[d] < most && after[d] > -most && after[d] < most)
            dims[d] = input->dims[d] + before[d] + after[d];
        if (dims[d] < 0)
            return iv_call_fail(call, IV_ERROR_SHAPE, "the pads %lld and %lld do not fit axis %d",
                                (long long)before[d], (long long)after[d], d);
        if (input->dims[d] == 0 && dims[d] != 0 && params->mode != IV_PAD_CONSTANT)
            return iv_call_fail(call, IV_ERROR_SHAPE,
                                "axis %d is empty: there is nothing to repeat", d);
    }
    return IV_OK;
}

static iv_status eval_pad(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    _Alignas(iv_string) char constant[sizeof(iv_string)];
    pad_maps maps = {0};
    int64_t dims[IV_MAX_RANK];
    IV_TRY(iv_pad_constant(call, constant));
    IV_TRY(iv_pad_extents(call, maps.before, dims));
    iv_tensor *output = NULL;
    IV_TRY(iv_move_output(call, 0, input->dtype, input->rank, dims, &output));
    iv_status status = IV_OK;
    for (int d = 0; d < input->rank && status == IV_OK; d++)
        status = map_axis(call, &maps, d, dims[d]);
    if (status == IV_OK)
        copy_padded(&maps, input, constant, output);
    for (int d = 0; d < input->rank; d++)
        iv_free(maps.offsets[d]);
    return iv_move_finish(call, 0, output, status);
}

const iv_op iv_ops_pad[] = {
    {.name = "Pad",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_pad_params),
     .prepare = prepare_pad,
     .infer = infer_pad,
     .eval = eval_pad},
    {0},
};
