/* GlobalAveragePool, GlobalMaxPool and GlobalLpPool: over all spatial elements of a channel in row-major order.
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

static sb_status prepare_global(sb_node *node, sb_error *error) {
    sb_pool_global_params *params = node->params;
    int64_t p;
    if (node->version < 2)
        return sb_node_float(node, "p", 2, &params->p, error);
    SB_TRY(sb_node_int(node, "p", 2, &p, error));
    params->p = (float)p;
    return SB_OK;
}

static sb_status infer_global(sb_infer *infer) {
    const sb_fact *x;
    sb_dim dims[SB_MAX_RANK];
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &x));
    if (x->rank == 0 || x->rank == 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 0 has rank %d; a batch and channels are expected", x->rank);
    for (int d = 0; d < x->rank; d++)
        dims[d] = d < 2 ? x->dims[d] : sb_dim_constant(infer->scope, 1);
    sb_fact_set_tensor(&infer->outputs[0], x->dtype, x->rank, dims);
    return SB_OK;
}

/* Reduces the `count` gapless elements of one channel to element `index` of `y`; `numbers` has room
 * for `count` elements of the dtype that is computed with. */
typedef void reduce_channel(const sb_node *node, sb_dtype dtype, const void *x, void *numbers, int64_t count, void *y,
                            int64_t index);

static void widen(sb_dtype dtype, const void *x, float *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        numbers[i] = sb_real_load_f32(dtype, x, i);
}

static void average_channel(const sb_node *node, sb_dtype dtype, const void *x, void *numbers, int64_t count, void *y,
                            int64_t index) {
    if (dtype == SB_F64) {
        ((double *)y)[index] = sb_mean_f64(x, 1, count);
        return;
    }
    widen(dtype, x, numbers, count);
    sb_real_store_f32(dtype, y, index, sb_mean_f32(numbers, 1, count));
}

static void max_channel(const sb_node *node, sb_dtype dtype, const void *x, void *numbers, int64_t count, void *y,
                        int64_t index) {
    size_t size = sb_dtype_size(dtype);
    const char *elements = x, *best = x;
    char *target = (char *)y + (size_t)index * size;
    for (int64_t i = 1; i < count; i++) {
        const char *element = elements + (size_t)i * size;
        if (sb_pool_order(dtype, element) > sb_pool_order(dtype, best))
            best = element;
    }
    if (count == 0)
        sb_pool_store_least(dtype, target);
    else
        memcpy(target, best, size);
}

static double norm_f64(double p, const double *x, double *numbers, int64_t count) {
    if (p == 2.0)
        return sb_sqrt_f64(sb_sum_of_squares_f64(x, 1, count));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = p == 1.0 ? sb_abs_f64(x[i]) : sb_pow_f64(sb_abs_f64(x[i]), p);
    double sum = sb_sum_f64(numbers, 1, count);
    return p == 1.0 ? sum : sb_pow_f64(sum, 1.0 / p);
}

static float norm_f32(float p, float *numbers, int64_t count) {
    if (p == 2.0f)
        return sb_sqrt_f32(sb_sum_of_squares_f32(numbers, 1, count));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = p == 1.0f ? sb_abs_f32(numbers[i]) : sb_pow_f32(sb_abs_f32(numbers[i]), p);
    float sum = sb_sum_f32(numbers, 1, count);
    return p == 1.0f ? sum : sb_pow_f32(sum, 1.0f / p);
}

static void norm_channel(const sb_node *node, sb_dtype dtype, const void *x, void *numbers, int64_t count, void *y,
                         int64_t index) {
    float p = ((const sb_pool_global_params *)node->params)->p;
    if (dtype == SB_F64) {
        ((double *)y)[index] = norm_f64((double)p, x, numbers, count);
        return;
    }
    widen(dtype, x, numbers, count);
    sb_real_store_f32(dtype, y, index, norm_f32(p, numbers, count));
}

static sb_status reduce_channels(sb_call *call, reduce_channel *reduce) {
    const sb_tensor *x = sb_call_input(call, 0);
    sb_tensor *y;
    SB_TRY(sb_call_output(call, 0, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    int64_t size = (int64_t)sb_dtype_size(x->dtype), count = 1;
    for (int d = 2; d < x->rank; d++)
        count *= x->dims[d];
    /* Room for the elements without gaps, and for numbers of at most 8 bytes made from them. */
    char *dense = sb_allocate_array((size_t)count, 2 * sizeof(double));
    if (dense == NULL)
        return sb_fail_memory(call->error, (size_t)count * 2 * sizeof(double));
    void *numbers = dense + (size_t)count * sizeof(double);
    for (int64_t plane = 0; plane < x->dims[0] * x->dims[1]; plane++) {
        int64_t offset = plane / x->dims[1] * x->strides[0] + plane % x->dims[1] * x->strides[1];
        sb_gather_dense((size_t)size, x->rank - 2, x->dims + 2, x->strides + 2, x->data + offset * size, dense);
        reduce(call->node, x->dtype, dense, numbers, count, y->data, plane);
    }
    sb_free(dense);
    return SB_OK;
}

static sb_status eval_average(sb_call *call) {
    return reduce_channels(call, average_channel);
}

static sb_status eval_max(sb_call *call) {
    return reduce_channels(call, max_channel);
}

static sb_status eval_norm(sb_call *call) {
    return reduce_channels(call, norm_channel);
}

const sb_op sb_ops_pool_global[] = {
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
     .params_size = sizeof(sb_pool_global_params),
     .prepare = prepare_global,
     .infer = infer_global,
     .eval = eval_norm},
    {0},
};
