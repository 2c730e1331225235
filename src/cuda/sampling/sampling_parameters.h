/* The structs that the kernels of sampling.cu take. Outputs, grids and regions lie packed. */
#ifndef SB_CUDA_SAMPLING_SAMPLING_PARAMETERS_H
#define SB_CUDA_SAMPLING_SAMPLING_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/regions_values.h"
#include "ops/sampling_values.h"

/* GridSample: [batch, channels, points] of the source at grid [batch, points, axes]. */
typedef struct sb_cuda_grid_sample {
    int64_t elements, points, channels;
    sb_sample_params params;
    sb_sample_source source;
    int64_t extents[SB_SAMPLE_AXES];
    int64_t batch_stride, channel_stride; /* of the source, in elements */
    sb_dtype grid_dtype;
    const void *grid;
    void *out;
} sb_cuda_grid_sample;

/* AffineGrid: [batch, points…, axes] of theta [batch, axes, axes + 1]. */
typedef struct sb_cuda_affine_grid {
    int64_t elements;
    int32_t axes, align_corners;
    int64_t extents[3];
    sb_dtype dtype;
    const void *theta;
    void *out;
} sb_cuda_affine_grid;

/* RoiAlign and MaxRoiPool: [regions, channels, height, width]. */
typedef struct sb_cuda_regions {
    int64_t elements, channels;
    sb_region_params params;
    sb_region_image image;
    sb_dtype dtype; /* of the regions */
    int32_t wide;   /* batch indices are s64 */
    const void *regions;
    const void *batches; /* RoiAlign */
    uint32_t *fault;
    void *out;
} sb_cuda_regions;

#endif
