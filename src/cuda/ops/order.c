/* ArgMax, ArgMin, Hardmax, TopK, CumSum and CumProd. */
#include <string.h>

#include "cuda/kernels/order_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "cuda/ops/rows.h"
#include "ops/moving.h"
#include "ops/ordering.h"
#include "ops/softmax.h"

/* ---- the best element ---- */

static iv_status launch_best(iv_call *call, iv_cuda_arg *parameters, const iv_tensor *in,
                             const iv_tensor *out) {
    iv_cuda_work work = {.module = "order",
                         .kernel = "iv_cuda_arg_best",
                         .parameters = parameters,
                         .parameter_bytes = sizeof *parameters};
    unsigned threads = 32;
    while (threads < 1024 && (int64_t)threads * 8 < parameters->rows.length)
        threads *= 2;
    work.threads = threads;
    work.blocks = iv_cuda_call_blocks(call, parameters->rows.count);
    parameters->dtype = (int32_t)in->dtype;
    iv_cuda_work_reads(&work, in);
    iv_cuda_work_writes(&work, out);
    return iv_cuda_call_launch(call, &work);
}

static iv_status launch_arg(iv_call *call) {
    const iv_arg_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    int axis;
    IV_TRY(iv_move_axis(call, params->axis, input->rank, &axis));
    iv_cuda_arg parameters = {.least = strcmp(call->node->op->name, "ArgMin") == 0,
                              .last = params->last};
    iv_cuda_rows_fill(&parameters.rows, input->rank, input->dims, UINT32_C(1) << axis,
                      (const iv_tensor *[]){NULL, input, NULL, NULL});
    if (parameters.rows.length == 0 && parameters.rows.count != 0)
        return iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT,
                            "axis %lld has no elements to choose from", (long long)params->axis);
    IV_TRY(iv_call_output(call, 0, &output));
    parameters.best = (int64_t *)(void *)output->data;
    return launch_best(call, &parameters, input, output);
}

static iv_status launch_hardmax(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    if (iv_tensor_elements(output) == 0)
        return IV_OK;
    iv_cuda_arg parameters = {.one_hot = 1};
    iv_cuda_rows_fill(&parameters.rows, input->rank, input->dims,
                      iv_softmax_axes(call->node->params, input->rank),
                      (const iv_tensor *[]){output, input, NULL, NULL});
    return launch_best(call, &parameters, input, output);
}

/* ---- running sums and products ---- */

static iv_status launch_cumulative(iv_call *call) {
    const iv_cumulative_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    uint32_t inner;
    IV_TRY(iv_cumulative_inner(call, &inner));
    IV_TRY(iv_call_output(call, 0, &output));
    iv_cuda_cumulative parameters = {.exclusive = params->exclusive,
                                     .reverse = params->reverse,
                                     .product = strcmp(call->node->op->name, "CumProd") == 0};
    iv_cuda_rows_fill(&parameters.rows, input->rank, input->dims, inner,
                      (const iv_tensor *[]){output, input, NULL, NULL});
    if (parameters.rows.length == 0)
        return IV_OK;
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_reads(&work, input);
    iv_cuda_work_writes(&work, output);
    const char *suffix = iv_dtype_is_float(input->dtype) ? iv_dtype_name(input->dtype)
                                                         : iv_cuda_size_suffix(input->dtype);
    return iv_cuda_launch_each(call, &work, "order", "iv_cuda_cumulative", suffix,
                               parameters.rows.count);
}

/* ---- the first k ---- */

static iv_status launch_topk(iv_call *call) {
    const iv_topk_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *values, *indices;
    int64_t k;
    int axis;
    IV_TRY(iv_topk_outputs(call, &axis, &k, &values, &indices));
    if (iv_tensor_elements(values) == 0)
        return IV_OK;
    iv_cuda_topk parameters = {
        .k = k,
        .dtype = (int32_t)input->dtype,
        .largest = params->largest,
        .indices = indices != NULL ? (int64_t *)(void *)indices->data : NULL,
    };
    iv_cuda_rows_fill(&parameters.rows, input->rank, input->dims, UINT32_C(1) << axis,
                      (const iv_tensor *[]){values, input, NULL, NULL});
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_reads(&work, input);
    iv_cuda_work_writes(&work, values);
    iv_cuda_work_writes(&work, indices);
    int64_t length = parameters.rows.length, rows = parameters.rows.count;
    if (length > IV_CUDA_SORTED && k > IV_CUDA_SELECTED)
        return iv_cuda_launch_each(call, &work, "order", "iv_cuda_topk_count", NULL, rows * length);
    work.module = "order";
    work.kernel = "iv_cuda_topk_select";
    work.threads = length > 512 ? 512 : length > 128 ? 128 : 32;
    work.blocks = iv_cuda_call_blocks(call, rows);
    return iv_cuda_call_launch(call, &work);
}

#define ORDER(op_name, kernel_name, host, function)                                                \
    {                                                                                              \
        .op = op_name, .name = kernel_name, .supports = iv_cuda_supports_all, .host_inputs = host, \
        .launch = function                                                                         \
    }

const iv_kernel iv_cuda_kernels_order[] = {
    ORDER("ArgMax", "arg-max", 0, launch_arg),
    ORDER("ArgMin", "arg-min", 0, launch_arg),
    ORDER("Hardmax", "hardmax", 0, launch_hardmax),
    ORDER("CumSum", "cumulative-sum", 2, launch_cumulative),
    ORDER("CumProd", "cumulative-product", 2, launch_cumulative),
    ORDER("TopK", "top-k", 2, launch_topk),
    {0},
};
