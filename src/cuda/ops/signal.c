/* Spectra and windows: BlackmanWindow, DFT, HammingWindow, HannWindow, MelWeightMatrix, STFT. */
#include <string.h>

#include "cuda/kernels/signal_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "ops/moving.h"
#include "ops/signal.h"

static iv_status launch_window(iv_call *call) {
    iv_window_plan plan;
    iv_tensor *output;
    iv_dtype dtype = ((const iv_signal_params *)call->node->params)->dtype;
    IV_TRY(iv_window_read_plan(call, &plan));
    IV_TRY(iv_call_output_shape(call, 0, dtype, 1, &plan.size, &output));
    iv_cuda_window_fill parameters = {plan.size, plan.period, plan.a,      plan.b,
                                      plan.c,    dtype,       output->data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, output);
    return iv_cuda_launch_each(call, &work, "signal", "iv_cuda_signal_window", NULL, plan.size);
}

static iv_status launch_mel(iv_call *call) {
    iv_mel_plan plan;
    iv_tensor *output;
    iv_dtype dtype = ((const iv_signal_params *)call->node->params)->dtype;
    IV_TRY(iv_mel_read(call, &plan));
    const int64_t dims[2] = {plan.length / 2 + 1, plan.bins};
    IV_TRY(iv_call_output_shape(call, 0, dtype, 2, dims, &output));
    iv_cuda_mel parameters = {.elements = iv_tensor_elements(output),
                              .bins = plan.bins,
                              .length = plan.length,
                              .rate = plan.rate,
                              .low = plan.low,
                              .high = plan.high,
                              .dtype = dtype,
                              .out = output->data};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, output);
    return iv_cuda_launch_each(call, &work, "signal", "iv_cuda_mel_weights", NULL,
                               parameters.elements);
}

/* The roots of unity that a transform of `length` numbers multiplies with, in scratch memory. */
static iv_status make_roots(iv_call *call, int64_t length, iv_cuda_roots *roots) {
    void *memory;
    size_t bytes = (size_t)length * sizeof(double);
    IV_TRY(iv_call_scratch(call, 2 * bytes, &memory));
    *roots = (iv_cuda_roots){length, memory, (double *)memory + length};
    iv_cuda_work work = {.parameters = roots, .parameter_bytes = sizeof *roots};
    iv_cuda_work_touches(&work, memory, 2 * bytes, true);
    return iv_cuda_launch_each(call, &work, "signal", "iv_cuda_signal_roots", NULL, length);
}

static void read_roots(iv_cuda_work *work, const iv_cuda_roots *roots) {
    iv_cuda_work_touches(work, roots->cosines, 2 * (size_t)roots->length * sizeof(double), false);
}

static iv_status launch_dft(iv_call *call) {
    const iv_signal_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int last = input->rank - 1;
    iv_dft_plan plan;
    iv_cuda_roots roots;
    iv_tensor *output;
    IV_TRY(iv_dft_read(call, &plan));
    IV_TRY(iv_call_output_shape(call, 0, input->dtype, input->rank, plan.dims, &output));
    if (iv_tensor_elements(output) == 0)
        return IV_OK;
    IV_TRY(make_roots(call, plan.length, &roots));
    iv_cuda_dft parameters = {
        .numbers = iv_tensor_elements(output) / plan.dims[last],
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
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, output);
    iv_cuda_work_reads(&work, input);
    read_roots(&work, &roots);
    return iv_cuda_launch_each(call, &work, "signal", "iv_cuda_transform_lines", NULL,
                               parameters.numbers);
}

static iv_status launch_stft(iv_call *call) {
    const iv_tensor *signal = iv_call_input(call, 0), *window = iv_call_input(call, 2);
    iv_stft_plan plan;
    iv_cuda_roots roots;
    iv_tensor *output;
    IV_TRY(iv_stft_read(call, &plan));
    const int64_t dims[4] = {signal->dims[0], plan.frames, plan.bins, 2};
    IV_TRY(iv_call_output_shape(call, 0, signal->dtype, 4, dims, &output));
    if (iv_tensor_elements(output) == 0)
        return IV_OK;
    IV_TRY(make_roots(call, plan.length, &roots));
    iv_cuda_stft parameters = {
        .numbers = iv_tensor_elements(output) / 2,
        .frames = plan.frames,
        .bins = plan.bins,
        .length = plan.length,
        .step = plan.step,
        .batch_stride = signal->strides[0],
        .sample_stride = signal->strides[1],
        .part_stride = signal->strides[2],
        .is_complex = signal->dims[2] == 2,
        .dtype = signal->dtype,
        .window = window != NULL ? window->data : NULL,
        .window_length = window != NULL ? window->dims[0] : 0,
        .window_stride = window != NULL ? window->strides[0] : 0,
        .cosines = roots.cosines,
        .sines = roots.sines,
        .in = signal->data,
        .out = output->data,
    };
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, output);
    iv_cuda_work_reads(&work, signal);
    iv_cuda_work_reads(&work, window);
    read_roots(&work, &roots);
    return iv_cuda_launch_each(call, &work, "signal", "iv_cuda_transform_frames", NULL,
                               parameters.numbers);
}

#define SIGNAL(op_name, kernel_name, host, launch_function)                                        \
    {                                                                                              \
        .op = op_name, .name = kernel_name, .supports = iv_cuda_supports_all, .host_inputs = host, \
        .launch = launch_function                                                                  \
    }

const iv_kernel iv_cuda_kernels_signal[] = {
    SIGNAL("BlackmanWindow", "window", 1, launch_window),
    SIGNAL("DFT", "dft", 6, launch_dft),
    SIGNAL("HammingWindow", "window", 1, launch_window),
    SIGNAL("HannWindow", "window", 1, launch_window),
    SIGNAL("MelWeightMatrix", "mel_weights", 31, launch_mel),
    SIGNAL("STFT", "stft", 10, launch_stft),
    {0},
};
