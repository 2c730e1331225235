/* Pow of two floats: x^y as numerics/power.h has it, but x x where y is 2, and where y is 3 in f32
 * the product (x x) x in f64, rounded once. */
#ifndef SB_OPS_POWER_FORMULA_H
#define SB_OPS_POWER_FORMULA_H

#include "numerics/power.h"
#include "numerics/power_f64.h"

static SB_HD_HOT float sb_cube_f32(float x) {
    double wide = (double)x;
    return (float)(wide * wide * wide);
}

static SB_HD_HOT float sb_power_f32(float x, float y) {
    return y == 2.0f ? x * x : y == 3.0f ? sb_cube_f32(x) : sb_pow_f32(x, y);
}

static SB_HD_HOT double sb_power_f64(double x, double y) {
    return y == 2.0 ? x * x : sb_pow_f64(x, y);
}

/* For arguments that are common in this sense sb_power_f32 needs no branch: x is finite and either positive or +0 below a
 * positive y; or y is 2 or 3. */
static SB_HD_HOT int sb_power_is_common(float x, float y) {
    int is_product = y == 2.0f || y == 3.0f;
    int is_positive = sb_bits_from_f32(x) - 1u < 0x7f7fffffu;
    int is_finite = sb_abs_f32(y) < sb_infinity_f32();
    return is_product | (is_positive & is_finite) | ((sb_bits_from_f32(x) == 0) & (y > 0.0f) & is_finite);
}

static SB_HD_HOT float sb_power_common_f32(float x, float y) {
    float power = x == 0.0f ? 0.0f : sb_pow_of_magnitude_f32(x, y);
    power = y == 3.0f ? sb_cube_f32(x) : power;
    return y == 2.0f ? x * x : power;
}

/* x^y modulo 2^64 by squaring. A negative exponent gives 1 / x^-y truncated toward zero: 0 except
 * for x = 1 and x = -1; for x = 0 it is a division by zero, for which *fault is set to `kind`. An
 * exponent that came as u64 is not `is_signed`, and never negative. */
static SB_HD_HOT int64_t sb_power_s64(int64_t x, int64_t y, int is_signed, uint32_t *fault, uint32_t kind) {
    uint64_t left = (uint64_t)y, result = 1, factor = (uint64_t)x;
    if (y < 0 && is_signed) {
        if (x == 0)
            *fault = kind;
        return x == 1 ? 1 : x == -1 ? ((left & 1) != 0 ? -1 : 1) : 0;
    }
    for (; left != 0; left >>= 1) {
        if ((left & 1) != 0)
            result *= factor;
        factor *= factor;
    }
    return (int64_t)result;
}

#endif
