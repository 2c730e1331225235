/* Arithmetic on 8-bit integers that stand for numbers. For the host and for devices. */
#ifndef SB_OPS_QUANTIZED_VALUES_H
#define SB_OPS_QUANTIZED_VALUES_H

#include <samebit/dtype.h>

#include "numerics/convert.h"

/** The element for an exact sum: round(sum * multiplier) + zero_point, saturated. The sum converts
 * to f32, the product rounds once, then to an integer with ties to even. */
static SB_HD int32_t sb_quantized_rescale(sb_dtype dtype, int32_t sum, float multiplier, int32_t zero_point) {
    float scaled = sb_round_half_even_f32((float)sum * multiplier);
    /* Beyond +-2^31 every zero point saturates, so the integer sum cannot overflow. */
    int64_t value = (int64_t)sb_i32_from_f32(scaled) + zero_point;
    int64_t least = dtype == SB_S8 ? -128 : 0, most = dtype == SB_S8 ? 127 : 255;
    return (int32_t)(value < least ? least : value > most ? most : value);
}

/** Element `index` of s8 or u8 elements at `data`, and storing one that is in range. */
static SB_HD int32_t sb_quantized_load(sb_dtype dtype, const void *data, int64_t index) {
    return dtype == SB_S8 ? ((const int8_t *)data)[index] : ((const uint8_t *)data)[index];
}

static SB_HD void sb_quantized_store(void *data, int64_t index, int32_t value) {
    ((uint8_t *)data)[index] = (uint8_t)value;
}

#endif
