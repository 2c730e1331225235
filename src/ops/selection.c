/* Elements chosen by their values: Compress, NonZero, OneHot, Unique. */
#include "ops/selection.h"

#include <stdlib.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/order.h"

static sb_status prepare_axis(sb_node *node, sb_error *error) {
    sb_selection_params *params = node->params;
    int64_t sorted;
    params->has_axis = sb_node_has(node, "axis");
    SB_TRY(sb_node_int(node, "sorted", 1, &sorted, error));
    params->sorted = sorted != 0;
    return sb_node_int(node, "axis", -1, &params->axis, error);
}

/* ---- Compress ---- */

static sb_status infer_compress(sb_infer *infer) {
    const sb_selection_params *params = infer->node->params;
    const sb_fact *input, *condition;
    int axis = 0;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(SB_BOOL), &condition));
    if (condition->rank != SB_RANK_UNKNOWN && condition->rank != 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the condition has rank %d, not 1", condition->rank);
    if (!params->has_axis) {
        sb_infer_open(infer, 0, input->dtype, 1);
        return SB_OK;
    }
    if (input->rank != SB_RANK_UNKNOWN)
        SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
    sb_infer_shape_of(infer, 0, input, input->dtype);
    if (input->rank != SB_RANK_UNKNOWN)
        infer->outputs[0].dims[axis] = sb_infer_fresh(infer, 0, axis);
    return SB_OK;
}

sb_status sb_compress_describe(const sb_call *call, sb_compress_work *work) {
    const sb_selection_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0), *condition = sb_call_input(call, 1);
    *work = (sb_compress_work){.outer = 1, .extent = sb_tensor_elements(input), .inner = 1, .rank = 1};
    if (params->has_axis)
        SB_TRY(sb_move_axis(call, params->axis, input->rank, &work->axis));
    if (condition->rank != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the condition has rank %d, not 1", condition->rank);
    if (params->has_axis) {
        work->rank = input->rank;
        work->extent = input->dims[work->axis];
        work->outer = sb_move_product(input->dims, 0, work->axis);
        work->inner = sb_move_product(input->dims, work->axis + 1, input->rank);
    }
    memcpy(work->dims, input->dims, sizeof work->dims);
    work->length = condition->dims[0] < work->extent ? condition->dims[0] : work->extent;
    return SB_OK;
}

static sb_status eval_compress(sb_call *call) {
    const sb_tensor *condition = sb_call_input(call, 1);
    sb_compress_work work;
    SB_TRY(sb_compress_describe(call, &work));
    sb_tensor *input, *output = NULL;
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t kept = 0;
    for (int64_t i = 0; i < work.length; i++)
        kept += condition->data[i * condition->strides[0]] != 0;
    work.dims[work.axis] = kept;
    size_t block = (size_t)work.inner * sb_dtype_size(input->dtype);
    sb_status status = sb_move_output(call, 0, input->dtype, work.rank, work.dims, &output);
    char *to = status == SB_OK ? output->data : NULL;
    for (int64_t o = 0; o < work.outer && status == SB_OK && block != 0; o++) {
        for (int64_t i = 0; i < work.length; i++) {
            if (condition->data[i * condition->strides[0]] == 0)
                continue;
            sb_move_element(to, input->data + (size_t)(o * work.extent + i) * block, block);
            to += block;
        }
    }
    status = sb_move_finish(call, 0, output, status);
    sb_tensor_release(input);
    return status;
}

/* ---- NonZero ---- */

static sb_status infer_non_zero(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_PLAIN, &input));
    sb_infer_open(infer, 0, SB_S64, 2);
    if (input->rank != SB_RANK_UNKNOWN)
        infer->outputs[0].dims[0] = sb_dim_constant(infer->scope, input->rank);
    return SB_OK;
}

static bool is_zero(const sb_tensor *tensor, int64_t index) {
    switch (sb_dtype_size(tensor->dtype)) {
    case 1:
        return ((const uint8_t *)tensor->data)[index] == 0;
    case 2: {
        uint16_t bits = ((const uint16_t *)(const void *)tensor->data)[index];
        return (sb_dtype_is_float(tensor->dtype) ? bits & 0x7fff : bits) == 0;
    }
    default:
        return sb_number_load(tensor->dtype, tensor->data, index) == 0.0;
    }
}

static sb_status eval_non_zero(sb_call *call) {
    sb_tensor *input, *output;
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t elements = sb_tensor_elements(input), found = 0, index[SB_MAX_RANK] = {0};
    for (int64_t i = 0; i < elements; i++)
        found += !is_zero(input, i);
    sb_status status = sb_call_output_shape(call, 0, SB_S64, 2, (const int64_t[]){input->rank, found}, &output);
    int64_t *to = status == SB_OK ? (int64_t *)(void *)output->data : NULL;
    for (int64_t i = 0; i < elements && status == SB_OK; i++) {
        if (!is_zero(input, i)) {
            for (int d = 0; d < input->rank; d++)
                to[d * found] = index[d];
            to++;
        }
        sb_move_next(input->rank, input->dims, index);
    }
    sb_tensor_release(input);
    return status;
}

/* ---- OneHot ---- */

static sb_status infer_one_hot(sb_infer *infer) {
    const sb_selection_params *params = infer->node->params;
    const sb_fact *indices, *depth, *values;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_NUMBER, &indices));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_NUMBER, &depth));
    SB_TRY(sb_infer_require(infer, 2, SB_SET_ANY, &values));
    if (indices->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], values->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int axis, rank = indices->rank + 1;
    if (rank > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most", rank, SB_MAX_RANK);
    SB_TRY(sb_infer_axis(infer, params->axis, rank, &axis));
    sb_dim extent = NULL, dims[SB_MAX_RANK];
    if (depth->constant != NULL && sb_tensor_elements(depth->constant) == 1) {
        extent = sb_dim_constant(infer->scope, sb_i64_from_f64(sb_number_load(depth->dtype, depth->constant->data, 0)));
    } else if (depth->dtype == SB_S64 && depth->rank <= 1) {
        int count;
        bool known;
        SB_TRY(sb_infer_integers(infer, 1, 1, &extent, &count, &known));
        extent = known && count == 1 ? extent : NULL;
    }
    int64_t number;
    if (extent != NULL && sb_dim_is_constant(extent, &number) && number < 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the depth is %lld", (long long)number);
    if (extent == NULL)
        extent = sb_infer_fresh(infer, 0, axis);
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? extent : indices->dims[i < axis ? i : i - 1];
    sb_fact_set_tensor(&infer->outputs[0], values->dtype, rank, dims);
    return SB_OK;
}

sb_status sb_one_hot_describe(sb_call *call, sb_one_hot_work *work) {
    const sb_tensor *indices = sb_call_input(call, 0), *depth = sb_call_input(call, 1);
    int axis;
    work->rank = indices->rank + 1;
    SB_TRY(sb_move_axis(call, ((const sb_selection_params *)call->node->params)->axis, work->rank, &axis));
    work->extent = -1;
    if (sb_tensor_elements(depth) == 1)
        work->extent = sb_i64_from_f64(sb_number_load(depth->dtype, depth->data, 0));
    if (sb_tensor_elements(sb_call_input(call, 2)) != 2 || work->extent < 0)
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "the depth must be one number that is not negative, the values two elements");
    for (int i = 0; i < work->rank; i++)
        work->dims[i] = i == axis ? work->extent : indices->dims[i < axis ? i : i - 1];
    work->outer = sb_move_product(work->dims, 0, axis);
    work->inner = sb_move_product(work->dims, axis + 1, work->rank);
    return SB_OK;
}

int64_t sb_one_hot_place(const sb_tensor *indices, int64_t i, int64_t extent) {
    int64_t hot = sb_i64_from_f64(sb_number_load(indices->dtype, indices->data, i));
    return hot < 0 ? hot + extent : hot;
}

/* Outside [-depth, depth) every value is "off". */
static void fill_one_hot(const sb_one_hot_work *work, const sb_tensor *indices, const sb_tensor *values,
                         sb_tensor *output) {
    const int64_t extent = work->extent, inner = work->inner, elements = work->outer * extent * inner;
    const size_t size = sb_dtype_size(values->dtype);
    for (int64_t i = 0; i < elements; i++)
        sb_move_element(output->data + (size_t)i * size, values->data, size);
    for (int64_t i = 0; i < work->outer * inner && elements != 0; i++) {
        int64_t hot = sb_one_hot_place(indices, i, extent);
        if (hot >= 0 && hot < extent)
            sb_move_element(output->data + (size_t)((i / inner * extent + hot) * inner + i % inner) * size,
                            values->data + size, size);
    }
}

static sb_status eval_one_hot(sb_call *call) {
    sb_one_hot_work work;
    sb_tensor *indices, *values, *output = NULL;
    SB_TRY(sb_one_hot_describe(call, &work));
    SB_TRY(sb_call_contiguous(call, 0, &indices));
    sb_status status = sb_call_contiguous(call, 2, &values);
    if (status != SB_OK) {
        sb_tensor_release(indices);
        return status;
    }
    status = sb_move_output(call, 0, values->dtype, work.rank, work.dims, &output);
    if (status == SB_OK)
        fill_one_hot(&work, indices, values, output);
    status = sb_move_finish(call, 0, output, status);
    sb_tensor_release(indices);
    sb_tensor_release(values);
    return status;
}

/* ---- Unique ---- */

static sb_status infer_unique(sb_infer *infer) {
    const sb_selection_params *params = infer->node->params;
    const sb_fact *input;
    int axis = 0;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    sb_infer_open(infer, 0, input->dtype, 1);
    sb_dim found = infer->outputs[0].dims[0];
    if (params->has_axis) {
        if (input->rank != SB_RANK_UNKNOWN)
            SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
        sb_infer_shape_of(infer, 0, input, input->dtype);
        if (input->rank != SB_RANK_UNKNOWN)
            infer->outputs[0].dims[axis] = found;
    }
    for (int i = 1; i < infer->output_count; i++)
        sb_fact_set_tensor(&infer->outputs[i], SB_S64, 1, &found);
    if (infer->output_count > 2)
        infer->outputs[2].dims[0] = input->rank == SB_RANK_UNKNOWN ? sb_infer_fresh(infer, 2, 0)
                                    : params->has_axis             ? input->dims[axis]
                                                       : sb_dim_product(infer->scope, input->dims, 0, input->rank);
    return SB_OK;
}

/* The items that Unique compares: elements, or the slices along an axis. Item i is made of `outer`
 * blocks of `inner` elements, the blocks `count * inner` elements apart. */
typedef struct items {
    const sb_tensor *tensor;
    int64_t count, outer, inner;
} items;

static int compare_elements(const sb_tensor *tensor, int64_t left, int64_t right) {
    if (tensor->dtype == SB_STRING) {
        const sb_string *table = (const sb_string *)(const void *)tensor->data;
        size_t shorter = table[left].bytes < table[right].bytes ? table[left].bytes : table[right].bytes;
        int order = shorter != 0 ? memcmp(table[left].data, table[right].data, shorter) : 0;
        return order != 0 ? order : (table[left].bytes > table[right].bytes) - (table[left].bytes < table[right].bytes);
    }
    int64_t first = sb_order_key(tensor->dtype, tensor->data, left, false);
    int64_t second = sb_order_key(tensor->dtype, tensor->data, right, false);
    return (first > second) - (first < second);
}

static int compare_items(const items *all, int64_t left, int64_t right) {
    for (int64_t o = 0; o < all->outer; o++) {
        for (int64_t i = 0; i < all->inner; i++) {
            int64_t base = o * all->count * all->inner + i;
            int order = compare_elements(all->tensor, base + left * all->inner, base + right * all->inner);
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
        bool take_left = right == count || (left < half && compare_items(all, other[left], other[right]) <= 0);
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

static sb_status write_list(sb_call *call, int index, int64_t count, const int64_t *values) {
    sb_tensor *output;
    if (index >= call->output_count)
        return SB_OK;
    SB_TRY(sb_call_output_shape(call, index, SB_S64, 1, &count, &output));
    if (count != 0)
        memcpy(output->data, values, (size_t)count * sizeof *values);
    return SB_OK;
}

static sb_status write_unique(sb_call *call, const items *all, const distinct *found, int axis) {
    const sb_selection_params *params = call->node->params;
    int64_t dims[SB_MAX_RANK] = {found->count};
    int rank = 1;
    if (params->has_axis) {
        rank = all->tensor->rank;
        memcpy(dims, all->tensor->dims, sizeof dims);
        dims[axis] = found->count;
    }
    sb_tensor *output = NULL;
    size_t size = sb_dtype_size(all->tensor->dtype), block = (size_t)all->inner * size;
    sb_status status = sb_move_output(call, 0, all->tensor->dtype, rank, dims, &output);
    char *to = status == SB_OK ? output->data : NULL;
    for (int64_t o = 0; o < all->outer && status == SB_OK && block != 0; o++) {
        for (int64_t i = 0; i < found->count; i++, to += block)
            sb_move_element(to, all->tensor->data + (size_t)(o * all->count + found->first[i]) * block, block);
    }
    SB_TRY(sb_move_finish(call, 0, output, status));
    SB_TRY(write_list(call, 1, found->count, found->first));
    SB_TRY(write_list(call, 2, all->count, found->which));
    return write_list(call, 3, found->count, found->occurs);
}

static sb_status eval_unique(sb_call *call) {
    const sb_selection_params *params = call->node->params;
    int axis = 0;
    if (params->has_axis)
        SB_TRY(sb_move_axis(call, params->axis, sb_call_input(call, 0)->rank, &axis));
    sb_tensor *input;
    SB_TRY(sb_call_contiguous(call, 0, &input));
    items all = {input, sb_tensor_elements(input), 1, 1};
    if (params->has_axis)
        all = (items){input, input->dims[axis], sb_move_product(input->dims, 0, axis),
                      sb_move_product(input->dims, axis + 1, input->rank)};
    int64_t *memory = sb_allocate_array((size_t)all.count + 1, 5 * sizeof *memory);
    sb_status status = SB_OK;
    if (memory == NULL) {
        status = sb_fail_memory(call->error, (size_t)all.count * 5 * sizeof *memory);
    } else {
        distinct found = {
            0, memory, memory + all.count, memory + 2 * all.count, memory + 3 * all.count, memory + 4 * all.count};
        number_sorted(&all, &found);
        if (!params->sorted)
            number_by_occurrence(&all, &found);
        status = write_unique(call, &all, &found, axis);
    }
    sb_free(memory);
    sb_tensor_release(input);
    return status;
}

#define SELECTION_OP(op_name, inputs, outputs, moved, infer_function, eval_function)                                   \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = inputs, .most_inputs = inputs, .least_outputs = 1,              \
        .most_outputs = outputs, .moved_inputs = moved, .params_size = sizeof(sb_selection_params),                    \
        .prepare = prepare_axis, .infer = infer_function, .eval = eval_function                                        \
    }

const sb_op sb_ops_selection[] = {
    SELECTION_OP("Compress", 2, 1, 1, infer_compress, eval_compress),
    SELECTION_OP("NonZero", 1, 1, 0, infer_non_zero, eval_non_zero),
    SELECTION_OP("OneHot", 3, 1, 4, infer_one_hot, eval_one_hot),
    SELECTION_OP("Unique", 1, 4, 0, infer_unique, eval_unique),
    {0},
};
