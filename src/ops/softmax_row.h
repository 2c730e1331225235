/* Softmax and LogSoftmax of one packed row, in place.
 *
 *     m = max x        e_i = exp(x_i - m)        s = sum of e_i in the order of numerics/reduce.h
 *     Softmax: e_i / s        LogSoftmax: (x_i - m) - log s
 *
 * Every operation rounds once. */
#ifndef IV_OPS_SOFTMAX_ROW_H
#define IV_OPS_SOFTMAX_ROW_H

#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "numerics/reduce.h"

#define IV_DEFINE_SOFTMAX(type, suffix)                                                            \
    static inline type iv_row_maximum_##suffix(const type *values, int64_t count) {                \
        type highest = -iv_infinity_##suffix();                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            highest = iv_max_##suffix(highest, values[i]);                                         \
        return highest;                                                                            \
    }                                                                                              \
    static inline void iv_softmax_row_##suffix(type *values, int64_t count) {                      \
        type highest = iv_row_maximum_##suffix(values, count);                                     \
        for (int64_t i = 0; i < count; i++)                                                        \
            values[i] = iv_exp_##suffix(values[i] - highest);                                      \
        type sum = iv_sum_##suffix(values, 1, count);                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            values[i] = iv_div_##suffix(values[i], sum);                                           \
    }                                                                                              \
    static inline type iv_exponential_##suffix(const type *shifted, int64_t index) {               \
        return iv_exp_##suffix(shifted[index]);                                                    \
    }                                                                                              \
    IV_SUM_OF_EXPONENTIALS_##suffix static inline void iv_log_softmax_row_##suffix(                \
        type *values, int64_t count) {                                                             \
        type highest = iv_row_maximum_##suffix(values, count);                                     \
        for (int64_t i = 0; i < count; i++)                                                        \
            values[i] = values[i] - highest;                                                       \
        type log_sum = iv_log_##suffix(iv_sum_of_exponentials_##suffix(values, count));            \
        for (int64_t i = 0; i < count; i++)                                                        \
            values[i] = values[i] - log_sum;                                                       \
    }
#define IV_SUM_OF_EXPONENTIALS_f32                                                                 \
    IV_DEFINE_SUM_F32(iv_sum_of_exponentials_f32, const float *, iv_exponential_f32)
#define IV_SUM_OF_EXPONENTIALS_f64                                                                 \
    IV_DEFINE_SUM_F64(iv_sum_of_exponentials_f64, const double *, iv_exponential_f64)

IV_DEFINE_SOFTMAX(float, f32)
IV_DEFINE_SOFTMAX(double, f64)

#endif
