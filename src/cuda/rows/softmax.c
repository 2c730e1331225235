/* Softmax and LogSoftmax. */
#include <stdio.h>
#include <string.h>

#include "cuda/list.h"
#include "cuda/rows/softmax.h"
#include "ops/softmax.h"

static bool supports_softmax(const sb_kernel_query *query, char *why) {
    return sb_cuda_takes(query, query->inputs[0], SB_SET_FLOAT, why);
}

#define NAME_BYTES 64

static void choose_kernel(const sb_call *call, sb_cuda_rows *rows, sb_dtype dtype, char *module, char *name,
                          sb_cuda_work *work) {
    sb_cuda_row_vector vector;
    const char *suffix = sb_dtype_name(dtype);
    if (sb_cuda_rows_vector(rows, dtype, &vector)) {
        snprintf(module, NAME_BYTES, "softmax_vectors_%s", suffix);
        snprintf(name, NAME_BYTES, "sb_cuda_softmax_%dx%d_%s", vector.team, vector.groups, suffix);
        sb_cuda_rows_grid_vector(call, rows, vector, work);
        return;
    }
    bool team = sb_cuda_rows_are_short(rows) && rows->inner_rank == 1;
    snprintf(module, NAME_BYTES, "softmax");
    snprintf(name, NAME_BYTES, "sb_cuda_softmax_%s_%s", team ? "team" : "block", suffix);
    if (team)
        sb_cuda_rows_grid_short(call, rows, work);
    else
        sb_cuda_rows_grid_long(call, rows, rows->count, work);
}

sb_status sb_cuda_softmax_rows(sb_call *call, const sb_tensor *out, const sb_tensor *in, uint32_t inner, bool log,
                               int input) {
    sb_cuda_softmax parameters = {.log = log};
    sb_cuda_rows *rows = &parameters.rows;
    sb_cuda_rows_fill(rows, in->rank, in->dims, inner, (const sb_tensor *[]){out, in, NULL, NULL});
    if (rows->count == 0 || rows->length == 0)
        return SB_OK;
    char name[NAME_BYTES], module[NAME_BYTES];
    sb_cuda_work work = {
        .module = module, .kernel = name, .parameters = &parameters, .parameter_bytes = sizeof parameters};
    choose_kernel(call, rows, in->dtype, module, name, &work);
    if (input >= 0)
        sb_cuda_rows_bound(rows, &work, call, input, inner);
    sb_cuda_work_reads(&work, in);
    sb_cuda_work_writes(&work, out);
    return sb_cuda_call_launch(call, &work);
}

static sb_status launch_softmax(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    return sb_cuda_softmax_rows(call, output, input, sb_softmax_axes(call->node->params, input->rank),
                                strcmp(call->node->op->name, "LogSoftmax") == 0, 0);
}

const sb_kernel sb_cuda_kernels_softmax[] = {
    {.op = "Softmax",
     .name = "softmax",
     .supports = supports_softmax,
     .bounded = sb_cuda_rows_bounded,
     .launch = launch_softmax},
    {.op = "LogSoftmax",
     .name = "log-softmax",
     .supports = supports_softmax,
     .bounded = sb_cuda_rows_bounded,
     .launch = launch_softmax},
    {0},
};
