/* Copying a strip of a convolution's input to channels-last order, with its padding.
 *
 * It lets one set of kernels serve inputs of any strides, and makes kernel positions along the last
 * dimension lie behind each other, so that a first layer with 3 channels has runs of 21 values
 * instead of 3. A strip is a few indices of the first spatial dimension: small enough for L2, and
 * large enough that neighbouring strips repeat little. */
#include "cpu/contraction/conv_internal.h"

/* `positions` pixels of `channels` channels from strided input. */
static void copy_pixels(const sb_conv_plan *plan, int64_t positions, const float *source, float *destination) {
    const sb_conv_shape *shape = &plan->shape;
    const int64_t pixel_stride = shape->x_stride[shape->rank - 1];
    const int64_t channels = sb_conv_strip_channels(plan);
    int64_t repeats = plan->method == SB_CONV_DEPTHWISE_STRIP ? channels / shape->groups : 1;
    if (repeats == 1) {
        plan->kernels->copy(positions, channels, source, pixel_stride, shape->x_channel_stride, destination, channels);
        return;
    }
    for (int64_t p = 0; p < positions; p++)
        for (int64_t group = 0; group < shape->groups; group++)
            for (int64_t r = 0; r < repeats; r++)
                *destination++ = source[p * pixel_stride + group * shape->x_channel_stride];
}

static void fill_zero(float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        values[i] = 0.0f;
}

/* One line of the strip along the last dimension: `extent` positions from input index `start`. */
static void copy_line(const sb_conv_plan *plan, const float *line, int64_t start, int64_t extent, float *destination) {
    const int last = plan->shape.rank - 1;
    const int64_t channels = sb_conv_strip_channels(plan), input = plan->shape.input[last];
    int64_t before = start < 0 ? -start : 0;
    if (before > extent)
        before = extent;
    int64_t after = start + extent > input ? start + extent - input : 0;
    if (after > extent - before)
        after = extent - before;
    const int64_t inside = extent - before - after;
    fill_zero(destination, before * channels);
    destination += before * channels;
    if (inside > 0)
        copy_pixels(plan, inside, line + (start + before) * plan->shape.x_stride[last], destination);
    fill_zero(destination + inside * channels, after * channels);
}

void sb_conv_copy_strip(const sb_conv_plan *plan, const float *x, int64_t batch, int64_t group, int64_t first,
                        int64_t count, float *strip) {
    const sb_conv_shape *shape = &plan->shape;
    const int last = shape->rank - 1;
    int64_t start[SB_CONV_RANK], extent[SB_CONV_RANK], index[SB_CONV_RANK] = {0};
    int64_t lines = 1;
    for (int d = 0; d < shape->rank; d++) {
        start[d] = (d == 0 ? first * shape->stride[0] : 0) - shape->pad[d];
        extent[d] =
            d == 0 ? (count - 1) * shape->stride[0] + (shape->kernel[0] - 1) * shape->dilation[0] + 1 : plan->strip[d];
        if (d < last)
            lines *= extent[d];
    }
    x += batch * shape->x_batch_stride;
    if (plan->method == SB_CONV_STRIP)
        x += group * (shape->input_channels / shape->groups) * shape->x_channel_stride;

    const int64_t line_floats = extent[last] * sb_conv_strip_channels(plan);
    for (int64_t line = 0; line < lines; line++, strip += line_floats) {
        bool inside = true;
        int64_t offset = 0;
        for (int d = 0; d < last; d++) {
            int64_t position = start[d] + index[d];
            if (position >= 0 && position < shape->input[d])
                offset += position * shape->x_stride[d];
            else
                inside = false;
        }
        if (inside)
            copy_line(plan, x + offset, start[last], extent[last], strip);
        else
            fill_zero(strip, line_floats);
        for (int d = last - 1; d >= 0 && ++index[d] == extent[d]; d--)
            index[d] = 0;
    }
}
