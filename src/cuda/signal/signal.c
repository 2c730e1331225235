/* Spectra and windows: BlackmanWindow, DFT, HammingWindow, HannWindow, MelWeightMatrix, STFT. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/signal/signal_parameters.h"
#include "ops/moving.h"
#include "ops/signal.h"

static sb_status launch_window(sb_call *call) {
    sb_window_plan plan;
    sb_tensor *output;
    sb_dtype dtype = ((const sb_signal_params *)call->node->params)->dtype;
    SB_TRY(sb_window_read_plan(call, &plan));
    SB_TRY(sb_call_output_shape(call, 0, dtype, 1, &plan.size, &output));
    sb_cuda_window_fill parameters = {plan.size, plan.period, plan.a, plan.b, plan.c, dtype, output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "signal", "sb_cuda_signal_window", NULL, plan.size);
}

static sb_status launch_mel(sb_call *call) {
    sb_mel_plan plan;
    sb_tensor *output;
    sb_dtype dtype = ((const sb_signal_params *)call->node->params)->dtype;
    SB_TRY(sb_mel_read(call, &plan));
    const int64_t dims[2] = {plan.length / 2 + 1, plan.bins};
    SB_TRY(sb_call_output_shape(call, 0, dtype, 2, dims, &output));
    sb_cuda_mel parameters = {.elements = sb_tensor_elements(output),
                              .bins = plan.bins,
                              .length = plan.length,
                              .rate = plan.rate,
                              .low = plan.low,
                              .high = plan.high,
                              .dtype = dtype,
                              .out = output->data};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "signal", "sb_cuda_mel_weights", NULL, parameters.elements);
}

/* The roots of unity that a transform of `length` numbers multiplies with, in workspace. */
static sb_status make_roots(sb_call *call, int64_t length, sb_cuda_roots *roots) {
    void *memory;
    size_t bytes = (size_t)length * sizeof(double);
    SB_TRY(sb_call_workspace(call, 2 * bytes, &memory));
    *roots = (sb_cuda_roots){length, memory, (double *)memory + length};
    sb_cuda_work work = {.parameters = roots, .parameter_bytes = sizeof *roots};
    sb_cuda_work_touches(&work, memory, 2 * bytes, true);
    return sb_cuda_launch_each(call, &work, "signal", "sb_cuda_signal_roots", NULL, length);
}

static void read_roots(sb_cuda_work *work, const sb_cuda_roots *roots) {
    sb_cuda_work_touches(work, roots->cosines, 2 * (size_t)roots->length * sizeof(double), false);
}

static sb_status launch_transform(sb_call *call, sb_cuda_work *work, const char *name, sb_dtype dtype,
                                  int64_t numbers) {
    char full[64];
    snprintf(full, sizeof full, "%s_%s", name, sb_dtype_name(dtype));
    work->module = "signal";
    work->kernel = full;
    work->threads = SB_CUDA_TRANSFORM_THREADS;
    work->blocks = sb_cuda_call_blocks(call, (numbers + SB_CUDA_TRANSFORM_THREADS - 1) / SB_CUDA_TRANSFORM_THREADS);
    return sb_cuda_call_launch(call, work);
}

static sb_status launch_dft(sb_call *call) {
    const sb_signal_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int last = input->rank - 1;
    sb_dft_plan plan;
    sb_cuda_roots roots;
    sb_tensor *output;
    SB_TRY(sb_dft_read(call, &plan));
    SB_TRY(sb_call_output_shape(call, 0, input->dtype, input->rank, plan.dims, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    SB_TRY(make_roots(call, plan.length, &roots));
    sb_cuda_dft parameters = {
        .numbers = sb_tensor_elements(output) / plan.dims[last],
        .length = plan.length,
        .extent = input->dims[plan.axis],
        .rank = last,
        .axis = plan.axis,
        .part_stride = input->strides[last],
        .is_complex = input->dims[last] == 2,
        .inverse = params->inverse,
        .mirror = plan.to_real,
        .dtype = input->dtype,
        .cosines = roots.cosines,
        .sines = roots.sines,
        .in = input->data,
        .out = output->data,
    };
    memcpy(parameters.dims, plan.dims, (size_t)last * sizeof plan.dims[0]);
    memcpy(parameters.strides, input->strides, (size_t)last * sizeof input->strides[0]);
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, input);
    read_roots(&work, &roots);
    return launch_transform(call, &work, "sb_cuda_transform_lines", input->dtype, parameters.numbers);
}

static sb_status launch_stft(sb_call *call) {
    const sb_tensor *signal = sb_call_input(call, 0), *window = sb_call_input(call, 2);
    sb_stft_plan plan;
    sb_cuda_roots roots;
    sb_tensor *output;
    SB_TRY(sb_stft_read(call, &plan));
    const int64_t dims[4] = {signal->dims[0], plan.frames, plan.bins, 2};
    SB_TRY(sb_call_output_shape(call, 0, signal->dtype, 4, dims, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    SB_TRY(make_roots(call, plan.length, &roots));
    sb_cuda_stft parameters = {
        .numbers = sb_tensor_elements(output) / 2,
        .frames = plan.frames,
        .bins = plan.bins,
        .length = plan.length,
        .step = plan.step,
        .batch_stride = signal->strides[0],
        .sample_stride = signal->strides[1],
        .part_stride = plan.part_stride,
        .is_complex = plan.complex,
        .dtype = signal->dtype,
        .window = window != NULL ? window->data : NULL,
        .window_length = window != NULL ? window->dims[0] : 0,
        .window_stride = window != NULL ? window->strides[0] : 0,
        .cosines = roots.cosines,
        .sines = roots.sines,
        .in = signal->data,
        .out = output->data,
    };
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, signal);
    sb_cuda_work_reads(&work, window);
    read_roots(&work, &roots);
    return launch_transform(call, &work, "sb_cuda_transform_frames", signal->dtype, parameters.numbers);
}

#define SIGNAL(op_name, kernel_name, host, launch_function)                                                            \
    {                                                                                                                  \
        .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .host_inputs = host,                     \
        .launch = launch_function                                                                                      \
    }

const sb_kernel sb_cuda_kernels_signal[] = {
    SIGNAL("BlackmanWindow", "window", 1, launch_window),
    SIGNAL("DFT", "dft", 6, launch_dft),
    SIGNAL("HammingWindow", "window", 1, launch_window),
    SIGNAL("HannWindow", "window", 1, launch_window),
    SIGNAL("MelWeightMatrix", "mel_weights", 31, launch_mel),
    SIGNAL("STFT", "stft", 10, launch_stft),
    {0},
};
