/* AveragePool and LpPool.
 *
 * AveragePool adds the window's elements inside the input from +0 in row-major order, and divides
 * the sum by their number as a float (or by the number of taps inside the padded input, with
 * count_include_pad). LpPool adds |x| (p = 1), fma(x, x, sum) (p = 2) or pow(|x|, p) in the same
 * way and gives the sum, its square root, or pow(sum, 1/p). All in f32 (f64 for f64), rounded once
 * to f16 or bf16. */
#include "base/allocation.h"
#include "numerics/power.h"
#include "numerics/power_f64.h"
#include "ops/list.h"
#include "ops/pool.h"
#include "ops/real.h"

static sb_status infer_pool(sb_infer *infer) {
    const sb_fact *x;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &x));
    return sb_pool_infer(infer, 0, x, x->dtype);
}

typedef struct pooling pooling;
/* The result for `count` elements at `x` + offsets; `taps` is what an average divides by. */
typedef float pool_f32(const pooling *pool, const void *x, int64_t count, int64_t taps);
typedef double pool_f64(const pooling *pool, const double *x, int64_t count, int64_t taps);

struct pooling {
    sb_pool_shape shape;
    const sb_pool_params *params;
    const sb_tensor *x;
    sb_tensor *y;
    int64_t *offsets;
    pool_f32 *in_f32;
    pool_f64 *in_f64;
};

static float average_f32(const pooling *pool, const void *x, int64_t count, int64_t taps) {
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i++)
        sum = sum + sb_real_load_f32(pool->x->dtype, x, pool->offsets[i]);
    return sum / (float)taps;
}

static double average_f64(const pooling *pool, const double *x, int64_t count, int64_t taps) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++)
        sum = sum + x[pool->offsets[i]];
    return sum / (double)taps;
}

static float norm_f32(const pooling *pool, const void *x, int64_t count, int64_t taps) {
    float sum = 0.0f, p = pool->params->p;
    for (int64_t i = 0; i < count; i++) {
        float value = sb_real_load_f32(pool->x->dtype, x, pool->offsets[i]);
        if (p == 1.0f)
            sum = sum + sb_abs_f32(value);
        else if (p == 2.0f)
            sum = sb_fma_f32(value, value, sum);
        else
            sum = sum + sb_pow_f32(sb_abs_f32(value), p);
    }
    return p == 1.0f ? sum : p == 2.0f ? sb_sqrt_f32(sum) : sb_pow_f32(sum, 1.0f / p);
}

static double norm_f64(const pooling *pool, const double *x, int64_t count, int64_t taps) {
    double sum = 0.0, p = (double)pool->params->p;
    for (int64_t i = 0; i < count; i++) {
        double value = x[pool->offsets[i]];
        if (p == 1.0)
            sum = sum + sb_abs_f64(value);
        else if (p == 2.0)
            sum = sb_fma_f64(value, value, sum);
        else
            sum = sum + sb_pow_f64(sb_abs_f64(value), p);
    }
    return p == 1.0 ? sum : p == 2.0 ? sb_sqrt_f64(sum) : sb_pow_f64(sum, 1.0 / p);
}

static void pool_channels(const pooling *pool, int64_t count, int64_t taps, int64_t position) {
    const sb_pool_shape *shape = &pool->shape;
    sb_dtype dtype = pool->x->dtype;
    int64_t size = (int64_t)sb_dtype_size(dtype);
    for (int64_t plane = 0; plane < shape->batch * shape->channels; plane++) {
        int64_t batch = plane / shape->channels, channel = plane % shape->channels;
        const char *x = pool->x->data + (batch * pool->x->strides[0] + channel * pool->x->strides[1]) * size;
        int64_t at = plane * shape->positions + position;
        if (dtype == SB_F64)
            ((double *)(void *)pool->y->data)[at] = pool->in_f64(pool, (const double *)(const void *)x, count, taps);
        else
            sb_real_store_f32(dtype, pool->y->data, at, pool->in_f32(pool, x, count, taps));
    }
}

static sb_status run_pool(sb_call *call, pool_f32 *in_f32, pool_f64 *in_f64) {
    pooling pool = {.params = call->node->params, .x = sb_call_input(call, 0), .in_f32 = in_f32, .in_f64 = in_f64};
    SB_TRY(sb_call_output(call, 0, &pool.y));
    if (sb_tensor_elements(pool.y) == 0)
        return SB_OK;
    const sb_pool_shape *shape = &pool.shape;
    sb_pool_shape_of(&pool.params->window, pool.x, pool.y->dims, &pool.shape);
    pool.offsets = sb_allocate_array((size_t)shape->capacity, sizeof *pool.offsets);
    if (pool.offsets == NULL)
        return sb_fail_memory(call->error, (size_t)shape->capacity * sizeof *pool.offsets);
    int64_t position[SB_WINDOW_AXES] = {0}, extents[SB_WINDOW_AXES], index = 0;
    for (int i = 0; i < shape->axes; i++)
        extents[i] = shape->axis[i].out;
    do {
        int64_t count = sb_pool_window(shape, pool.x->strides + 2, position, pool.offsets);
        int64_t taps = pool.params->count_include_pad ? sb_pool_padded_taps(shape, position) : count;
        pool_channels(&pool, count, taps, index++);
    } while (sb_window_next(shape->axes, position, extents));
    sb_free(pool.offsets);
    return SB_OK;
}

static sb_status eval_average_pool(sb_call *call) {
    return run_pool(call, average_f32, average_f64);
}

static sb_status eval_lp_pool(sb_call *call) {
    return run_pool(call, norm_f32, norm_f64);
}

const sb_op sb_ops_pool_average[] = {
    {.name = "AveragePool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_pool_params),
     .prepare = sb_pool_prepare,
     .infer = infer_pool,
     .eval = eval_average_pool},
    {.name = "LpPool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_pool_params),
     .prepare = sb_pool_prepare,
     .infer = infer_pool,
     .eval = eval_lp_pool},
    {0},
};
