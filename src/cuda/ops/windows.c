/* Convolutions other than Conv, and Col2Im. */
#include <string.h>

#include "cuda/kernels/window_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "ops/convolution_deformable.h"
#include "ops/convolution_transpose.h"
#include "ops/fold.h"
#include "ops/moving.h"

/* What does not depend on which axis of the weights holds output and which input channels. */
static void fill_window(iv_cuda_window *window, const iv_tensor *x, const iv_tensor *w,
                        const iv_tensor *bias, const iv_tensor *y, int64_t groups,
                        const iv_window_axis *axes) {
    *window = (iv_cuda_window){.elements = iv_tensor_elements(y),
                               .positions = iv_move_product(y->dims, 2, y->rank),
                               .groups = groups,
                               .taps = iv_move_product(w->dims, 2, w->rank),
                               .axes = x->rank - 2,
                               .x_batch = x->strides[0],
                               .x_channel = x->strides[1],
                               .x = x->data,
                               .w = w->data,
                               .bias = bias != NULL ? bias->data : NULL,
                               .bias_stride = bias != NULL ? bias->strides[0] : 0,
                               .y = y->data};
    for (int i = 0; i < window->axes; i++)
        window->axis[i] = (iv_cuda_window_axis){.in = axes[i].in,
                                                .out = axes[i].out,
                                                .kernel = axes[i].kernel,
                                                .stride = axes[i].stride,
                                                .dilation = axes[i].dilation,
                                                .begin = axes[i].begin,
                                                .x_stride = x->strides[i + 2],
                                                .w_stride = w->strides[i + 2]};
}

/* A convolution whose weights are [output channels, input channels of a group, …]. */
static void fill_convolution(iv_cuda_window *window, const iv_conv_params *params,
                             const iv_tensor *x, const iv_tensor *w, const iv_tensor *bias,
                             const iv_tensor *y) {
    iv_conv_extents extents;
    iv_conv_extents_of(params, x, w, y->dims, &extents);
    fill_window(window, x, w, bias, y, extents.groups, extents.axis);
    window->group_outputs = extents.group_outputs;
    window->group_inputs = extents.group_inputs;
    window->taps = extents.taps;
    window->w_output = w->strides[0];
    window->w_input = w->strides[1];
    window->w_group = extents.group_outputs * w->strides[0];
}

static void name_ranges(iv_cuda_work *work, const iv_call *call, const iv_tensor *y) {
    iv_cuda_work_writes(work, y);
    for (int i = 0; i < call->input_count; i++)
        iv_cuda_work_reads(work, iv_call_input(call, i));
}

/* ---- ConvTranspose ---- */

static iv_status launch_conv_transpose(iv_call *call) {
    const iv_conv_transpose_params *params = call->node->params;
    const iv_tensor *x = iv_call_input(call, 0), *w = iv_call_input(call, 1);
    iv_tensor *y;
    iv_window_axis axes[IV_WINDOW_AXES];
    iv_cuda_window parameters;
    IV_TRY(iv_call_output(call, 0, &y));
    iv_conv_transpose_axes(params, x, w, y->dims, axes);
    fill_window(&parameters, x, w, iv_call_input(call, 2), y, params->group, axes);
    parameters.group_outputs = w->dims[1];
    parameters.group_inputs = w->dims[0] / params->group;
    parameters.w_output = w->strides[1];
    parameters.w_input = w->strides[0];
    parameters.w_group = parameters.group_inputs * w->strides[0];
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return iv_cuda_launch_each(call, &work, "windows", "iv_cuda_conv_transpose",
                               iv_dtype_name(x->dtype), parameters.elements);
}

/* ---- DeformConv ---- */

static iv_status launch_deform_conv(iv_call *call) {
    const iv_deform_params *params = call->node->params;
    const iv_tensor *x = iv_call_input(call, 0), *w = iv_call_input(call, 1);
    const iv_tensor *offset = iv_call_input(call, 2), *mask = iv_call_input(call, 4);
    iv_tensor *y;
    IV_TRY(iv_call_output(call, 0, &y));
    if (iv_tensor_elements(y) == 0)
        return IV_OK;
    iv_cuda_deform parameters = {.dtype = x->dtype,
                                 .channels_per_offset = x->dims[1] / params->offset_group,
                                 .offset = offset->data,
                                 .mask = mask != NULL ? mask->data : NULL};
    fill_convolution(&parameters.window, &params->conv, x, w, iv_call_input(call, 3), y);
    memcpy(parameters.offset_strides, offset->strides, sizeof parameters.offset_strides);
    if (mask != NULL)
        memcpy(parameters.mask_strides, mask->strides, sizeof parameters.mask_strides);
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return iv_cuda_launch_each(call, &work, "windows", "iv_cuda_deform_conv",
                               iv_dtype_name(x->dtype), parameters.window.elements);
}

/* ---- ConvInteger and QLinearConv ---- */

/* The stride of a list of one number, or of one for each channel. */
static int64_t list_stride(const iv_tensor *list) {
    return list == NULL || list->rank == 0 || list->dims[0] == 1 ? 0 : list->strides[0];
}

static const void *data_of(const iv_tensor *tensor) {
    return tensor != NULL ? tensor->data : NULL;
}

static void fill_integer_conv(iv_cuda_integer_conv *parameters, const iv_tensor *x,
                              const iv_tensor *w, const iv_tensor *x_zero,
                              const iv_tensor *w_zero) {
    parameters->x_dtype = x->dtype;
    parameters->w_dtype = w->dtype;
    parameters->x_zero = data_of(x_zero);
    parameters->w_zero = data_of(w_zero);
    parameters->w_zero_stride = list_stride(w_zero);
}

static iv_status launch_conv_integer(iv_call *call) {
    const iv_tensor *x = iv_call_input(call, 0), *w = iv_call_input(call, 1);
    iv_tensor *y;
    iv_cuda_integer_conv parameters = {0};
    IV_TRY(iv_call_output(call, 0, &y));
    fill_convolution(&parameters.window, call->node->params, x, w, NULL, y);
    fill_integer_conv(&parameters, x, w, iv_call_input(call, 2), iv_call_input(call, 3));
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return iv_cuda_launch_each(call, &work, "windows", "iv_cuda_conv_integer", NULL,
                               parameters.window.elements);
}

static iv_status launch_qlinear_conv(iv_call *call) {
    enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };
    const iv_tensor *x = iv_call_input(call, X), *w = iv_call_input(call, W);
    iv_tensor *y;
    iv_cuda_integer_conv parameters = {0};
    IV_TRY(iv_call_output(call, 0, &y));
    fill_convolution(&parameters.window, call->node->params, x, w, iv_call_input(call, BIAS), y);
    fill_integer_conv(&parameters, x, w, iv_call_input(call, X_ZERO), iv_call_input(call, W_ZERO));
    parameters.y_dtype = y->dtype;
    parameters.x_scale = data_of(iv_call_input(call, X_SCALE));
    parameters.w_scale = data_of(iv_call_input(call, W_SCALE));
    parameters.y_scale = data_of(iv_call_input(call, Y_SCALE));
    parameters.y_zero = data_of(iv_call_input(call, Y_ZERO));
    parameters.w_scale_stride = list_stride(iv_call_input(call, W_SCALE));
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    name_ranges(&work, call, y);
    return iv_cuda_launch_each(call, &work, "windows", "iv_cuda_qlinear_conv", NULL,
                               parameters.window.elements);
}

/* ---- Col2Im ---- */

static iv_status launch_fold(iv_call *call) {
    const iv_fold_params *params = call->node->params;
    iv_fold plan;
    iv_tensor *columns, *output;
    IV_TRY(iv_fold_plan(call, iv_call_input(call, 0), &plan));
    IV_TRY(iv_call_output(call, 0, &output));
    IV_TRY(iv_call_contiguous(call, 0, &columns));
    iv_cuda_fold parameters = {.elements = iv_tensor_elements(output),
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
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, output);
    iv_cuda_work_reads(&work, columns);
    iv_status status =
        iv_cuda_launch_each(call, &work, "windows", "iv_cuda_fold",
                            iv_dtype_is_float(columns->dtype) ? iv_dtype_name(columns->dtype)
                                                              : iv_cuda_size_suffix(columns->dtype),
                            parameters.elements);
    iv_tensor_release(columns);
    return status;
}

#define WINDOWS(op_name, kernel_name, host, launch_function)                                       \
    {                                                                                              \
        .op = op_name, .name = kernel_name, .supports = iv_cuda_supports_all, .host_inputs = host, \
        .launch = launch_function                                                                  \
    }

const iv_kernel iv_cuda_kernels_windows[] = {
    WINDOWS("Col2Im", "col2im", 6, launch_fold),
    WINDOWS("ConvInteger", "conv_integer", 0, launch_conv_integer),
    WINDOWS("ConvTranspose", "conv_transpose", 0, launch_conv_transpose),
    WINDOWS("DeformConv", "deform_conv", 0, launch_deform_conv),
    WINDOWS("QLinearConv", "qlinear_conv", 0, launch_qlinear_conv),
    {0},
};
