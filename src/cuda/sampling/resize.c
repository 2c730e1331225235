/* Resize and Upsample. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/sampling/resize_parameters.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/resize.h"

/* A resize on its way: the tables of the axes that are resized lie in workspace. */
typedef struct resizing {
    const sb_resize_params *params;
    sb_tensor *output;
    uint32_t resized; /* a bit for each axis */
    sb_resize_axis axes[SB_MAX_RANK];
} resizing;

static void table_ranges(sb_cuda_work *work, const sb_resize_axis *axis, bool written) {
    size_t out = (size_t)axis->out;
    sb_cuda_work_touches(work, axis->first, out * sizeof *axis->first, written);
    sb_cuda_work_touches(work, axis->outside, out * sizeof *axis->outside, written);
    if (axis->weights != NULL)
        sb_cuda_work_touches(work, axis->weights, out * (size_t)axis->taps * sizeof *axis->weights, written);
}

static sb_status plan_axis(sb_call *call, const sb_resize_rule *rule, sb_resize_axis *axis) {
    void *memory;
    size_t out = (size_t)axis->out;
    axis->taps = sb_resize_taps(axis, rule);
    SB_TRY(sb_call_workspace(call, out * sizeof *axis->first, &memory));
    axis->first = memory;
    SB_TRY(sb_call_workspace(call, out * sizeof *axis->outside, &memory));
    axis->outside = memory;
    if (rule->mode != SB_RESIZE_NEAREST) {
        SB_TRY(sb_call_workspace(call, out * (size_t)axis->taps * sizeof *axis->weights, &memory));
        axis->weights = memory;
    }
    sb_cuda_resize_plan parameters = {*axis, *rule};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    table_ranges(&work, axis, true);
    return sb_cuda_launch_each(call, &work, "resize", "sb_cuda_resize_axis", NULL, axis->out);
}

/* Elements of 16 bits whose channels lie last are left so; others, and what has been placed, are row-major. */
static sb_status create_nearest(sb_call *call, const int64_t *dims, sb_tensor **output) {
    const sb_tensor *input = sb_call_input(call, 0);
    bool is_short = input->dtype == SB_F16 || input->dtype == SB_BF16;
    int64_t known[SB_MAX_RANK];
    if (is_short && sb_cuda_has_channels_last(input) && sb_fact_is_concrete(&call->facts[0], known))
        return sb_cuda_output_channels_last(call, 0, output);
    return sb_call_output_shape(call, 0, input->dtype, input->rank, dims, output);
}

static sb_status pick_nearest(sb_call *call, const resizing *r) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_cuda_resize_nearest parameters = {
        .elements = sb_tensor_elements(r->output), .rank = input->rank, .in = input->data, .out = r->output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    int order[SB_MAX_RANK];
    for (int d = 0; d < input->rank; d++)
        order[d] = d;
    if (sb_cuda_has_channels_last(r->output))
        sb_cuda_channels_last_order(input->rank, order);
    /* As the output's elements lie. */
    for (int i = 0; i < input->rank; i++) {
        const int d = order[i];
        parameters.dims[i] = r->output->dims[d];
        parameters.steps[i] = input->strides[d] * (int64_t)sb_dtype_size(input->dtype);
        parameters.first[i] = r->axes[d].first;
        if (r->axes[d].first != NULL)
            sb_cuda_work_touches(&work, r->axes[d].first, (size_t)r->axes[d].out * sizeof *r->axes[d].first, false);
    }
    sb_cuda_work_writes(&work, r->output);
    sb_cuda_work_reads(&work, input);
    return sb_cuda_launch_each(call, &work, "resize", "sb_cuda_resize_nearest", sb_cuda_size_suffix(input->dtype),
                               parameters.elements);
}

/* Where a pass has its elements. */
typedef struct block {
    char *data;
    size_t bytes;
} block;

static sb_status run_pass(sb_call *call, const sb_resize_axis *axis, int64_t outer, int64_t inner, bool wide,
                          block from, block to) {
    sb_cuda_resize_pass parameters = {
        .elements = outer * axis->out * inner, .inner = inner, .axis = *axis, .in = from.data, .out = to.data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_touches(&work, to.data, to.bytes, true);
    sb_cuda_work_touches(&work, from.data, from.bytes, false);
    table_ranges(&work, axis, false);
    return sb_cuda_launch_each(call, &work, "resize", "sb_cuda_resize_pass", wide ? "f64" : "f32", parameters.elements);
}

static sb_status convert(sb_call *call, const char *kernel, sb_dtype dtype, int64_t elements, block from, block to) {
    sb_cuda_resize_convert parameters = {elements, dtype, from.data, to.data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_touches(&work, to.data, to.bytes, true);
    sb_cuda_work_touches(&work, from.data, from.bytes, false);
    return sb_cuda_launch_each(call, &work, "resize", kernel, NULL, elements);
}

static sb_status workspace_block(sb_call *call, size_t elements, size_t size, block *block) {
    void *memory;
    if (__builtin_mul_overflow(elements, size, &block->bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    SB_TRY(sb_call_workspace(call, block->bytes, &memory));
    block->data = memory;
    return SB_OK;
}

/* One pass for each axis that changes, the last axis first; other dtypes than f32 and f64 are
 * converted before and after. */
static sb_status interpolate(sb_call *call, const resizing *r, const sb_tensor *input) {
    sb_dtype dtype = input->dtype;
    bool wide = dtype == SB_F64, direct = wide || dtype == SB_F32;
    size_t size = wide ? sizeof(double) : sizeof(float);
    int rank = input->rank, left = 0;
    int64_t dims[SB_MAX_RANK], elements = sb_tensor_elements(input);
    int64_t results = sb_tensor_elements(r->output);
    block source = {input->data, (size_t)elements * sb_dtype_size(dtype)}, current = source;
    block target = {r->output->data, (size_t)results * sb_dtype_size(dtype)};
    memcpy(dims, input->dims, sizeof dims);
    for (int d = 0; d < rank; d++)
        left += (r->resized >> d & 1) != 0 && !sb_resize_is_identity(&r->axes[d], &r->params->rule);
    if (direct && left == 0)
        return sb_call_copy(call, r->output, input);
    if (!direct) {
        SB_TRY(workspace_block(call, (size_t)elements, size, &current));
        SB_TRY(convert(call, "sb_cuda_resize_load", dtype, elements, source, current));
    }
    for (int d = rank - 1; d >= 0; d--) {
        const sb_resize_axis *axis = &r->axes[d];
        if ((r->resized >> d & 1) == 0 || sb_resize_is_identity(axis, &r->params->rule))
            continue;
        int64_t outer = sb_move_product(dims, 0, d), inner = sb_move_product(dims, d + 1, rank);
        block next = target;
        dims[d] = axis->out;
        if (--left > 0 || !direct)
            SB_TRY(workspace_block(call, (size_t)sb_move_product(dims, 0, rank), size, &next));
        SB_TRY(run_pass(call, axis, outer, inner, wide, current, next));
        current = next;
    }
    return direct ? SB_OK : convert(call, "sb_cuda_resize_store", dtype, results, current, target);
}

static sb_status fill_outside(sb_call *call, const resizing *r) {
    sb_tensor *output = r->output;
    sb_cuda_resize_outside parameters = {
        .elements = sb_tensor_elements(output), .rank = output->rank, .out = output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_number_store(output->dtype, &parameters.value, 0, r->params->extrapolation);
    for (int d = 0; d < output->rank; d++) {
        parameters.dims[d] = output->dims[d];
        parameters.outside[d] = r->axes[d].outside;
        if (r->axes[d].outside != NULL)
            sb_cuda_work_touches(&work, r->axes[d].outside, (size_t)r->axes[d].out * sizeof *r->axes[d].outside, false);
    }
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "resize", "sb_cuda_resize_outside", sb_cuda_size_suffix(output->dtype),
                               parameters.elements);
}

static sb_status launch_resize(sb_call *call) {
    resizing r = {.params = call->node->params};
    const sb_tensor *input = sb_call_input(call, 0);
    const sb_resize_rule *rule = &r.params->rule;
    int64_t dims[SB_MAX_RANK];
    SB_TRY(sb_resize_read(call, input, r.axes, &r.resized, dims));
    /* What becomes of elements outside is computed row by row. */
    if (rule->mode == SB_RESIZE_NEAREST && rule->transform != SB_RESIZE_TF_CROP_AND_RESIZE)
        SB_TRY(create_nearest(call, dims, &r.output));
    else
        SB_TRY(sb_call_output_shape(call, 0, input->dtype, input->rank, dims, &r.output));
    if (sb_tensor_elements(r.output) == 0)
        return SB_OK;
    for (int d = 0; d < input->rank; d++) {
        if ((r.resized >> d & 1) != 0)
            SB_TRY(plan_axis(call, rule, &r.axes[d]));
    }
    if (rule->mode == SB_RESIZE_NEAREST) {
        SB_TRY(pick_nearest(call, &r));
    } else {
        sb_tensor *packed;
        SB_TRY(sb_call_contiguous(call, 0, &packed));
        sb_status status = interpolate(call, &r, packed);
        sb_tensor_release(packed);
        SB_TRY(status);
    }
    return rule->transform == SB_RESIZE_TF_CROP_AND_RESIZE ? fill_outside(call, &r) : SB_OK;
}

/* Input 0 is resized; the others say how. */
#define RESIZE(op_name)                                                                                                \
    {                                                                                                                  \
        .op = op_name, .name = "resize", .supports = sb_cuda_supports_all, .host_inputs = ~UINT64_C(1),                \
        .launch = launch_resize                                                                                        \
    }

const sb_kernel sb_cuda_kernels_resize[] = {
    RESIZE("Resize"),
    RESIZE("Upsample"),
    {0},
};
