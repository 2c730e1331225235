/* Sampling of points, compiled once per instruction set. Where a point lies and what its elements weigh is found once for all
 * channels, which are the lanes: each follows the definition's chain of fma.
 *
 * An element outside is read from zeros. Where the definition takes a whole tap of an outer axis for +0, the chain over
 * its elements is one of weight times +0 from +0, and weights are finite: +0 too. */
#include "cpu/sampling/sample_points.h"
#include "numerics/convert.h"

/* Of 3 axes with 4 taps each. */
#define MOST_TAPS 64
/* Channels that are computed together where their taps are any number. */
#define CHUNK 16

typedef struct point {
    sb_sample_taps along[SB_SAMPLE_MOST_AXES];
    int count;                    /* elements: the product of the axes' taps, the last axis fastest */
    const float *from[MOST_TAPS]; /* channel 0 of each; NULL outside */
} point;

static void find_point(const sb_sample_image *image, sb_dtype grid_dtype, const void *grid, int64_t number,
                       point *point) {
    const float *before[MOST_TAPS];
    point->count = 1;
    point->from[0] = image->data;
    for (int d = 0; d < image->axes; d++) {
        sb_sample_taps *taps = &point->along[d];
        double coordinate = sb_number_load(grid_dtype, grid, number * image->axes + image->axes - 1 - d);
        sb_sample_find_taps(image->params, coordinate, image->extents[d], taps);
        memcpy(before, point->from, (size_t)point->count * sizeof *before);
        for (int i = 0; i < point->count; i++) {
            for (int t = 0; t < taps->count; t++)
                point->from[i * taps->count + t] =
                    before[i] == NULL || taps->index[t] < 0 ? NULL : before[i] + taps->index[t] * image->strides[d];
        }
        point->count *= taps->count;
    }
}

static inline float rounded(double value, bool to_odd) {
    return to_odd ? sb_f32_from_f64_to_odd(value) : (float)value;
}

/* Two taps of each of two axes, channels adjacent. `to_odd` is a constant. */
static inline void sample_bilinear(const point *point, const float *zeros, int64_t channels, bool to_odd,
                                   float *restrict y) {
    const float *a = point->from[0] != NULL ? point->from[0] : zeros;
    const float *b = point->from[1] != NULL ? point->from[1] : zeros;
    const float *c = point->from[2] != NULL ? point->from[2] : zeros;
    const float *d = point->from[3] != NULL ? point->from[3] : zeros;
    const double top = point->along[0].weight[0], bottom = point->along[0].weight[1];
    const double left = point->along[1].weight[0], right = point->along[1].weight[1];
    for (int64_t i = 0; i < channels; i++) {
        double above = sb_fma_f64(right, b[i], sb_fma_f64(left, a[i], 0.0));
        double below = sb_fma_f64(right, d[i], sb_fma_f64(left, c[i], 0.0));
        y[i] = rounded(sb_fma_f64(bottom, below, sb_fma_f64(top, above, 0.0)), to_odd);
    }
}

/* Replaces the values of `point`'s elements by their sum over all axes, in values[0]. */
static void fold(const point *point, int axes, double (*values)[CHUNK]) {
    int left = point->count;
    for (int d = axes - 1; d >= 0; d--) {
        const sb_sample_taps *taps = &point->along[d];
        if (taps->count == 1)
            continue;
        left /= taps->count;
        for (int i = 0; i < left; i++) {
            double sums[CHUNK] = {0.0};
            for (int t = 0; t < taps->count; t++) {
                for (int c = 0; c < CHUNK; c++)
                    sums[c] = sb_fma_f64(taps->weight[t], values[i * taps->count + t][c], sums[c]);
            }
            memcpy(values[i], sums, sizeof sums);
        }
    }
}

static void sample_any(const sb_sample_image *image, const point *point, float *y) {
    double values[MOST_TAPS][CHUNK];
    for (int64_t first = 0; first < image->channels; first += CHUNK) {
        int taken = image->channels - first < CHUNK ? (int)(image->channels - first) : CHUNK;
        for (int t = 0; t < point->count; t++) {
            const float *from = point->from[t] != NULL ? point->from[t] + first * image->channel_stride : NULL;
            for (int c = 0; c < taken; c++)
                values[t][c] = from != NULL ? from[c * image->channel_stride] : 0.0;
            for (int c = taken; c < CHUNK; c++)
                values[t][c] = 0.0;
        }
        fold(point, image->axes, values);
        for (int c = 0; c < taken; c++)
            y[first + c] = rounded(values[0][c], image->to_odd);
    }
}

void SB_ISA_NAME(sb_sample_points)(const sb_sample_image *image, sb_dtype grid_dtype, const void *grid, int64_t first,
                                   int64_t count, float *y) {
    bool bilinear = image->axes == 2 && image->params->mode == SB_SAMPLE_LINEAR && image->channel_stride == 1;
    point point;
    for (int64_t p = 0; p < count; p++, y += image->channels) {
        find_point(image, grid_dtype, grid, first + p, &point);
        if (bilinear && image->to_odd)
            sample_bilinear(&point, image->zeros, image->channels, true, y);
        else if (bilinear)
            sample_bilinear(&point, image->zeros, image->channels, false, y);
        else
            sample_any(image, &point, y);
    }
}
