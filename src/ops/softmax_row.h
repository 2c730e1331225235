/* Softmax and LogSoftmax of one packed row, in place.
 *
 *     m = max x        e_i = exp(x_i - m)        s = sum of e_i in the order of numerics/reduce.h
 *     Softmax: e_i / s        LogSoftmax: (x_i - m) - log s
 *
 * Every operation rounds once. */
#ifndef SB_OPS_SOFTMAX_ROW_H
#define SB_OPS_SOFTMAX_ROW_H

#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "numerics/reduce.h"

#define SB_DEFINE_SOFTMAX(type, suffix)                                                                                \
    static inline type sb_row_maximum_##suffix(const type *values, int64_t count) {                                    \
        type highest = -sb_infinity_##suffix();                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            highest = sb_max_##suffix(highest, values[i]);                                                             \
        return highest;                                                                                                \
    }                                                                                                                  \
    static inline void sb_softmax_row_##suffix(type *values, int64_t count) {                                          \
        type highest = sb_row_maximum_##suffix(values, count);                                                         \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = sb_exp_##suffix(values[i] - highest);                                                          \
        type sum = sb_sum_##suffix(values, 1, count);                                                                  \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = sb_div_##suffix(values[i], sum);                                                               \
    }                                                                                                                  \
    static inline type sb_exponential_##suffix(const type *shifted, int64_t index) {                                   \
        return sb_exp_##suffix(shifted[index]);                                                                        \
    }                                                                                                                  \
    SB_SUM_OF_EXPONENTIALS_##suffix static inline void sb_log_softmax_row_##suffix(type *values, int64_t count) {      \
        type highest = sb_row_maximum_##suffix(values, count);                                                         \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = values[i] - highest;                                                                           \
        type log_sum = sb_log_##suffix(sb_sum_of_exponentials_##suffix(values, count));                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            values[i] = values[i] - log_sum;                                                                           \
    }
#define SB_SUM_OF_EXPONENTIALS_f32 SB_DEFINE_SUM_F32(sb_sum_of_exponentials_f32, const float *, sb_exponential_f32)
#define SB_SUM_OF_EXPONENTIALS_f64 SB_DEFINE_SUM_F64(sb_sum_of_exponentials_f64, const double *, sb_exponential_f64)

SB_DEFINE_SOFTMAX(float, f32)
SB_DEFINE_SOFTMAX(double, f64)

#endif
