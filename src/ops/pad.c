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

static sb_status prepare_pad(sb_node *node, sb_error *error) {
    sb_pad_params *params = node->params;
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode;
    int64_t count;
    const int64_t *pads;
    SB_TRY(sb_node_string(node, "mode", "constant", &mode, error));
    SB_TRY(sb_node_float(node, "value", 0.0f, &params->value, error));
    SB_TRY(sb_node_ints(node, sb_node_has(node, "pads") ? "pads" : "paddings", &count, &pads, error));
    for (params->mode = SB_PAD_CONSTANT; strcmp(mode, modes[params->mode]) != 0; params->mode++) {
        if (params->mode == SB_PAD_WRAP)
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "node %s: Pad has the mode %s; it is one of constant, reflect, edge, wrap", node->name,
                           mode);
    }
    params->has_pads = node->input_count - node->capture_count == 1;
    if (!params->has_pads)
        return SB_OK;
    if (pads == NULL || count > 2 * SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: Pad needs at most %d pads", node->name,
                       2 * SB_MAX_RANK);
    params->count = (int)count;
    memcpy(params->pads, pads, (size_t)count * sizeof *pads);
    return SB_OK;
}

static sb_status infer_pad(sb_infer *infer) {
    const sb_pad_params *params = infer->node->params;
    const sb_fact *input;
    sb_dim pads[2 * SB_MAX_RANK], dims[SB_MAX_RANK];
    int count = params->count, axis_count = 0;
    int64_t axes[SB_MAX_RANK];
    bool known = true, axes_known = true, has_axes = sb_infer_input(infer, 3) != NULL, seen[SB_MAX_RANK] = {false};
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    for (int i = 0; i < count; i++)
        pads[i] = sb_dim_constant(infer->scope, params->pads[i]);
    if (!params->has_pads)
        SB_TRY(sb_infer_integers(infer, 1, 2 * SB_MAX_RANK, pads, &count, &known));
    if (has_axes)
        SB_TRY(sb_infer_numbers(infer, 3, SB_MAX_RANK, axes, &axis_count, &axes_known));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (!known || !axes_known || count < 0) {
        sb_infer_open(infer, 0, input->dtype, input->rank);
        return SB_OK;
    }
    int padded = has_axes ? axis_count : input->rank;
    if (count != 2 * padded)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%d pads for %d axes", count, padded);
    memcpy(dims, input->dims, sizeof dims);
    for (int i = 0; i < padded; i++) {
        int axis = i;
        int64_t extent;
        if (has_axes)
            SB_TRY(sb_infer_axis(infer, axes[i], input->rank, &axis));
        if (seen[axis])
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %d is listed twice", axis);
        seen[axis] = true;
        dims[axis] = sb_dim_add(infer->scope, dims[axis], sb_dim_add(infer->scope, pads[i], pads[i + padded]));
        if (sb_dim_is_constant(dims[axis], &extent) && extent < 0)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "the pads leave extent %lld of axis %d", (long long)extent,
                                 axis);
    }
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

/* Per axis, the input position that each output position looks at, as byte offsets (INT64_MIN: the constant). */
typedef struct pad_maps {
    int64_t before[SB_MAX_RANK];
    int64_t *offsets[SB_MAX_RANK];
} pad_maps;

static sb_status read_pads(const sb_call *call, int64_t *before, int64_t *after) {
    const sb_pad_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t pads[2 * SB_MAX_RANK], axes[SB_MAX_RANK];
    int count = params->count, padded = input->rank;
    bool seen[SB_MAX_RANK] = {false};
    memcpy(pads, params->pads, sizeof pads);
    for (int i = 0; i < SB_MAX_RANK; i++)
        axes[i] = i;
    if (!params->has_pads)
        SB_TRY(sb_move_integers(call, 1, 2 * SB_MAX_RANK, pads, &count));
    if (sb_call_input(call, 3) != NULL)
        SB_TRY(sb_move_integers(call, 3, SB_MAX_RANK, axes, &padded));
    if (count != 2 * padded)
        return sb_call_fail(call, SB_ERROR_SHAPE, "%d pads for %d axes", count, padded);
    for (int i = 0; i < padded; i++) {
        int axis;
        SB_TRY(sb_move_axis(call, axes[i], input->rank, &axis));
        if (seen[axis])
            return sb_call_fail(call, SB_ERROR_SHAPE, "axis %d is listed twice", axis);
        seen[axis] = true;
        before[axis] = pads[i];
        after[axis] = pads[i + padded];
    }
    return SB_OK;
}

static sb_status map_axis(sb_call *call, pad_maps *maps, int axis, int64_t extent) {
    const sb_pad_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t length = input->dims[axis];
    int64_t *offsets = sb_allocate_array((size_t)extent, sizeof *offsets);
    if (offsets == NULL)
        return sb_fail_memory(call->error, (size_t)extent * sizeof *offsets);
    maps->offsets[axis] = offsets;
    int64_t step = input->strides[axis] * (int64_t)sb_dtype_size(input->dtype);
    for (int64_t i = 0; i < extent; i++) {
        int64_t from = sb_pad_look(params->mode, i - maps->before[axis], length);
        offsets[i] = from < 0 ? INT64_MIN : from * step;
    }
    return SB_OK;
}

static void copy_padded(const pad_maps *maps, const sb_tensor *input, const char *constant, sb_tensor *output) {
    size_t size = sb_dtype_size(input->dtype);
    int rank = output->rank;
    int64_t index[SB_MAX_RANK] = {0}, inner = rank > 0 ? output->dims[rank - 1] : 1;
    char *to = output->data;
    if (sb_tensor_elements(output) == 0)
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
            sb_move_element(to, outside || offset == INT64_MIN ? constant : from + offset, size);
        }
    } while (sb_move_next(rank - 1, output->dims, index));
}

sb_status sb_pad_constant(const sb_call *call, char *bits) {
    const sb_pad_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0), *value = sb_call_input(call, 2);
    memset(bits, 0, sizeof(sb_string));
    if (value != NULL) {
        if (value->dtype != input->dtype || sb_tensor_elements(value) != 1)
            return sb_call_fail(call, SB_ERROR_SHAPE, "the constant must be one %s element",
                                sb_dtype_name(input->dtype));
        memcpy(bits, value->data, sb_dtype_size(input->dtype));
    } else if (params->value != 0.0f) {
        sb_number_store(input->dtype, bits, 0, params->value);
    }
    return SB_OK;
}

sb_status sb_pad_extents(const sb_call *call, int64_t *before, int64_t *dims) {
    const sb_pad_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t after[SB_MAX_RANK] = {0};
    memset(before, 0, (size_t)input->rank * sizeof *before);
    SB_TRY(read_pads(call, before, after));
    for (int d = 0; d < input->rank; d++) {
        /* Pads of more than 2^60 elements either way cannot be meant, and would overflow. */
        int64_t most = INT64_C(1) << 60;
        dims[d] = -1;
        if (before[d] > -most && before[d] < most && after[d] > -most && after[d] < most)
            dims[d] = input->dims[d] + before[d] + after[d];
        if (dims[d] < 0)
            return sb_call_fail(call, SB_ERROR_SHAPE, "the pads %lld and %lld do not fit axis %d", (long long)before[d],
                                (long long)after[d], d);
        if (input->dims[d] == 0 && dims[d] != 0 && params->mode != SB_PAD_CONSTANT)
            return sb_call_fail(call, SB_ERROR_SHAPE, "axis %d is empty: there is nothing to repeat", d);
    }
    return SB_OK;
}

static sb_status eval_pad(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    _Alignas(sb_string) char constant[sizeof(sb_string)];
    pad_maps maps = {0};
    int64_t dims[SB_MAX_RANK];
    SB_TRY(sb_pad_constant(call, constant));
    SB_TRY(sb_pad_extents(call, maps.before, dims));
    sb_tensor *output = NULL;
    SB_TRY(sb_move_output(call, 0, input->dtype, input->rank, dims, &output));
    sb_status status = SB_OK;
    for (int d = 0; d < input->rank && status == SB_OK; d++)
        status = map_axis(call, &maps, d, dims[d]);
    if (status == SB_OK)
        copy_padded(&maps, input, constant, output);
    for (int d = 0; d < input->rank; d++)
        sb_free(maps.offsets[d]);
    return sb_move_finish(call, 0, output, status);
}

const sb_op sb_ops_pad[] = {
    {.name = "Pad",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_pad_params),
     .prepare = prepare_pad,
     .infer = infer_pad,
     .eval = eval_pad},
    {0},
};
