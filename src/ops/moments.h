/* Mean and variance of one packed row, the arithmetic behind the normalisations.
 *
 *     mean = sum / (float)n        d_i = x_i - mean        variance = (sum of d_i^2) / (float)n
 *
 * with both sums in the order of numerics/reduce.h; every operation rounds once. */
#ifndef SB_OPS_MOMENTS_H
#define SB_OPS_MOMENTS_H

#include "numerics/reduce.h"

/* sb_centre_row_f32 and _f64: replaces x_i by d_i and returns the variance; the mean goes to *mean. */
#define SB_DEFINE_MOMENTS(type, suffix)                                                                                \
    static inline type sb_centre_row_##suffix(type *values, int64_t count, type *mean) {                               \
        *mean = sb_mean_##suffix(values, 1, count);                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = values[i] - *mean;                                                                             \
        return sb_div_##suffix(sb_sum_of_squares_##suffix(values, 1, count), (type)count);                             \
    }
SB_DEFINE_MOMENTS(float, f32)
SB_DEFINE_MOMENTS(double, f64)

#endif
