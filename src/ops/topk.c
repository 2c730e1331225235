/* TopK: the k largest or smallest elements along an axis, in order.
 *
 * The order is total, so that the result is one: by value as the numerics contract orders values (NaN first, and
 * +0 > -0), and equal values by ascending index. `sorted = 0` gives the same order. */
#include "ops/ordering.h"

#include <stdlib.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/order.h"

static sb_status prepare_topk(sb_node *node, sb_error *error) {
    sb_topk_params *params = node->params;
    int64_t largest;
    SB_TRY(sb_node_int(node, "axis", -1, &params->axis, error));
    SB_TRY(sb_node_int(node, "largest", 1, &largest, error));
    SB_TRY(sb_node_int(node, "k", -1, &params->k, error));
    params->largest = largest != 0;
    params->has_k = node->input_count - node->capture_count == 1;
    if (params->has_k && params->k < 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: TopK needs k", node->name);
    return SB_OK;
}

static sb_status infer_topk(sb_infer *infer) {
    const sb_topk_params *params = infer->node->params;
    const sb_fact *input;
    sb_dim k = NULL, dims[SB_MAX_RANK];
    int axis, count = 1;
    bool known = true;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_NUMBER, &input));
    if (params->has_k)
        k = sb_dim_constant(infer->scope, params->k);
    else
        SB_TRY(sb_infer_integers(infer, 1, 1, &k, &count, &known));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        if (infer->output_count > 1)
            sb_fact_set_tensor(&infer->outputs[1], SB_S64, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
    memcpy(dims, input->dims, sizeof dims);
    dims[axis] = known && count == 1 ? k : sb_infer_fresh(infer, 0, axis);
    int64_t wanted, extent;
    if (sb_dim_is_constant(dims[axis], &wanted) &&
        (wanted < 0 || (sb_dim_is_constant(input->dims[axis], &extent) && wanted > extent)))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "k is %lld, outside axis %d", (long long)wanted, axis);
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    if (infer->output_count > 1)
        sb_fact_set_tensor(&infer->outputs[1], SB_S64, input->rank, dims);
    return SB_OK;
}

typedef struct candidate {
    int64_t key; /* larger comes first */
    int64_t index;
} candidate;

static int before(const void *left, const void *right) {
    const candidate *first = left, *second = right;
    if (first->key != second->key)
        return first->key > second->key ? -1 : 1;
    return (first->index > second->index) - (first->index < second->index);
}

/* Keeps the best `k` of the first candidates as a heap whose root is the worst: sift the root down. */
static void sift(candidate *heap, int64_t count, int64_t at) {
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(&heap[child], &heap[child + 1]) < 0)
            child++;
        if (before(&heap[child], &heap[at]) < 0)
            return;
        candidate swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
    }
}

static void select_line(const sb_tensor *input, int axis, int64_t offset, bool largest, int64_t k, candidate *best) {
    for (int64_t i = 0; i < input->dims[axis]; i++) {
        int64_t key = sb_order_key(input->dtype, input->data, offset + i * input->strides[axis], !largest);
        candidate next = {largest ? key : ~key, i};
        if (i < k) {
            best[i] = next;
            for (int64_t start = k / 2 - 1; i == k - 1 && start >= 0; start--)
                sift(best, k, start);
        } else if (k > 0 && before(&next, &best[0]) < 0) {
            best[0] = next;
            sift(best, k, 0);
        }
    }
    qsort(best, (size_t)k, sizeof *best, before);
}

static sb_status topk_lines(sb_call *call, const sb_tensor *input, int axis, int64_t k, sb_tensor *values,
                            sb_tensor *indices) {
    bool largest = ((const sb_topk_params *)call->node->params)->largest;
    candidate *best = sb_allocate_array((size_t)k, sizeof *best);
    if (best == NULL)
        return sb_fail_memory(call->error, (size_t)k * sizeof *best);
    int64_t lines[SB_MAX_RANK], at[SB_MAX_RANK] = {0};
    memcpy(lines, values->dims, sizeof lines);
    lines[axis] = 1;
    size_t size = sb_dtype_size(input->dtype);
    do {
        int64_t from = 0, to = 0;
        for (int d = 0; d < input->rank; d++) {
            from += at[d] * input->strides[d];
            to += at[d] * values->strides[d];
        }
        select_line(input, axis, from, largest, k, best);
        for (int64_t i = 0; i < k; i++, to += values->strides[axis]) {
            int64_t source = from + best[i].index * input->strides[axis];
            sb_move_element(values->data + to * (int64_t)size, input->data + source * (int64_t)size, size);
            if (indices != NULL)
                ((int64_t *)(void *)indices->data)[to] = best[i].index;
        }
    } while (sb_move_next(input->rank, lines, at));
    sb_free(best);
    return SB_OK;
}

sb_status sb_topk_outputs(sb_call *call, int *axis, int64_t *k, sb_tensor **values, sb_tensor **indices) {
    const sb_topk_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t dims[SB_MAX_RANK];
    int count = 1;
    *k = params->k;
    SB_TRY(sb_move_axis(call, params->axis, input->rank, axis));
    if (!params->has_k)
        SB_TRY(sb_move_integers(call, 1, 1, k, &count));
    if (count != 1 || *k < 0 || *k > input->dims[*axis])
        return sb_call_fail(call, SB_ERROR_SHAPE, "k is %lld where axis %d has the extent %lld", (long long)*k, *axis,
                            (long long)input->dims[*axis]);
    memcpy(dims, input->dims, sizeof dims);
    dims[*axis] = *k;
    *indices = NULL;
    SB_TRY(sb_call_output_shape(call, 0, input->dtype, input->rank, dims, values));
    return call->output_count > 1 ? sb_call_output_shape(call, 1, SB_S64, input->rank, dims, indices) : SB_OK;
}

static sb_status eval_topk(sb_call *call) {
    sb_tensor *values, *indices;
    int64_t k;
    int axis;
    SB_TRY(sb_topk_outputs(call, &axis, &k, &values, &indices));
    if (sb_tensor_elements(values) == 0)
        return SB_OK;
    return topk_lines(call, sb_call_input(call, 0), axis, k, values, indices);
}

const sb_op sb_ops_topk[] = {
    {.name = "TopK",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 2,
     .params_size = sizeof(sb_topk_params),
     .prepare = prepare_topk,
     .infer = infer_topk,
     .eval = eval_topk},
    {0},
};
