/* Max, Min, Sum and Mean of what fused bodies do not take (f64, integers, very many inputs): one input after
 * the other is joined to the output. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/compute.h"
#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "numerics/scalar.h"

static bool supports_joins(const sb_kernel_query *query, char *why) {
    sb_dtype dtype = query->outputs[0].dtype;
    if (dtype != SB_F16 && dtype != SB_BF16)
        return true;
    /* They keep the running value in f32. */
    snprintf(why, SB_WHY_BYTES, "%s of %d inputs of %s has no GPU kernel", query->node->op->name,
             query->node->input_count, sb_dtype_name(dtype));
    return false;
}

static sb_status join(sb_call *call, const char *op, sb_tensor *out, const sb_tensor *left, const sb_tensor *right) {
    const sb_tensor *tensors[2] = {left, right};
    sb_cuda_elementwise_options options = {0}; /* none of them can fail */
    sb_cuda_operation operation;
    SB_TRY(sb_cuda_find_elementwise(sb_cuda_call_device(call), op, 2, out->dtype, &operation, call->error));
    return sb_cuda_launch_elementwise(sb_cuda_call_queue(call), call->target->step, &operation, &options, out, 2,
                                      tensors, call->error);
}

static sb_status divide(sb_call *call, sb_tensor *out, int count) {
    sb_tensor divisor = {.dtype = out->dtype};
    void *memory;
    SB_TRY(sb_call_workspace(call, sizeof(double), &memory));
    divisor.data = memory;
    uint64_t bits = out->dtype == SB_F64 ? sb_bits_from_f64((double)count) : sb_bits_from_f32((float)count);
    SB_TRY(sb_cuda_call_fill(call, &divisor, bits));
    return join(call, "Div", out, out, &divisor);
}

static sb_status launch_joins(sb_call *call) {
    const char *name = call->node->op->name;
    bool mean = strcmp(name, "Mean") == 0;
    const char *op = mean || strcmp(name, "Sum") == 0 ? "Add" : name;
    sb_tensor *out;
    SB_TRY(sb_call_output(call, 0, &out));
    if (call->input_count == 1)
        SB_TRY(sb_call_copy(call, out, sb_call_input(call, 0)));
    for (int i = 1; i < call->input_count; i++)
        SB_TRY(join(call, op, out, i == 1 ? sb_call_input(call, 0) : out, sb_call_input(call, i)));
    return mean ? divide(call, out, call->input_count) : SB_OK;
}

#define JOINS(operator)                                                                                                \
    { .op = operator, .name = "joins", .supports = supports_joins, .launch = launch_joins }
const sb_kernel sb_cuda_kernels_variadic[] = {
    JOINS("Max"), JOINS("Min"), JOINS("Sum"), JOINS("Mean"), {0},
};
