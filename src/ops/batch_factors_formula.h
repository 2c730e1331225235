/* The factors of batch normalisation, for the host and for devices: y = fma(x, a, b) with
 * a = scale / sqrt(variance + epsilon) and b = bias - mean a, where every operation rounds once. */
#ifndef SB_OPS_BATCH_FACTORS_FORMULA_H
#define SB_OPS_BATCH_FACTORS_FORMULA_H

#include "numerics/scalar.h"

static SB_HD_HOT void sb_batch_normalization_factors(float scale, float bias, float mean, float variance, float epsilon,
                                                     float *a, float *b) {
    *a = sb_div_f32(scale, sb_sqrt_f32(variance + epsilon));
    *b = bias - mean * *a;
}

static SB_HD_HOT void sb_batch_normalization_factors_f64(double scale, double bias, double mean, double variance,
                                                         double epsilon, double *a, double *b) {
    *a = sb_div_f64(scale, sb_sqrt_f64(variance + epsilon));
    *b = bias - mean * *a;
}

#endif
