/* Taps between the elements of images, compiled once per instruction set. Corners are found by plain loops, whose lanes are positions;
 * lanes of the sums are channels. The definition leaves corners outside of the image out; here they are zeros, which a sum that began
 * with +0 does not notice. */
#include "base/isa.h"
#include "cpu/contraction/deform_rows.h"
#include "cpu/simd.h"
#include "numerics/scalar.h"

/* Where taps lie in whole numbers, and how far behind that. What is not in (-1, extent), or is NaN, lies at -2, from where no corner is
 * inside. */
static void split(int64_t count, const float *restrict at, int64_t extent, int32_t *restrict whole,
                  float *restrict part) {
    const float behind = (float)extent;
    for (int64_t i = 0; i < count; i++) {
        const float inside = at[i] > -1.0f && at[i] < behind ? at[i] : -2.0f;
        const float floor = sb_floor_f32(inside);
        whole[i] = (int32_t)floor;
        part[i] = inside - floor;
    }
}

static void find(int64_t count, const sb_deform_pixels *pixels, const float *y, const float *x,
                 sb_deform_corners *corners) {
    int32_t top[SB_DEFORM_BLOCK], left[SB_DEFORM_BLOCK];
    float fy[SB_DEFORM_BLOCK], fx[SB_DEFORM_BLOCK];
    const int32_t height = (int32_t)pixels->height, width = (int32_t)pixels->width;
    const int64_t row_stride = pixels->row, column_stride = pixels->column;
    split(count, y, height, top, fy);
    split(count, x, width, left, fx);
    for (int corner = 0; corner < 4; corner++) {
        const int32_t below = corner / 2, right = corner % 2;
        float *restrict weights = corners->weights[corner];
        const float **restrict at = corners->at[corner];
        for (int64_t i = 0; i < count; i++)
            weights[i] = (below != 0 ? fy[i] : 1 - fy[i]) * (right != 0 ? fx[i] : 1 - fx[i]);
        for (int64_t i = 0; i < count; i++) {
            const int32_t row = top[i] + below, column = left[i] + right;
            /* One outside of the image along an axis has no pixel along the other either. */
            const int there = (row >= 0) & (row < height) & (column >= 0) & (column < width);
            const int64_t offset = row * row_stride + column * column_stride;
            at[i] = there ? pixels->x + offset : pixels->zeros;
        }
    }
}

SB_VF_INLINE vf sum_of(const sb_deform_corners *corners, int64_t i, int64_t c, int64_t lanes) {
    vf sum = vf_zero();
    SB_UNROLL
    for (int corner = 0; corner < 4; corner++)
        sum =
            vf_add(sum, vf_mul(vf_set(corners->weights[corner][i]), vf_load_first(corners->at[corner][i] + c, lanes)));
    return sum;
}

static void sum(int64_t count, const sb_deform_corners *corners, const float *masks, int64_t first, int64_t channels,
                float *values, int64_t stride) {
    for (int64_t i = 0; i < count; i++, values += stride) {
        for (int64_t c = 0; c < channels; c += SB_VF_LANES) {
            const int64_t left = channels - c, lanes = left < SB_VF_LANES ? left : SB_VF_LANES;
            const vf value = sum_of(corners, i, first + c, lanes);
            vf_store_first(values + c, masks != NULL ? vf_mul(value, vf_set(masks[i])) : value, lanes);
        }
    }
}

extern const sb_deform_kernels SB_ISA_NAME(sb_deform_kernels);
const sb_deform_kernels SB_ISA_NAME(sb_deform_kernels) = {find, sum};
