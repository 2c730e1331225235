/* ArgMax, ArgMin, Hardmax, TopK, CumSum and CumProd. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/rows/order_parameters.h"
#include "cuda/rows/rows.h"
#include "ops/moving.h"
#include "ops/ordering.h"
#include "ops/softmax.h"

/* ---- the best element ---- */

static sb_status launch_best(sb_call *call, sb_cuda_arg *parameters, const sb_tensor *in, const sb_tensor *out,
                             uint32_t inner) {
    sb_cuda_work work = {.module = "order",
                         .kernel = "sb_cuda_arg_best",
                         .parameters = parameters,
                         .parameter_bytes = sizeof *parameters};
    unsigned threads = 32;
    while (threads < 1024 && (int64_t)threads * 8 < parameters->rows.length)
        threads *= 2;
    work.threads = threads;
    work.blocks = sb_cuda_call_blocks(call, parameters->rows.count);
    parameters->dtype = (int32_t)in->dtype;
    sb_cuda_rows_bound(&parameters->rows, &work, call, 0, inner);
    if (parameters->rows.used_length != NULL && !parameters->one_hot)
        parameters->fault = sb_cuda_work_fault(&work, call);
    sb_cuda_work_reads(&work, in);
    sb_cuda_work_writes(&work, out);
    return sb_cuda_call_launch(call, &work);
}

static sb_status launch_arg(sb_call *call) {
    const sb_arg_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    int axis;
    SB_TRY(sb_move_axis(call, params->axis, input->rank, &axis));
    sb_cuda_arg parameters = {.least = strcmp(call->node->op->name, "ArgMin") == 0, .last = params->last};
    sb_cuda_rows_fill(&parameters.rows, input->rank, input->dims, UINT32_C(1) << axis,
                      (const sb_tensor *[]){NULL, input, NULL, NULL});
    if (parameters.rows.length == 0 && parameters.rows.count != 0)
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "axis %lld has no elements to choose from",
                            (long long)params->axis);
    SB_TRY(sb_call_output(call, 0, &output));
    parameters.best = (int64_t *)(void *)output->data;
    return launch_best(call, &parameters, input, output, UINT32_C(1) << axis);
}

static sb_status launch_hardmax(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    sb_cuda_arg parameters = {.one_hot = 1};
    uint32_t inner = sb_softmax_axes(call->node->params, input->rank);
    sb_cuda_rows_fill(&parameters.rows, input->rank, input->dims, inner,
                      (const sb_tensor *[]){output, input, NULL, NULL});
    return launch_best(call, &parameters, input, output, inner);
}

/* ---- running sums and products ---- */

static sb_status launch_cumulative(sb_call *call) {
    const sb_cumulative_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    uint32_t inner;
    SB_TRY(sb_cumulative_inner(call, &inner));
    SB_TRY(sb_call_output(call, 0, &output));
    sb_cuda_cumulative parameters = {.exclusive = params->exclusive,
                                     .reverse = params->reverse,
                                     .product = strcmp(call->node->op->name, "CumProd") == 0};
    sb_cuda_rows_fill(&parameters.rows, input->rank, input->dims, inner,
                      (const sb_tensor *[]){output, input, NULL, NULL});
    if (parameters.rows.length == 0)
        return SB_OK;
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_rows_bound(&parameters.rows, &work, call, 0, inner);
    sb_cuda_work_reads(&work, input);
    sb_cuda_work_writes(&work, output);
    const char *suffix =
        sb_dtype_is_float(input->dtype) ? sb_dtype_name(input->dtype) : sb_cuda_size_suffix(input->dtype);
    return sb_cuda_launch_each(call, &work, "order", "sb_cuda_cumulative", suffix, parameters.rows.count);
}

/* ---- the first k ---- */

static sb_status launch_topk(sb_call *call) {
    const sb_topk_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *values, *indices;
    int64_t k;
    int axis;
    SB_TRY(sb_topk_outputs(call, &axis, &k, &values, &indices));
    if (sb_tensor_elements(values) == 0)
        return SB_OK;
    sb_cuda_topk parameters = {
        .k = k,
        .dtype = (int32_t)input->dtype,
        .largest = params->largest,
        .indices = indices != NULL ? (int64_t *)(void *)indices->data : NULL,
    };
    sb_cuda_rows_fill(&parameters.rows, input->rank, input->dims, UINT32_C(1) << axis,
                      (const sb_tensor *[]){values, input, NULL, NULL});
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_reads(&work, input);
    sb_cuda_work_writes(&work, values);
    sb_cuda_work_writes(&work, indices);
    int64_t length = parameters.rows.length, rows = parameters.rows.count;
    if (length > SB_CUDA_SORTED && k > SB_CUDA_SELECTED)
        return sb_cuda_launch_each(call, &work, "order", "sb_cuda_topk_count", NULL, rows * length);
    work.module = "order";
    work.kernel = "sb_cuda_topk_select";
    work.threads = length > 512 ? 512 : length > 128 ? 128 : 32;
    work.blocks = sb_cuda_call_blocks(call, rows);
    return sb_cuda_call_launch(call, &work);
}

#define ORDER(op_name, kernel_name, host, bounds, function)                                                            \
    {                                                                                                                  \
        .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .host_inputs = host, .bounded = bounds,  \
        .launch = function                                                                                             \
    }

const sb_kernel sb_cuda_kernels_order[] = {
    ORDER("ArgMax", "arg-max", 0, sb_cuda_rows_bounded, launch_arg),
    ORDER("ArgMin", "arg-min", 0, sb_cuda_rows_bounded, launch_arg),
    ORDER("Hardmax", "hardmax", 0, sb_cuda_rows_bounded, launch_hardmax),
    ORDER("CumSum", "cumulative-sum", 2, sb_cuda_rows_bounded, launch_cumulative),
    ORDER("CumProd", "cumulative-product", 2, sb_cuda_rows_bounded, launch_cumulative),
    ORDER("TopK", "top-k", 2, NULL, launch_topk),
    {0},
};
