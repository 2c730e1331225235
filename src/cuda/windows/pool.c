/* Pooling. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/rows/reduce.h"
#include "cuda/windows/pool_parameters.h"
#include "ops/pool.h"

/* ---- windows ---- */

static bool supports_window(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if (x->rank <= 2 + SB_CUDA_POOL_AXES)
        return true;
    snprintf(why, SB_WHY_BYTES, "%s over %d spatial axes has no GPU kernel, only over 1 to %d", query->node->op->name,
             x->rank - 2, SB_CUDA_POOL_AXES);
    return false;
}

/* Axes beyond those that there are have one element and one tap. */
static void fill_axes(sb_cuda_pool *pool, const sb_pool_shape *shape, const sb_tensor *x, bool column_major) {
    int missing = SB_CUDA_POOL_AXES - shape->axes;
    int64_t size = (int64_t)sb_dtype_size(x->dtype);
    for (int i = 0; i < SB_CUDA_POOL_AXES; i++)
        pool->axis[i] = (sb_cuda_pool_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    for (int i = 0; i < shape->axes; i++) {
        const sb_window_axis *axis = &shape->axis[i];
        pool->axis[missing + i] = (sb_cuda_pool_axis){.in = axis->in,
                                                      .out = axis->out,
                                                      .kernel = axis->kernel,
                                                      .stride = axis->stride,
                                                      .dilation = axis->dilation,
                                                      .begin = axis->begin,
                                                      .end = axis->end,
                                                      .step = x->strides[2 + i] * size};
    }
    pool->plane = 1;
    for (int i = 0; i < shape->axes; i++) {
        sb_cuda_pool_axis *axis = &pool->axis[missing + (column_major ? i : shape->axes - 1 - i)];
        axis->flat = pool->plane;
        pool->plane *= axis->in;
    }
}

/* ---- eight channels at once ---- */

static bool fits(int64_t value) {
    return value >= 0 && value < INT32_MAX / 2;
}

/* The axes as pool16.cu takes them; false where a number is too large. */
static bool fill_short_axes(const sb_cuda_pool *from, sb_cuda_pool16 *to) {
    bool all = true;
    for (int i = 0; i < SB_CUDA_POOL_AXES && all; i++) {
        const sb_cuda_pool_axis *axis = &from->axis[i];
        int64_t reach, window;
        all = axis->in > 0 && fits(axis->in) && fits(axis->out) && fits(axis->begin) && fits(axis->end) &&
              !__builtin_mul_overflow(axis->out, axis->stride, &reach) && fits(reach) &&
              !__builtin_mul_overflow(axis->kernel, axis->dilation, &window) && fits(window) && fits(reach + window) &&
              axis->step % 16 == 0;
        if (!all)
            break;
        to->axis[i] = (sb_cuda_pool16_axis){.in = (int32_t)axis->in,
                                            .stride = (int32_t)axis->stride,
                                            .dilation = (int32_t)axis->dilation,
                                            .begin = (int32_t)axis->begin,
                                            .end = (int32_t)axis->end,
                                            .kernel = (int32_t)axis->kernel,
                                            .out = sb_cuda_divisor_of((uint32_t)axis->out),
                                            .step = axis->step};
    }
    return all;
}

/* Gives maxima and averages of 16 bits whose input and output have their channels last, in whole eights, without indices; of
 * others *given becomes false. */
static sb_status launch_eights(sb_call *call, const char *kernel, const sb_cuda_pool *pool, const sb_tensor *x,
                               const sb_tensor *y, bool *given) {
    sb_cuda_pool16 parameters = {.groups = pool->elements / 8,
                                 .count_include_pad = pool->count_include_pad,
                                 .batch_step = pool->batch_step,
                                 .x = pool->x,
                                 .y = pool->y};
    bool is_short = x->dtype == SB_F16 || x->dtype == SB_BF16, is_one = true;
    for (int d = 2; d < y->rank; d++)
        is_one = is_one && y->dims[d] == 1;
    *given = is_short && pool->indices == NULL && pool->channels % 8 == 0 && fits(pool->elements) &&
             sb_cuda_has_channels_last(x) && (is_one || sb_cuda_has_channels_last(y)) && (uintptr_t)x->data % 16 == 0 &&
             (uintptr_t)y->data % 16 == 0 && fill_short_axes(pool, &parameters);
    if (!*given)
        return SB_OK;
    parameters.channels = sb_cuda_divisor_of((uint32_t)(pool->channels / 8));
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_reads(&work, x);
    sb_cuda_work_writes(&work, y);
    return sb_cuda_launch_each(call, &work, "pool16", kernel, sb_dtype_name(x->dtype), parameters.groups);
}

/* `short_kernel`: the one of eights, if there is one. */
static sb_status launch_window(sb_call *call, const char *kernel, const char *short_kernel, bool has_indices) {
    const sb_pool_params *params = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0);
    sb_tensor *y, *indices = NULL;
    /* Indices count in row-major order, and are stored so. */
    if (has_indices && sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &indices));
    bool is_short = x->dtype == SB_F16 || x->dtype == SB_BF16;
    if (indices == NULL && is_short && sb_cuda_has_channels_last(x))
        SB_TRY(sb_cuda_output_channels_last(call, 0, &y));
    else
        SB_TRY(sb_call_output(call, 0, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    sb_pool_shape shape;
    sb_pool_shape_of(&params->window, x, y->dims, &shape);
    int64_t size = (int64_t)sb_dtype_size(x->dtype);
    sb_cuda_pool parameters = {.elements = sb_tensor_elements(y),
                               .channels = shape.channels,
                               .batch_step = x->strides[0] * size,
                               .channel_step = x->strides[1] * size,
                               .channels_last = sb_cuda_has_channels_last(y),
                               .p = params->p,
                               .count_include_pad = params->count_include_pad,
                               .x = x->data,
                               .y = y->data,
                               .indices = indices != NULL ? (int64_t *)(void *)indices->data : NULL};
    fill_axes(&parameters, &shape, x, params->column_major);
    bool given = false;
    if (short_kernel != NULL)
        SB_TRY(launch_eights(call, short_kernel, &parameters, x, y, &given));
    if (given)
        return SB_OK;
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_reads(&work, x);
    sb_cuda_work_writes(&work, y);
    sb_cuda_work_writes(&work, indices);
    return sb_cuda_launch_each(call, &work, "pool", kernel, sb_dtype_name(x->dtype), parameters.elements);
}

static sb_status launch_max(sb_call *call) {
    return launch_window(call, "sb_cuda_pool_max", "sb_cuda_pool16_max", true);
}

static sb_status launch_average(sb_call *call) {
    return launch_window(call, "sb_cuda_pool_average", "sb_cuda_pool16_average", false);
}

static sb_status launch_norm(sb_call *call) {
    return launch_window(call, "sb_cuda_pool_norm", NULL, false);
}

/* ---- whole channels ---- */

static sb_status launch_channels(sb_call *call, const sb_cuda_reduce *how) {
    const sb_tensor *x = sb_call_input(call, 0);
    sb_tensor *y;
    SB_TRY(sb_call_output(call, 0, &y));
    uint32_t spatial = ((UINT32_C(1) << x->rank) - 1) & ~UINT32_C(3);
    return sb_cuda_reduce_rows(call, how, y, x, spatial);
}

static sb_status launch_global_average(sb_call *call) {
    sb_cuda_reduce how = {.module = "reduce_float", .kernel = "sum", .finish = SB_CUDA_FINISH_MEAN};
    return launch_channels(call, &how);
}

static sb_status launch_global_max(sb_call *call) {
    sb_cuda_reduce how = {.module = "reduce_float", .kernel = "max"};
    return launch_channels(call, &how);
}

static sb_status launch_global_norm(sb_call *call) {
    float p = ((const sb_pool_global_params *)call->node->params)->p;
    sb_cuda_reduce how = {.module = "reduce_float", .kernel = "magnitudes"};
    if (p == 2) {
        how.kernel = "squares";
        how.finish = SB_CUDA_FINISH_ROOT;
    } else if (p != 1) {
        how = (sb_cuda_reduce){.module = "reduce_power", .kernel = "powers", .long_only = true, .exponent = p};
    }
    return launch_channels(call, &how);
}

/* ---- MaxUnpool ---- */

/* The output's extents: those that the window covers, or what the third input says. */
static sb_status create_unpooled(sb_call *call, int rank, const int64_t *least, sb_tensor **y) {
    const sb_tensor *shape = sb_call_input(call, 2);
    int64_t dims[SB_MAX_RANK];
    memcpy(dims, least, (size_t)rank * sizeof *dims);
    if (shape != NULL && (shape->rank != 1 || shape->dims[0] != rank))
        return sb_call_fail(call, SB_ERROR_SHAPE, "output_shape must list %d extents", rank);
    for (int d = 0; d < rank; d++) {
        if (shape != NULL)
            dims[d] = ((const int64_t *)(const void *)shape->data)[d * shape->strides[0]];
        if (dims[d] < least[d])
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "output_shape has %lld in dimension %d, less than the %lld that "
                                "the window covers",
                                (long long)dims[d], d, (long long)least[d]);
    }
    return sb_call_output_shape(call, 0, sb_call_input(call, 0)->dtype, rank, dims, y);
}

/* Marks, and then places. Everything is packed. */
static sb_status unpool(sb_call *call, sb_cuda_unpool *parameters, const sb_tensor *x, const sb_tensor *indices,
                        const sb_tensor *y) {
    void *winners;
    size_t bytes = (size_t)parameters->places * sizeof(uint64_t);
    SB_TRY(sb_call_workspace(call, bytes, &winners));
    sb_tensor list = {.dtype = SB_U64, .rank = 1, .dims = {parameters->places}, .strides = {1}, .data = winners};
    SB_TRY(sb_cuda_call_fill(call, &list, 0));
    sb_cuda_work mark = {.parameters = parameters, .parameter_bytes = sizeof *parameters};
    sb_cuda_work place = mark;
    parameters->x = x->data;
    parameters->y = y->data;
    parameters->indices = (const int64_t *)(const void *)indices->data;
    parameters->winners = winners;
    parameters->fault = sb_cuda_work_fault(&mark, call);
    sb_cuda_work_reads(&mark, indices);
    sb_cuda_work_touches(&mark, winners, bytes, true);
    SB_TRY(sb_cuda_launch_each(call, &mark, "pool", "sb_cuda_unpool_mark", NULL, parameters->elements));
    sb_cuda_work_reads(&place, x);
    sb_cuda_work_touches(&place, winners, bytes, false);
    sb_cuda_work_writes(&place, y);
    return sb_cuda_launch_each(call, &place, "pool", "sb_cuda_unpool_place", sb_cuda_size_suffix(y->dtype),
                               parameters->places);
}

static sb_status launch_unpool(sb_call *call) {
    const sb_window *window = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0), *indices = sb_call_input(call, 1);
    sb_tensor *y, *dense = NULL, *list = NULL;
    sb_cuda_unpool parameters = {.elements = sb_tensor_elements(x), .rank = x->rank, .limit = 1};
    for (int d = 0; d < x->rank; d++) {
        int64_t least = x->dims[d];
        if (indices->rank != x->rank || indices->dims[d] != least)
            return sb_call_fail(call, SB_ERROR_SHAPE, "inputs 0 and 1 have different shapes");
        if (d >= 2)
            least = (least - 1) * window->strides[d - 2] + window->kernel[d - 2] - window->begin[d - 2] -
                    window->end[d - 2];
        parameters.least[d] = least;
        /* Overflows only beside an extent of 0, and then no index is right. */
        if (__builtin_mul_overflow(parameters.limit, least, &parameters.limit))
            parameters.limit = 0;
    }
    SB_TRY(create_unpooled(call, x->rank, parameters.least, &y));
    parameters.places = sb_tensor_elements(y);
    memcpy(parameters.strides, y->strides, (size_t)y->rank * sizeof *y->strides);
    if (parameters.places == 0)
        return SB_OK;
    sb_status status = sb_cuda_call_packed(call, 0, &dense);
    if (status == SB_OK)
        status = sb_cuda_call_packed(call, 1, &list);
    if (status == SB_OK)
        status = unpool(call, &parameters, dense, list, y);
    sb_tensor_release(dense);
    sb_tensor_release(list);
    return status;
}

#define POOL(op_name, kernel_name, condition, function)                                                                \
    { .op = op_name, .name = kernel_name, .supports = condition, .launch = function }

const sb_kernel sb_cuda_kernels_pool[] = {
    POOL("MaxPool", "max-pool", supports_window, launch_max),
    POOL("AveragePool", "average-pool", supports_window, launch_average),
    POOL("LpPool", "lp-pool", supports_window, launch_norm),
    POOL("GlobalAveragePool", "global-average-pool", sb_cuda_supports_all, launch_global_average),
    POOL("GlobalMaxPool", "global-max-pool", sb_cuda_supports_all, launch_global_max),
    POOL("GlobalLpPool", "global-lp-pool", sb_cuda_supports_all, launch_global_norm),
    {.op = "MaxUnpool",
     .name = "max-unpool",
     .supports = sb_cuda_supports_all,
     .host_inputs = 4,
     .launch = launch_unpool},
    {0},
};
