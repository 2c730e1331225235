/* Where and Clip. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/common/typed.h"
#include "cuda/list.h"
#include "ops/clip.h"
#include "ops/convert_loops.h"

static sb_status launch_where(sb_call *call) {
    sb_tensor *out;
    const sb_tensor *tensors[3] = {sb_call_input(call, 0), sb_call_input(call, 1), sb_call_input(call, 2)};
    SB_TRY(sb_call_output(call, 0, &out));
    sb_cuda_box box;
    sb_cuda_work work = {.parameters = &box, .parameter_bytes = sizeof box};
    sb_cuda_box_fill(&box, out, 3, tensors);
    sb_cuda_work_writes(&work, out);
    for (int i = 0; i < 3; i++)
        sb_cuda_work_reads(&work, tensors[i]);
    return sb_cuda_launch_groups(call, &work, "select", "sb_cuda_where", sb_cuda_size_suffix(out->dtype), box.elements);
}

/* A bound: its address, or the number that stands for one that is not given. */
static sb_status describe_bound(const sb_call *call, int index, float otherwise, sb_dtype computed,
                                const char **address, char *number, sb_cuda_work *work) {
    const sb_tensor *bound = sb_call_input(call, index);
    sb_convert_row(computed, number, SB_F32, &otherwise, 0, 1);
    *address = NULL;
    if (bound == NULL)
        return SB_OK;
    if (sb_tensor_elements(bound) != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "bound %d is not a scalar", index);
    *address = bound->data;
    sb_cuda_work_reads(work, bound);
    return SB_OK;
}

static sb_status launch_clip(sb_call *call) {
    const sb_clip_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *out;
    sb_cuda_clip parameters = {0};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    bool half = input->dtype == SB_F16 || input->dtype == SB_BF16;
    sb_dtype computed = half ? SB_F32 : input->dtype;
    SB_TRY(sb_call_output(call, 0, &out));
    SB_TRY(describe_bound(call, 1, params->least, computed, &parameters.least, parameters.otherwise_least, &work));
    SB_TRY(describe_bound(call, 2, params->most, computed, &parameters.most, parameters.otherwise_most, &work));
    sb_cuda_box_fill(&parameters.box, out, 1, &input);
    sb_cuda_work_writes(&work, out);
    sb_cuda_work_reads(&work, input);
    return sb_cuda_launch_groups(call, &work, "select", "sb_cuda_clip", sb_dtype_name(out->dtype),
                                 parameters.box.elements);
}

const sb_kernel sb_cuda_kernels_select[] = {
    {.op = "Where", .name = "where", .supports = sb_cuda_supports_all, .launch = launch_where},
    {.op = "Clip", .name = "clip", .supports = sb_cuda_supports_all, .launch = launch_clip},
    {0},
};
