/* Functions of whole rows, compiled once per instruction set. Sums are those of reduce_isa.c; the rest are plain loops that the
 * compiler turns into vectors, and lanes never mix. */
#include <stdbool.h>

#include "base/isa.h"
#include "cpu/rows/reduce_rows.h"
#include "cpu/rows/whole_rows.h"
#include "cpu/simd.h"
#include "numerics/elementary.h"
#include "numerics/power.h"
#include "numerics/reduce.h"

#define REDUCE (&SB_ISA_NAME(sb_reduce_kernels))

/* ---- adjacent rows ---- */

static void divide_row(int64_t n, const float *x, float *y, float divisor) {
    if (divisor == 0) {
        for (int64_t i = 0; i < n; i++)
            y[i] = 0;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_div_f32(x[i], divisor);
}

/* Block by block of the order of sums, so that a row of any length needs no memory. */
static float log_sum_exp_row(int64_t n, const float *x) {
    float terms[SB_REDUCE_BLOCK], total = 0, most = REDUCE->row(SB_REDUCE_MAXIMUM, n, x);
    most = sb_abs_f32(most) == sb_infinity_f32() ? 0 : most;
    for (int64_t begin = 0; begin < n; begin += SB_REDUCE_BLOCK) {
        const int64_t left = n - begin, count = left < SB_REDUCE_BLOCK ? left : SB_REDUCE_BLOCK;
        for (int64_t i = 0; i < count; i++)
            terms[i] = sb_exp_f32(x[begin + i] - most);
        const float part = REDUCE->row(SB_REDUCE_SUM, count, terms);
        total = begin == 0 ? part : total + part;
    }
    return sb_log_f32(total) + most;
}

static float row(sb_row_function function, int64_t n, const float *x, float *y) {
    float mean, deviation;
    switch (function) {
    case SB_ROW_BY_SUM:
        divide_row(n, x, y, REDUCE->row(SB_REDUCE_ABSOLUTE, n, x));
        return 0;
    case SB_ROW_BY_ROOT:
        divide_row(n, x, y, sb_sqrt_f32(REDUCE->row(SB_REDUCE_SQUARES, n, x)));
        return 0;
    case SB_ROW_MEAN_VARIANCE:
        mean = sb_div_f32(REDUCE->row(SB_REDUCE_SUM, n, x), (float)n);
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - mean;
        deviation = sb_sqrt_f32(sb_div_f32(REDUCE->row(SB_REDUCE_SQUARES, n, y), (float)n)) + (float)1e-9;
        for (int64_t i = 0; i < n; i++)
            y[i] = sb_div_f32(y[i], deviation);
        return 0;
    default:
        return log_sum_exp_row(n, x);
    }
}

/* ---- rows side by side: lanes are rows ---- */

static void reduce_columns(sb_reduce_kind kind, int64_t n, int width, const float *values, float *results) {
    for (int w = width; w < SB_ROW_COLUMNS; w++)
        results[w] = 0;
    REDUCE->columns(kind, SB_F32, n, width, values, SB_ROW_COLUMNS, results);
}

/* Lanes without a row are computed too, of whatever they hold: whole vectors take no longer. */
static void divide_columns(int64_t n, float *values, const float *divisors) {
    for (float *at = values; at < values + n * SB_ROW_COLUMNS; at += SB_ROW_COLUMNS) {
        for (int w = 0; w < SB_ROW_COLUMNS; w++)
            at[w] = divisors[w] == 0 ? 0 : sb_div_f32(at[w], divisors[w]);
    }
}

static void subtract_columns(int64_t n, float *values, const float *minus) {
    for (float *at = values; at < values + n * SB_ROW_COLUMNS; at += SB_ROW_COLUMNS) {
        for (int w = 0; w < SB_ROW_COLUMNS; w++)
            at[w] = at[w] - minus[w];
    }
}

static void mean_variance_columns(int64_t n, int width, float *values) {
    float by[SB_ROW_COLUMNS];
    reduce_columns(SB_REDUCE_SUM, n, width, values, by);
    for (int w = 0; w < SB_ROW_COLUMNS; w++)
        by[w] = sb_div_f32(by[w], (float)n);
    subtract_columns(n, values, by);
    reduce_columns(SB_REDUCE_SQUARES, n, width, values, by);
    for (int w = 0; w < SB_ROW_COLUMNS; w++)
        by[w] = sb_sqrt_f32(sb_div_f32(by[w], (float)n)) + (float)1e-9;
    divide_columns(n, values, by);
}

static void log_sum_exp_columns(int64_t n, int width, float *values, float *results) {
    float most[SB_ROW_COLUMNS], sums[SB_ROW_COLUMNS];
    reduce_columns(SB_REDUCE_MAXIMUM, n, width, values, most);
    for (int w = 0; w < SB_ROW_COLUMNS; w++)
        most[w] = sb_abs_f32(most[w]) == sb_infinity_f32() ? 0 : most[w];
    for (float *at = values; at < values + n * SB_ROW_COLUMNS; at += SB_ROW_COLUMNS) {
        for (int w = 0; w < SB_ROW_COLUMNS; w++)
            at[w] = sb_exp_f32(at[w] - most[w]);
    }
    reduce_columns(SB_REDUCE_SUM, n, width, values, sums);
    for (int w = 0; w < width; w++)
        results[w] = sb_log_f32(sums[w]) + most[w];
}

static void columns(sb_row_function function, int64_t n, int width, float *values, float *results) {
    float by[SB_ROW_COLUMNS];
    switch (function) {
    case SB_ROW_BY_SUM:
        reduce_columns(SB_REDUCE_ABSOLUTE, n, width, values, by);
        divide_columns(n, values, by);
        break;
    case SB_ROW_BY_ROOT:
        reduce_columns(SB_REDUCE_SQUARES, n, width, values, by);
        for (int w = 0; w < SB_ROW_COLUMNS; w++)
            by[w] = sb_sqrt_f32(by[w]);
        divide_columns(n, values, by);
        break;
    case SB_ROW_MEAN_VARIANCE:
        mean_variance_columns(n, width, values);
        break;
    case SB_ROW_LOG_SUM_EXP:
        log_sum_exp_columns(n, width, values, results);
        break;
    }
}

/* ---- LRN: lanes are positions ---- */

/* bases[p] = bias + weight * the sum of squares of the channels around c. */
static void find_bases(const sb_lrn_strip *strip, int64_t c, float *bases) {
    const int64_t first = c > strip->before ? c - strip->before : 0;
    const int64_t last = strip->after < strip->channels - 1 - c ? c + strip->after : strip->channels - 1;
    const vf weight = vf_set(strip->weight), bias = vf_set(strip->bias);
    for (int64_t p = 0; p < strip->positions; p += SB_VF_LANES) {
        const int64_t left = strip->positions - p, lanes = left < SB_VF_LANES ? left : SB_VF_LANES;
        vf sum = vf_zero();
        for (int64_t i = first; i <= last; i++) {
            const vf value = vf_load_first(strip->x + i * strip->x_stride + p, lanes);
            sum = vf_fma(value, value, sum);
        }
        vf_store_first(bases + p, vf_add(bias, vf_mul(weight, sum)), lanes);
    }
}

/* Whether powers of all bases need no special case: they are positive and finite, and so is the exponent's magnitude. */
static bool are_plain(int64_t count, const float *bases, float exponent) {
    int others = !(sb_abs_f32(exponent) < sb_infinity_f32());
    for (int64_t p = 0; p < count; p++)
        others |= sb_bits_from_f32(bases[p]) - 1u >= 0x7f7fffffu;
    return others == 0;
}

static void lrn(const sb_lrn_strip *strip, int64_t c, float *y) {
    const int64_t count = strip->positions;
    const float *x = strip->x + c * strip->x_stride, beta = strip->beta;
    float bases[SB_LRN_POSITIONS];
    find_bases(strip, c, bases);
    if (are_plain(count, bases, beta)) {
        for (int64_t p = 0; p < count; p++)
            bases[p] = sb_pow_of_magnitude_f32(bases[p], beta);
    } else {
        for (int64_t p = 0; p < count; p++)
            bases[p] = sb_pow_f32(bases[p], beta);
    }
    for (int64_t p = 0; p < count; p++)
        y[p] = sb_div_f32(x[p], bases[p]);
}

extern const sb_whole_row_kernels SB_ISA_NAME(sb_whole_row_kernels);
const sb_whole_row_kernels SB_ISA_NAME(sb_whole_row_kernels) = {row, columns, lrn};
