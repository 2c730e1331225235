/* The kernel of RoiAlign, and its loops: one function per instruction set. */
#ifndef SB_CPU_REGIONS_ALIGN_H
#define SB_CPU_REGIONS_ALIGN_H

#include "kernel/kernel.h"
#include "ops/regions_values.h"

bool sb_align_supports(const sb_kernel_query *query, char *why);
sb_status sb_align_launch(sb_call *call);

/* One region of an f32 image. */
typedef struct sb_align_region {
    const sb_region_params *params;
    const sb_region_axis *rows, *columns;
    const float *image;                           /* element 0 of the region's image */
    int64_t channels, channel_stride, strides[2]; /* strides in elements: of channels, of rows and columns */
    double *sums;                                 /* room for as many as channels */
} sb_align_region;

/** y[c * height * width + bin] = sb_region_average of channel c and bin, rounded to f32, for all of both; not for maxima. */
typedef void sb_align_average(const sb_align_region *region, float *y);

extern sb_align_average sb_align_average_scalar;
#if SB_HAS_X86_KERNELS
extern sb_align_average sb_align_average_avx2, sb_align_average_avx512;
#endif

#endif
