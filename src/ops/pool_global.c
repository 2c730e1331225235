/* GlobalAveragePool, GlobalMaxPool and GlobalLpPool: over all spatial elements of a channel in
 * row-major order.
 *
 * The average is the sum in the order of numerics/reduce.h divided by the number of elements as a
 * float. GlobalLpPool sums |x| (p = 1), squares (p = 2) or pow(|x|, p) in the same order and gives
 * the sum, its square root, or pow(sum, 1/p). The maximum is order-free. All in f32 (f64 for f64),
 * rounded once to f16 or bf16. */
#include <string.h>

#include "base/allocation.h"
#include "numerics/power.h"
#include "numerics/power_f64.h"
#include "numerics/reduce.h"
#include "ops/contraction.h"
#include "ops/list.h"
#include "ops/pool.h"
#include "ops/real.h"

static iv_status prepare_global(iv_node *node, iv_error *error) {
    iv_pool_global_params *params = node->params;
    int64_t p;
    if (node->version < 2)
        return iv_node_float(node, "p", 2, &params->p, error);
    IV_TRY(iv_node_int(node, "p", 2, &p, error));
    params->p = (float)p;
    return IV_OK;
}

static iv_status infer_global(iv_infer *infer) {
    const iv_fact *x;
    iv_dim dims[IV_MAX_RANK];
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &x));
    if (x->rank == 0 || x->rank == 1)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "input 0 has rank %d; a batch and channels are expected", x->rank);
    for (int d = 0; d < x->rank; d++)
        dims[d] = d < 2 ? x->dims[d] : iv_dim_constant(infer->scope, 1);
    iv_fact_set_tensor(&infer->outputs[0], x->dtype, x->rank, dims);
    return IV_OK;
}

/* Reduces the `count` gapless elements of one channel to element `index` of `y`; `numbers` has room
 * for `count` elements of the dtype that is computed with. */
typedef void reduce_channel(const iv_node *node, iv_dtype dtype, const void *x, void *numbers,
                            int64_t count, void *y, int64_t index);

static void widen(iv_dtype dtype, const void *x, float *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        numbers[i] = iv_real_load_f32(dtype, x, i);
}

static void average_channel(const iv_node *node, iv_dtype dtype, const void *x, void *numbers,
                            int64_t count, void *y, int64_t index) {
    if (dtype == IV_F64) {
        ((double *)y)[index] = iv_mean_f64(x, 1, count);
        return;
    }
    widen(dtype, x, numbers, count);
    iv_real_store_f32(dtype, y, index, iv_mean_f32(numbers, 1, count));
}

static void max_channel(const iv_node *node, iv_dtype dtype, const void *x, void *numbers,
                        int64_t count, void *y, int64_t index) {
    size_t size = iv_dtype_size(dtype);
    const char *elements = x, *best = x;
    char *target = (char *)y + (size_t)index * size;
    for (int64_t i = 1; i < count; i++) {
        const char *element = elements + (size_t)i * size;
        if (iv_pool_order(dtype, element) > iv_pool_order(dtype, best))
            best = element;
    }
    if (count == 0)
        iv_pool_store_least(dtype, target);
    else
        memcpy(target, best, size);
}

static double norm_f64(double p, const double *x, double *numbers, int64_t count) {
    if (p == 2.0)
        return iv_sqrt_f64(iv_sum_of_squares_f64(x, 1, count));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = p == 1.0 ? iv_abs_f64(x[i]) : iv_pow_f64(iv_abs_f64(x[i]), p);
    double sum = iv_sum_f64(numbers, 1, count);
    return p == 1.0 ? sum : iv_pow_f64(sum, 1.0 / p);
}

static float norm_f32(float p, float *numbers, int64_t count) {
    if (p == 2.0f)
        return iv_sqrt_f32(iv_sum_of_squares_f32(numbers, 1, count));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = p == 1.0f ? iv_abs_f32(numbers[i]) : iv_pow_f32(iv_abs_f32(numbers[i]), p);
    float sum = iv_sum_f32(numbers, 1, count);
    return p == 1.0f ? sum : iv_pow_f32(sum, 1.0f / p);
}

static void norm_channel(const iv_node *node, iv_dtype dtype, const void *x, void *numbers,
                         int64_t count, void *y, int64_t index) {
    float p = ((const iv_pool_global_params *)node->params)->p;
    if (dtype == IV_F64) {
        ((double *)y)[index] = norm_f64((double)p, x, numbers, count);
        return;
    }
    widen(dtype, x, numbers, count);
    iv_real_store_f32(dtype, y, index, norm_f32(p, numbers, count));
}

static iv_status reduce_channels(iv_call *call, reduce_channel *reduce) {
    const iv_tensor *x = iv_call_input(call, 0);
    iv_tensor *y;
    IV_TRY(iv_call_output(call, 0, &y));
    if (iv_tensor_elements(y) == 0)
        return IV_OK;
    int64_t size = (int64_t)iv_dtype_size(x->dtype), count = 1;
    for (int d = 2; d < x->rank; d++)
        count *= x->dims[d];
    /* Room for the elements without gaps, and for numbers of at most 8 bytes made from them. */
    char *dense = iv_allocate_array((size_t)count, 2 * sizeof(double));
    if (dense == NULL)
        return iv_fail_memory(call->error, (size_t)count * 2 * sizeof(double));
    void *numbers = dense + (size_t)count * sizeof(double);
    for (int64_t plane = 0; plane < x->dims[0] * x->dims[1]; plane++) {
        int64_t offset = plane / x->dims[1] * x->strides[0] + plane % x->dims[1] * x->strides[1];
        iv_gather_dense((size_t)size, x->rank - 2, x->dims + 2, x->strides + 2,
                        x->data + offset * size, dense);
        reduce(call->node, x->dtype, dense, numbers, count, y->data, plane);
    }
    iv_free(dense);
    return IV_OK;
}

static iv_status eval_average(iv_call *call) {
    return reduce_channels(call, average_channel);
}

static iv_status eval_max(iv_call *call) {
    return reduce_channels(call, max_channel);
}

static iv_status eval_norm(iv_call *call) {
    return reduce_channels(call, norm_channel);
}

const iv_op iv_ops_pool_global[] = {
    {.name = "GlobalAveragePool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_global,
     .eval = eval_average},
    {.name = "GlobalMaxPool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_global,
     .eval = eval_max},
    {.name = "GlobalLpPool",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_pool_global_params),
     .prepare = prepare_global,
     .infer = infer_global,
     .eval = eval_norm},
    {0},
};
