/* Elements chosen by their values: Compress, NonZero, OneHot, Unique. */
#include "ops/selection.h"

#include <stdlib.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/order.h"

static iv_status prepare_axis(iv_node *node, iv_error *error) {
    iv_selection_params *params = node->params;
    int64_t sorted;
    params->has_axis = iv_node_has(node, "axis");
    IV_TRY(iv_node_int(node, "sorted", 1, &sorted, error));
    params->sorted = sorted != 0;
    return iv_node_int(node, "axis", -1, &params->axis, error);
}

/* ---- Compress ---- */

static iv_status infer_compress(iv_infer *infer) {
    const iv_selection_params *params = infer->node->params;
    const iv_fact *input, *condition;
    int axis = 0;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    IV_TRY(iv_infer_require(infer, 1, IV_SET(IV_BOOL), &condition));
    if (!params->has_axis) {
        iv_infer_open(infer, 0, input->dtype, 1);
        return IV_OK;
    }
    if (input->rank != IV_RANK_UNKNOWN)
        IV_TRY(iv_infer_axis(infer, params->axis, input->rank, &axis));
    iv_infer_shape_of(infer, 0, input, input->dtype);
    if (input->rank != IV_RANK_UNKNOWN)
        infer->outputs[0].dims[axis] = iv_infer_fresh(infer, 0, axis);
    return IV_OK;
}

static iv_status eval_compress(iv_call *call) {
    const iv_selection_params *params = call->node->params;
    const iv_tensor *source = iv_call_input(call, 0), *condition = iv_call_input(call, 1);
    int axis = 0;
    if (params->has_axis)
        IV_TRY(iv_move_axis(call, params->axis, source->rank, &axis));
    if (condition->rank != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the condition has rank %d, not 1",
                            condition->rank);
    iv_tensor *input, *output = NULL;
    IV_TRY(iv_call_contiguous(call, 0, &input));
    int64_t elements = iv_tensor_elements(input), kept = 0, dims[IV_MAX_RANK] = {0};
    int64_t extent = params->has_axis ? input->dims[axis] : elements;
    int64_t length = condition->dims[0] < extent ? condition->dims[0] : extent;
    for (int64_t i = 0; i < length; i++)
        kept += condition->data[i * condition->strides[0]] != 0;
    int rank = params->has_axis ? input->rank : 1;
    memcpy(dims, input->dims, sizeof dims);
    dims[axis] = kept;
    int64_t outer = params->has_axis ? iv_move_product(input->dims, 0, axis) : 1;
    size_t block = (params->has_axis ? (size_t)iv_move_product(input->dims, axis + 1, rank) : 1) *
                   iv_dtype_size(input->dtype);
    iv_status status = iv_move_output(call, 0, input->dtype, rank, dims, &output);
    char *to = status == IV_OK ? output->data : NULL;
    for (int64_t o = 0; o < outer && status == IV_OK && block != 0; o++) {
        for (int64_t i = 0; i < length; i++) {
            if (condition->data[i * condition->strides[0]] == 0)
                continue;
            iv_move_element(to, input->data + (size_t)(o * extent + i) * block, block);
            to += block;
        }
    }
    status = iv_move_finish(call, 0, output, status);
    iv_tensor_release(input);
    return status;
}

/* ---- NonZero ---- */

static iv_status infer_non_zero(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_PLAIN, &input));
    iv_infer_open(infer, 0, IV_S64, 2);
    if (input->rank != IV_RANK_UNKNOWN)
        infer->outputs[0].dims[0] = iv_dim_constant(infer->scope, input->rank);
    return IV_OK;
}

static bool is_zero(const iv_tensor *tensor, int64_t index) {
    switch (iv_dtype_size(tensor->dtype)) {
    case 1:
        return ((const uint8_t *)tensor->data)[index] == 0;
    case 2: {
        uint16_t bits = ((const uint16_t *)(const void *)tensor->data)[index];
        return (iv_dtype_is_float(tensor->dtype) ? bits & 0x7fff : bits) == 0;
    }
    default:
        return iv_number_load(tensor->dtype, tensor->data, index) == 0.0;
    }
}

static iv_status eval_non_zero(iv_call *call) {
    iv_tensor *input, *output;
    IV_TRY(iv_call_contiguous(call, 0, &input));
    int64_t elements = iv_tensor_elements(input), found = 0, index[IV_MAX_RANK] = {0};
    for (int64_t i = 0; i < elements; i++)
        found += !is_zero(input, i);
    iv_status status =
        iv_call_output_shape(call, 0, IV_S64, 2, (const int64_t[]){input->rank, found}, &output);
    int64_t *to = status == IV_OK ? (int64_t *)(void *)output->data : NULL;
    for (int64_t i = 0; i < elements && status == IV_OK; i++) {
        if (!is_zero(input, i)) {
            for (int d = 0; d < input->rank; d++)
                to[d * found] = index[d];
            to++;
        }
        iv_move_next(input->rank, input->dims, index);
    }
    iv_tensor_release(input);
    return status;
}

/* ---- OneHot ---- */

static iv_status infer_one_hot(iv_infer *infer) {
    const iv_selection_params *params = infer->node->params;
    const iv_fact *indices, *depth, *values;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_NUMBER, &indices));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_NUMBER, &depth));
    IV_TRY(iv_infer_require(infer, 2, IV_SET_ANY, &values));
    if (indices->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], values->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    int axis, rank = indices->rank + 1;
    if (rank > IV_MAX_RANK)
        return iv_infer_fail(infer, IV_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most",
                             rank, IV_MAX_RANK);
    IV_TRY(iv_infer_axis(infer, params->axis, rank, &axis));
    iv_dim extent = NULL, dims[IV_MAX_RANK];
    if (depth->constant != NULL && iv_tensor_elements(depth->constant) == 1) {
        extent = iv_dim_constant(
            infer->scope, iv_i64_from_f64(iv_number_load(depth->dtype, depth->constant->data, 0)));
    } else if (depth->dtype == IV_S64 && depth->rank <= 1) {
        int count;
        bool known;
        IV_TRY(iv_infer_integers(infer, 1, 1, &extent, &count, &known));
        extent = known && count == 1 ? extent : NULL;
    }
    int64_t number;
    if (extent != NULL && iv_dim_is_constant(extent, &number) && number < 0)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the depth is %lld", (long long)number);
    if (extent == NULL)
        extent = iv_infer_fresh(infer, 0, axis);
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? extent : indices->dims[i < axis ? i : i - 1];
    iv_fact_set_tensor(&infer->outputs[0], values->dtype, rank, dims);
    return IV_OK;
}

/* Indices that are not integers are cut toward zero; outside [-depth, depth) every value is "off".
 */
static iv_status eval_one_hot(iv_call *call) {
    const iv_tensor *depth = iv_call_input(call, 1);
    iv_tensor *indices, *values, *output = NULL;
    int64_t dims[IV_MAX_RANK];
    int axis;
    IV_TRY(iv_call_contiguous(call, 0, &indices));
    iv_status status = iv_call_contiguous(call, 2, &values);
    if (status != IV_OK) {
        iv_tensor_release(indices);
        return status;
    }
    int rank = indices->rank + 1;
    status =
        iv_move_axis(call, ((const iv_selection_params *)call->node->params)->axis, rank, &axis);
    int64_t extent = -1;
    if (iv_tensor_elements(depth) == 1)
        extent = iv_i64_from_f64(iv_number_load(depth->dtype, depth->data, 0));
    if (status == IV_OK && (iv_tensor_elements(values) != 2 || extent < 0))
        status = iv_call_fail(
            call, IV_ERROR_SHAPE,
            "the depth must be one number that is not negative, the values two elements");
    for (int i = 0; i < rank && status == IV_OK; i++)
        dims[i] = i == axis ? extent : indices->dims[i < axis ? i : i - 1];
    if (status == IV_OK)
        status = iv_move_output(call, 0, values->dtype, rank, dims, &output);
    if (status == IV_OK && iv_tensor_elements(output) != 0) {
        size_t size = iv_dtype_size(values->dtype);
        int64_t outer = iv_move_product(dims, 0, axis),
                inner = iv_move_product(dims, axis + 1, rank);
        int64_t elements = outer * extent * inner;
        for (int64_t i = 0; i < elements; i++)
            iv_move_element(output->data + (size_t)i * size, values->data, size);
        for (int64_t i = 0; i < outer * inner; i++) {
            int64_t hot = iv_i64_from_f64(iv_number_load(indices->dtype, indices->data, i));
            hot = hot < 0 ? hot + extent : hot;
            if (hot >= 0 && hot < extent)
                iv_move_element(output->data +
                                    (size_t)((i / inner * extent + hot) * inner + i % inner) * size,
                                values->data + size, size);
        }
    }
    status = iv_move_finish(call, 0, output, status);
    iv_tensor_release(indices);
    iv_tensor_release(values);
    return status;
}

/* ---- Unique ---- */

static iv_status infer_unique(iv_infer *infer) {
    const iv_selection_params *params = infer->node->params;
    const iv_fact *input;
    int axis = 0;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    iv_infer_open(infer, 0, input->dtype, 1);
    iv_dim found = infer->outputs[0].dims[0];
    if (params->has_axis) {
        if (input->rank != IV_RANK_UNKNOWN)
            IV_TRY(iv_infer_axis(infer, params->axis, input->rank, &axis));
        iv_infer_shape_of(infer, 0, input, input->dtype);
        if (input->rank != IV_RANK_UNKNOWN)
            infer->outputs[0].dims[axis] = found;
    }
    for (int i = 1; i < infer->output_count; i++)
        iv_fact_set_tensor(&infer->outputs[i], IV_S64, 1, &found);
    if (infer->output_count > 2)
        infer->outputs[2].dims[0] = input->rank == IV_RANK_UNKNOWN ? iv_infer_fresh(infer, 2, 0)
                                    : params->has_axis
                                        ? input->dims[axis]
                                        : iv_dim_product(infer->scope, input->dims, 0, input->rank);
    return IV_OK;
}

/* The items that Unique compares: elements, or the slices along an axis. Item i is made of `outer`
 * blocks of `inner` elements, the blocks `count * inner` elements apart. */
typedef struct items {
    const iv_tensor *tensor;
    int64_t count, outer, inner;
} items;

static int compare_elements(const iv_tensor *tensor, int64_t left, int64_t right) {
    if (tensor->dtype == IV_STRING) {
        const iv_string *table = (const iv_string *)(const void *)tensor->data;
        size_t shorter =
            table[left].bytes < table[right].bytes ? table[left].bytes : table[right].bytes;
        int order = shorter != 0 ? memcmp(table[left].data, table[right].data, shorter) : 0;
        return order != 0 ? order
                          : (table[left].bytes > table[right].bytes) -
                                (table[left].bytes < table[right].bytes);
    }
    int64_t first = iv_order_key(tensor->dtype, tensor->data, left, false);
    int64_t second = iv_order_key(tensor->dtype, tensor->data, right, false);
    return (first > second) - (first < second);
}

static int compare_items(const items *all, int64_t left, int64_t right) {
    for (int64_t o = 0; o < all->outer; o++) {
        for (int64_t i = 0; i < all->inner; i++) {
            int64_t base = o * all->count * all->inner + i;
            int order =
                compare_elements(all->tensor, base + left * all->inner, base + right * all->inner);
            if (order != 0)
                return order;
        }
    }
    return 0;
}

/* Sorts `order` by item, then by index: merge sort, with room for as many entries in `other`. */
static void sort_items(const items *all, int64_t *order, int64_t *other, int64_t count) {
    if (count < 2)
        return;
    int64_t half = count / 2, left = 0, right = half;
    sort_items(all, order, other, half);
    sort_items(all, order + half, other, count - half);
    memcpy(other, order, (size_t)count * sizeof *order);
    for (int64_t i = 0; i < count; i++) {
        bool take_left =
            right == count || (left < half && compare_items(all, other[left], other[right]) <= 0);
        order[i] = take_left ? other[left++] : other[right++];
    }
}

/* What Unique found, all of `items.count` entries: the first index of each distinct item, how often
 * it occurs, and for each item which one it is. */
typedef struct distinct {
    int64_t count;
    int64_t *first, *occurs, *which, *order, *spare;
} distinct;

/* Numbers the distinct items in sorted order. */
static void number_sorted(const items *all, distinct *found) {
    for (int64_t i = 0; i < all->count; i++)
        found->order[i] = i;
    sort_items(all, found->order, found->spare, all->count);
    for (int64_t i = 0; i < all->count; i++) {
        if (i == 0 || compare_items(all, found->order[i - 1], found->order[i]) != 0) {
            found->first[found->count] = found->order[i];
            found->occurs[found->count++] = 0;
        }
        found->occurs[found->count - 1]++;
        found->which[found->order[i]] = found->count - 1;
    }
}

/* Renumbers them in the order of their first occurrence. */
static void number_by_occurrence(const items *all, distinct *found) {
    int64_t *renumbered = found->order, *occurs = found->spare, next = 0;
    for (int64_t i = 0; i < all->count; i++) {
        if (found->first[found->which[i]] == i) {
            occurs[next] = found->occurs[found->which[i]];
            renumbered[found->which[i]] = next++;
        }
    }
    for (int64_t i = 0; i < all->count; i++)
        found->which[i] = renumbered[found->which[i]];
    for (int64_t i = all->count - 1; i >= 0; i--)
        found->first[found->which[i]] = i;
    memcpy(found->occurs, occurs, (size_t)next * sizeof *occurs);
}

static iv_status write_list(iv_call *call, int index, int64_t count, const int64_t *values) {
    iv_tensor *output;
    if (index >= call->output_count)
        return IV_OK;
    IV_TRY(iv_call_output_shape(call, index, IV_S64, 1, &count, &output));
    if (count != 0)
        memcpy(output->data, values, (size_t)count * sizeof *values);
    return IV_OK;
}

static iv_status write_unique(iv_call *call, const items *all, const distinct *found, int axis) {
    const iv_selection_params *params = call->node->params;
    int64_t dims[IV_MAX_RANK] = {found->count};
    int rank = 1;
    if (params->has_axis) {
        rank = all->tensor->rank;
        memcpy(dims, all->tensor->dims, sizeof dims);
        dims[axis] = found->count;
    }
    iv_tensor *output = NULL;
    size_t size = iv_dtype_size(all->tensor->dtype), block = (size_t)all->inner * size;
    iv_status status = iv_move_output(call, 0, all->tensor->dtype, rank, dims, &output);
    char *to = status == IV_OK ? output->data : NULL;
    for (int64_t o = 0; o < all->outer && status == IV_OK && block != 0; o++) {
        for (int64_t i = 0; i < found->count; i++, to += block)
            iv_move_element(
                to, all->tensor->data + (size_t)(o * all->count + found->first[i]) * block, block);
    }
    IV_TRY(iv_move_finish(call, 0, output, status));
    IV_TRY(write_list(call, 1, found->count, found->first));
    IV_TRY(write_list(call, 2, all->count, found->which));
    return write_list(call, 3, found->count, found->occurs);
}

static iv_status eval_unique(iv_call *call) {
    const iv_selection_params *params = call->node->params;
    int axis = 0;
    if (params->has_axis)
        IV_TRY(iv_move_axis(call, params->axis, iv_call_input(call, 0)->rank, &axis));
    iv_tensor *input;
    IV_TRY(iv_call_contiguous(call, 0, &input));
    items all = {input, iv_tensor_elements(input), 1, 1};
    if (params->has_axis)
        all = (items){input, input->dims[axis], iv_move_product(input->dims, 0, axis),
                      iv_move_product(input->dims, axis + 1, input->rank)};
    int64_t *memory = iv_allocate_array((size_t)all.count + 1, 5 * sizeof *memory);
    iv_status status = IV_OK;
    if (memory == NULL) {
        status = iv_fail_memory(call->error, (size_t)all.count * 5 * sizeof *memory);
    } else {
        distinct found = {0,
                          memory,
                          memory + all.count,
                          memory + 2 * all.count,
                          memory + 3 * all.count,
                          memory + 4 * all.count};
        number_sorted(&all, &found);
        if (!params->sorted)
            number_by_occurrence(&all, &found);
        status = write_unique(call, &all, &found, axis);
    }
    iv_free(memory);
    iv_tensor_release(input);
    return status;
}

#define SELECTION_OP(op_name, inputs, outputs, moved, infer_function, eval_function)               \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = inputs, .most_inputs = inputs,              \
        .least_outputs = 1, .most_outputs = outputs, .moved_inputs = moved,                        \
        .params_size = sizeof(iv_selection_params), .prepare = prepare_axis,                       \
        .infer = infer_function, .eval = eval_function                                             \
    }

const iv_op iv_ops_selection[] = {
    SELECTION_OP("Compress", 2, 1, 1, infer_compress, eval_compress),
    SELECTION_OP("NonZero", 1, 1, 0, infer_non_zero, eval_non_zero),
    SELECTION_OP("OneHot", 3, 1, 4, infer_one_hot, eval_one_hot),
    SELECTION_OP("Unique", 1, 4, 0, infer_unique, eval_unique),
    {0},
};
