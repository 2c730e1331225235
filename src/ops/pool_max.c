/* MaxPool and MaxUnpool.
 *
 * The maximum of a window is order-free: NaN above all, +0 above -0; the index is that of the first
 * largest element of the window in row-major order. The maximum of a window without an element
 * inside the input is minus infinity (the least integer), its index -1. */
#include <string.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/pool.h"

static sb_status infer_max_pool(sb_infer *infer) {
    const sb_fact *x;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT | SB_SET(SB_S8) | SB_SET(SB_U8), &x));
    SB_TRY(sb_pool_infer(infer, 0, x, x->dtype));
    if (infer->output_count > 1)
        sb_infer_shape_of(infer, 1, &infer->outputs[0], SB_S64);
    return SB_OK;
}

typedef struct max_pooling {
    sb_pool_shape shape;
    const sb_tensor *x;
    sb_tensor *y, *indices;                 /* indices may be NULL */
    int64_t flat[SB_WINDOW_AXES], elements; /* strides of the flat index; spatial elements */
    int64_t *offsets, *flat_offsets;        /* of one window */
} max_pooling;

/* The maximum of one window in one channel. */
static void pool_channel(const max_pooling *pool, int64_t count, int64_t batch, int64_t channel, int64_t position) {
    sb_dtype dtype = pool->x->dtype;
    int64_t size = (int64_t)sb_dtype_size(dtype), best = 0, best_order = 0;
    const char *x = pool->x->data + (batch * pool->x->strides[0] + channel * pool->x->strides[1]) * size;
    for (int64_t i = 0; i < count; i++) {
        int64_t order = sb_pool_order(dtype, x + pool->offsets[i] * size);
        if (i == 0 || order > best_order) {
            best = i;
            best_order = order;
        }
    }
    int64_t plane = batch * pool->shape.channels + channel;
    int64_t at = plane * pool->shape.positions + position;
    if (count == 0)
        sb_pool_store_least(dtype, pool->y->data + at * size);
    else
        memcpy(pool->y->data + at * size, x + pool->offsets[best] * size, (size_t)size);
    if (pool->indices != NULL)
        ((int64_t *)(void *)pool->indices->data)[at] =
            count == 0 ? -1 : plane * pool->elements + pool->flat_offsets[best];
}

static void pool_positions(const max_pooling *pool) {
    const sb_pool_shape *shape = &pool->shape;
    int64_t position[SB_WINDOW_AXES] = {0}, extents[SB_WINDOW_AXES], index = 0;
    for (int i = 0; i < shape->axes; i++)
        extents[i] = shape->axis[i].out;
    do {
        int64_t count = sb_pool_window(shape, pool->x->strides + 2, position, pool->offsets);
        sb_pool_window(shape, pool->flat, position, pool->flat_offsets);
        for (int64_t n = 0; n < shape->batch; n++) {
            for (int64_t c = 0; c < shape->channels; c++)
                pool_channel(pool, count, n, c, index);
        }
        index++;
    } while (sb_window_next(shape->axes, position, extents));
}

static sb_status eval_max_pool(sb_call *call) {
    const sb_pool_params *params = call->node->params;
    max_pooling pool = {.x = sb_call_input(call, 0), .elements = 1};
    SB_TRY(sb_call_output(call, 0, &pool.y));
    if (sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &pool.indices));
    if (sb_tensor_elements(pool.y) == 0)
        return SB_OK;
    sb_pool_shape_of(&params->window, pool.x, pool.y->dims, &pool.shape);
    for (int i = 0; i < pool.shape.axes; i++) {
        int axis = params->column_major ? i : pool.shape.axes - 1 - i;
        pool.flat[axis] = pool.elements;
        pool.elements *= pool.shape.axis[axis].in;
    }
    size_t capacity = (size_t)pool.shape.capacity;
    pool.offsets = sb_allocate_array(capacity, 2 * sizeof *pool.offsets);
    if (pool.offsets == NULL)
        return sb_fail_memory(call->error, capacity * 2 * sizeof *pool.offsets);
    pool.flat_offsets = pool.offsets + capacity;
    pool_positions(&pool);
    sb_free(pool.offsets);
    return SB_OK;
}

/* ---- MaxUnpool ---- */

static sb_status prepare_unpool(sb_node *node, sb_error *error) {
    sb_window *window = node->params;
    SB_TRY(sb_window_read(node, window, error));
    if (!window->has_kernel)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): the attribute kernel_shape is missing", node->name,
                       node->op->name);
    return SB_OK;
}

/* The extent that pooling with this window came from, without knowing better. */
static sb_status unpooled_extent(const sb_infer *infer, int axis, sb_dim in, sb_dim *out) {
    const sb_window *window = infer->node->params;
    sb_scope *scope = infer->scope;
    int64_t rest = window->kernel[axis] - window->begin[axis] - window->end[axis], extent;
    sb_dim spread = sb_dim_multiply(scope, sb_dim_subtract(scope, in, sb_dim_constant(scope, 1)),
                                    sb_dim_constant(scope, window->strides[axis]));
    *out = sb_dim_add(scope, spread, sb_dim_constant(scope, rest));
    if (sb_dim_is_constant(*out, &extent) && extent < 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "pads leave nothing of the output along spatial axis %d", axis);
    return SB_OK;
}

static sb_status infer_unpool(sb_infer *infer) {
    const sb_fact *x, *indices;
    sb_dim dims[SB_MAX_RANK];
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT | SB_SET(SB_S8) | SB_SET(SB_U8), &x));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(SB_S64), &indices));
    int axes = x->rank != SB_RANK_UNKNOWN ? x->rank - 2 : ((const sb_window *)infer->node->params)->axes;
    SB_TRY(sb_window_check_axes(infer, infer->node->params, axes));
    if (indices->rank != x->rank && indices->rank != SB_RANK_UNKNOWN && x->rank != SB_RANK_UNKNOWN)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 1 has rank %d, input 0 has %d", indices->rank, x->rank);
    for (int d = 0; d < axes + 2; d++) {
        if (x->rank == SB_RANK_UNKNOWN)
            dims[d] = sb_infer_fresh(infer, 0, d);
        else if (d < 2)
            dims[d] = x->dims[d];
        else
            SB_TRY(unpooled_extent(infer, d - 2, x->dims[d], &dims[d]));
    }
    if (sb_infer_input(infer, 2) != NULL) {
        int count;
        bool known;
        sb_dim given[SB_MAX_RANK];
        SB_TRY(sb_infer_integers(infer, 2, SB_MAX_RANK, given, &count, &known));
        if (known && count != axes + 2)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "output_shape lists %d extents for rank %d", count, axes + 2);
        for (int d = 0; d < axes + 2; d++)
            dims[d] = known ? given[d] : sb_infer_fresh(infer, 0, d);
    }
    sb_fact_set_tensor(&infer->outputs[0], x->dtype, axes + 2, dims);
    return SB_OK;
}

/* The output's extents: those of the fact, or what the third input says at run time. */
static sb_status create_unpooled(sb_call *call, int rank, const int64_t *least, sb_tensor **y) {
    sb_tensor *shape = sb_call_input(call, 2);
    int64_t dims[SB_MAX_RANK];
    memcpy(dims, least, (size_t)rank * sizeof *dims);
    if (shape != NULL) {
        if (shape->rank != 1 || shape->dims[0] != rank)
            return sb_call_fail(call, SB_ERROR_SHAPE, "output_shape must list %d extents", rank);
        for (int d = 0; d < rank; d++)
            dims[d] = ((const int64_t *)(const void *)shape->data)[d * shape->strides[0]];
    }
    for (int d = 0; d < rank; d++) {
        if (dims[d] < least[d])
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "output_shape has %lld in dimension %d, less than the %lld that "
                                "the window covers",
                                (long long)dims[d], d, (long long)least[d]);
    }
    return sb_call_output_shape(call, 0, call->inputs[0].tensor->dtype, rank, dims, y);
}

/* Puts each element where its index says: an index counts in the extents `least`. */
static sb_status scatter(sb_call *call, const sb_tensor *x, const sb_tensor *indices, const int64_t *least,
                         sb_tensor *y) {
    size_t size = sb_dtype_size(x->dtype);
    int64_t elements = sb_tensor_elements(x), limit = 1;
    for (int d = 0; d < x->rank; d++) {
        /* Overflows only beside an extent of 0, and then no index is right. */
        if (__builtin_mul_overflow(limit, least[d], &limit))
            limit = 0;
    }
    for (int64_t e = 0; e < elements; e++) {
        int64_t index = ((const int64_t *)(const void *)indices->data)[e], at = 0;
        if (index < 0 || index >= limit)
            return sb_call_fail(call, SB_ERROR_SHAPE, "index %lld is outside [0, %lld)", (long long)index,
                                (long long)limit);
        for (int d = x->rank - 1; d >= 0; d--) {
            at += index % least[d] * y->strides[d];
            index /= least[d];
        }
        memcpy(y->data + (size_t)at * size, x->data + (size_t)e * size, size);
    }
    return SB_OK;
}

static sb_status eval_unpool(sb_call *call) {
    const sb_window *window = call->node->params;
    sb_tensor *x = sb_call_input(call, 0), *dense = NULL, *indices = NULL, *y;
    int64_t least[SB_MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        least[d] = x->dims[d];
        if (call->inputs[1].tensor->rank != x->rank || call->inputs[1].tensor->dims[d] != least[d])
            return sb_call_fail(call, SB_ERROR_SHAPE, "inputs 0 and 1 have different shapes");
        if (d >= 2)
            least[d] = (x->dims[d] - 1) * window->strides[d - 2] + window->kernel[d - 2] - window->begin[d - 2] -
                       window->end[d - 2];
    }
    SB_TRY(create_unpooled(call, x->rank, least, &y));
    size_t bytes = (size_t)sb_tensor_elements(y) * sb_dtype_size(y->dtype);
    if (bytes != 0)
        memset(y->data, 0, bytes);
    sb_status status = sb_call_contiguous(call, 0, &dense);
    if (status == SB_OK)
        status = sb_call_contiguous(call, 1, &indices);
    if (status == SB_OK)
        status = scatter(call, dense, indices, least, y);
    sb_tensor_release(dense);
    sb_tensor_release(indices);
    return status;
}

const sb_op sb_ops_pool_max[] = {
    {.name = "MaxPool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 2,
     .params_size = sizeof(sb_pool_params),
     .prepare = sb_pool_prepare,
     .infer = infer_max_pool,
     .eval = eval_max_pool},
    {.name = "MaxUnpool",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_window),
     .prepare = prepare_unpool,
     .infer = infer_unpool,
     .eval = eval_unpool},
    {0},
};
