/* SwiGLU. */
#include "ops/gated.h"
#include "cuda/common/elements.h"
#include "cuda/common/typed.h"
#include "cuda/elementwise/gated_parameters.h"
#include "cuda/list.h"

static sb_status launch_gated(sb_call *call) {
    const sb_tensor *tensors[2] = {sb_call_input(call, 0), sb_call_input(call, 1)};
    sb_tensor *out;
    sb_cuda_gated parameters = {.alpha = ((const sb_gated_params *)call->node->params)->alpha};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    SB_TRY(sb_cuda_output_like(call, 0, 2, tensors, &out));
    sb_cuda_box_fill(&parameters.box, out, 2, tensors);
    sb_cuda_work_writes(&work, out);
    sb_cuda_work_reads(&work, tensors[0]);
    sb_cuda_work_reads(&work, tensors[1]);
    return sb_cuda_launch_groups(call, &work, "gated", "sb_cuda_gated", sb_dtype_name(out->dtype),
                                 parameters.box.elements);
}

const sb_kernel sb_cuda_kernels_gated[] = {
    {.op = "SwiGLU", .name = "gated", .supports = sb_cuda_supports_all, .launch = launch_gated},
    {0},
};
