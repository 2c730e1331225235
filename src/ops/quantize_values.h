/* The arithmetic of quantization, for the host and for devices. */
#ifndef SB_OPS_QUANTIZE_VALUES_H
#define SB_OPS_QUANTIZE_VALUES_H

#include "numerics/convert.h"

/* clamp(round(x / scale) + zero), the sum exact; NaN counts as 0 before it. */
static SB_HD_HOT int64_t sb_quantize_value(float x, float scale, int64_t zero, int64_t least, int64_t most) {
    int64_t value = sb_i32_from_f32(sb_round_half_even_f32(sb_div_f32(x, scale)));
    value += zero;
    return value < least ? least : value > most ? most : value;
}

/* (f32)(x - zero) scale, the difference exact. */
static SB_HD_HOT float sb_dequantize_value(int64_t x, float scale, int64_t zero) {
    return (float)(x - zero) * scale;
}

/* What u8 numbers stand for, so that they cover [least, most], to which 0 belongs. */
static SB_HD_HOT void sb_quantize_range(float least, float most, float *scale, uint8_t *zero) {
    *scale = sb_div_f32(most - least, 255.0f);
    *zero = sb_u8_from_f32(sb_round_half_even_f32(0.0f - sb_div_f32(least, *scale)));
}

#endif
