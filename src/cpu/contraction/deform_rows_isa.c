/* Sums of four corners, compiled once per instruction set: lanes are channels. The definition leaves corners outside of the image out;
 * here they are zeros, which a sum that began with +0 does not notice. */
#include "base/isa.h"
#include "cpu/contraction/deform_rows.h"
#include "cpu/simd.h"

SB_VF_INLINE vf sum_of(const sb_deform_corners *corners, int64_t c, int64_t lanes, vf mask, int masked) {
    vf sum = vf_zero();
    SB_UNROLL
    for (int i = 0; i < 4; i++)
        sum = vf_add(sum, vf_mul(vf_set(corners->weights[i]), vf_load_first(corners->at[i] + c, lanes)));
    return masked ? vf_mul(sum, mask) : sum;
}

sb_deform_rows SB_ISA_NAME(sb_deform_rows);
void SB_ISA_NAME(sb_deform_rows)(int64_t count, const sb_deform_corners *corners, int64_t first, int64_t channels,
                                 int masked, float *values, int64_t stride) {
    for (int64_t i = 0; i < count; i++, corners++, values += stride) {
        const vf mask = vf_set(corners->mask);
        for (int64_t c = 0; c < channels; c += SB_VF_LANES) {
            const int64_t left = channels - c, lanes = left < SB_VF_LANES ? left : SB_VF_LANES;
            vf_store_first(values + c, sum_of(corners, first + c, lanes, mask, masked), lanes);
        }
    }
}
