/* Row kernels of softmax, layer normalisation and sums: contiguous f32 rows, one table per instruction set. Every
 * function follows the order of src/numerics/reduce.h bit for bit. */
#ifndef SB_CPU_ROWS_NORMALIZE_H
#define SB_CPU_ROWS_NORMALIZE_H

#include <stdbool.h>
#include <stdint.h>

#include <samebit/isa.h>

typedef struct sb_row_kernels {
    /* The sum of x[0 .. n) in the contract's order. */
    float (*sum)(const float *x, int64_t n);
    /* y = exp(x - max) / sum(exp(x - max)) of each row, which begin that many floats apart; y may be x with the same stride. */
    void (*softmax)(int64_t rows, int64_t n, const float *x, int64_t x_stride, float *y, int64_t y_stride);
    /* y = (x - max) - log(sum(exp(x - max))); `workspace` has room for n floats. */
    void (*log_softmax)(const float *x, float *y, int64_t n, float *workspace);
    /* The two for `width` rows side by side (1 to SB_ROW_COLUMNS; row r begins at x + r and y + r), whose elements lie
     * that many floats apart. `workspace` has room for n * SB_ROW_COLUMNS floats. y may be x with the same stride. */
    void (*softmax_columns)(bool logarithm, int64_t n, int width, const float *x, int64_t x_stride, float *y,
                            int64_t y_stride, float *workspace);
    /* d = x - mean; y = (d (1 / sqrt(mean of d² + epsilon))) scale + bias; bias may be NULL; y may be x. The mean and
     * the reciprocal go to *mean and *inverse. */
    void (*layer_norm)(const float *x, float *y, int64_t n, const float *scale, const float *bias, float epsilon,
                       float *mean, float *inverse);
    /* y = (x (1 / sqrt(mean of x² + epsilon))) scale; y may be x. */
    void (*rms_norm)(const float *x, float *y, int64_t n, const float *scale, float epsilon);
    /* layer_norm of one row of n / repeat channels, `repeat` adjacent elements of each: element i has scale and bias number
     * i / repeat. */
    void (*group_norm)(const float *x, float *y, int64_t n, int64_t repeat, const float *scale, const float *bias,
                       float epsilon);
    /* The same for `width` rows of one channel side by side (as softmax_columns has them): row r has scale[r] and bias[r].
     * `workspace` has room for n * SB_ROW_COLUMNS floats. */
    void (*group_norm_columns)(int64_t n, int width, const float *x, int64_t x_stride, float *y, int64_t y_stride,
                               const float *scale, const float *bias, float epsilon, float *workspace);
} sb_row_kernels;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_row_kernels *sb_row_kernels_for(sb_isa isa);

#endif
