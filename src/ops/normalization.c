/* MeanVarianceNormalization, LpNormalization and LRN. f16 and bf16 are computed in f32 and rounded
 * once when stored. */
#include "ops/normalization.h"

#include "base/allocation.h"
#include "numerics/elementary.h"
#include "ops/list.h"
#include "ops/moments.h"
#include "ops/rows.h"

static iv_status run_rows(iv_call *call, uint32_t inner,
                          void (*f32)(void *, int64_t, float *, int64_t),
                          void (*f64)(void *, int64_t, double *, int64_t), void *context) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    iv_rows from, to;
    iv_rows_start(&from, input, inner);
    iv_rows_start(&to, output, inner);
    return iv_rows_transform(&from, &to, iv_computing_dtype(input->dtype), f32, f64, context,
                             call->error);
}

/* ---- MeanVarianceNormalization: y = (x - mean) / (sqrt(variance) + 1e-9), moments over `axes`
 * (moments.h) ---- */

#define MEAN_VARIANCE(type, suffix)                                                                \
    static void mean_variance_##suffix(void *unused, int64_t row, type *values, int64_t count) {   \
        type mean, variance = iv_centre_row_##suffix(values, count, &mean);                        \
        type deviation = iv_sqrt_##suffix(variance) + (type)1e-9;                                  \
        for (int64_t i = 0; i < count; i++)                                                        \
            values[i] = iv_div_##suffix(values[i], deviation);                                     \
    }
MEAN_VARIANCE(float, f32)
MEAN_VARIANCE(double, f64)

static iv_status prepare_mean_variance(iv_node *node, iv_error *error) {
    static const int64_t usual[3] = {0, 2, 3};
    iv_axes *axes = node->params;
    axes->input = -1;
    IV_TRY(iv_node_ints(node, "axes", &axes->count, &axes->values, error));
    if (!iv_node_has(node, "axes")) {
        axes->count = 3;
        axes->values = usual;
    }
    return IV_OK;
}

static iv_status infer_mean_variance(iv_infer *infer) {
    const iv_fact *input;
    uint32_t set;
    int named;
    bool known;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    IV_TRY(iv_axes_of_infer(infer, infer->node->params, input->rank, &set, &named, &known));
    iv_infer_shape_of(infer, 0, input, input->dtype);
    return IV_OK;
}

static iv_status eval_mean_variance(iv_call *call) {
    uint32_t inner;
    IV_TRY(iv_axes_of_call(call, call->node->params, iv_call_input(call, 0)->rank, &inner));
    return run_rows(call, inner, mean_variance_f32, mean_variance_f64, NULL);
}

/* ---- LpNormalization: y = x / norm along `axis`, norm the sum of |x| (p = 1) or the root of the
 * sum of squares (p = 2), in the order of numerics/reduce.h; +0 where the norm is 0 ---- */

#define LP(type, suffix)                                                                           \
    static type magnitude_##suffix(const type *values, int64_t index) {                            \
        return iv_abs_##suffix(values[index]);                                                     \
    }                                                                                              \
    SUM_OF_MAGNITUDES_##suffix static void lp_##suffix(void *opaque, int64_t row, type *values,    \
                                                       int64_t count) {                            \
        const iv_lp_params *params = opaque;                                                       \
        type norm = params->p == 1                                                                 \
                        ? sum_of_magnitudes_##suffix(values, count)                                \
                        : iv_sqrt_##suffix(iv_sum_of_squares_##suffix(values, 1, count));          \
        for (int64_t i = 0; i < count; i++)                                                        \
            values[i] = norm == 0 ? 0 : iv_div_##suffix(values[i], norm);                          \
    }
#define SUM_OF_MAGNITUDES_f32 IV_DEFINE_SUM_F32(sum_of_magnitudes_f32, const float *, magnitude_f32)
#define SUM_OF_MAGNITUDES_f64                                                                      \
    IV_DEFINE_SUM_F64(sum_of_magnitudes_f64, const double *, magnitude_f64)
LP(float, f32)
LP(double, f64)

static iv_status prepare_lp(iv_node *node, iv_error *error) {
    iv_lp_params *params = node->params;
    IV_TRY(iv_node_int(node, "axis", -1, &params->axis, error));
    IV_TRY(iv_node_int(node, "p", 2, &params->p, error));
    if (params->p != 1 && params->p != 2)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s (%s): p is %lld; it may be 1 or 2",
                       node->name, node->op->name, (long long)params->p);
    return IV_OK;
}

static iv_status infer_lp(iv_infer *infer) {
    const iv_fact *input;
    int axis;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    if (input->rank != IV_RANK_UNKNOWN)
        IV_TRY(iv_infer_axis(infer, ((const iv_lp_params *)infer->node->params)->axis, input->rank,
                             &axis));
    iv_infer_shape_of(infer, 0, input, input->dtype);
    return IV_OK;
}

static iv_status eval_lp(iv_call *call) {
    iv_lp_params params = *(const iv_lp_params *)call->node->params;
    int rank = iv_call_input(call, 0)->rank;
    uint32_t inner = UINT32_C(1) << (params.axis < 0 ? params.axis + rank : params.axis);
    return run_rows(call, inner, lp_f32, lp_f64, &params);
}

/* ---- LRN: y = x / pow(bias + (alpha / size) s, beta), s the sum of squares over the `size`
 * channels around, by fma in ascending order from +0 ---- */

/* `values` is a column of channels followed by room for as many results. */
typedef struct lrn_context {
    iv_lrn_params params;
    void *results;
} lrn_context;

#define LRN(type, suffix)                                                                          \
    static void lrn_##suffix(void *opaque, int64_t row, type *values, int64_t count) {             \
        const lrn_context *context = opaque;                                                       \
        const iv_lrn_params *params = &context->params;                                            \
        type *results = context->results;                                                          \
        type weight = iv_div_##suffix((type)params->alpha, (type)params->size);                    \
        int64_t before = (params->size - 1) / 2, after = params->size - 1 - before;                \
        for (int64_t c = 0; c < count; c++) {                                                      \
            int64_t first = c > before ? c - before : 0;                                           \
            int64_t last = after < count - 1 - c ? c + after : count - 1;                          \
            type sum = 0;                                                                          \
            for (int64_t i = first; i <= last; i++)                                                \
                sum = iv_fma_##suffix(values[i], values[i], sum);                                  \
            type base = (type)params->bias + weight * sum;                                         \
            results[c] = iv_div_##suffix(values[c], iv_pow_##suffix(base, (type)params->beta));    \
        }                                                                                          \
        for (int64_t c = 0; c < count; c++)                                                        \
            values[c] = results[c];                                                                \
    }
LRN(float, f32)
LRN(double, f64)

static iv_status prepare_lrn(iv_node *node, iv_error *error) {
    iv_lrn_params *params = node->params;
    IV_TRY(iv_node_float(node, "alpha", 1e-4f, &params->alpha, error));
    IV_TRY(iv_node_float(node, "beta", 0.75f, &params->beta, error));
    IV_TRY(iv_node_float(node, "bias", 1.0f, &params->bias, error));
    IV_TRY(iv_node_int(node, "size", 0, &params->size, error));
    if (params->size < 1)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (LRN): size is %lld; it must be at least 1", node->name,
                       (long long)params->size);
    return IV_OK;
}

static iv_status infer_lrn(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    if (input->rank != IV_RANK_UNKNOWN && input->rank < 2)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input 0 has rank %d where N, C, … is expected",
                             input->rank);
    iv_infer_shape_of(infer, 0, input, input->dtype);
    return IV_OK;
}

static iv_status eval_lrn(iv_call *call) {
    int64_t channels = iv_call_input(call, 0)->dims[1];
    lrn_context context = {.params = *(const iv_lrn_params *)call->node->params};
    context.results = iv_allocate_array((size_t)channels, sizeof(double));
    if (context.results == NULL)
        return iv_fail_memory(call->error, (size_t)channels * sizeof(double));
    iv_status status = run_rows(call, 2, lrn_f32, lrn_f64, &context);
    iv_free(context.results);
    return status;
}

/* clang-format off */
#define NORMALIZATION_OP(op_name, params_type, op)                                                 \
    {.name = op_name, .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,       \
     .most_outputs = 1, .params_size = sizeof(params_type), .prepare = prepare_##op,               \
     .infer = infer_##op, .eval = eval_##op}

const iv_op iv_ops_normalization[] = {
    NORMALIZATION_OP("MeanVarianceNormalization", iv_axes, mean_variance),
    NORMALIZATION_OP("LpNormalization", iv_lp_params, lp),
    NORMALIZATION_OP("LRN", iv_lrn_params, lrn),
    {0},
};
/* clang-format on */
