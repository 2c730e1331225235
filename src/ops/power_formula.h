/* Pow of two floats: x^y as numerics/power.h has it, but x x where y is 2, and where y is 3 in f32
 * the product (x x) x in f64, rounded once. */
#ifndef IV_OPS_POWER_FORMULA_H
#define IV_OPS_POWER_FORMULA_H

#include "numerics/power.h"
#include "numerics/power_f64.h"

static IV_HD_HOT float iv_power_f32(float x, float y) {
    double wide = (double)x;
    return y == 2.0f ? x * x : y == 3.0f ? (float)(wide * wide * wide) : iv_pow_f32(x, y);
}

static IV_HD_HOT double iv_power_f64(double x, double y) {
    return y == 2.0 ? x * x : iv_pow_f64(x, y);
}

#endif
