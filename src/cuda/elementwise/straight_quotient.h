/* Division by a number that is known ahead, for the host's tests and for devices. */
#ifndef SB_CUDA_ELEMENTWISE_STRAIGHT_QUOTIENT_H
#define SB_CUDA_ELEMENTWISE_STRAIGHT_QUOTIENT_H

#include "numerics/scalar.h"

/* x / y in f32, rounded once, where both are values of f16 and r is 1 / y, rounded to f32. With the rest of the first
 * quotient the second one is the nearest for all pairs of significands (tests/cuda/test_straight.c), and exponents of f16
 * stay away from the ends of f32. Where the rest is 0, or no number since x or y are infinite or y is 0, the first quotient
 * is right. */
static SB_HD_HOT float sb_cuda_quotient_f16(float x, float y, float r) {
    const float quotient = x * r;
    const float rest = sb_fma_f32(-quotient, y, x);
    return sb_abs_f32(rest) > 0 ? sb_fma_f32(rest, r, quotient) : quotient;
}

#endif
