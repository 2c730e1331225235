/* The structs that the kernels of sampling.cu take. Outputs, grids and regions lie packed. */
#ifndef IV_CUDA_KERNELS_SAMPLING_PARAMETERS_H
#define IV_CUDA_KERNELS_SAMPLING_PARAMETERS_H

#include "cuda/kernels/parameters.h"
#include "ops/regions_values.h"
#include "ops/sampling_values.h"

/* GridSample: [batch, channels, points] of the source at grid [batch, points, axes]. */
typedef struct iv_cuda_grid_sample {
    int64_t elements, points, channels;
    iv_sample_params params;
    iv_sample_source source;
    int64_t extents[IV_SAMPLE_AXES];
    int64_t batch_stride, channel_stride; /* of the source, in elements */
    iv_dtype grid_dtype;
    const void *grid;
    void *out;
} iv_cuda_grid_sample;

/* AffineGrid: [batch, points…, axes] of theta [batch, axes, axes + 1]. */
typedef struct iv_cuda_affine_grid {
    int64_t elements;
    int32_t axes, align_corners;
    int64_t extents[3];
    iv_dtype dtype;
    const void *theta;
    void *out;
} iv_cuda_affine_grid;

/* RoiAlign and MaxRoiPool: [regions, channels, height, width]. */
typedef struct iv_cuda_regions {
    int64_t elements, channels;
    iv_region_params params;
    iv_region_image image;
    iv_dtype dtype; /* of the regions */
    int32_t wide;   /* batch indices are s64 */
    const void *regions;
    const void *batches; /* RoiAlign */
    uint32_t *fault;
    void *out;
} iv_cuda_regions;

#endif
