/* Row kernels, compiled once per instruction set: plain loops that the compiler turns into vectors. */
#include <string.h>

#include "base/isa.h"
#include "cpu/rows/block_sum.h"
#include "cpu/rows/normalize.h"
#include "cpu/rows/reduce_rows.h"
#include "numerics/elementary.h"
#include "numerics/exp_nonpositive.h"

SB_DEFINE_BLOCK_SUM(block_sum, SUM)
SB_DEFINE_BLOCK_SUM(block_sum_of_squares, SQUARES)

#define DEFINE_ROW_SUM(name, block)                                                                                    \
    static float name(const float *x, int64_t n) {                                                                     \
        float total = 0;                                                                                               \
        for (int64_t start = 0; start < n; start += SB_REDUCE_BLOCK) {                                                 \
            int64_t left = n - start;                                                                                  \
            float part = block(x + start, left < SB_REDUCE_BLOCK ? (int)left : SB_REDUCE_BLOCK);                       \
            total = start == 0 ? part : total + part;                                                                  \
        }                                                                                                              \
        return total;                                                                                                  \
    }
DEFINE_ROW_SUM(row_sum, block_sum)
DEFINE_ROW_SUM(row_sum_of_squares, block_sum_of_squares)

/* e^difference, which is not above 0, or NaN. */
SB_VF_INLINE float exponential(float difference) {
    return sb_exp_nonpositive_f32(difference < SB_EXP_LEAST_F32 ? SB_EXP_LEAST_F32 : difference);
}

/* e^(x - max) of n elements, which `max` is the maximum of, or NaN. */
SB_VF_INLINE void exponentials(const float *x, float *y, int n, float max) {
    for (int i = 0; i < n; i++)
        y[i] = exponential(x[i] - max);
}

/* The last elements of a row go by a whole piece beside it: one by one, each would take a vector's time. */
#define PIECE 16
static void row_exponentials(const float *x, float *y, int64_t n, float max) {
    int64_t whole = n - n % PIECE;
    for (int64_t i = 0; i < whole; i += PIECE)
        exponentials(x + i, y + i, PIECE, max);
    if (whole < n) {
        float last[PIECE] = {0}, result[PIECE];
        memcpy(last, x + whole, (size_t)(n - whole) * sizeof *last);
        exponentials(last, result, PIECE, max);
        memcpy(y + whole, result, (size_t)(n - whole) * sizeof *last);
    }
}

static void row_divide(float *y, int64_t n, float divisor) {
    const vf by = vf_set(divisor);
    int64_t i = 0;
    for (; i + SB_VF_LANES <= n; i += SB_VF_LANES)
        vf_store(y + i, vf_div(vf_load(y + i), by));
    if (i < n)
        vf_store_first(y + i, vf_div(vf_load_first(y + i, n - i), by), n - i);
}

/* Step by step for several rows: what a step of one row ends with waits for the lanes of a vector, one after the other, and the next
 * rows' are computed meanwhile. */
#define ROWS_AT_ONCE 16
static void softmax(int64_t rows, int64_t n, const float *x, int64_t x_stride, float *y, int64_t y_stride) {
    float most[ROWS_AT_ONCE], sums[ROWS_AT_ONCE];
    for (int64_t first = 0; first < rows && n > 0; first += ROWS_AT_ONCE) {
        const int count = rows - first < ROWS_AT_ONCE ? (int)(rows - first) : ROWS_AT_ONCE;
        const float *from = x + first * x_stride;
        float *to = y + first * y_stride;
        for (int r = 0; r < count; r++)
            most[r] = sb_row_extreme(from + r * x_stride, n, vf_set(1.0f));
        for (int r = 0; r < count; r++)
            row_exponentials(from + r * x_stride, to + r * y_stride, n, most[r]);
        for (int r = 0; r < count; r++)
            sums[r] = row_sum(to + r * y_stride, n);
        for (int r = 0; r < count; r++)
            row_divide(to + r * y_stride, n, sums[r]);
    }
}

static void log_softmax(const float *x, float *y, int64_t n, float *workspace) {
    if (n == 0)
        return;
    float max = sb_row_extreme(x, n, vf_set(1.0f));
    row_exponentials(x, workspace, n, max);
    float logarithm = sb_log_f32(row_sum(workspace, n));
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - max) - logarithm;
}

/* `width` is a constant wherever it matters. */
SB_VF_INLINE void softmax_columns_of(bool logarithm, int64_t n, int width, const float *x, int64_t x_stride, float *y,
                                     int64_t y_stride, float *workspace) {
    float highest[SB_ROW_COLUMNS], sum[SB_ROW_COLUMNS];
    const sb_reduce_kernels *reduce = &SB_ISA_NAME(sb_reduce_kernels);
    reduce->columns(SB_REDUCE_MAXIMUM, SB_F32, n, width, x, x_stride, highest);
    for (int64_t i = 0; i < n; i++) {
        for (int w = 0; w < width; w++)
            workspace[i * SB_ROW_COLUMNS + w] = exponential(x[i * x_stride + w] - highest[w]);
    }
    reduce->columns(SB_REDUCE_SUM, SB_F32, n, width, workspace, SB_ROW_COLUMNS, sum);
    for (int w = 0; w < width && logarithm; w++)
        sum[w] = sb_log_f32(sum[w]);
    for (int64_t i = 0; i < n; i++) {
        for (int w = 0; w < width; w++)
            y[i * y_stride + w] = logarithm ? (x[i * x_stride + w] - highest[w]) - sum[w]
                                            : sb_div_f32(workspace[i * SB_ROW_COLUMNS + w], sum[w]);
    }
}

static void softmax_columns(bool logarithm, int64_t n, int width, const float *x, int64_t x_stride, float *y,
                            int64_t y_stride, float *workspace) {
    if (width == SB_ROW_COLUMNS && !logarithm)
        softmax_columns_of(false, n, SB_ROW_COLUMNS, x, x_stride, y, y_stride, workspace);
    else if (width == SB_ROW_COLUMNS)
        softmax_columns_of(true, n, SB_ROW_COLUMNS, x, x_stride, y, y_stride, workspace);
    else
        softmax_columns_of(logarithm, n, width, x, x_stride, y, y_stride, workspace);
}

/* y = x - the mean, which goes to *mean; gives 1 / sqrt(variance + epsilon). */
static float centre(const float *x, float *y, int64_t n, float epsilon, float *mean_out) {
    float mean = sb_div_f32(row_sum(x, n), (float)n);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - mean;
    float variance = sb_div_f32(row_sum_of_squares(y, n), (float)n);
    *mean_out = mean;
    return sb_div_f32(1.0f, sb_sqrt_f32(variance + epsilon));
}

static void layer_norm(const float *x, float *y, int64_t n, const float *restrict scale, const float *restrict bias,
                       float epsilon, float *mean, float *inverse_out) {
    float inverse = centre(x, y, n, epsilon, mean);
    if (bias != NULL) {
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * inverse * scale[i] + bias[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * inverse * scale[i];
    }
    *inverse_out = inverse;
}

static void rms_norm(const float *x, float *y, int64_t n, const float *restrict scale, float epsilon) {
    const float inverse = sb_div_f32(1.0f, sb_sqrt_f32(sb_div_f32(row_sum_of_squares(x, n), (float)n) + epsilon));
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * inverse * scale[i];
}

static void group_norm(const float *x, float *y, int64_t n, int64_t repeat, const float *scale, const float *bias,
                       float epsilon) {
    float mean, inverse = centre(x, y, n, epsilon, &mean);
    for (int64_t channel = 0; channel < n / repeat; channel++, y += repeat) {
        const float by = scale[channel], plus = bias[channel];
        for (int64_t i = 0; i < repeat; i++)
            y[i] = y[i] * inverse * by + plus;
    }
}

static int lanes_left(int columns) {
    return columns < SB_VF_LANES ? columns : SB_VF_LANES;
}

/* Lanes are rows. They are packed first: far apart, their lines would fall into few sets of the caches, and each pass would
 * fetch them again. Vectors are written out because the compiler takes lines for lanes, and scatters. */
static void group_norm_columns(int64_t n, int width, const float *x, int64_t x_stride, float *y, int64_t y_stride,
                               const float *scale, const float *bias, float epsilon, float *workspace) {
    float mean[SB_ROW_COLUMNS], inverse[SB_ROW_COLUMNS];
    const sb_reduce_kernels *reduce = &SB_ISA_NAME(sb_reduce_kernels);
    for (int64_t i = 0; i < n; i++) {
        for (int w = 0; w < width; w += SB_VF_LANES)
            vf_store(workspace + i * SB_ROW_COLUMNS + w, vf_load_first(x + i * x_stride + w, lanes_left(width - w)));
    }
    reduce->columns(SB_REDUCE_SUM, SB_F32, n, width, workspace, SB_ROW_COLUMNS, mean);
    for (int w = 0; w < width; w++)
        mean[w] = -sb_div_f32(mean[w], (float)n);
    for (int w = 0; w < width; w += SB_VF_LANES) {
        const vf minus = vf_load_first(mean + w, lanes_left(width - w));
        for (float *at = workspace + w; at < workspace + n * SB_ROW_COLUMNS; at += SB_ROW_COLUMNS)
            vf_store(at, vf_add(vf_load(at), minus));
    }
    reduce->columns(SB_REDUCE_SQUARES, SB_F32, n, width, workspace, SB_ROW_COLUMNS, inverse);
    for (int w = 0; w < width; w++)
        inverse[w] = sb_div_f32(1.0f, sb_sqrt_f32(sb_div_f32(inverse[w], (float)n) + epsilon));
    for (int w = 0; w < width; w += SB_VF_LANES) {
        const int taken = lanes_left(width - w);
        const vf by = vf_load_first(inverse + w, taken), times = vf_load_first(scale + w, taken);
        const vf plus = vf_load_first(bias + w, taken);
        for (int64_t i = 0; i < n; i++) {
            vf value = vf_mul(vf_mul(vf_load(workspace + i * SB_ROW_COLUMNS + w), by), times);
            vf_store_first(y + i * y_stride + w, vf_add(value, plus), taken);
        }
    }
}

extern const sb_row_kernels SB_ISA_NAME(sb_row_kernels);
const sb_row_kernels SB_ISA_NAME(sb_row_kernels) = {row_sum,    softmax,  log_softmax, softmax_columns,
                                                    layer_norm, rms_norm, group_norm,  group_norm_columns};
