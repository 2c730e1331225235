/* Images between their elements, as DeformConv sees them. For the host and for devices. */
#ifndef SB_OPS_DEFORM_VALUES_H
#define SB_OPS_DEFORM_VALUES_H

#include "ops/real.h"

/* One channel; element 0 is at `offset`, which counts in elements as strides do. */
typedef struct sb_deform_image {
    sb_dtype dtype;
    const void *data;
    int64_t offset, height, width, row_stride, column_stride;
} sb_deform_image;

#define SB_DEFORM_LOAD_f32(image, index) sb_real_load_f32((image)->dtype, (image)->data, index)
#define SB_DEFORM_LOAD_f64(image, index) (((const double *)(image)->data)[index])

/** The image at (py, px): sb_deform_sample_f32 for f16, bf16 and f32, sb_deform_sample_f64 for f64. */
#define SB_DEFORM_SAMPLE(suffix, type)                                                                                 \
    static SB_HD type sb_deform_sample_##suffix(const sb_deform_image *image, type py, type px) {                      \
        if (!(py > (type)-1 && py < (type)image->height && px > (type)-1 && px < (type)image->width))                  \
            return (type)0;                                                                                            \
        type top = sb_floor_##suffix(py), left = sb_floor_##suffix(px), sum = (type)0;                                 \
        type fy = py - top, fx = px - left;                                                                            \
        for (int corner = 0; corner < 4; corner++) {                                                                   \
            int64_t y = (int64_t)top + corner / 2, x = (int64_t)left + corner % 2;                                     \
            if (y < 0 || y >= image->height || x < 0 || x >= image->width)                                             \
                continue;                                                                                              \
            type weight = (corner / 2 != 0 ? fy : 1 - fy) * (corner % 2 != 0 ? fx : 1 - fx);                           \
            sum = sum + weight * SB_DEFORM_LOAD_##suffix(image, image->offset + y * image->row_stride +                \
                                                                    x * image->column_stride);                         \
        }                                                                                                              \
        return sum;                                                                                                    \
    }

SB_DEFORM_SAMPLE(f32, float)
SB_DEFORM_SAMPLE(f64, double)

#endif
