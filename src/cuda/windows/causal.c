/* CausalConvWithState. */
#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/windows/causal_parameters.h"
#include "ops/causal_convolution.h"

/* Time, of which the present state is the end. */
static bool bounded_causal(const sb_kernel_query *query, int input, int axis) {
    return input == 0 && axis == 2;
}

static void describe_steps(const sb_tensor *tensor, int64_t steps[3]) {
    for (int d = 0; tensor != NULL && d < 3; d++)
        steps[d] = tensor->strides[d] * (int64_t)sb_dtype_size(tensor->dtype);
}

static sb_status launch_one(sb_call *call, const sb_causal_work *causal, sb_tensor *out, bool state) {
    int64_t size = (int64_t)sb_dtype_size(causal->x->dtype);
    sb_cuda_work work = {0};
    sb_cuda_causal parameters = {
        .elements = sb_tensor_elements(out),
        .channels = causal->channels,
        .length = causal->length,
        .taps = causal->taps,
        .used_length = state ? sb_cuda_work_used(&work, call, 0, 2) : NULL,
        .weight_steps = {causal->weights->strides[0] * size, causal->weights->strides[2] * size},
        .bias_step = causal->bias != NULL ? causal->bias->strides[0] * size : 0,
        .swish = causal->swish,
        .x = causal->x->data,
        .past = causal->past != NULL ? causal->past->data : NULL,
        .weights = causal->weights->data,
        .bias = causal->bias != NULL ? causal->bias->data : NULL,
        .out = out->data,
    };
    describe_steps(causal->x, parameters.x_steps);
    describe_steps(causal->past, parameters.past_steps);
    work.parameters = &parameters;
    work.parameter_bytes = sizeof parameters;
    sb_cuda_work_writes(&work, out);
    sb_cuda_work_reads(&work, causal->x);
    sb_cuda_work_reads(&work, causal->past);
    sb_cuda_work_reads(&work, causal->weights);
    sb_cuda_work_reads(&work, causal->bias);
    return sb_cuda_launch_each(call, &work, "causal", state ? "sb_cuda_causal_state" : "sb_cuda_causal",
                               sb_dtype_name(out->dtype), parameters.elements);
}

static sb_status launch_causal(sb_call *call) {
    sb_causal_work work;
    SB_TRY(sb_causal_describe(call, &work));
    if (sb_call_wants(call, 0))
        SB_TRY(sb_call_output(call, 0, &work.y));
    if (sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &work.present));
    if (work.y != NULL)
        SB_TRY(launch_one(call, &work, work.y, false));
    return work.present != NULL ? launch_one(call, &work, work.present, true) : SB_OK;
}

const sb_kernel sb_cuda_kernels_causal_convolution[] = {
    {.op = "CausalConvWithState",
     .name = "causal",
     .supports = sb_cuda_supports_all,
     .bounded = bounded_causal,
     .launch = launch_causal},
    {0},
};
