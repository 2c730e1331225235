/* Sampling between the elements of images: GridSample and AffineGrid. For the host and for devices. */
#ifndef SB_OPS_SAMPLING_VALUES_H
#define SB_OPS_SAMPLING_VALUES_H

#include <stdbool.h>

#include "ops/number.h"

/* As many as a tensor can have behind batch and channels. */
#define SB_SAMPLE_AXES 10

typedef enum sb_sample_mode { SB_SAMPLE_NEAREST, SB_SAMPLE_LINEAR, SB_SAMPLE_CUBIC } sb_sample_mode;

typedef enum sb_sample_padding {
    SB_SAMPLE_PAD_ZEROS,
    SB_SAMPLE_PAD_BORDER,
    SB_SAMPLE_PAD_REFLECTION
} sb_sample_padding;

typedef struct sb_sample_params {
    sb_sample_mode mode;
    sb_sample_padding padding;
    bool align_corners;
} sb_sample_params;

/* Mirrors x at both borders until it lies between them. */
static SB_HD double sb_sample_reflect(double x, double low, double high) {
    double range = high - low;
    if (x >= low && x <= high)
        return x;
    if (range <= 0.0)
        return low;
    double beyond = x < low ? low - x : x - high;
    int64_t times = (int64_t)(beyond / range);
    double rest = beyond - (double)times * range;
    bool from_low = (x < low) == (times % 2 == 0);
    return from_low ? low + rest : high - rest;
}

/* Along one spatial axis: the elements that a coordinate needs (-1: a zero) and their weights. */
typedef struct sb_sample_taps {
    int count;
    int64_t index[4];
    double weight[4];
} sb_sample_taps;

static SB_HD int64_t sb_sample_place(const sb_sample_params *params, int64_t index, int64_t extent) {
    if (index >= 0 && index < extent)
        return index;
    if (params->padding == SB_SAMPLE_PAD_ZEROS)
        return -1;
    if (params->padding == SB_SAMPLE_PAD_BORDER)
        return index < 0 ? 0 : extent - 1;
    double low = params->align_corners ? 0.0 : -0.5;
    int64_t mirrored = (int64_t)sb_sample_reflect((double)index, low, (double)(extent - 1) - low);
    return mirrored < 0 ? 0 : mirrored >= extent ? extent - 1 : mirrored;
}

static SB_HD double sb_sample_cubic_weight(double x) {
    const double a = -0.75;
    x = x < 0.0 ? -x : x;
    if (x <= 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
}

/* From [-1, 1] to elements: -1 and 1 are the centres of the outer elements with align_corners, else
 * their outer edges. Coordinates beyond 2^30 count as 2^30, NaN as -2^30. */
static SB_HD void sb_sample_find_taps(const sb_sample_params *params, double n, int64_t extent, sb_sample_taps *taps) {
    double length = (double)extent, low = params->align_corners ? 0.0 : -0.5, high = length - 1.0 - low;
    double x = params->align_corners ? (n + 1.0) / 2.0 * (length - 1.0) : ((n + 1.0) * length - 1.0) / 2.0;
    x = x > 1073741824.0 ? 1073741824.0 : x > -1073741824.0 ? x : -1073741824.0;
    if (params->mode == SB_SAMPLE_NEAREST)
        x = sb_round_half_even_f64(x);
    if ((x < low || x > high) && params->padding == SB_SAMPLE_PAD_BORDER)
        x = x < 0.0 ? 0.0 : x > length - 1.0 ? length - 1.0 : x;
    else if (params->padding == SB_SAMPLE_PAD_REFLECTION)
        x = sb_sample_reflect(x, low, high);
    if (params->mode == SB_SAMPLE_NEAREST) {
        taps->count = 1;
        taps->index[0] = sb_sample_place(params, (int64_t)x, extent);
        taps->weight[0] = 1.0;
        return;
    }
    double base = sb_floor_f64(x), ratio = x - base;
    bool cubic = params->mode == SB_SAMPLE_CUBIC;
    taps->count = cubic ? 4 : 2;
    for (int t = 0; t < taps->count; t++) {
        int64_t offset = cubic ? t - 1 : t;
        taps->index[t] = sb_sample_place(params, (int64_t)base + offset, extent);
        taps->weight[t] = cubic ? sb_sample_cubic_weight((double)offset - ratio) : t == 0 ? 1.0 - ratio : ratio;
    }
}

/* An image or volume: strides in elements, of the spatial axes only. */
typedef struct sb_sample_source {
    sb_dtype dtype;
    int axes;
    const void *data;
    int64_t strides[SB_SAMPLE_AXES];
} sb_sample_source;

/** The value at element `offset` of the source, moved along the axes as their taps say: the sum of
 * weight times (the same along the axes that follow), a chain of fma from +0 over the taps of each
 * axis. A single tap only moves. */
static SB_HD double sb_sample_interpolate(const sb_sample_source *source, const sb_sample_taps *taps, int64_t offset) {
    double sums[SB_SAMPLE_AXES + 1];
    int64_t offsets[SB_SAMPLE_AXES + 1];
    int at[SB_SAMPLE_AXES + 1], axis = 0, last = source->axes - 1;
    offsets[0] = offset;
    sums[0] = 0.0;
    at[0] = 0;
    /* Goes down an axis for each tap, and up when an axis has no tap left. */
    for (;;) {
        double value = 0.0;
        const sb_sample_taps *here = &taps[axis];
        if (at[axis] == here->count) {
            value = sums[axis];
            if (axis == 0)
                return value;
            here = &taps[--axis];
        } else if (here->index[at[axis]] >= 0) {
            int64_t next = offsets[axis] + here->index[at[axis]] * source->strides[axis];
            if (axis < last) {
                axis++;
                offsets[axis] = next;
                sums[axis] = 0.0;
                at[axis] = 0;
                continue;
            }
            value = sb_number_load(source->dtype, source->data, next);
        }
        sums[axis] = here->count == 1 ? value : sb_fma_f64(here->weight[at[axis]], value, sums[axis]);
        at[axis]++;
    }
}

/* Element i of n between -1 and 1; a single one is 0. */
static SB_HD double sb_sample_grid_coordinate(bool align, int64_t i, int64_t n) {
    if (align)
        return n == 1 ? 0.0 : 2.0 * (double)i / (double)(n - 1) - 1.0;
    return (2.0 * (double)i + 1.0) / (double)n - 1.0;
}

#endif
