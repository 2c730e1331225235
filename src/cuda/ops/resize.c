/* Resize and Upsample. */
#include <string.h>

#include "cuda/kernels/resize_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/resize.h"

/* A resize on its way: the tables of the axes that are resized lie in scratch memory. */
typedef struct resizing {
    const iv_resize_params *params;
    iv_tensor *output;
    uint32_t resized; /* a bit for each axis */
    iv_resize_axis axes[IV_MAX_RANK];
} resizing;

static void table_ranges(iv_cuda_work *work, const iv_resize_axis *axis, bool written) {
    size_t out = (size_t)axis->out;
    iv_cuda_work_touches(work, axis->first, out * sizeof *axis->first, written);
    iv_cuda_work_touches(work, axis->outside, out * sizeof *axis->outside, written);
    if (axis->weights != NULL)
        iv_cuda_work_touches(work, axis->weights, out * (size_t)axis->taps * sizeof *axis->weights,
                             written);
}

static iv_status plan_axis(iv_call *call, const iv_resize_rule *rule, iv_resize_axis *axis) {
    void *memory;
    size_t out = (size_t)axis->out;
    axis->taps = iv_resize_taps(axis, rule);
    IV_TRY(iv_call_scratch(call, out * sizeof *axis->first, &memory));
    axis->first = memory;
    IV_TRY(iv_call_scratch(call, out * sizeof *axis->outside, &memory));
    axis->outside = memory;
    if (rule->mode != IV_RESIZE_NEAREST) {
        IV_TRY(iv_call_scratch(call, out * (size_t)axis->taps * sizeof *axis->weights, &memory));
        axis->weights = memory;
    }
    iv_cuda_resize_plan parameters = {*axis, *rule};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    table_ranges(&work, axis, true);
    return iv_cuda_launch_each(call, &work, "resize", "iv_cuda_resize_axis", NULL, axis->out);
}

static iv_status pick_nearest(iv_call *call, const resizing *r) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_cuda_resize_nearest parameters = {.elements = iv_tensor_elements(r->output),
                                         .rank = input->rank,
                                         .in = input->data,
                                         .out = r->output->data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    for (int d = 0; d < input->rank; d++) {
        parameters.dims[d] = r->output->dims[d];
        parameters.steps[d] = input->strides[d] * (int64_t)iv_dtype_size(input->dtype);
        parameters.first[d] = r->axes[d].first;
        if (r->axes[d].first != NULL)
            iv_cuda_work_touches(&work, r->axes[d].first,
                                 (size_t)r->axes[d].out * sizeof *r->axes[d].first, false);
    }
    iv_cuda_work_writes(&work, r->output);
    iv_cuda_work_reads(&work, input);
    return iv_cuda_launch_each(call, &work, "resize", "iv_cuda_resize_nearest",
                               iv_cuda_size_suffix(input->dtype), parameters.elements);
}

/* Where a pass has its elements. */
typedef struct block {
    char *data;
    size_t bytes;
} block;

static iv_status run_pass(iv_call *call, const iv_resize_axis *axis, int64_t outer, int64_t inner,
                          bool wide, block from, block to) {
    iv_cuda_resize_pass parameters = {.elements = outer * axis->out * inner,
                                      .inner = inner,
                                      .axis = *axis,
                                      .in = from.data,
                                      .out = to.data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_touches(&work, to.data, to.bytes, true);
    iv_cuda_work_touches(&work, from.data, from.bytes, false);
    table_ranges(&work, axis, false);
    return iv_cuda_launch_each(call, &work, "resize", "iv_cuda_resize_pass", wide ? "f64" : "f32",
                               parameters.elements);
}

static iv_status convert(iv_call *call, const char *kernel, iv_dtype dtype, int64_t elements,
                         block from, block to) {
    iv_cuda_resize_convert parameters = {elements, dtype, from.data, to.data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_touches(&work, to.data, to.bytes, true);
    iv_cuda_work_touches(&work, from.data, from.bytes, false);
    return iv_cuda_launch_each(call, &work, "resize", kernel, NULL, elements);
}

static iv_status scratch_block(iv_call *call, size_t elements, size_t size, block *block) {
    void *memory;
    if (__builtin_mul_overflow(elements, size, &block->bytes))
        return iv_fail_memory(call->error, SIZE_MAX);
    IV_TRY(iv_call_scratch(call, block->bytes, &memory));
    block->data = memory;
    return IV_OK;
}

/* One pass for each axis that changes, the last axis first; other dtypes than f32 and f64 are
 * converted before and after. */
static iv_status interpolate(iv_call *call, const resizing *r, const iv_tensor *input) {
    iv_dtype dtype = input->dtype;
    bool wide = dtype == IV_F64, direct = wide || dtype == IV_F32;
    size_t size = wide ? sizeof(double) : sizeof(float);
    int rank = input->rank, left = 0;
    int64_t dims[IV_MAX_RANK], elements = iv_tensor_elements(input);
    int64_t results = iv_tensor_elements(r->output);
    block source = {input->data, (size_t)elements * iv_dtype_size(dtype)}, current = source;
    block target = {r->output->data, (size_t)results * iv_dtype_size(dtype)};
    memcpy(dims, input->dims, sizeof dims);
    for (int d = 0; d < rank; d++)
        left += (r->resized >> d & 1) != 0 && !iv_resize_is_identity(&r->axes[d], &r->params->rule);
    if (direct && left == 0)
        return iv_call_copy(call, r->output, input);
    if (!direct) {
        IV_TRY(scratch_block(call, (size_t)elements, size, &current));
        IV_TRY(convert(call, "iv_cuda_resize_load", dtype, elements, source, current));
    }
    for (int d = rank - 1; d >= 0; d--) {
        const iv_resize_axis *axis = &r->axes[d];
        if ((r->resized >> d & 1) == 0 || iv_resize_is_identity(axis, &r->params->rule))
            continue;
        int64_t outer = iv_move_product(dims, 0, d), inner = iv_move_product(dims, d + 1, rank);
        block next = target;
        dims[d] = axis->out;
        if (--left > 0 || !direct)
            IV_TRY(scratch_block(call, (size_t)iv_move_product(dims, 0, rank), size, &next));
        IV_TRY(run_pass(call, axis, outer, inner, wide, current, next));
        current = next;
    }
    return direct ? IV_OK : convert(call, "iv_cuda_resize_store", dtype, results, current, target);
}

static iv_status fill_outside(iv_call *call, const resizing *r) {
    iv_tensor *output = r->output;
    iv_cuda_resize_outside parameters = {
        .elements = iv_tensor_elements(output), .rank = output->rank, .out = output->data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_number_store(output->dtype, &parameters.value, 0, r->params->extrapolation);
    for (int d = 0; d < output->rank; d++) {
        parameters.dims[d] = output->dims[d];
        parameters.outside[d] = r->axes[d].outside;
        if (r->axes[d].outside != NULL)
            iv_cuda_work_touches(&work, r->axes[d].outside,
                                 (size_t)r->axes[d].out * sizeof *r->axes[d].outside, false);
    }
    iv_cuda_work_writes(&work, output);
    return iv_cuda_launch_each(call, &work, "resize", "iv_cuda_resize_outside",
                               iv_cuda_size_suffix(output->dtype), parameters.elements);
}

static iv_status launch_resize(iv_call *call) {
    resizing r = {.params = call->node->params};
    const iv_tensor *input = iv_call_input(call, 0);
    const iv_resize_rule *rule = &r.params->rule;
    int64_t dims[IV_MAX_RANK];
    IV_TRY(iv_resize_read(call, input, r.axes, &r.resized, dims));
    IV_TRY(iv_call_output_shape(call, 0, input->dtype, input->rank, dims, &r.output));
    if (iv_tensor_elements(r.output) == 0)
        return IV_OK;
    for (int d = 0; d < input->rank; d++) {
        if ((r.resized >> d & 1) != 0)
            IV_TRY(plan_axis(call, rule, &r.axes[d]));
    }
    if (rule->mode == IV_RESIZE_NEAREST) {
        IV_TRY(pick_nearest(call, &r));
    } else {
        iv_tensor *packed;
        IV_TRY(iv_call_contiguous(call, 0, &packed));
        iv_status status = interpolate(call, &r, packed);
        iv_tensor_release(packed);
        IV_TRY(status);
    }
    return rule->transform == IV_RESIZE_TF_CROP_AND_RESIZE ? fill_outside(call, &r) : IV_OK;
}

/* Input 0 is resized; the others say how. */
#define RESIZE(op_name)                                                                            \
    {                                                                                              \
        .op = op_name, .name = "resize", .supports = iv_cuda_supports_all,                         \
        .host_inputs = ~UINT64_C(1), .launch = launch_resize                                       \
    }

const iv_kernel iv_cuda_kernels_resize[] = {
    RESIZE("Resize"),
    RESIZE("Upsample"),
    {0},
};
