/* The definition of f32 convolution: what every kernel must equal bit for bit. */
#include <math.h>

#include "cpu/contraction/conv.h"

/* The chain of output element (batch, o…, n). */
static float chain(const sb_conv_shape *shape, const float *x, const float *w, int64_t w_input_stride,
                   const int64_t *w_kernel_strides, const int64_t *output, int64_t group) {
    const int64_t channels = shape->input_channels / shape->groups;
    int64_t tap[SB_CONV_RANK] = {0};
    float acc = 0.0f;
    for (;;) {
        int64_t x_offset = 0, w_offset = 0;
        bool inside = true;
        for (int d = 0; d < shape->rank; d++) {
            int64_t position = output[d] * shape->stride[d] - shape->pad[d] + tap[d] * shape->dilation[d];
            if (position >= 0 && position < shape->input[d])
                x_offset += position * shape->x_stride[d];
            else
                inside = false;
            w_offset += tap[d] * w_kernel_strides[d];
        }
        for (int64_t c = 0; c < channels; c++) {
            float value = inside ? x[x_offset + (group * channels + c) * shape->x_channel_stride] : 0.0f;
            acc = fmaf(value, w[w_offset + c * w_input_stride], acc);
        }
        int d = shape->rank - 1;
        while (d >= 0 && ++tap[d] == shape->kernel[d])
            tap[d--] = 0;
        if (d < 0)
            return acc;
    }
}

void sb_conv_f32_reference(const sb_conv_shape *shape, const float *x, const float *w, int64_t w_output_stride,
                           int64_t w_input_stride, const int64_t *w_kernel_strides, float *y,
                           const sb_epilogue *epilogue, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    const int64_t group_columns = shape->output_channels / shape->groups;
    for (int64_t m = m0; m < m1; m++) {
        int64_t output[SB_CONV_RANK], rest = m, y_offset = 0;
        for (int d = shape->rank - 1; d >= 0; d--) {
            output[d] = rest % shape->output[d];
            rest /= shape->output[d];
            y_offset += output[d] * shape->y_stride[d];
        }
        for (int64_t n = n0; n < n1; n++) {
            float acc = chain(shape, x + rest * shape->x_batch_stride, w + n * w_output_stride, w_input_stride,
                              w_kernel_strides, output, n / group_columns);
            y[y_offset + rest * shape->y_batch_stride + n * shape->y_channel_stride] =
                sb_epilogue_reference(epilogue, acc, m, n);
        }
    }
}
