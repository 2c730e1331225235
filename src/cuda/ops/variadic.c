/* Max, Min, Sum and Mean of what webs do not take (f64, integers, very many inputs): one input after
 * the other is joined to the output. */
#include <stdio.h>
#include <string.h>

#include "cuda/compute.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "numerics/scalar.h"

static bool supports_joins(const iv_kernel_query *query, char *why) {
    iv_dtype dtype = query->outputs[0].dtype;
    if (dtype != IV_F16 && dtype != IV_BF16)
        return true;
    /* They keep the running value in f32. */
    snprintf(why, IV_WHY_BYTES, "%s of %d inputs of %s has no GPU kernel", query->node->op->name,
             query->node->input_count, iv_dtype_name(dtype));
    return false;
}

static iv_status join(iv_call *call, const char *op, iv_tensor *out, const iv_tensor *left,
                      const iv_tensor *right) {
    const iv_tensor *tensors[2] = {left, right};
    iv_cuda_elementwise_options options = {.fault = call->target->fault};
    const iv_cuda_kernel *kernel;
    IV_TRY(iv_cuda_find_elementwise(call->target->queue->stream->device, op, 2, out->dtype, &kernel,
                                    call->error));
    return iv_cuda_launch_elementwise(call->target->queue, call->target->step, kernel, &options, out,
                                      2, tensors, call->error);
}

static iv_status divide(iv_call *call, iv_tensor *out, int count) {
    iv_tensor divisor = {.dtype = out->dtype};
    void *memory;
    IV_TRY(iv_call_scratch(call, sizeof(double), &memory));
    divisor.data = memory;
    uint64_t bits = out->dtype == IV_F64 ? iv_bits_from_f64((double)count)
                                         : iv_bits_from_f32((float)count);
    IV_TRY(iv_cuda_call_fill(call, &divisor, bits));
    return join(call, "Div", out, out, &divisor);
}

static iv_status launch_joins(iv_call *call) {
    const char *name = call->node->op->name;
    bool mean = strcmp(name, "Mean") == 0;
    const char *op = mean || strcmp(name, "Sum") == 0 ? "Add" : name;
    iv_tensor *out;
    IV_TRY(iv_call_output(call, 0, &out));
    if (call->input_count == 1)
        IV_TRY(iv_call_copy(call, out, iv_call_input(call, 0)));
    for (int i = 1; i < call->input_count; i++)
        IV_TRY(join(call, op, out, i == 1 ? iv_call_input(call, 0) : out, iv_call_input(call, i)));
    return mean ? divide(call, out, call->input_count) : IV_OK;
}

#define JOINS(operator)                                                                            \
    { .op = operator, .name = "joins", .supports = supports_joins, .launch = launch_joins }
const iv_kernel iv_cuda_kernels_variadic[] = {
    JOINS("Max"),
    JOINS("Min"),
    JOINS("Sum"),
    JOINS("Mean"),
    {0},
};
