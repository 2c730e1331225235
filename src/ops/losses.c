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
#include "rules/counting.h"
#include "rules/question.h"

static sb_status prepare_loss(sb_node *node, sb_error *error) {
    static const char *const names[] = {"none", "sum", "mean"};
    sb_loss_params *params = node->params;
    const char *reduction;
    SB_TRY(sb_node_string(node, "reduction", "mean", &reduction, error));
    SB_TRY(sb_node_int(node, "ignore_index", 0, &params->ignored, error));
    params->ignores = sb_node_has(node, "ignore_index");
    for (int i = 0; i < 3; i++) {
        if (strcmp(reduction, names[i]) == 0) {
            params->reduction = (sb_loss_reduction)i;
            return SB_OK;
        }
    }
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): reduction is \"%s\"; it may be none, sum or mean",
                   node->name, node->op->name, reduction);
}

static sb_status infer_loss(sb_infer *infer) {
    const sb_loss_params *params = infer->node->params;
    const sb_fact *scores, *targets, *weights;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &scores));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_INDEX, &targets));
    if (sb_infer_input(infer, 2) != NULL)
        SB_TRY(sb_infer_require(infer, 2, SB_SET(scores->dtype), &weights));
    if (scores->rank != SB_RANK_UNKNOWN && targets->rank != SB_RANK_UNKNOWN &&
        (scores->rank < 2 || targets->rank != scores->rank - 1))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "scores of rank %d need targets of rank %d, not %d", scores->rank,
                             scores->rank - 1, targets->rank);
    if (params->reduction == SB_LOSS_NONE)
        sb_infer_shape_of(infer, 0, targets, scores->dtype);
    else
        sb_fact_set_tensor(&infer->outputs[0], scores->dtype, 0, NULL);
    if (infer->output_count > 1)
        sb_infer_shape_of(infer, 1, scores, scores->dtype);
    return SB_OK;
}

/* Everything packed, of the computing type; scores as one row of classes per target. */
typedef struct loss_data {
    sb_dtype computed;
    int64_t classes, count;
    int64_t *targets;
    void *scores, *weights; /* weights: NULL for ones */
    void *losses, *shares;  /* per target: its loss and its weight */
} loss_data;

#define LOSSES(type, suffix)                                                                                           \
    static void each_loss_##suffix(const sb_loss_params *params, loss_data *data) {                                    \
        const type *scores = data->scores, *weights = data->weights;                                                   \
        type *losses = data->losses, *shares = data->shares;                                                           \
        for (int64_t i = 0; i < data->count; i++) {                                                                    \
            int64_t target = data->targets[i];                                                                         \
            bool ignored = params->ignores && target == params->ignored;                                               \
            shares[i] = ignored ? 0 : weights != NULL ? weights[target] : 1;                                           \
            losses[i] = ignored ? 0 : -(shares[i] * scores[i * data->classes + target]);                               \
        }                                                                                                              \
    }                                                                                                                  \
    static type reduce_losses_##suffix(const sb_loss_params *params, const loss_data *data) {                          \
        type sum = sb_sum_##suffix(data->losses, 1, data->count);                                                      \
        if (params->reduction == SB_LOSS_SUM)                                                                          \
            return sum;                                                                                                \
        return sb_div_##suffix(sum, sb_sum_##suffix(data->shares, 1, data->count));                                    \
    }
LOSSES(float, f32)
LOSSES(double, f64)

static sb_status store_losses(sb_call *call, loss_data *data) {
    const sb_loss_params *params = call->node->params;
    sb_tensor *output;
    if (data->computed == SB_F32)
        each_loss_f32(params, data);
    else
        each_loss_f64(params, data);
    if (!sb_call_wants(call, 0))
        return SB_OK;
    SB_TRY(sb_call_output(call, 0, &output));
    if (params->reduction == SB_LOSS_NONE) {
        sb_convert_row(output->dtype, output->data, data->computed, data->losses,
                       (int64_t)sb_dtype_size(data->computed), data->count);
    } else if (data->computed == SB_F32) {
        float result = reduce_losses_f32(params, data);
        sb_convert_row(output->dtype, output->data, SB_F32, &result, 0, 1);
    } else {
        double result = reduce_losses_f64(params, data);
        sb_convert_row(output->dtype, output->data, SB_F64, &result, 0, 1);
    }
    return SB_OK;
}

static sb_status check_targets(const sb_call *call, const loss_data *data) {
    const sb_loss_params *params = call->node->params;
    for (int64_t i = 0; i < data->count; i++) {
        int64_t target = data->targets[i];
        if ((target < 0 || target >= data->classes) && !(params->ignores && target == params->ignored))
            return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "target %lld is no class in [0, %lld)",
                                (long long)target, (long long)data->classes);
    }
    return SB_OK;
}

/* Loads scores, one row of classes per target; log probabilities too, when they are asked for. */
static sb_status load_scores(sb_call *call, const sb_tensor *scores, loss_data *data) {
    bool softmax = call->node->op == &sb_ops_losses[1];
    sb_tensor *output;
    sb_rows from, to;
    size_t size = sb_dtype_size(data->computed), row_bytes = (size_t)data->classes * size;
    sb_rows_start(&from, scores, 2);
    data->scores = sb_allocate_array((size_t)data->count, row_bytes);
    if (data->scores == NULL)
        return sb_fail_memory(call->error, (size_t)data->count * row_bytes);
    for (int64_t row = 0; row < data->count; row++) {
        char *values = (char *)data->scores + (size_t)row * row_bytes;
        sb_rows_load(&from, row, 0, data->classes, data->computed, values);
        if (softmax && data->computed == SB_F32)
            sb_log_softmax_row_f32((float *)(void *)values, data->classes);
        else if (softmax)
            sb_log_softmax_row_f64((double *)(void *)values, data->classes);
    }
    if (!sb_call_wants(call, 1))
        return SB_OK;
    SB_TRY(sb_call_output(call, 1, &output));
    sb_rows_start(&to, output, 2);
    for (int64_t row = 0; row < data->count; row++)
        sb_rows_store(&to, row, 0, data->classes, data->computed, (char *)data->scores + (size_t)row * row_bytes);
    return SB_OK;
}

static sb_status load_loss(sb_call *call, loss_data *data) {
    const sb_tensor *scores = sb_call_input(call, 0), *targets = sb_call_input(call, 1);
    const sb_tensor *weights = sb_call_input(call, 2);
    bool fits = targets->dims[0] == scores->dims[0];
    for (int d = 2; d < scores->rank; d++)
        fits = fits && targets->dims[d - 1] == scores->dims[d];
    data->classes = scores->dims[1];
    data->count = sb_tensor_elements(targets);
    if (!fits || (weights != NULL && (weights->rank != 1 || weights->dims[0] != data->classes)))
        return sb_call_fail(call, SB_ERROR_SHAPE, "scores are N, C, d…; targets must be N, d… and weights C");
    SB_TRY(sb_load_all(targets, SB_S64, (void **)&data->targets, call->error));
    SB_TRY(check_targets(call, data));
    if (weights != NULL)
        SB_TRY(sb_load_all(weights, data->computed, &data->weights, call->error));
    size_t size = sb_dtype_size(data->computed);
    data->losses = sb_allocate_array((size_t)data->count, size);
    data->shares = sb_allocate_array((size_t)data->count, size);
    if (data->losses == NULL || data->shares == NULL)
        return sb_fail_memory(call->error, (size_t)data->count * size);
    return load_scores(call, scores, data);
}

static sb_status eval_loss(sb_call *call) {
    loss_data data = {.computed = sb_computing_dtype(sb_call_input(call, 0)->dtype)};
    sb_status status = load_loss(call, &data);
    if (status == SB_OK)
        status = store_losses(call, &data);
    sb_free(data.targets);
    sb_free(data.scores);
    sb_free(data.weights);
    sb_free(data.losses);
    sb_free(data.shares);
    return status;
}

/* clang-format off */
#define LOSS_OP(op_name, outputs)                                                                  \
    {.name = op_name, .domain = "", .least_inputs = 2, .most_inputs = 3, .least_outputs = 1,       \
     .most_outputs = outputs, .params_size = sizeof(sb_loss_params), .prepare = prepare_loss,      \
     .infer = infer_loss, .eval = eval_loss}

const sb_op sb_ops_losses[] = {
    LOSS_OP("NegativeLogLikelihoodLoss", 1),
    LOSS_OP("SoftmaxCrossEntropyLoss", 2),
    {0},
};
/* clang-format on */

/* ---- rules: scores [batch, classes, space], targets [batch, space], a weight per class ---- */

#define CHOSEN "targets choose from the classes"

/* The loss has the shape of the targets, or none; the log-probabilities have that of the scores. */
static sb_status axes_of_loss(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_loss_params *params = question->node->params;
    bool each = params->reduction == SB_LOSS_NONE;
    int scores_axis = question->input == 1 && question->axis > 0 ? question->axis + 1 : question->axis;
    if (question->input == 2)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, CHOSEN);
    bool classes = question->input == 0 && question->axis == 1;
    if (classes)
        sb_axis_bounded(question, answer, SB_AXIS_NONE, CHOSEN);
    else if (!each)
        sb_axis_bounded(question, answer, SB_AXIS_NONE, "all losses become one");
    else
        sb_axis_independent(question, answer, scores_axis > 1 ? scores_axis - 1 : scores_axis);
    if (answer->output_axes != NULL && question->node->output_count > 1)
        answer->output_axes[1] = scores_axis;
    return SB_OK;
}

#define LOSS_AXES(op_name)                                                                                             \
    {                                                                                                                  \
        .op = {op_name}, .rule = axes_of_loss, .checked = 2,                                                           \
        .independent = "batch and space, where every loss is an output",                                               \
        .bounded = "classes; batch and space, where the losses become one"                                             \
    }

const sb_axes_entry sb_axes_losses[] = {
    LOSS_AXES("NegativeLogLikelihoodLoss"),
    LOSS_AXES("SoftmaxCrossEntropyLoss"),
    {.op = {NULL}},
};

#define LOSS_COST(op_name)                                                                                             \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_whole }

const sb_cost_entry sb_cost_losses[] = {
    LOSS_COST("NegativeLogLikelihoodLoss"),
    LOSS_COST("SoftmaxCrossEntropyLoss"),
    {.op = {NULL}},
};
