/* Slice: a view where the host knows where it begins, else a copy. */
#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/moving/slice_parameters.h"
#include "ops/slices.h"

/* Whether the start of a slice follows from how many rows of its axis are used. */
static bool counts_from_end(const sb_slice_bounds *bounds, int entry) {
    return bounds->starts[entry] < 0 || bounds->steps[entry] < 0;
}

/* Whether a slice may begin elsewhere each time that the call's work is launched. */
static bool begins_anywhere(const sb_call *call, const sb_slice_bounds *bounds) {
    bool anywhere = sb_call_known(call, 1) != NULL;
    for (int i = 0; i < bounds->count; i++)
        anywhere = anywhere || (counts_from_end(bounds, i) && sb_call_used(call, 0, bounds->axes[i]) != NULL);
    return anywhere;
}

/* All axes of the input, whole. */
static sb_cuda_slice describe(const sb_tensor *input, const sb_tensor *output) {
    sb_cuda_slice parameters = {
        .elements = sb_tensor_elements(output), .rank = input->rank, .in = input->data, .out = output->data};
    for (int d = 0; d < input->rank; d++) {
        parameters.dims[d] = output->dims[d];
        parameters.extents[d] = input->dims[d];
        parameters.paces[d] = 1;
        parameters.steps[d] = input->strides[d] * (int64_t)sb_dtype_size(input->dtype);
    }
    return parameters;
}

static sb_status copy_part(sb_call *call, const sb_slice_bounds *bounds) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    sb_cuda_slice parameters = describe(input, output);
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    const int64_t *known = sb_cuda_work_known(&work, call, 1);
    for (int i = 0; i < bounds->count; i++) {
        int axis = bounds->axes[i];
        parameters.starts[axis] = bounds->starts[i];
        parameters.known[axis] = known != NULL ? known + i : NULL;
        parameters.used[axis] = sb_cuda_work_used(&work, call, 0, axis);
        parameters.paces[axis] = bounds->steps[i];
    }
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, input);
    return sb_cuda_launch_each(call, &work, "slice", "sb_cuda_slice", sb_cuda_size_suffix(input->dtype),
                               parameters.elements);
}

static sb_status launch_slice(sb_call *call) {
    sb_slice_bounds bounds;
    SB_TRY(sb_slice_read(call, &bounds));
    return begins_anywhere(call, &bounds) ? copy_part(call, &bounds) : call->node->op->eval(call);
}

static bool bounded_slice(const sb_kernel_query *query, int input, int axis) {
    return input == 0;
}

const sb_kernel sb_cuda_kernels_slice[] = {
    {.op = "Slice",
     .name = "view",
     .supports = sb_cuda_supports_all,
     .bounded = bounded_slice,
     .host_inputs = ~UINT64_C(1),
     .known_inputs = 2,
     .launch = launch_slice},
    {0},
};
