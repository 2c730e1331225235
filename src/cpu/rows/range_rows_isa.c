/* Ranges of rows and their numbers of 8 bits, compiled once per instruction set. Minima and maxima are those of the integers by which
 * sb_bits_order_f32 orders floats, lane by lane: any order gives the same. */
#include "cpu/rows/range_rows.h"

#include "numerics/minmax.h"

#define LANES 64

/* The float of an order; the outermost orders are NaN. */
static float float_of(int32_t order) {
    return sb_bits_to_f32((uint32_t)(order < 0 ? order ^ 0x7fffffff : order));
}

void SB_ISA_NAME(sb_range_row)(int64_t count, const float *x, int64_t step, float *least, float *most) {
    int32_t low[LANES], high[LANES];
    int64_t i = 0;
    for (int j = 0; j < LANES; j++) {
        low[j] = sb_bits_order_nan_low_f32(*least);
        high[j] = sb_bits_order_f32(*most);
    }
    for (; step == 1 && i + LANES <= count; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            int32_t lower = sb_bits_order_nan_low_f32(x[i + j]), higher = sb_bits_order_f32(x[i + j]);
            low[j] = lower < low[j] ? lower : low[j];
            high[j] = higher > high[j] ? higher : high[j];
        }
    }
    for (; i < count; i++) {
        int32_t lower = sb_bits_order_nan_low_f32(x[i * step]), higher = sb_bits_order_f32(x[i * step]);
        low[0] = lower < low[0] ? lower : low[0];
        high[0] = higher > high[0] ? higher : high[0];
    }
    for (int j = 0; j < LANES; j++) {
        *least = sb_min_f32(*least, float_of(low[j]));
        *most = sb_max_f32(*most, float_of(high[j]));
    }
}

/* Quotients are held within what saturates anyway. Adding and taking off 3 * 2^22 rounds to an integer, half to even. */
static inline uint8_t quantize(float x, float scale, int32_t zero) {
    float quotient = x / scale;
    quotient = quotient > 1024.0f ? 1024.0f : quotient;
    quotient = quotient < -1024.0f ? -1024.0f : quotient;
    quotient = quotient == quotient ? quotient : 0.0f;
    int32_t value = (int32_t)((quotient + 12582912.0f) - 12582912.0f) + zero;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void SB_ISA_NAME(sb_range_quantize)(int64_t count, const float *restrict x, int64_t x_step, float scale, uint8_t zero,
                                    uint8_t *restrict y, int64_t y_step) {
    if (x_step == 1 && y_step == 1) {
        for (int64_t i = 0; i < count; i++)
            y[i] = quantize(x[i], scale, zero);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        y[i * y_step] = quantize(x[i * x_step], scale, zero);
}
