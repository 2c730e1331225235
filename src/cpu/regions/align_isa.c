/* Averages of a region's bins, compiled once per instruction set. Where samples lie and what their corners weigh is found once for all
 * channels, which are the lanes: each follows the definition's chain of fma. Corners are collected, so that sums stay in registers. */
#include "cpu/regions/align.h"

#define MOST_CORNERS 64
/* Channels whose sums are in registers at once. */
#define CHUNK 32

typedef struct corners {
    int count;
    const float *from[MOST_CORNERS];
    double weight[MOST_CORNERS];
} corners;

/* `step` between channels and, for whole chunks, `count` are constants. */
static inline void add_chunk(const corners *all, int64_t first, int64_t count, int64_t step, double *sums) {
    double sum[CHUNK];
    for (int64_t c = 0; c < count; c++)
        sum[c] = sums[first + c];
    for (int t = 0; t < all->count; t++) {
        const float *from = all->from[t] + first * step;
        const double weight = all->weight[t];
        for (int64_t c = 0; c < count; c++)
            sum[c] = sb_fma_f64(weight, (double)from[c * step], sum[c]);
    }
    for (int64_t c = 0; c < count; c++)
        sums[first + c] = sum[c];
}

static void add_corners(const sb_align_region *region, corners *all) {
    const int64_t channels = region->channels, step = region->channel_stride;
    int64_t first = 0;
    if (step == 1) {
        for (; first + CHUNK <= channels; first += CHUNK)
            add_chunk(all, first, CHUNK, 1, region->sums);
        if (first < channels)
            add_chunk(all, first, channels - first, 1, region->sums);
    } else {
        for (; first < channels; first += CHUNK)
            add_chunk(all, first, channels - first < CHUNK ? channels - first : CHUNK, step, region->sums);
    }
    all->count = 0;
}

/* In the definition's order: from top left to bottom right. */
static void collect_sample(const sb_align_region *region, const sb_region_sample *row, const sb_region_sample *column,
                           corners *all) {
    for (int corner = 0; corner < 4; corner++) {
        all->weight[all->count] =
            (corner < 2 ? 1.0 - row->weight : row->weight) * (corner % 2 == 0 ? 1.0 - column->weight : column->weight);
        all->from[all->count++] = region->image + (corner < 2 ? row->low : row->high) * region->strides[0] +
                                  (corner % 2 == 0 ? column->low : column->high) * region->strides[1];
    }
    if (all->count == MOST_CORNERS)
        add_corners(region, all);
}

static void sum_bin(const sb_align_region *region, int64_t bin_row, int64_t bin_column, corners *all) {
    int64_t row_from, row_to, column_from, column_to;
    sb_region_sample row, column;
    sb_region_sample_range(region->rows, bin_row, &row_from, &row_to);
    sb_region_sample_range(region->columns, bin_column, &column_from, &column_to);
    for (int64_t y = row_from; y < row_to; y++) {
        if (!sb_region_find_sample(region->rows, bin_row, y, &row))
            continue;
        for (int64_t x = column_from; x < column_to; x++) {
            if (sb_region_find_sample(region->columns, bin_column, x, &column))
                collect_sample(region, &row, &column, all);
        }
    }
    if (all->count != 0)
        add_corners(region, all);
}

void SB_ISA_NAME(sb_align_average)(const sb_align_region *region, float *y) {
    const int64_t height = region->params->height, width = region->params->width;
    double samples = (double)region->rows->grid * (double)region->columns->grid;
    samples = samples > 1.0 ? samples : 1.0;
    corners all = {.count = 0};
    for (int64_t bin = 0; bin < height * width; bin++) {
        for (int64_t c = 0; c < region->channels; c++)
            region->sums[c] = 0.0;
        sum_bin(region, bin / width, bin % width, &all);
        for (int64_t c = 0; c < region->channels; c++)
            y[c * height * width + bin] = (float)(region->sums[c] / samples);
    }
}
