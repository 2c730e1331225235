/* Convolutions other than Conv, and Col2Im. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/windows/window_parameters.h"
#include "ops/convolution_deformable.h"
#include "ops/convolution_transpose.h"
#include "ops/fold.h"
#include "ops/moving.h"

/* What does not depend on which axis of the weights holds output and which input channels. */
static void fill_window(sb_cuda_window *window, const sb_tensor *x, const sb_tensor *w, const sb_tensor *bias,
                        const sb_tensor *y, int64_t groups, const sb_window_axis *axes) {
    *window = (sb_cuda_window){.elements = sb_tensor_elements(y),
                               .positions = sb_move_product(y->dims, 2, y->rank),
                               .groups = groups,
                               .taps = sb_move_product(w->dims, 2, w->rank),
                               .axes = x->rank - 2,
                               .x_batch = x->strides[0],
                               .x_channel = x->strides[1],
                               .x = x->data,
                               .w = w->data,
                               .bias = bias != NULL ? bias->data : NULL,
                               .bias_stride = bias != NULL ? bias->strides[0] : 0,
                               .y = y->data};
    for (int i = 0; i < window->axes; i++)
        window->axis[i] = (sb_cuda_window_axis){.in = axes[i].in,
                                                .out = axes[i].out,
                                                .kernel = axes[i].kernel,
                                                .stride = axes[i].stride,
                                                .dilation = axes[i].dilation,
                                                .begin = axes[i].begin,
                                                .x_stride = x->strides[i + 2],
                                                .w_stride = w->strides[i + 2]};
}

/* A convolution whose weights are [output channels, input channels of a group, …]. */
static void fill_convolution(sb_cuda_window *window, const sb_conv_params *params, const sb_tensor *x,
                             const sb_tensor *w, const sb_tensor *bias, const sb_tensor *y) {
    sb_conv_extents extents;
    sb_conv_extents_of(params, x, w, y->dims, &extents);
    fill_window(window, x, w, bias, y, extents.groups, extents.axis);
    window->group_outputs = extents.group_outputs;
    window->group_inputs = extents.group_inputs;
    window->taps = extents.taps;
    window->w_output = w->strides[0];
    window->w_input = w->strides[1];
    window->w_group = extents.group_outputs * w->strides[0];
}

static void name_ranges(sb_cuda_work *work, const sb_call *call, const sb_tensor *y) {
    sb_cuda_work_writes(work, y);
    for (int i = 0; i < call->input_count; i++)
        sb_cuda_work_reads(work, sb_call_input(call, i));
}

/* ---- ConvTranspose ---- */

static sb_status launch_conv_transpose(sb_call *call) {
    const sb_conv_transpose_params *params = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1);
    sb_tensor *y;
    sb_window_axis axes[SB_WINDOW_AXES];
    sb_cuda_window parameters;
    SB_TRY(sb_call_output(call, 0, &y));
    sb_conv_transpose_axes(params, x, w, y->dims, axes);
    fill_window(&parameters, x, w, sb_call_input(call, 2), y, params->group, axes);
    parameters.group_outputs = w->dims[1];
    parameters.group_inputs = w->dims[0] / params->group;
    parameters.w_output = w->strides[1];
    parameters.w_input = w->strides[0];
    parameters.w_group = parameters.group_inputs * w->strides[0];
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return sb_cuda_launch_each(call, &work, "windows", "sb_cuda_conv_transpose", sb_dtype_name(x->dtype),
                               parameters.elements);
}

/* ---- DeformConv ---- */

static sb_status launch_deform_conv(sb_call *call) {
    const sb_deform_params *params = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1);
    const sb_tensor *offset = sb_call_input(call, 2), *mask = sb_call_input(call, 4);
    sb_tensor *y;
    SB_TRY(sb_call_output(call, 0, &y));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    sb_cuda_deform parameters = {.dtype = x->dtype,
                                 .channels_per_offset = x->dims[1] / params->offset_group,
                                 .offset = offset->data,
                                 .mask = mask != NULL ? mask->data : NULL};
    fill_convolution(&parameters.window, &params->conv, x, w, sb_call_input(call, 3), y);
    memcpy(parameters.offset_strides, offset->strides, sizeof parameters.offset_strides);
    if (mask != NULL)
        memcpy(parameters.mask_strides, mask->strides, sizeof parameters.mask_strides);
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return sb_cuda_launch_each(call, &work, "windows", "sb_cuda_deform_conv", sb_dtype_name(x->dtype),
                               parameters.window.elements);
}

/* ---- ConvInteger and QLinearConv ---- */

/* The stride of a list of one number, or of one for each channel. */
static int64_t list_stride(const sb_tensor *list) {
    return list == NULL || list->rank == 0 || list->dims[0] == 1 ? 0 : list->strides[0];
}

static const void *data_of(const sb_tensor *tensor) {
    return tensor != NULL ? tensor->data : NULL;
}

static void fill_integer_conv(sb_cuda_integer_conv *parameters, const sb_tensor *x, const sb_tensor *w,
                              const sb_tensor *x_zero, const sb_tensor *w_zero) {
    parameters->x_dtype = x->dtype;
    parameters->w_dtype = w->dtype;
    parameters->x_zero = data_of(x_zero);
    parameters->w_zero = data_of(w_zero);
    parameters->w_zero_stride = list_stride(w_zero);
}

static sb_status launch_conv_integer(sb_call *call) {
    const sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1);
    sb_tensor *y;
    sb_cuda_integer_conv parameters = {0};
    SB_TRY(sb_call_output(call, 0, &y));
    fill_convolution(&parameters.window, call->node->params, x, w, NULL, y);
    fill_integer_conv(&parameters, x, w, sb_call_input(call, 2), sb_call_input(call, 3));
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return sb_cuda_launch_each(call, &work, "windows", "sb_cuda_conv_integer", NULL, parameters.window.elements);
}

static sb_status launch_qlinear_conv(sb_call *call) {
    enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };
    const sb_tensor *x = sb_call_input(call, X), *w = sb_call_input(call, W);
    sb_tensor *y;
    sb_cuda_integer_conv parameters = {0};
    SB_TRY(sb_call_output(call, 0, &y));
    fill_convolution(&parameters.window, call->node->params, x, w, sb_call_input(call, BIAS), y);
    fill_integer_conv(&parameters, x, w, sb_call_input(call, X_ZERO), sb_call_input(call, W_ZERO));
    parameters.y_dtype = y->dtype;
    parameters.x_scale = data_of(sb_call_input(call, X_SCALE));
    parameters.w_scale = data_of(sb_call_input(call, W_SCALE));
    parameters.y_scale = data_of(sb_call_input(call, Y_SCALE));
    parameters.y_zero = data_of(sb_call_input(call, Y_ZERO));
    parameters.w_scale_stride = list_stride(sb_call_input(call, W_SCALE));
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return sb_cuda_launch_each(call, &work, "windows", "sb_cuda_qlinear_conv", NULL, parameters.window.elements);
}

/* ---- Col2Im ---- */

static sb_status launch_fold(sb_call *call) {
    const sb_fold_params *params = call->node->params;
    sb_fold plan;
    sb_tensor *columns, *output;
    SB_TRY(sb_fold_plan(call, sb_call_input(call, 0), &plan));
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &columns));
    sb_cuda_fold parameters = {.elements = sb_tensor_elements(output),
                               .pixels = plan.pixels,
                               .area = plan.area,
                               .count = plan.count,
                               .rank = plan.rank,
                               .dtype = columns->dtype,
                               .columns = columns->data,
                               .out = output->data};
    for (int d = 0; d < plan.rank; d++) {
        parameters.image[d] = plan.image[d];
        parameters.block[d] = plan.block[d];
        parameters.places[d] = plan.places[d];
        parameters.strides[d] = params->strides[d];
        parameters.dilations[d] = params->dilations[d];
        parameters.pads[d] = params->pads[d];
    }
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, columns);
    sb_status status = sb_cuda_launch_each(call, &work, "windows", "sb_cuda_fold",
                                           sb_dtype_is_float(columns->dtype) ? sb_dtype_name(columns->dtype)
                                                                             : sb_cuda_size_suffix(columns->dtype),
                                           parameters.elements);
    sb_tensor_release(columns);
    return status;
}

#define WINDOWS(op_name, kernel_name, host, launch_function)                                                           \
    {                                                                                                                  \
        .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .host_inputs = host,                     \
        .launch = launch_function                                                                                      \
    }

const sb_kernel sb_cuda_kernels_windows[] = {
    WINDOWS("Col2Im", "col2im", 6, launch_fold),
    WINDOWS("ConvInteger", "conv_integer", 0, launch_conv_integer),
    WINDOWS("ConvTranspose", "conv_transpose", 0, launch_conv_transpose),
    WINDOWS("DeformConv", "deform_conv", 0, launch_deform_conv),
    WINDOWS("QLinearConv", "qlinear_conv", 0, launch_qlinear_conv),
    {0},
};
