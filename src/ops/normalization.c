/* MeanVarianceNormalization, LpNormalization and LRN. f16 and bf16 are computed in f32 and rounded
 * once when stored. */
#include "ops/normalization.h"

#include "base/allocation.h"
#include "numerics/elementary.h"
#include "ops/list.h"
#include "ops/moments.h"
#include "ops/rows.h"

static sb_status run_rows(sb_call *call, uint32_t inner, void (*f32)(void *, int64_t, float *, int64_t),
                          void (*f64)(void *, int64_t, double *, int64_t), void *context) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    sb_rows from, to;
    sb_rows_start(&from, input, inner);
    sb_rows_start(&to, output, inner);
    return sb_rows_transform(&from, &to, sb_computing_dtype(input->dtype), f32, f64, context, call->error);
}

/* ---- MeanVarianceNormalization: y = (x - mean) / (sqrt(variance) + 1e-9), moments over `axes` (moments.h) ---- */

#define MEAN_VARIANCE(type, suffix)                                                                                    \
    static void mean_variance_##suffix(void *unused, int64_t row, type *values, int64_t count) {                       \
        type mean, variance = sb_centre_row_##suffix(values, count, &mean);                                            \
        type deviation = sb_sqrt_##suffix(variance) + (type)1e-9;                                                      \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = sb_div_##suffix(values[i], deviation);                                                         \
    }
MEAN_VARIANCE(float, f32)
MEAN_VARIANCE(double, f64)

static sb_status prepare_mean_variance(sb_node *node, sb_error *error) {
    static const int64_t usual[3] = {0, 2, 3};
    sb_axes *axes = node->params;
    axes->input = -1;
    SB_TRY(sb_node_ints(node, "axes", &axes->count, &axes->values, error));
    if (!sb_node_has(node, "axes")) {
        axes->count = 3;
        axes->values = usual;
    }
    return SB_OK;
}

static sb_status infer_mean_variance(sb_infer *infer) {
    const sb_fact *input;
    uint32_t set;
    int named;
    bool known;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    SB_TRY(sb_axes_of_infer(infer, infer->node->params, input->rank, &set, &named, &known));
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

static sb_status eval_mean_variance(sb_call *call) {
    uint32_t inner;
    SB_TRY(sb_axes_of_call(call, call->node->params, sb_call_input(call, 0)->rank, &inner));
    return run_rows(call, inner, mean_variance_f32, mean_variance_f64, NULL);
}

/* ---- LpNormalization: y = x / norm along `axis`, norm the sum of |x| (p = 1) or the root of the
 * sum of squares (p = 2), in the order of numerics/reduce.h; +0 where the norm is 0 ---- */

#define LP(type, suffix)                                                                                               \
    static type magnitude_##suffix(const type *values, int64_t index) {                                                \
        return sb_abs_##suffix(values[index]);                                                                         \
    }                                                                                                                  \
    SUM_OF_MAGNITUDES_##suffix static void lp_##suffix(void *opaque, int64_t row, type *values, int64_t count) {       \
        const sb_lp_params *params = opaque;                                                                           \
        type norm = params->p == 1 ? sum_of_magnitudes_##suffix(values, count)                                         \
                                   : sb_sqrt_##suffix(sb_sum_of_squares_##suffix(values, 1, count));                   \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = norm == 0 ? 0 : sb_div_##suffix(values[i], norm);                                              \
    }
#define SUM_OF_MAGNITUDES_f32 SB_DEFINE_SUM_F32(sum_of_magnitudes_f32, const float *, magnitude_f32)
#define SUM_OF_MAGNITUDES_f64 SB_DEFINE_SUM_F64(sum_of_magnitudes_f64, const double *, magnitude_f64)
LP(float, f32)
LP(double, f64)

static sb_status prepare_lp(sb_node *node, sb_error *error) {
    sb_lp_params *params = node->params;
    SB_TRY(sb_node_int(node, "axis", -1, &params->axis, error));
    SB_TRY(sb_node_int(node, "p", 2, &params->p, error));
    if (params->p != 1 && params->p != 2)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): p is %lld; it may be 1 or 2", node->name,
                       node->op->name, (long long)params->p);
    return SB_OK;
}

static sb_status infer_lp(sb_infer *infer) {
    const sb_fact *input;
    int axis;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    if (input->rank != SB_RANK_UNKNOWN)
        SB_TRY(sb_infer_axis(infer, ((const sb_lp_params *)infer->node->params)->axis, input->rank, &axis));
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

static sb_status eval_lp(sb_call *call) {
    sb_lp_params params = *(const sb_lp_params *)call->node->params;
    int rank = sb_call_input(call, 0)->rank;
    uint32_t inner = UINT32_C(1) << (params.axis < 0 ? params.axis + rank : params.axis);
    return run_rows(call, inner, lp_f32, lp_f64, &params);
}

/* ---- LRN: y = x / pow(bias + (alpha / size) s, beta), s the sum of squares over the `size`
 * channels around, by fma in ascending order from +0 ---- */

/* `values` is a column of channels followed by room for as many results. */
typedef struct lrn_context {
    sb_lrn_params params;
    void *results;
} lrn_context;

#define LRN(type, suffix)                                                                                              \
    static void lrn_##suffix(void *opaque, int64_t row, type *values, int64_t count) {                                 \
        const lrn_context *context = opaque;                                                                           \
        const sb_lrn_params *params = &context->params;                                                                \
        type *results = context->results;                                                                              \
        type weight = sb_div_##suffix((type)params->alpha, (type)params->size);                                        \
        int64_t before = (params->size - 1) / 2, after = params->size - 1 - before;                                    \
        for (int64_t c = 0; c < count; c++) {                                                                          \
            int64_t first = c > before ? c - before : 0;                                                               \
            int64_t last = after < count - 1 - c ? c + after : count - 1;                                              \
            type sum = 0;                                                                                              \
            for (int64_t i = first; i <= last; i++)                                                                    \
                sum = sb_fma_##suffix(values[i], values[i], sum);                                                      \
            type base = (type)params->bias + weight * sum;                                                             \
            results[c] = sb_div_##suffix(values[c], sb_pow_##suffix(base, (type)params->beta));                        \
        }                                                                                                              \
        for (int64_t c = 0; c < count; c++)                                                                            \
            values[c] = results[c];                                                                                    \
    }
LRN(float, f32)
LRN(double, f64)

static sb_status prepare_lrn(sb_node *node, sb_error *error) {
    sb_lrn_params *params = node->params;
    SB_TRY(sb_node_float(node, "alpha", 1e-4f, &params->alpha, error));
    SB_TRY(sb_node_float(node, "beta", 0.75f, &params->beta, error));
    SB_TRY(sb_node_float(node, "bias", 1.0f, &params->bias, error));
    SB_TRY(sb_node_int(node, "size", 0, &params->size, error));
    if (params->size < 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (LRN): size is %lld; it must be at least 1", node->name,
                       (long long)params->size);
    return SB_OK;
}

static sb_status infer_lrn(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    if (input->rank != SB_RANK_UNKNOWN && input->rank < 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 0 has rank %d where N, C, … is expected", input->rank);
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

static sb_status eval_lrn(sb_call *call) {
    int64_t channels = sb_call_input(call, 0)->dims[1];
    lrn_context context = {.params = *(const sb_lrn_params *)call->node->params};
    context.results = sb_allocate_array((size_t)channels, sizeof(double));
    if (context.results == NULL)
        return sb_fail_memory(call->error, (size_t)channels * sizeof(double));
    sb_status status = run_rows(call, 2, lrn_f32, lrn_f64, &context);
    sb_free(context.results);
    return status;
}

/* clang-format off */
#define NORMALIZATION_OP(op_name, params_type, op)                                                 \
    {.name = op_name, .domain = "", .least_inputs = 1, .most_inputs = 1, .least_outputs = 1,       \
     .most_outputs = 1, .params_size = sizeof(params_type), .prepare = prepare_##op,               \
     .infer = infer_##op, .eval = eval_##op}

const sb_op sb_ops_normalization[] = {
    NORMALIZATION_OP("MeanVarianceNormalization", sb_axes, mean_variance),
    NORMALIZATION_OP("LpNormalization", sb_lp_params, lp),
    NORMALIZATION_OP("LRN", sb_lrn_params, lrn),
    {0},
};
/* clang-format on */
