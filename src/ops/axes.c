#include "ops/axes.h"

#include <string.h>

#include "ops/convert_loops.h"

sb_status sb_axes_prepare(const sb_node *node, int input_since, sb_axes *axes, sb_error *error) {
    int64_t noop;
    SB_TRY(sb_node_int(node, "noop_with_empty_axes", 0, &noop, error));
    axes->none_when_absent = noop != 0;
    axes->input = node->version >= input_since ? 1 : -1;
    if (axes->input < 0 && node->input_count - node->capture_count > 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): before operator set %d the axes are an attribute, not an input", node->name,
                       node->op->name, input_since);
    return sb_node_ints(node, "axes", &axes->count, &axes->values, error);
}

/* The index of an axis that is out of range or named twice, or -1. */
static int64_t collect(const sb_axes *axes, int64_t count, const int64_t *values, int rank, uint32_t *set) {
    *set = 0;
    if (count == 0)
        *set = axes->none_when_absent ? 0 : (UINT32_C(1) << rank) - 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = values[i] < 0 ? values[i] + rank : values[i];
        if (axis < 0 || axis >= rank || (*set >> axis & 1) != 0)
            return i;
        *set |= UINT32_C(1) << axis;
    }
    return -1;
}

#define WRONG_AXIS "axis %lld is named twice or outside [-%d, %d)"

sb_status sb_axes_of_infer(const sb_infer *infer, const sb_axes *axes, int rank, uint32_t *set, int *named,
                           bool *known) {
    int64_t held[SB_MAX_RANK], count = axes->count;
    const int64_t *values = axes->values;
    *named = (int)(count <= SB_MAX_RANK ? count : -1);
    *known = true;
    *set = 0;
    if (axes->input >= 0 && sb_infer_input(infer, axes->input) != NULL) {
        SB_TRY(sb_infer_numbers(infer, axes->input, SB_MAX_RANK, held, named, known));
        values = held;
        count = *named;
    }
    *known = *known && rank != SB_RANK_UNKNOWN;
    if (*named > rank && rank != SB_RANK_UNKNOWN)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%d axes for an input of rank %d", *named, rank);
    if (!*known) {
        /* An empty list names all axes, or none. */
        if (*named == 0 && rank != SB_RANK_UNKNOWN)
            *named = axes->none_when_absent ? 0 : rank;
        return SB_OK;
    }
    int64_t wrong = collect(axes, count, values, rank, set);
    if (wrong >= 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, WRONG_AXIS, (long long)values[wrong], rank, rank);
    return SB_OK;
}

sb_status sb_axes_of_call(const sb_call *call, const sb_axes *axes, int rank, uint32_t *set) {
    int64_t held[SB_MAX_RANK], count = axes->count;
    const int64_t *values = axes->values;
    const sb_tensor *tensor = axes->input >= 0 ? sb_call_input(call, axes->input) : NULL;
    if (tensor != NULL) {
        count = sb_tensor_elements(tensor);
        if (tensor->rank > 1 || count > SB_MAX_RANK)
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d is no list of axes", axes->input);
        int64_t step = tensor->rank == 1 ? tensor->strides[0] : 1;
        sb_convert_row(SB_S64, held, tensor->dtype, tensor->data, step * (int64_t)sb_dtype_size(tensor->dtype), count);
        values = held;
    }
    int64_t wrong = collect(axes, count, values, rank, set);
    if (wrong >= 0)
        return sb_call_fail(call, SB_ERROR_SHAPE, WRONG_AXIS, (long long)values[wrong], rank, rank);
    return SB_OK;
}

sb_status sb_axis_list_read(const sb_node *node, sb_axis_list *list, sb_error *error) {
    int64_t count;
    const int64_t *axes;
    SB_TRY(sb_node_ints(node, "axes", &count, &axes, error));
    if (count > SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): %lld axes are more than %d", node->name,
                       node->op->name, (long long)count, SB_MAX_RANK);
    list->given = sb_node_has(node, "axes");
    list->count = (int)count;
    if (count != 0)
        memcpy(list->axes, axes, (size_t)count * sizeof *axes);
    return SB_OK;
}
