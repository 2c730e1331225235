/* The arithmetic of quantization, for the host and for devices. */
#ifndef SB_OPS_QUANTIZE_VALUES_H
#define SB_OPS_QUANTIZE_VALUES_H

#include <samebit/dtype.h>

#include "numerics/small.h"

/* `value` as an element of f32, f16 or bf16 has it. */
static SB_HD_HOT float sb_quantize_round(sb_dtype dtype, float value) {
    return dtype == SB_F16    ? sb_f16_to_f32(sb_f16_from_f32(value))
           : dtype == SB_BF16 ? sb_bf16_to_f32(sb_bf16_from_f32(value))
                              : value;
}

/* x / scale. In a precision of 16 bits, both and the quotient are rounded to it. */
static SB_HD_HOT float sb_quantize_quotient(float x, float scale, sb_dtype precision) {
    return sb_quantize_round(precision,
                             sb_div_f32(sb_quantize_round(precision, x), sb_quantize_round(precision, scale)));
}

/* clamp(round(quotient) + zero), the sum exact; NaN counts as 0 before it. */
static SB_HD_HOT int64_t sb_quantize_value(float quotient, int64_t zero, int64_t least, int64_t most) {
    int64_t value = sb_i32_from_f32(sb_round_half_even_f32(quotient));
    value += zero;
    return value < least ? least : value > most ? most : value;
}

/* (f32)(x - zero) scale, the difference exact. */
static SB_HD_HOT float sb_dequantize_value(int64_t x, float scale, int64_t zero) {
    return (float)(x - zero) * scale;
}

/* The same for small floats, the difference rounded to f32. */
static SB_HD_HOT float sb_dequantize_float(float x, float scale, float zero) {
    return (x - zero) * scale;
}

/* What u8 numbers stand for, so that they cover [least, most], to which 0 belongs. */
static SB_HD_HOT void sb_quantize_range(float least, float most, float *scale, uint8_t *zero) {
    *scale = sb_div_f32(most - least, 255.0f);
    *zero = sb_u8_from_f32(sb_round_half_even_f32(0.0f - sb_div_f32(least, *scale)));
}

#endif
