/* Where and Clip. */
#include <string.h>

#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "cuda/ops/typed.h"
#include "ops/clip.h"
#include "ops/convert_loops.h"

static iv_status launch_where(iv_call *call) {
    iv_tensor *out;
    const iv_tensor *tensors[3] = {iv_call_input(call, 0), iv_call_input(call, 1),
                                   iv_call_input(call, 2)};
    IV_TRY(iv_call_output(call, 0, &out));
    iv_cuda_box box;
    iv_cuda_work work = {.parameters = &box, .parameter_bytes = sizeof box};
    iv_cuda_box_fill(&box, out, 3, tensors);
    iv_cuda_work_writes(&work, out);
    for (int i = 0; i < 3; i++)
        iv_cuda_work_reads(&work, tensors[i]);
    return iv_cuda_launch_groups(call, &work, "select", "iv_cuda_where",
                                 iv_cuda_size_suffix(out->dtype), box.elements);
}

/* A bound: its address, or the number that stands for one that is not given. */
static iv_status describe_bound(const iv_call *call, int index, float otherwise, iv_dtype computed,
                                const char **address, char *number, iv_cuda_work *work) {
    const iv_tensor *bound = iv_call_input(call, index);
    iv_convert_row(computed, number, IV_F32, &otherwise, 0, 1);
    *address = NULL;
    if (bound == NULL)
        return IV_OK;
    if (iv_tensor_elements(bound) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "bound %d is not a scalar", index);
    *address = bound->data;
    iv_cuda_work_reads(work, bound);
    return IV_OK;
}

static iv_status launch_clip(iv_call *call) {
    const iv_clip_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *out;
    iv_cuda_clip parameters = {0};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    bool half = input->dtype == IV_F16 || input->dtype == IV_BF16;
    iv_dtype computed = half ? IV_F32 : input->dtype;
    IV_TRY(iv_call_output(call, 0, &out));
    IV_TRY(describe_bound(call, 1, params->least, computed, &parameters.least,
                          parameters.otherwise_least, &work));
    IV_TRY(describe_bound(call, 2, params->most, computed, &parameters.most,
                          parameters.otherwise_most, &work));
    iv_cuda_box_fill(&parameters.box, out, 1, &input);
    iv_cuda_work_writes(&work, out);
    iv_cuda_work_reads(&work, input);
    return iv_cuda_launch_groups(call, &work, "select", "iv_cuda_clip", iv_dtype_name(out->dtype),
                                 parameters.box.elements);
}

const iv_kernel iv_cuda_kernels_select[] = {
    {.op = "Where", .name = "where", .supports = iv_cuda_supports_all, .launch = launch_where},
    {.op = "Clip", .name = "clip", .supports = iv_cuda_supports_all, .launch = launch_clip},
    {0},
};
