/* Regions of images: RoiAlign, MaxRoiPool and NonMaxSuppression. For the host and for devices. */
#ifndef SB_OPS_REGIONS_VALUES_H
#define SB_OPS_REGIONS_VALUES_H

#include <stdbool.h>

#include "numerics/minmax.h"
#include "ops/number.h"

typedef struct sb_region_params {
    bool half_pixel, maximum, centred;
    int64_t height, width, samples;
    float scale;
} sb_region_params;

/* [batch, channels, height, width], strides in elements. */
typedef struct sb_region_image {
    sb_dtype dtype;
    const void *data;
    int64_t dims[4], strides[4];
} sb_region_image;

/* Samples along one axis of a region: `grid` per bin, from `start`, bins of `size`. */
typedef struct sb_region_axis {
    double start, size;
    int64_t grid, extent;
} sb_region_axis;

/* A sb_region_sample between two elements. False outside of [-1, extent], where it counts as 0. */
typedef struct sb_region_sample {
    int64_t low, high;
    double weight; /* of `high` */
} sb_region_sample;

static SB_HD bool sb_region_find_sample(const sb_region_axis *axis, int64_t bin, int64_t index,
                                        sb_region_sample *found) {
    double at = axis->start + (double)bin * axis->size + ((double)index + 0.5) * axis->size / (double)axis->grid;
    if (!(at >= -1.0 && at <= (double)axis->extent))
        return false;
    at = at < 0.0 ? 0.0 : at;
    int64_t low = (int64_t)at;
    bool last = low >= axis->extent - 1;
    found->low = last ? axis->extent - 1 : low;
    found->high = last ? axis->extent - 1 : low + 1;
    found->weight = last ? 0.0 : at - (double)low;
    return true;
}

/* Bounds on the samples of a bin that lie inside, so that a region far larger than the image costs
 * no more than the image. */
static SB_HD void sb_region_sample_range(const sb_region_axis *axis, int64_t bin, int64_t *from, int64_t *to) {
    double step = axis->size / (double)axis->grid, base = axis->start + (double)bin * axis->size;
    double first = (-1.0 - base) / step - 2.0, last = ((double)axis->extent - base) / step + 2.0;
    *from = first > 0.0 ? first < (double)axis->grid ? (int64_t)first : axis->grid : 0;
    *to = last < (double)axis->grid ? last > 0.0 ? (int64_t)last : 0 : axis->grid;
}

/* Average: a chain of fma from +0 over the samples in row-major order, the four corners of each
 * from top left to bottom right, over the number of samples. Maximum: of the four weighted corners
 * of all samples. Evaluated in f64, rounded once. */
static SB_HD double sb_region_average(const sb_region_params *params, const sb_region_image *input, int64_t plane,
                                      const sb_region_axis *rows, const sb_region_axis *columns, int64_t bin_row,
                                      int64_t bin_column) {
    int64_t row_from, row_to, column_from, column_to, seen = 0;
    double sum = 0.0, largest = 0.0;
    sb_region_sample row, column;
    sb_region_sample_range(rows, bin_row, &row_from, &row_to);
    sb_region_sample_range(columns, bin_column, &column_from, &column_to);
    for (int64_t y = row_from; y < row_to; y++) {
        if (!sb_region_find_sample(rows, bin_row, y, &row))
            continue;
        for (int64_t x = column_from; x < column_to; x++) {
            if (!sb_region_find_sample(columns, bin_column, x, &column))
                continue;
            for (int corner = 0; corner < 4; corner++) {
                double weight = (corner < 2 ? 1.0 - row.weight : row.weight) *
                                (corner % 2 == 0 ? 1.0 - column.weight : column.weight);
                double value = sb_number_load(input->dtype, input->data,
                                              plane + (corner < 2 ? row.low : row.high) * input->strides[2] +
                                                  (corner % 2 == 0 ? column.low : column.high) * input->strides[3]);
                sum = sb_fma_f64(weight, value, sum);
                largest = seen == 0 ? weight * value : sb_max_f64(largest, weight * value);
                seen++;
            }
        }
    }
    double samples = (double)rows->grid * (double)columns->grid;
    if (!params->maximum)
        return sum / (samples > 1.0 ? samples : 1.0);
    return (double)seen < 4.0 * samples && seen > 0 ? sb_max_f64(largest, 0.0) : largest;
}

static SB_HD void sb_region_align_axis(const sb_region_params *params, double low, double high, int64_t bins,
                                       int64_t extent, sb_region_axis *axis) {
    double offset = params->half_pixel ? 0.5 : 0.0;
    double start = low * params->scale - offset, length = high * params->scale - offset - start;
    if (!params->half_pixel && !(length > 1.0))
        length = 1.0;
    double grid = params->samples > 0 ? (double)params->samples : sb_ceil_f64(length / (double)bins);
    /* A region that is empty, or not a number, has no samples; 2^52 of them are as good as any more. */
    bool sound = grid >= 1.0 && start == start && length == length && length < sb_infinity_f64();
    axis->start = start;
    axis->size = length / (double)bins;
    axis->extent = extent;
    axis->grid = !sound ? 0 : grid < 4503599627370496.0 ? (int64_t)grid : INT64_C(1) << 52;
}

/** The axes of region `region` of [regions, 4] packed numbers; without samples rows->grid is 0. */
static SB_HD void sb_region_align(const sb_region_params *params, const sb_region_image *input, sb_dtype dtype,
                                  const void *regions, int64_t region, sb_region_axis *rows, sb_region_axis *columns) {
    double box[4];
    for (int i = 0; i < 4; i++)
        box[i] = sb_number_load(dtype, regions, region * 4 + i);
    sb_region_align_axis(params, box[1], box[3], params->height, input->dims[2], rows);
    sb_region_align_axis(params, box[0], box[2], params->width, input->dims[3], columns);
    if (columns->grid == 0 || rows->extent == 0 || columns->extent == 0)
        rows->grid = 0;
}

/* A coordinate as an element index: scaled, rounded half away from zero, and kept within what cannot overflow. */
static SB_HD int64_t sb_region_pool_index(const sb_region_params *params, double value) {
    double scaled = value * params->scale;
    scaled = scaled < 0.0 ? -sb_floor_f64(0.5 - scaled) : sb_floor_f64(scaled + 0.5);
    return scaled > 1073741824.0 ? 1073741824 : scaled > -1073741824.0 ? (int64_t)scaled : -1073741824;
}

static SB_HD int64_t sb_region_clamp(int64_t value, int64_t extent) {
    return value < 0 ? 0 : value > extent ? extent : value;
}

/* The largest element of a bin, as the numerics contract orders them; 0 for an empty bin. */
static SB_HD double sb_region_maximum(const sb_region_params *params, const sb_region_image *input, int64_t plane,
                                      const int64_t *box, int64_t row, int64_t column) {
    int64_t height = box[3] - box[1] + 1, width = box[2] - box[0] + 1;
    height = height < 1 ? 1 : height;
    width = width < 1 ? 1 : width;
    int64_t top = sb_region_clamp(box[1] + row * height / params->height, input->dims[2]);
    int64_t bottom =
        sb_region_clamp(box[1] + ((row + 1) * height + params->height - 1) / params->height, input->dims[2]);
    int64_t left = sb_region_clamp(box[0] + column * width / params->width, input->dims[3]);
    int64_t right =
        sb_region_clamp(box[0] + ((column + 1) * width + params->width - 1) / params->width, input->dims[3]);
    double largest = 0.0;
    for (int64_t y = top; y < bottom; y++) {
        for (int64_t x = left; x < right; x++) {
            double value =
                sb_number_load(input->dtype, input->data, plane + y * input->strides[2] + x * input->strides[3]);
            largest = y == top && x == left ? value : sb_max_f64(largest, value);
        }
    }
    return largest;
}

/* ---- NonMaxSuppression ---- */

typedef struct sb_region_corners {
    float top, left, bottom, right;
} sb_region_corners;

static SB_HD sb_region_corners sb_region_box_corners(const float *box, bool centred) {
    sb_region_corners corners;
    if (centred) {
        float half_width = box[2] / 2.0f, half_height = box[3] / 2.0f;
        corners.top = box[1] - half_height;
        corners.left = box[0] - half_width;
        corners.bottom = box[1] + half_height;
        corners.right = box[0] + half_width;
        return corners;
    }
    corners.top = sb_min_f32(box[0], box[2]);
    corners.left = sb_min_f32(box[1], box[3]);
    corners.bottom = sb_max_f32(box[0], box[2]);
    corners.right = sb_max_f32(box[1], box[3]);
    return corners;
}

/* Whether two boxes overlap by more than the threshold: intersection over union, each operation
 * rounded to f32. */
static SB_HD bool sb_region_overlaps(sb_region_corners first, sb_region_corners second, float threshold) {
    float width = sb_min_f32(first.right, second.right) - sb_max_f32(first.left, second.left);
    float height = sb_min_f32(first.bottom, second.bottom) - sb_max_f32(first.top, second.top);
    if (!(width > 0.0f && height > 0.0f))
        return false;
    float both = width * height;
    float one = (first.right - first.left) * (first.bottom - first.top);
    float other = (second.right - second.left) * (second.bottom - second.top);
    float either = one + other - both;
    return one > 0.0f && other > 0.0f && either > 0.0f && both / either > threshold;
}

#endif
