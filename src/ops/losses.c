/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
 *
 * One loss per target t at (n, d…): -(w[t] p[n, t, d…]), with p the input (SoftmaxCrossEntropyLoss:
 * its LogSoftmax over dimension 1, by the formulas of softmax_row.h) and w[t] = 1 without weights.
 * A target equal to ignore_index has loss +0 and weight +0. reduction: none; sum, in the order of
 * numerics/reduce.h over (n, d…) row-major; mean, that sum divided by the sum of the targets'
 * weights. All in f32 (f64 for f64), rounded once when stored. */
#include "ops/losses.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/rows.h"
#include "ops/softmax_row.h"

static iv_status prepare_loss(iv_node *node, iv_error *error) {
    static const char *const names[] = {"none", "sum", "mean"};
    iv_loss_params *params = node->params;
    const char *reduction;
    IV_TRY(iv_node_string(node, "reduction", "mean", &reduction, error));
    IV_TRY(iv_node_int(node, "ignore_index", 0, &params->ignored, error));
    params->ignores = iv_node_has(node, "ignore_index");
    for (int i = 0; i < 3; i++) {
        if (strcmp(reduction, names[i]) == 0) {
            params->reduction = (iv_loss_reduction)i;
            return IV_OK;
        }
    }
    return iv_fail(error, IV_ERROR_INVALID_MODEL,
                   "node %s (%s): reduction is \"%s\"; it may be none, sum or mean", node->name,
                   node->op->name, reduction);
}

static iv_status infer_loss(iv_infer *infer) {
    const iv_loss_params *params = infer->node->params;
    const iv_fact *scores, *targets, *weights;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &scores));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_INDEX, &targets));
    if (iv_infer_input(infer, 2) != NULL)
        IV_TRY(iv_infer_require(infer, 2, IV_SET(scores->dtype), &weights));
    if (scores->rank != IV_RANK_UNKNOWN && targets->rank != IV_RANK_UNKNOWN &&
        (scores->rank < 2 || targets->rank != scores->rank - 1))
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "scores of rank %d need targets of rank %d, not %d", scores->rank,
                             scores->rank - 1, targets->rank);
    if (params->reduction == IV_LOSS_NONE)
        iv_infer_shape_of(infer, 0, targets, scores->dtype);
    else
        iv_fact_set_tensor(&infer->outputs[0], scores->dtype, 0, NULL);
    if (infer->output_count > 1)
        iv_infer_shape_of(infer, 1, scores, scores->dtype);
    return IV_OK;
}

/* Everything packed, of the computing type; scores as one row of classes per target. */
typedef struct loss_data {
    iv_dtype computed;
    int64_t classes, count;
    int64_t *targets;
    void *scores, *weights; /* weights: NULL for ones */
    void *losses, *shares;  /* per target: its loss and its weight */
} loss_data;

#define LOSSES(type, suffix)                                                                       \
    static void each_loss_##suffix(const iv_loss_params *params, loss_data *data) {                \
        const type *scores = data->scores, *weights = data->weights;                               \
        type *losses = data->losses, *shares = data->shares;                                       \
        for (int64_t i = 0; i < data->count; i++) {                                                \
            int64_t target = data->targets[i];                                                     \
            bool ignored = params->ignores && target == params->ignored;                           \
            shares[i] = ignored ? 0 : weights != NULL ? weights[target] : 1;                       \
            losses[i] = ignored ? 0 : -(shares[i] * scores[i * data->classes + target]);           \
        }                                                                                          \
    }                                                                                              \
    static type reduce_losses_##suffix(const iv_loss_params *params, const loss_data *data) {      \
        type sum = iv_sum_##suffix(data->losses, 1, data->count);                                  \
        if (params->reduction == IV_LOSS_SUM)                                                      \
            return sum;                                                                            \
        return iv_div_##suffix(sum, iv_sum_##suffix(data->shares, 1, data->count));                \
    }
LOSSES(float, f32)
LOSSES(double, f64)

static iv_status store_losses(iv_call *call, loss_data *data) {
    const iv_loss_params *params = call->node->params;
    iv_tensor *output;
    if (data->computed == IV_F32)
        each_loss_f32(params, data);
    else
        each_loss_f64(params, data);
    if (!iv_call_wants(call, 0))
        return IV_OK;
    IV_TRY(iv_call_output(call, 0, &output));
    if (params->reduction == IV_LOSS_NONE) {
        iv_convert_row(output->dtype, output->data, data->computed, data->losses,
                       (int64_t)iv_dtype_size(data->computed), data->count);
    } else if (data->computed == IV_F32) {
        float result = reduce_losses_f32(params, data);
        iv_convert_row(output->dtype, output->data, IV_F32, &result, 0, 1);
    } else {
        double result = reduce_losses_f64(params, data);
        iv_convert_row(output->dtype, output->data, IV_F64, &result, 0, 1);
    }
    return IV_OK;
}

static iv_status check_targets(const iv_call *call, const loss_data *data) {
    const iv_loss_params *params = call->node->params;
    for (int64_t i = 0; i < data->count; i++) {
        int64_t target = data->targets[i];
        if ((target < 0 || target >= data->classes) &&
            !(params->ignores && target == params->ignored))
            return iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT,
                                "target %lld is no class in [0, %lld)", (long long)target,
                                (long long)data->classes);
    }
    return IV_OK;
}

/* Loads scores, one row of classes per target; log probabilities too, when they are asked for. */
static iv_status load_scores(iv_call *call, const iv_tensor *scores, loss_data *data) {
    bool softmax = call->node->op == &iv_ops_losses[1];
    iv_tensor *output;
    iv_rows from, to;
    size_t size = iv_dtype_size(data->computed), row_bytes = (size_t)data->classes * size;
    iv_rows_start(&from, scores, 2);
    data->scores = iv_allocate_array((size_t)data->count, row_bytes);
    if (data->scores == NULL)
        return iv_fail_memory(call->error, (size_t)data->count * row_bytes);
    for (int64_t row = 0; row < data->count; row++) {
        char *values = (char *)data->scores + (size_t)row * row_bytes;
        iv_rows_load(&from, row, 0, data->classes, data->computed, values);
        if (softmax && data->computed == IV_F32)
            iv_log_softmax_row_f32((float *)(void *)values, data->classes);
        else if (softmax)
            iv_log_softmax_row_f64((double *)(void *)values, data->classes);
    }
    if (!iv_call_wants(call, 1))
        return IV_OK;
    IV_TRY(iv_call_output(call, 1, &output));
    iv_rows_start(&to, output, 2);
    for (int64_t row = 0; row < data->count; row++)
        iv_rows_store(&to, row, 0, data->classes, data->computed,
                      (char *)data->scores + (size_t)row * row_bytes);
    return IV_OK;
}

static iv_status load_loss(iv_call *call, loss_data *data) {
    const iv_tensor *scores = iv_call_input(call, 0), *targets = iv_call_input(call, 1);
    const iv_tensor *weights = iv_call_input(call, 2);
    bool fits = targets->dims[0] == scores->dims[0];
    for (int d = 2; d < scores->rank; d++)
        fits = fits && targets->dims[d - 1] == scores->dims[d];
    data->classes = scores->dims[1];
    data->count = iv_tensor_elements(targets);
    if (!fits || (weights != NULL && (weights->rank != 1 || weights->dims[0] != data->classes)))
        return iv_call_fail(call, IV_ERROR_SHAPE,
                            "scores are N, C, d…; targets must be N, d… and weights C");
    IV_TRY(iv_load_all(targets, IV_S64, (void **)&data->targets, call->error));
    IV_TRY(check_targets(call, data));
    if (weights != NULL)
        IV_TRY(iv_load_all(weights, data->computed, &data->weights, call->error));
    size_t size = iv_dtype_size(data->computed);
    data->losses = iv_allocate_array((size_t)data->count, size);
    data->shares = iv_allocate_array((size_t)data->count, size);
    if (data->losses == NULL || data->shares == NULL)
        return iv_fail_memory(call->error, (size_t)data->count * size);
    return load_scores(call, scores, data);
}

static iv_status eval_loss(iv_call *call) {
    loss_data data = {.computed = iv_computing_dtype(iv_call_input(call, 0)->dtype)};
    iv_status status = load_loss(call, &data);
    if (status == IV_OK)
        status = store_losses(call, &data);
    iv_free(data.targets);
    iv_free(data.scores);
    iv_free(data.weights);
    iv_free(data.losses);
    iv_free(data.shares);
    return status;
}

/* clang-format off */
#define LOSS_OP(op_name, outputs)                                                                  \
    {.name = op_name, .domain = "", .least_inputs = 2, .most_inputs = 3, .least_outputs = 1,       \
     .most_outputs = outputs, .params_size = sizeof(iv_loss_params), .prepare = prepare_loss,      \
     .infer = infer_loss, .eval = eval_loss}

const iv_op iv_ops_losses[] = {
    LOSS_OP("NegativeLogLikelihoodLoss", 1),
    LOSS_OP("SoftmaxCrossEntropyLoss", 2),
    {0},
};
/* clang-format on */
