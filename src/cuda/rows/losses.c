/* NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss and Det. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/rows/losses_parameters.h"
#include "cuda/rows/reduce.h"
#include "cuda/rows/softmax.h"
#include "ops/losses.h"
#include "ops/rows.h"

/* ---- losses ---- */

/* `count` packed numbers in workspace, as a tensor on the stack. */
static sb_status workspace_list(sb_call *call, sb_dtype dtype, int64_t count, sb_tensor *list) {
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)count * sb_dtype_size(dtype), &memory));
    *list = (sb_tensor){.dtype = dtype, .rank = 1, .dims = {count}, .strides = {1}, .data = memory};
    return SB_OK;
}

static sb_status check_shapes(const sb_call *call) {
    const sb_tensor *scores = sb_call_input(call, 0), *targets = sb_call_input(call, 1);
    const sb_tensor *weights = sb_call_input(call, 2);
    bool fits = targets->dims[0] == scores->dims[0];
    for (int d = 2; d < scores->rank; d++)
        fits = fits && targets->dims[d - 1] == scores->dims[d];
    if (fits && (weights == NULL || (weights->rank == 1 && weights->dims[0] == scores->dims[1])))
        return SB_OK;
    return sb_call_fail(call, SB_ERROR_SHAPE, "scores are N, C, d…; targets must be N, d… and weights C");
}

/* Targets as a view with the dimensions of the scores, repeated along the classes. */
static void repeat_targets(const sb_tensor *targets, const sb_tensor *scores, sb_tensor *view) {
    memcpy(view, targets, sizeof *view);
    view->rank = scores->rank;
    for (int d = 1; d < scores->rank; d++) {
        view->dims[d] = d == 1 ? 1 : targets->dims[d - 1];
        view->strides[d] = d == 1 ? 0 : targets->strides[d - 1];
    }
}

static sb_status launch_each_loss(sb_call *call, sb_cuda_losses *parameters, bool softmax, const sb_tensor *each,
                                  const sb_tensor *losses, const sb_tensor *shares) {
    const sb_tensor *scores = sb_call_input(call, 0), *targets = sb_call_input(call, 1);
    sb_tensor view;
    repeat_targets(targets, scores, &view);
    sb_cuda_rows_fill(&parameters->rows, scores->rank, scores->dims, 2,
                      (const sb_tensor *[]){NULL, scores, &view, NULL});
    sb_cuda_work work = {.parameters = parameters, .parameter_bytes = sizeof *parameters};
    parameters->fault = sb_cuda_work_fault(&work, call);
    sb_cuda_work_reads(&work, scores);
    sb_cuda_work_reads(&work, targets);
    sb_cuda_work_reads(&work, sb_call_input(call, 2));
    sb_cuda_work_writes(&work, each);
    sb_cuda_work_writes(&work, losses);
    sb_cuda_work_writes(&work, shares);
    const char *suffix = sb_dtype_name(scores->dtype);
    if (!softmax)
        return sb_cuda_launch_each(call, &work, "losses", "sb_cuda_losses_likelihood", suffix, parameters->rows.count);
    sb_cuda_rows *rows = &parameters->rows;
    bool team = sb_cuda_rows_are_short(rows);
    char name[64];
    snprintf(name, sizeof name, "sb_cuda_losses_entropy_%s_%s", team ? "team" : "block", suffix);
    work.module = "losses";
    work.kernel = name;
    if (team)
        sb_cuda_rows_grid_short(call, rows, &work);
    else
        sb_cuda_rows_grid_long(call, rows, rows->count, &work);
    return sb_cuda_call_launch(call, &work);
}

/* Adds up lists of the computing type, and stores the sum or mean. */
static sb_status launch_total(sb_call *call, const sb_tensor *losses, const sb_tensor *shares, sb_tensor *output) {
    const sb_cuda_reduce how = {.module = "reduce_float", .kernel = "sum"};
    sb_tensor loss, share = {.data = NULL};
    SB_TRY(workspace_list(call, losses->dtype, 1, &loss));
    SB_TRY(sb_cuda_reduce_rows(call, &how, &loss, losses, 1));
    if (shares != NULL) {
        SB_TRY(workspace_list(call, losses->dtype, 1, &share));
        SB_TRY(sb_cuda_reduce_rows(call, &how, &share, shares, 1));
    }
    sb_cuda_loss_total parameters = {.losses = loss.data, .shares = share.data, .out = output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_reads(&work, &loss);
    sb_cuda_work_reads(&work, shares != NULL ? &share : NULL);
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "losses", "sb_cuda_losses_total", sb_dtype_name(output->dtype), 1);
}

static sb_status launch_loss(sb_call *call) {
    const sb_loss_params *params = call->node->params;
    const sb_tensor *scores = sb_call_input(call, 0), *targets = sb_call_input(call, 1);
    const sb_tensor *weights = sb_call_input(call, 2);
    bool softmax = strcmp(call->node->op->name, "SoftmaxCrossEntropyLoss") == 0;
    sb_tensor *output, *logs, losses, shares;
    SB_TRY(check_shapes(call));
    if (sb_call_wants(call, 1)) {
        SB_TRY(sb_call_output(call, 1, &logs));
        SB_TRY(sb_cuda_softmax_rows(call, logs, scores, 2, true, -1));
    }
    if (!sb_call_wants(call, 0))
        return SB_OK;
    SB_TRY(sb_call_output(call, 0, &output));
    sb_cuda_losses parameters = {
        .wide = targets->dtype == SB_S64,
        .ignores = params->ignores,
        .ignored = params->ignored,
        .weights = weights != NULL ? weights->data : NULL,
        .weight_step = weights != NULL ? weights->strides[0] * (int64_t)sb_dtype_size(weights->dtype) : 0};
    if (params->reduction == SB_LOSS_NONE) {
        parameters.each = output->data;
        return launch_each_loss(call, &parameters, softmax, output, NULL, NULL);
    }
    sb_dtype computed = sb_computing_dtype(scores->dtype);
    bool mean = params->reduction == SB_LOSS_MEAN;
    int64_t count = sb_tensor_elements(targets);
    SB_TRY(workspace_list(call, computed, count, &losses));
    parameters.losses = losses.data;
    if (mean) {
        SB_TRY(workspace_list(call, computed, count, &shares));
        parameters.shares = shares.data;
    }
    SB_TRY(launch_each_loss(call, &parameters, softmax, NULL, &losses, mean ? &shares : NULL));
    return launch_total(call, &losses, mean ? &shares : NULL, output);
}

/* ---- Det ---- */

static sb_status launch_det(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output, view;
    SB_TRY(sb_call_output(call, 0, &output));
    int last = input->rank - 1;
    sb_cuda_determinant parameters = {.n = input->dims[last], .dtype = (int32_t)input->dtype};
    if (input->dims[last - 1] != parameters.n)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the matrices are not square");
    uint32_t inner = UINT32_C(3) << (last - 1);
    sb_cuda_rows_reduced(output, input->rank, input->dims, inner, &view);
    sb_cuda_rows_fill(&parameters.rows, input->rank, input->dims, inner,
                      (const sb_tensor *[]){&view, input, NULL, NULL});
    if (parameters.rows.count == 0)
        return SB_OK;
    void *matrix;
    size_t bytes = (size_t)(parameters.rows.count * parameters.rows.length) * sizeof(double);
    SB_TRY(sb_call_workspace(call, bytes, &matrix));
    parameters.matrix = matrix;
    sb_cuda_work work = {.module = "losses",
                         .kernel = "sb_cuda_determinant_of",
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters,
                         .blocks = sb_cuda_call_blocks(call, parameters.rows.count),
                         .threads = parameters.rows.length > 1024 ? 256 : 32};
    sb_cuda_work_reads(&work, input);
    sb_cuda_work_touches(&work, matrix, bytes, true);
    sb_cuda_work_writes(&work, output);
    return sb_cuda_call_launch(call, &work);
}

const sb_kernel sb_cuda_kernels_losses[] = {
    {.op = "NegativeLogLikelihoodLoss",
     .name = "likelihood-loss",
     .supports = sb_cuda_supports_all,
     .launch = launch_loss},
    {.op = "SoftmaxCrossEntropyLoss", .name = "entropy-loss", .supports = sb_cuda_supports_all, .launch = launch_loss},
    {.op = "Det", .name = "determinant", .supports = sb_cuda_supports_all, .launch = launch_det},
    {0},
};
