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

static iv_status infer_pool(iv_infer *infer) {
    const iv_fact *x;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &x));
    return iv_pool_infer(infer, 0, x, x->dtype);
}

typedef struct pooling pooling;
/* The result for `count` elements at `x` + offsets; `taps` is what an average divides by. */
typedef float pool_f32(const pooling *pool, const void *x, int64_t count, int64_t taps);
typedef double pool_f64(const pooling *pool, const double *x, int64_t count, int64_t taps);

struct pooling {
    iv_pool_shape shape;
    const iv_pool_params *params;
    const iv_tensor *x;
    iv_tensor *y;
    int64_t *offsets;
    pool_f32 *in_f32;
    pool_f64 *in_f64;
};

static float average_f32(const pooling *pool, const void *x, int64_t count, int64_t taps) {
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i++)
        sum = sum + iv_real_load_f32(pool->x->dtype, x, pool->offsets[i]);
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
        float value = iv_real_load_f32(pool->x->dtype, x, pool->offsets[i]);
        if (p == 1.0f)
            sum = sum + iv_abs_f32(value);
        else if (p == 2.0f)
            sum = iv_fma_f32(value, value, sum);
        else
            sum = sum + iv_pow_f32(iv_abs_f32(value), p);
    }
    return p == 1.0f ? sum : p == 2.0f ? iv_sqrt_f32(sum) : iv_pow_f32(sum, 1.0f / p);
}

static double norm_f64(const pooling *pool, const double *x, int64_t count, int64_t taps) {
    double sum = 0.0, p = (double)pool->params->p;
    for (int64_t i = 0; i < count; i++) {
        double value = x[pool->offsets[i]];
        if (p == 1.0)
            sum = sum + iv_abs_f64(value);
        else if (p == 2.0)
            sum = iv_fma_f64(value, value, sum);
        else
            sum = sum + iv_pow_f64(iv_abs_f64(value), p);
    }
    return p == 1.0 ? sum : p == 2.0 ? iv_sqrt_f64(sum) : iv_pow_f64(sum, 1.0 / p);
}

static void pool_channels(const pooling *pool, int64_t count, int64_t taps, int64_t position) {
    const iv_pool_shape *shape = &pool->shape;
    iv_dtype dtype = pool->x->dtype;
    int64_t size = (int64_t)iv_dtype_size(dtype);
    for (int64_t plane = 0; plane < shape->batch * shape->channels; plane++) {
        int64_t batch = plane / shape->channels, channel = plane % shape->channels;
        const char *x =
            pool->x->data + (batch * pool->x->strides[0] + channel * pool->x->strides[1]) * size;
        int64_t at = plane * shape->positions + position;
        if (dtype == IV_F64)
            ((double *)(void *)pool->y->data)[at] =
                pool->in_f64(pool, (const double *)(const void *)x, count, taps);
        else
            iv_real_store_f32(dtype, pool->y->data, at, pool->in_f32(pool, x, count, taps));
    }
}

static iv_status run_pool(iv_call *call, pool_f32 *in_f32, pool_f64 *in_f64) {
    pooling pool = {.params = call->node->params,
                    .x = iv_call_input(call, 0),
                    .in_f32 = in_f32,
                    .in_f64 = in_f64};
    IV_TRY(iv_call_output(call, 0, &pool.y));
    if (iv_tensor_elements(pool.y) == 0)
        return IV_OK;
    const iv_pool_shape *shape = &pool.shape;
    iv_pool_shape_of(&pool.params->window, pool.x, pool.y->dims, &pool.shape);
    pool.offsets = iv_allocate_array((size_t)shape->capacity, sizeof *pool.offsets);
    if (pool.offsets == NULL)
        return iv_fail_memory(call->error, (size_t)shape->capacity * sizeof *pool.offsets);
    int64_t position[IV_WINDOW_AXES] = {0}, extents[IV_WINDOW_AXES], index = 0;
    for (int i = 0; i < shape->axes; i++)
        extents[i] = shape->axis[i].out;
    do {
        int64_t count = iv_pool_window(shape, pool.x->strides + 2, position, pool.offsets);
        int64_t taps =
            pool.params->count_include_pad ? iv_pool_padded_taps(shape, position) : count;
        pool_channels(&pool, count, taps, index++);
    } while (iv_window_next(shape->axes, position, extents));
    iv_free(pool.offsets);
    return IV_OK;
}

static iv_status eval_average_pool(iv_call *call) {
    return run_pool(call, average_f32, average_f64);
}

static iv_status eval_lp_pool(iv_call *call) {
    return run_pool(call, norm_f32, norm_f64);
}

const iv_op iv_ops_pool_average[] = {
    {.name = "AveragePool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_pool_params),
     .prepare = iv_pool_prepare,
     .infer = infer_pool,
     .eval = eval_average_pool},
    {.name = "LpPool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_pool_params),
     .prepare = iv_pool_prepare,
     .infer = infer_pool,
     .eval = eval_lp_pool},
    {0},
};
