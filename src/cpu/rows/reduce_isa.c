/* Reductions of rows of f32, compiled once per instruction set. Lanes are the 256 lanes of the order of sums where a row
 * is adjacent, and rows where they lie side by side; either way each follows the definition's order. */
#include <stdbool.h>

#include "base/isa.h"
#include "cpu/rows/block_sum.h"
#include "cpu/rows/reduce_rows.h"
#include "numerics/minmax.h"
#include "numerics/product.h"

#define FIRST_ABSOLUTE(value) sb_abs_f32(value)
#define NEXT_ABSOLUTE(value, lane) ((lane) + sb_abs_f32(value))

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

/* ---- rows side by side ---- */

typedef float sum_lanes[SB_REDUCE_LANES][SB_ROW_COLUMNS];

/* Adds lane + half to lane, by halves. `width` is a constant wherever it matters. */
SB_VF_INLINE void fold_columns(int present, int width, sum_lanes lanes) {
    for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {
        for (int lane = 0; lane + half < present && lane < half; lane++) {
            for (int w = 0; w < width; w++)
                lanes[lane][w] = lanes[lane][w] + lanes[lane + half][w];
        }
        present = present < half ? present : half;
    }
}

/* The sum of one block of `size` values for `width` rows, into lane 0. */
#define DEFINE_BLOCK_COLUMNS(name, FIRST, NEXT)                                                                        \
    SB_VF_INLINE void name(int64_t size, int width, const float *x, int64_t stride, sum_lanes lanes) {                 \
        int present = size < SB_REDUCE_LANES ? (int)size : SB_REDUCE_LANES;                                            \
        for (int lane = 0; lane < present; lane++) {                                                                   \
            for (int w = 0; w < width; w++)                                                                            \
                lanes[lane][w] = FIRST(x[lane * stride + w]);                                                          \
        }                                                                                                              \
        for (int64_t i = SB_REDUCE_LANES; i < size; i++) {                                                             \
            float *lane = lanes[i % SB_REDUCE_LANES];                                                                  \
            for (int w = 0; w < width; w++)                                                                            \
                lane[w] = NEXT(x[i * stride + w], lane[w]);                                                            \
        }                                                                                                              \
        fold_columns(present, width, lanes);                                                                           \
    }
DEFINE_BLOCK_COLUMNS(sum_columns, SB_REDUCE_FIRST_SUM, SB_REDUCE_NEXT_SUM_f32)
DEFINE_BLOCK_COLUMNS(squares_columns, SB_REDUCE_FIRST_SQUARES, SB_REDUCE_NEXT_SQUARES_f32)
DEFINE_BLOCK_COLUMNS(absolute_columns, FIRST_ABSOLUTE, NEXT_ABSOLUTE)

/* The sum of values or of squares of one block of SB_ROW_COLUMNS rows, the same steps with vectors written out: compilers make
 * single lanes of the squares' loop above. */
SB_VF_INLINE void whole_columns(sb_reduce_kind kind, int64_t size, const float *x, int64_t stride, sum_lanes lanes) {
    const bool squares = kind == SB_REDUCE_SQUARES;
    int present = size < SB_REDUCE_LANES ? (int)size : SB_REDUCE_LANES;
    for (int64_t i = 0; i < size; i++) {
        for (int w = 0; w < SB_ROW_COLUMNS; w += SB_VF_LANES) {
            float *lane = lanes[i % SB_REDUCE_LANES] + w;
            vf value = vf_load(x + i * stride + w);
            if (i < SB_REDUCE_LANES)
                vf_store(lane, squares ? vf_mul(value, value) : value);
            else
                vf_store(lane, squares ? vf_fma(value, value, vf_load(lane)) : vf_add(vf_load(lane), value));
        }
    }
    fold_columns(present, SB_ROW_COLUMNS, lanes);
}

SB_VF_INLINE void columns_of(sb_reduce_kind kind, int64_t n, int width, const float *x, int64_t stride, float *y) {
    _Alignas(64) sum_lanes lanes;
    for (int w = 0; w < width; w++)
        y[w] = 0;
    for (int64_t start = 0; start < n; start += SB_REDUCE_BLOCK) {
        int64_t size = n - start < SB_REDUCE_BLOCK ? n - start : SB_REDUCE_BLOCK;
        if (width == SB_ROW_COLUMNS && kind != SB_REDUCE_ABSOLUTE)
            whole_columns(kind, size, x + start * stride, stride, lanes);
        else if (kind == SB_REDUCE_SUM)
            sum_columns(size, width, x + start * stride, stride, lanes);
        else if (kind == SB_REDUCE_SQUARES)
            squares_columns(size, width, x + start * stride, stride, lanes);
        else
            absolute_columns(size, width, x + start * stride, stride, lanes);
        for (int w = 0; w < width; w++)
            y[w] = start == 0 ? lanes[0][w] : y[w] + lanes[0][w];
    }
}

static void extreme_columns(int64_t n, int width, const float *x, int64_t stride, float sign, float *y) {
    const vf signs = vf_set(sign);
    for (int w = 0; w < width; w += SB_VF_LANES) {
        vf most = vf_set(-sb_infinity_f32());
        int taken = width - w < SB_VF_LANES ? width - w : SB_VF_LANES;
        for (int64_t i = 0; i < n; i++) {
            const float *at = x + i * stride + w;
            most = vf_max(most, vf_mul(taken == SB_VF_LANES ? vf_load(at) : vf_load_first(at, taken), signs));
        }
        vf_store_first(y + w, vf_mul(most, signs), taken);
    }
}

static void columns(sb_reduce_kind kind, int64_t n, int width, const float *x, int64_t stride, float *y,
                    int64_t y_stride) {
    float results[SB_ROW_COLUMNS];
    if (kind == SB_REDUCE_MAXIMUM || kind == SB_REDUCE_MINIMUM)
        extreme_columns(n, width, x, stride, kind == SB_REDUCE_MINIMUM ? -1.0f : 1.0f, results);
    else if (kind == SB_REDUCE_PRODUCT)
        for (int w = 0; w < width; w++)
            results[w] = sb_product_f32(x + w, stride, n);
    else if (width == SB_ROW_COLUMNS && kind == SB_REDUCE_SUM)
        columns_of(SB_REDUCE_SUM, n, SB_ROW_COLUMNS, x, stride, results);
    else if (width == SB_ROW_COLUMNS && kind == SB_REDUCE_SQUARES)
        columns_of(SB_REDUCE_SQUARES, n, SB_ROW_COLUMNS, x, stride, results);
    else
        columns_of(kind, n, width, x, stride, results);
    for (int w = 0; w < width; w++)
        y[w * y_stride] = results[w];
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

const sb_reduce_kernels SB_ISA_NAME(sb_reduce_kernels) = {row, columns, pairs, pairs_apart, join};
