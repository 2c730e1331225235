/* Values of an image of f32 between its elements, for GridSample: one function per instruction set. */
#ifndef SB_CPU_SAMPLING_SAMPLE_POINTS_H
#define SB_CPU_SAMPLING_SAMPLE_POINTS_H

#include <stdint.h>

#include "base/isa.h"
#include "ops/sampling_values.h"

/* Spatial axes that there is a kernel for. */
#define SB_SAMPLE_MOST_AXES 3

/* One image or volume of a batch. Strides in elements. */
typedef struct sb_sample_image {
    const sb_sample_params *params;
    int axes;
    int64_t extents[SB_SAMPLE_MOST_AXES], strides[SB_SAMPLE_MOST_AXES];
    int64_t channels, channel_stride;
    const float *data;
    const float *zeros; /* as many as channels: what lies outside */
    bool to_odd;        /* values are rounded to odd, for one more rounding to 16 bits: as if it were the only one */
} sb_sample_image;

/** The points `first` to `first` + `count` - 1 of a gapless grid, which names the last axis first: y[p * channels + c] is channel c
 * at the p-th of them, by the steps of sb_sample_interpolate, rounded to f32 as the image says. Pure. */
typedef void sb_sample_points(const sb_sample_image *image, sb_dtype grid_dtype, const void *grid, int64_t first,
                              int64_t count, float *y);

extern sb_sample_points sb_sample_points_scalar;
#if SB_HAS_X86_KERNELS
extern sb_sample_points sb_sample_points_avx2, sb_sample_points_avx512;
#endif

#endif
