/* Pooling. */
#include <stdio.h>
#include <string.h>

#include "cuda/kernels/pool_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "cuda/ops/reduce.h"
#include "ops/pool.h"

/* ---- windows ---- */

static bool supports_window(const iv_kernel_query *query, char *why) {
    const iv_fact *x = query->inputs[0];
    if (x->rank <= 2 + IV_CUDA_POOL_AXES)
        return true;
    snprintf(why, IV_WHY_BYTES, "%s over %d spatial axes has no GPU kernel, only over 1 to %d",
             query->node->op->name, x->rank - 2, IV_CUDA_POOL_AXES);
    return false;
}

/* Axes beyond those that there are have one element and one tap. */
static void fill_axes(iv_cuda_pool *pool, const iv_pool_shape *shape, const iv_tensor *x,
                      bool column_major) {
    int missing = IV_CUDA_POOL_AXES - shape->axes;
    int64_t size = (int64_t)iv_dtype_size(x->dtype);
    for (int i = 0; i < IV_CUDA_POOL_AXES; i++)
        pool->axis[i] =
            (iv_cuda_pool_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    for (int i = 0; i < shape->axes; i++) {
        const iv_window_axis *axis = &shape->axis[i];
        pool->axis[missing + i] = (iv_cuda_pool_axis){.in = axis->in,
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
        iv_cuda_pool_axis *axis = &pool->axis[missing + (column_major ? i : shape->axes - 1 - i)];
        axis->flat = pool->plane;
        pool->plane *= axis->in;
    }
}

static iv_status launch_window(iv_call *call, const char *kernel, bool has_indices) {
    const iv_pool_params *params = call->node->params;
    const iv_tensor *x = iv_call_input(call, 0);
    iv_tensor *y, *indices = NULL;
    IV_TRY(iv_call_output(call, 0, &y));
    if (has_indices && iv_call_wants(call, 1))
        IV_TRY(iv_call_output(call, 1, &indices));
    if (iv_tensor_elements(y) == 0)
        return IV_OK;
    iv_pool_shape shape;
    iv_pool_shape_of(&params->window, x, y->dims, &shape);
    int64_t size = (int64_t)iv_dtype_size(x->dtype);
    iv_cuda_pool parameters = {.elements = iv_tensor_elements(y),
                               .channels = shape.channels,
                               .batch_step = x->strides[0] * size,
                               .channel_step = x->strides[1] * size,
                               .p = params->p,
                               .count_include_pad = params->count_include_pad,
                               .x = x->data,
                               .y = y->data,
                               .indices =
                                   indices != NULL ? (int64_t *)(void *)indices->data : NULL};
    fill_axes(&parameters, &shape, x, params->column_major);
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_reads(&work, x);
    iv_cuda_work_writes(&work, y);
    iv_cuda_work_writes(&work, indices);
    return iv_cuda_launch_each(call, &work, "pool", kernel, iv_dtype_name(x->dtype),
                               parameters.elements);
}

static iv_status launch_max(iv_call *call) {
    return launch_window(call, "iv_cuda_pool_max", true);
}

static iv_status launch_average(iv_call *call) {
    return launch_window(call, "iv_cuda_pool_average", false);
}

static iv_status launch_norm(iv_call *call) {
    return launch_window(call, "iv_cuda_pool_norm", false);
}

/* ---- whole channels ---- */

static iv_status launch_channels(iv_call *call, const iv_cuda_reduce *how) {
    const iv_tensor *x = iv_call_input(call, 0);
    iv_tensor *y;
    IV_TRY(iv_call_output(call, 0, &y));
    uint32_t spatial = ((UINT32_C(1) << x->rank) - 1) & ~UINT32_C(3);
    return iv_cuda_reduce_rows(call, how, y, x, spatial);
}

static iv_status launch_global_average(iv_call *call) {
    iv_cuda_reduce how = {.module = "reduce_float", .kernel = "sum", .finish = IV_CUDA_FINISH_MEAN};
    return launch_channels(call, &how);
}

static iv_status launch_global_max(iv_call *call) {
    iv_cuda_reduce how = {.module = "reduce_float", .kernel = "max"};
    return launch_channels(call, &how);
}

static iv_status launch_global_norm(iv_call *call) {
    float p = ((const iv_pool_global_params *)call->node->params)->p;
    iv_cuda_reduce how = {.module = "reduce_float", .kernel = "magnitudes"};
    if (p == 2) {
        how.kernel = "squares";
        how.finish = IV_CUDA_FINISH_ROOT;
    } else if (p != 1) {
        how = (iv_cuda_reduce){
            .module = "reduce_power", .kernel = "powers", .long_only = true, .exponent = p};
    }
    return launch_channels(call, &how);
}

/* ---- MaxUnpool ---- */

/* The output's extents: those that the window covers, or what the third input says. */
static iv_status create_unpooled(iv_call *call, int rank, const int64_t *least, iv_tensor **y) {
    const iv_tensor *shape = iv_call_input(call, 2);
    int64_t dims[IV_MAX_RANK];
    memcpy(dims, least, (size_t)rank * sizeof *dims);
    if (shape != NULL && (shape->rank != 1 || shape->dims[0] != rank))
        return iv_call_fail(call, IV_ERROR_SHAPE, "output_shape must list %d extents", rank);
    for (int d = 0; d < rank; d++) {
        if (shape != NULL)
            dims[d] = ((const int64_t *)(const void *)shape->data)[d * shape->strides[0]];
        if (dims[d] < least[d])
            return iv_call_fail(call, IV_ERROR_SHAPE,
                                "output_shape has %lld in dimension %d, less than the %lld that "
                                "the window covers",
                                (long long)dims[d], d, (long long)least[d]);
    }
    return iv_call_output_shape(call, 0, iv_call_input(call, 0)->dtype, rank, dims, y);
}

/* Marks, and then places. Everything is packed. */
static iv_status unpool(iv_call *call, iv_cuda_unpool *parameters, const iv_tensor *x,
                        const iv_tensor *indices, const iv_tensor *y) {
    void *winners;
    size_t bytes = (size_t)parameters->places * sizeof(uint64_t);
    IV_TRY(iv_call_scratch(call, bytes, &winners));
    iv_tensor list = {
        .dtype = IV_U64, .rank = 1, .dims = {parameters->places}, .strides = {1}, .data = winners};
    IV_TRY(iv_cuda_call_fill(call, &list, 0));
    iv_cuda_work mark = {.parameters = parameters, .parameter_bytes = sizeof *parameters};
    iv_cuda_work place = mark;
    parameters->x = x->data;
    parameters->y = y->data;
    parameters->indices = (const int64_t *)(const void *)indices->data;
    parameters->winners = winners;
    parameters->fault = iv_cuda_work_fault(&mark, call);
    iv_cuda_work_reads(&mark, indices);
    iv_cuda_work_touches(&mark, winners, bytes, true);
    IV_TRY(iv_cuda_launch_each(call, &mark, "pool", "iv_cuda_unpool_mark", NULL,
                               parameters->elements));
    iv_cuda_work_reads(&place, x);
    iv_cuda_work_touches(&place, winners, bytes, false);
    iv_cuda_work_writes(&place, y);
    return iv_cuda_launch_each(call, &place, "pool", "iv_cuda_unpool_place",
                               iv_cuda_size_suffix(y->dtype), parameters->places);
}

static iv_status launch_unpool(iv_call *call) {
    const iv_window *window = call->node->params;
    const iv_tensor *x = iv_call_input(call, 0), *indices = iv_call_input(call, 1);
    iv_tensor *y, *dense = NULL, *list = NULL;
    iv_cuda_unpool parameters = {.elements = iv_tensor_elements(x), .rank = x->rank, .limit = 1};
    for (int d = 0; d < x->rank; d++) {
        int64_t least = x->dims[d];
        if (indices->rank != x->rank || indices->dims[d] != least)
            return iv_call_fail(call, IV_ERROR_SHAPE, "inputs 0 and 1 have different shapes");
        if (d >= 2)
            least = (least - 1) * window->strides[d - 2] + window->kernel[d - 2] -
                    window->begin[d - 2] - window->end[d - 2];
        parameters.least[d] = least;
        /* Overflows only beside an extent of 0, and then no index is right. */
        if (__builtin_mul_overflow(parameters.limit, least, &parameters.limit))
            parameters.limit = 0;
    }
    IV_TRY(create_unpooled(call, x->rank, parameters.least, &y));
    parameters.places = iv_tensor_elements(y);
    memcpy(parameters.strides, y->strides, (size_t)y->rank * sizeof *y->strides);
    if (parameters.places == 0)
        return IV_OK;
    iv_status status = iv_cuda_call_packed(call, 0, &dense);
    if (status == IV_OK)
        status = iv_cuda_call_packed(call, 1, &list);
    if (status == IV_OK)
        status = unpool(call, &parameters, dense, list, y);
    iv_tensor_release(dense);
    iv_tensor_release(list);
    return status;
}

#define POOL(op_name, kernel_name, condition, function)                                            \
    { .op = op_name, .name = kernel_name, .supports = condition, .launch = function }

const iv_kernel iv_cuda_kernels_pool[] = {
    POOL("MaxPool", "max-pool", supports_window, launch_max),
    POOL("AveragePool", "average-pool", supports_window, launch_average),
    POOL("LpPool", "lp-pool", supports_window, launch_norm),
    POOL("GlobalAveragePool", "global-average-pool", iv_cuda_supports_all, launch_global_average),
    POOL("GlobalMaxPool", "global-max-pool", iv_cuda_supports_all, launch_global_max),
    POOL("GlobalLpPool", "global-lp-pool", iv_cuda_supports_all, launch_global_norm),
    {.op = "MaxUnpool",
     .name = "max-unpool",
     .supports = iv_cuda_supports_all,
     .host_inputs = 4,
     .launch = launch_unpool},
    {0},
};
