/* e^x of numbers that are not positive, as softmax has them: the bits of sb_exp_f32 in fewer instructions. The test
 * numerics_exp_nonpositive looks at all floats. */
#ifndef SB_NUMERICS_EXP_NONPOSITIVE_H
#define SB_NUMERICS_EXP_NONPOSITIVE_H

#include "exp_log.h"

/* Below this e^x rounds to zero, which is what it gives here. */
#define SB_EXP_LEAST_F32 -105.0f

/* e^x for SB_EXP_LEAST_F32 <= x <= 0, or NaN. The integer nearest to x / ln 2 is added to one whose low bits are the exponent of
 * 2^65, so that shifting it gives 2^(integer + 65) at once; a product with that is exact, and the one with 2^-65 rounds. */
static SB_HD_HOT float sb_exp_nonpositive_f32(float x) {
    const float shift = SB_ROUNDING_SHIFT_F32 + 192.0f;
    const float shifted = sb_fma_f32(x, SB_LOG2_E_F32, shift);
    const float count = shifted - shift;
    sb_exp_reduced_f32 reduced;
    reduced.high = sb_fma_f32(count, -SB_LN2_HIGH_F32, x);
    reduced.low = count * -SB_LN2_LOW_F32;
    float r = reduced.high;
    float p = 0x1.671126p-10f;
    p = sb_fma_f32(p, r, 0x1.123be2p-7f);
    p = sb_fma_f32(p, r, 0x1.555ddep-5f);
    p = sb_fma_f32(p, r, 0x1.55548ep-3f);
    p = sb_fma_f32(p, r, 0x1.fffff4p-2f);
    float rest = sb_fma_f32(r, sb_fma_f32(p, r, reduced.low), reduced.low);
    sb_pair_f32 sum = sb_ordered_sum_f32(1.0f, r);
    return (sum.high + (sum.low + rest)) * sb_bits_to_f32(sb_bits_from_f32(shifted) << 23) * 0x1p-65f;
}

#endif
