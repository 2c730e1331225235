#include "ops/pool.h"

#include <string.h>

#include "numerics/minmax.h"
#include "ops/real.h"
#include "ops/window_taps.h"

sb_status sb_pool_prepare(sb_node *node, sb_error *error) {
    sb_pool_params *params = node->params;
    int64_t include, storage_order, p;
    SB_TRY(sb_window_read(node, &params->window, error));
    if (!params->window.has_kernel)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): the attribute kernel_shape is missing", node->name,
                       node->op->name);
    SB_TRY(sb_node_int(node, "count_include_pad", 0, &include, error));
    SB_TRY(sb_node_int(node, "storage_order", 0, &storage_order, error));
    params->count_include_pad = include != 0;
    params->column_major = storage_order != 0;
    params->p = 2;
    if (strcmp(node->op->name, "LpPool") != 0)
        return SB_OK;
    if (node->version < 2)
        return sb_node_float(node, "p", 2, &params->p, error);
    SB_TRY(sb_node_int(node, "p", 2, &p, error));
    params->p = (float)p;
    return SB_OK;
}

sb_status sb_pool_infer(sb_infer *infer, int output, const sb_fact *x, sb_dtype dtype) {
    const sb_window *window = &((const sb_pool_params *)infer->node->params)->window;
    sb_dim dims[SB_MAX_RANK];
    int axes = x->rank != SB_RANK_UNKNOWN ? x->rank - 2 : window->axes;
    SB_TRY(sb_window_check_axes(infer, window, axes));
    for (int d = 0; d < axes + 2; d++) {
        if (x->rank == SB_RANK_UNKNOWN)
            dims[d] = sb_infer_fresh(infer, output, d);
        else if (d < 2)
            dims[d] = x->dims[d];
        else
            SB_TRY(sb_window_extent(infer, window, d - 2, x->dims[d],
                                    sb_dim_constant(infer->scope, window->kernel[d - 2]), &dims[d]));
    }
    sb_fact_set_tensor(&infer->outputs[output], dtype, axes + 2, dims);
    return SB_OK;
}

/* Only the extents of an empty tensor can have a product that overflows: it counts as 0. */
static int64_t extent_product(int64_t left, int64_t right) {
    int64_t product;
    return __builtin_mul_overflow(left, right, &product) ? 0 : product;
}

void sb_pool_shape_of(const sb_window *window, const sb_tensor *x, const int64_t *y_dims, sb_pool_shape *shape) {
    *shape = (sb_pool_shape){
        .axes = x->rank - 2, .batch = x->dims[0], .channels = x->dims[1], .positions = 1, .capacity = 1};
    for (int i = 0; i < shape->axes; i++) {
        int64_t in = x->dims[i + 2], kernel = window->kernel[i];
        shape->axis[i] = sb_window_resolve(window, i, in, kernel, y_dims[i + 2]);
        shape->positions = extent_product(shape->positions, y_dims[i + 2]);
        shape->capacity = extent_product(shape->capacity, kernel < in ? kernel : in);
    }
}

void sb_pool_taps(const sb_window_axis *axis, int64_t at, int64_t *first, int64_t *last) {
    sb_window_taps(axis->in, axis->kernel, axis->dilation, at * axis->stride - axis->begin, first, last);
}

int64_t sb_pool_window(const sb_pool_shape *shape, const int64_t *strides, const int64_t *position, int64_t *offsets) {
    int64_t tap[SB_WINDOW_AXES] = {0}, count[SB_WINDOW_AXES], step[SB_WINDOW_AXES];
    int64_t base = 0, found = 0;
    for (int i = 0; i < shape->axes; i++) {
        const sb_window_axis *axis = &shape->axis[i];
        int64_t first, last;
        sb_pool_taps(axis, position[i], &first, &last);
        count[i] = last - first;
        if (count[i] == 0)
            return 0;
        step[i] = axis->dilation * strides[i];
        base += (position[i] * axis->stride - axis->begin + first * axis->dilation) * strides[i];
    }
    do {
        int64_t offset = base;
        for (int i = 0; i < shape->axes; i++)
            offset += tap[i] * step[i];
        offsets[found++] = offset;
    } while (sb_window_next(shape->axes, tap, count));
    return found;
}

int64_t sb_pool_padded_taps(const sb_pool_shape *shape, const int64_t *position) {
    int64_t taps = 1;
    for (int i = 0; i < shape->axes; i++) {
        const sb_window_axis *axis = &shape->axis[i];
        int64_t inside = sb_window_padded_taps(axis->in + axis->end, axis->kernel, axis->dilation,
                                               position[i] * axis->stride - axis->begin);
        if (__builtin_mul_overflow(taps, inside, &taps))
            return INT64_MAX;
    }
    return taps;
}

int64_t sb_pool_order(sb_dtype dtype, const char *element) {
    switch (dtype) {
    case SB_F64:
        return sb_bits_order_f64(*(const double *)(const void *)element);
    case SB_S8:
        return *(const int8_t *)element;
    case SB_U8:
        return *(const uint8_t *)element;
    default:
        return sb_bits_order_f32(sb_real_load_f32(dtype, element, 0));
    }
}

void sb_pool_store_least(sb_dtype dtype, char *element) {
    if (dtype == SB_F64)
        *(double *)(void *)element = -sb_infinity_f64();
    else if (dtype == SB_S8)
        *(int8_t *)element = INT8_MIN;
    else if (dtype == SB_U8)
        *(uint8_t *)element = 0;
    else
        sb_real_store_f32(dtype, element, 0, -sb_infinity_f32());
}
