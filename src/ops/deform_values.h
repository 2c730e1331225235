/* Images between their elements, as DeformConv sees them. For the host and for devices. */
#ifndef IV_OPS_DEFORM_VALUES_H
#define IV_OPS_DEFORM_VALUES_H

#include "ops/real.h"

/* One channel; element 0 is at `offset`, which counts in elements as strides do. */
typedef struct iv_deform_image {
    iv_dtype dtype;
    const void *data;
    int64_t offset, height, width, row_stride, column_stride;
} iv_deform_image;

#define IV_DEFORM_LOAD_f32(image, index) iv_real_load_f32((image)->dtype, (image)->data, index)
#define IV_DEFORM_LOAD_f64(image, index) (((const double *)(image)->data)[index])

/** The image at (py, px): iv_deform_sample_f32 for f16, bf16 and f32, iv_deform_sample_f64 for f64.
 */
#define IV_DEFORM_SAMPLE(suffix, type)                                                             \
    static IV_HD type iv_deform_sample_##suffix(const iv_deform_image *image, type py, type px) {  \
        if (!(py > (type)-1 && py < (type)image->height && px > (type)-1 &&                        \
              px < (type)image->width))                                                            \
            return (type)0;                                                                        \
        type top = iv_floor_##suffix(py), left = iv_floor_##suffix(px), sum = (type)0;             \
        type fy = py - top, fx = px - left;                                                        \
        for (int corner = 0; corner < 4; corner++) {                                               \
            int64_t y = (int64_t)top + corner / 2, x = (int64_t)left + corner % 2;                 \
            if (y < 0 || y >= image->height || x < 0 || x >= image->width)                         \
                continue;                                                                          \
            type weight = (corner / 2 != 0 ? fy : 1 - fy) * (corner % 2 != 0 ? fx : 1 - fx);       \
            sum = sum +                                                                            \
                  weight * IV_DEFORM_LOAD_##suffix(image, image->offset + y * image->row_stride +  \
                                                              x * image->column_stride);           \
        }                                                                                          \
        return sum;                                                                                \
    }

IV_DEFORM_SAMPLE(f32, float)
IV_DEFORM_SAMPLE(f64, double)

#endif
