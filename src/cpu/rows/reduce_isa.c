/* Reductions of rows of f32 whose elements are adjacent, compiled once per instruction set: lanes are the 256 lanes of the order of
 * sums. Rows of two that lie side by side are here too; longer ones are in reduce_columns_isa.c. */
#include <stdbool.h>

#include "base/isa.h"
#include "cpu/rows/block_sum.h"
#include "cpu/rows/reduce_rows.h"
#include "numerics/minmax.h"
#include "numerics/product.h"

/* ---- adjacent rows ---- */

SB_DEFINE_BLOCK_SUM(block_sum, SUM)
SB_DEFINE_BLOCK_SUM(block_squares, SQUARES)
SB_DEFINE_BLOCK_SUM(block_absolute, ABSOLUTE)

/* The greatest of sign * x, times sign, so that it is a minimum for a sign of -1: zeros and NaN are ordered the same way
 * round. */
static float extreme(int64_t n, const float *x, float sign) {
    return sb_row_extreme(x, n, vf_set(sign)) * sign;
}

static float join(sb_reduce_kind kind, float total, float block) {
    switch (kind) {
    case SB_REDUCE_MAXIMUM:
        return sb_max_f32(total, block);
    case SB_REDUCE_MINIMUM:
        return sb_min_f32(total, block);
    case SB_REDUCE_PRODUCT:
        return total * block;
    default:
        return total + block;
    }
}

/* Rows of a few numbers, as soft decisions along a path are, are folded without a loop over 256 lanes. */
#define SHORT_ROW 8

static float product_row(int64_t n, const float *x) {
    if (n > SHORT_ROW || n == 0)
        return sb_product_f32(x, 1, n);
    float a = x[0], b = n > 1 ? x[1] : 0.0f, c = n > 2 ? x[2] : 0.0f, d = n > 3 ? x[3] : 0.0f;
    a = n > 4 ? a * x[4] : a;
    b = n > 5 ? b * x[5] : b;
    c = n > 6 ? c * x[6] : c;
    d = n > 7 ? d * x[7] : d;
    a = n > 2 ? a * c : a;
    b = n > 3 ? b * d : b;
    return n > 1 ? a * b : a;
}

static float row(sb_reduce_kind kind, int64_t n, const float *x) {
    if (kind == SB_REDUCE_MAXIMUM || kind == SB_REDUCE_MINIMUM)
        return extreme(n, x, kind == SB_REDUCE_MINIMUM ? -1.0f : 1.0f);
    if (kind == SB_REDUCE_PRODUCT)
        return product_row(n, x);
    float total = 0;
    for (int64_t start = 0; start < n; start += SB_REDUCE_BLOCK) {
        int size = n - start < SB_REDUCE_BLOCK ? (int)(n - start) : SB_REDUCE_BLOCK;
        float block = kind == SB_REDUCE_SUM       ? block_sum(x + start, size)
                      : kind == SB_REDUCE_SQUARES ? block_squares(x + start, size)
                                                  : block_absolute(x + start, size);
        total = start == 0 ? block : total + block;
    }
    return total;
}

/* ---- rows of two, such as the parts of complex numbers ---- */

static void pairs(sb_reduce_kind kind, int64_t count, const float *restrict x, float *restrict y) {
    switch (kind) {
    case SB_REDUCE_SUM:
        for (int64_t r = 0; r < count; r++)
            y[r] = x[2 * r] + x[2 * r + 1];
        break;
    case SB_REDUCE_SQUARES:
        for (int64_t r = 0; r < count; r++)
            y[r] = SB_REDUCE_FIRST_SQUARES(x[2 * r]) + SB_REDUCE_FIRST_SQUARES(x[2 * r + 1]);
        break;
    case SB_REDUCE_ABSOLUTE:
        for (int64_t r = 0; r < count; r++)
            y[r] = sb_abs_f32(x[2 * r]) + sb_abs_f32(x[2 * r + 1]);
        break;
    default:
        for (int64_t r = 0; r < count; r++)
            y[r] = join(kind, x[2 * r], x[2 * r + 1]);
        break;
    }
}

/* Rows of two whose elements lie apart and which lie side by side. A stride of 1 is known, so that lanes are elements. */
#define DEFINE_PAIRS_APART(name, REDUCE)                                                                               \
    static void name(int64_t count, const float *restrict x, const float *restrict other, float *restrict y,           \
                     int64_t y_stride) {                                                                               \
        if (y_stride == 1) {                                                                                           \
            for (int64_t r = 0; r < count; r++)                                                                        \
                y[r] = REDUCE(x[r], other[r]);                                                                         \
        } else {                                                                                                       \
            for (int64_t r = 0; r < count; r++)                                                                        \
                y[r * y_stride] = REDUCE(x[r], other[r]);                                                              \
        }                                                                                                              \
    }
#define SUM_OF(a, b) ((a) + (b))
#define SQUARES_OF(a, b) (SB_REDUCE_FIRST_SQUARES(a) + SB_REDUCE_FIRST_SQUARES(b))
#define MAGNITUDES_OF(a, b) (sb_abs_f32(a) + sb_abs_f32(b))
DEFINE_PAIRS_APART(sums_apart, SUM_OF)
DEFINE_PAIRS_APART(squares_apart, SQUARES_OF)
DEFINE_PAIRS_APART(magnitudes_apart, MAGNITUDES_OF)
#define PRODUCT_OF(a, b) ((a) * (b))
DEFINE_PAIRS_APART(products_apart, PRODUCT_OF)
DEFINE_PAIRS_APART(maxima_apart, sb_max_f32)
DEFINE_PAIRS_APART(minima_apart, sb_min_f32)

static void pairs_apart(sb_reduce_kind kind, int64_t count, const float *x, const float *other, float *y,
                        int64_t y_stride) {
    switch (kind) {
    case SB_REDUCE_SUM:
        sums_apart(count, x, other, y, y_stride);
        break;
    case SB_REDUCE_SQUARES:
        squares_apart(count, x, other, y, y_stride);
        break;
    case SB_REDUCE_ABSOLUTE:
        magnitudes_apart(count, x, other, y, y_stride);
        break;
    case SB_REDUCE_PRODUCT:
        products_apart(count, x, other, y, y_stride);
        break;
    case SB_REDUCE_MAXIMUM:
        maxima_apart(count, x, other, y, y_stride);
        break;
    case SB_REDUCE_MINIMUM:
        minima_apart(count, x, other, y, y_stride);
        break;
    }
}

const sb_reduce_kernels SB_ISA_NAME(sb_reduce_kernels) = {row, SB_ISA_NAME(sb_reduce_columns), pairs, pairs_apart,
                                                          join};
