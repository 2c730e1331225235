/* NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss and Det. */
#include <stdio.h>
#include <string.h>

#include "cuda/kernels/losses_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "cuda/ops/reduce.h"
#include "cuda/ops/softmax.h"
#include "ops/losses.h"
#include "ops/rows.h"

/* ---- losses ---- */

/* `count` packed numbers in scratch memory, as a tensor on the stack. */
static iv_status scratch_list(iv_call *call, iv_dtype dtype, int64_t count, iv_tensor *list) {
    void *memory;
    IV_TRY(iv_call_scratch(call, (size_t)count * iv_dtype_size(dtype), &memory));
    *list = (iv_tensor){.dtype = dtype, .rank = 1, .dims = {count}, .strides = {1}, .data = memory};
    return IV_OK;
}

static iv_status check_shapes(const iv_call *call) {
    const iv_tensor *scores = iv_call_input(call, 0), *targets = iv_call_input(call, 1);
    const iv_tensor *weights = iv_call_input(call, 2);
    bool fits = targets->dims[0] == scores->dims[0];
    for (int d = 2; d < scores->rank; d++)
        fits = fits && targets->dims[d - 1] == scores->dims[d];
    if (fits && (weights == NULL || (weights->rank == 1 && weights->dims[0] == scores->dims[1])))
        return IV_OK;
    return iv_call_fail(call, IV_ERROR_SHAPE,
                        "scores are N, C, d…; targets must be N, d… and weights C");
}

/* Targets as a view with the dimensions of the scores, repeated along the classes. */
static void repeat_targets(const iv_tensor *targets, const iv_tensor *scores, iv_tensor *view) {
    memcpy(view, targets, sizeof *view);
    view->rank = scores->rank;
    for (int d = 1; d < scores->rank; d++) {
        view->dims[d] = d == 1 ? 1 : targets->dims[d - 1];
        view->strides[d] = d == 1 ? 0 : targets->strides[d - 1];
    }
}

static iv_status launch_each_loss(iv_call *call, iv_cuda_losses *parameters, bool softmax,
                                  const iv_tensor *each, const iv_tensor *losses,
                                  const iv_tensor *shares) {
    const iv_tensor *scores = iv_call_input(call, 0), *targets = iv_call_input(call, 1);
    iv_tensor view;
    repeat_targets(targets, scores, &view);
    iv_cuda_rows_fill(&parameters->rows, scores->rank, scores->dims, 2,
                      (const iv_tensor *[]){NULL, scores, &view, NULL});
    iv_cuda_work work = {.parameters = parameters, .parameter_bytes = sizeof *parameters};
    parameters->fault = iv_cuda_work_fault(&work, call);
    iv_cuda_work_reads(&work, scores);
    iv_cuda_work_reads(&work, targets);
    iv_cuda_work_reads(&work, iv_call_input(call, 2));
    iv_cuda_work_writes(&work, each);
    iv_cuda_work_writes(&work, losses);
    iv_cuda_work_writes(&work, shares);
    const char *suffix = iv_dtype_name(scores->dtype);
    if (!softmax)
        return iv_cuda_launch_each(call, &work, "losses", "iv_cuda_losses_likelihood", suffix,
                                   parameters->rows.count);
    iv_cuda_rows *rows = &parameters->rows;
    bool team = iv_cuda_rows_are_short(rows);
    char name[64];
    snprintf(name, sizeof name, "iv_cuda_losses_entropy_%s_%s", team ? "team" : "block", suffix);
    work.module = "losses";
    work.kernel = name;
    if (team)
        iv_cuda_rows_grid_short(call, rows, &work);
    else
        iv_cuda_rows_grid_long(call, rows, rows->count, &work);
    return iv_cuda_call_launch(call, &work);
}

/* Adds up lists of the computing type, and stores the sum or mean. */
static iv_status launch_total(iv_call *call, const iv_tensor *losses, const iv_tensor *shares,
                              iv_tensor *output) {
    const iv_cuda_reduce how = {.module = "reduce_float", .kernel = "sum"};
    iv_tensor loss, share = {.data = NULL};
    IV_TRY(scratch_list(call, losses->dtype, 1, &loss));
    IV_TRY(iv_cuda_reduce_rows(call, &how, &loss, losses, 1));
    if (shares != NULL) {
        IV_TRY(scratch_list(call, losses->dtype, 1, &share));
        IV_TRY(iv_cuda_reduce_rows(call, &how, &share, shares, 1));
    }
    iv_cuda_loss_total parameters = {
        .losses = loss.data, .shares = share.data, .out = output->data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_reads(&work, &loss);
    iv_cuda_work_reads(&work, shares != NULL ? &share : NULL);
    iv_cuda_work_writes(&work, output);
    return iv_cuda_launch_each(call, &work, "losses", "iv_cuda_losses_total",
                               iv_dtype_name(output->dtype), 1);
}

static iv_status launch_loss(iv_call *call) {
    const iv_loss_params *params = call->node->params;
    const iv_tensor *scores = iv_call_input(call, 0), *targets = iv_call_input(call, 1);
    const iv_tensor *weights = iv_call_input(call, 2);
    bool softmax = strcmp(call->node->op->name, "SoftmaxCrossEntropyLoss") == 0;
    iv_tensor *output, *logs, losses, shares;
    IV_TRY(check_shapes(call));
    if (iv_call_wants(call, 1)) {
        IV_TRY(iv_call_output(call, 1, &logs));
        IV_TRY(iv_cuda_softmax_rows(call, logs, scores, 2, true));
    }
    if (!iv_call_wants(call, 0))
        return IV_OK;
    IV_TRY(iv_call_output(call, 0, &output));
    iv_cuda_losses parameters = {
        .wide = targets->dtype == IV_S64,
        .ignores = params->ignores,
        .ignored = params->ignored,
        .weights = weights != NULL ? weights->data : NULL,
        .weight_step =
            weights != NULL ? weights->strides[0] * (int64_t)iv_dtype_size(weights->dtype) : 0};
    if (params->reduction == IV_LOSS_NONE) {
        parameters.each = output->data;
        return launch_each_loss(call, &parameters, softmax, output, NULL, NULL);
    }
    iv_dtype computed = iv_computing_dtype(scores->dtype);
    bool mean = params->reduction == IV_LOSS_MEAN;
    int64_t count = iv_tensor_elements(targets);
    IV_TRY(scratch_list(call, computed, count, &losses));
    parameters.losses = losses.data;
    if (mean) {
        IV_TRY(scratch_list(call, computed, count, &shares));
        parameters.shares = shares.data;
    }
    IV_TRY(launch_each_loss(call, &parameters, softmax, NULL, &losses, mean ? &shares : NULL));
    return launch_total(call, &losses, mean ? &shares : NULL, output);
}

/* ---- Det ---- */

static iv_status launch_det(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output, view;
    IV_TRY(iv_call_output(call, 0, &output));
    int last = input->rank - 1;
    iv_cuda_determinant parameters = {.n = input->dims[last], .dtype = (int32_t)input->dtype};
    if (input->dims[last - 1] != parameters.n)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the matrices are not square");
    uint32_t inner = UINT32_C(3) << (last - 1);
    iv_cuda_rows_reduced(output, input->rank, input->dims, inner, &view);
    iv_cuda_rows_fill(&parameters.rows, input->rank, input->dims, inner,
                      (const iv_tensor *[]){&view, input, NULL, NULL});
    if (parameters.rows.count == 0)
        return IV_OK;
    void *matrix;
    size_t bytes = (size_t)(parameters.rows.count * parameters.rows.length) * sizeof(double);
    IV_TRY(iv_call_scratch(call, bytes, &matrix));
    parameters.matrix = matrix;
    iv_cuda_work work = {.module = "losses",
                         .kernel = "iv_cuda_determinant_of",
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters,
                         .blocks = iv_cuda_call_blocks(call, parameters.rows.count),
                         .threads = parameters.rows.length > 1024 ? 256 : 32};
    iv_cuda_work_reads(&work, input);
    iv_cuda_work_touches(&work, matrix, bytes, true);
    iv_cuda_work_writes(&work, output);
    return iv_cuda_call_launch(call, &work);
}

const iv_kernel iv_cuda_kernels_losses[] = {
    {.op = "NegativeLogLikelihoodLoss",
     .name = "likelihood-loss",
     .supports = iv_cuda_supports_all,
     .launch = launch_loss},
    {.op = "SoftmaxCrossEntropyLoss",
     .name = "entropy-loss",
     .supports = iv_cuda_supports_all,
     .launch = launch_loss},
    {.op = "Det", .name = "determinant", .supports = iv_cuda_supports_all, .launch = launch_det},
    {0},
};
