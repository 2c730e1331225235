/* Softmax and LogSoftmax. */
#include <stdio.h>
#include <string.h>

#include "cuda/list.h"
#include "cuda/ops/softmax.h"
#include "ops/softmax.h"

static bool supports_softmax(const iv_kernel_query *query, char *why) {
    return iv_cuda_takes(query, query->inputs[0], IV_SET_FLOAT, why);
}

iv_status iv_cuda_softmax_rows(iv_call *call, const iv_tensor *out, const iv_tensor *in,
                               uint32_t inner, bool log) {
    iv_cuda_softmax parameters = {.log = log};
    iv_cuda_rows *rows = &parameters.rows;
    iv_cuda_rows_fill(rows, in->rank, in->dims, inner, (const iv_tensor *[]){out, in, NULL, NULL});
    if (rows->count == 0 || rows->length == 0)
        return IV_OK;
    bool team = iv_cuda_rows_are_short(rows) && rows->inner_rank == 1;
    char name[64];
    snprintf(name, sizeof name, "iv_cuda_softmax_%s_%s", team ? "team" : "block",
             iv_dtype_name(in->dtype));
    iv_cuda_work work = {.module = "softmax",
                         .kernel = name,
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters};
    if (team)
        iv_cuda_rows_grid_short(call, rows, &work);
    else
        iv_cuda_rows_grid_long(call, rows, rows->count, &work);
    iv_cuda_work_reads(&work, in);
    iv_cuda_work_writes(&work, out);
    return iv_cuda_call_launch(call, &work);
}

static iv_status launch_softmax(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    return iv_cuda_softmax_rows(call, output, input,
                                iv_softmax_axes(call->node->params, input->rank),
                                strcmp(call->node->op->name, "LogSoftmax") == 0);
}

const iv_kernel iv_cuda_kernels_softmax[] = {
    {.op = "Softmax", .name = "softmax", .supports = supports_softmax, .launch = launch_softmax},
    {.op = "LogSoftmax",
     .name = "log-softmax",
     .supports = supports_softmax,
     .launch = launch_softmax},
    {0},
};
