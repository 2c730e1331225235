/* Reductions of rows of f32, one table per instruction set: the orders of numerics/reduce.h bit for bit, and maxima and
 * minima, which have none. */
#ifndef SB_CPU_ROWS_REDUCE_ROWS_H
#define SB_CPU_ROWS_REDUCE_ROWS_H

#include <stdint.h>

#include <samebit/dtype.h>
#include <samebit/isa.h>

/* What is added, or chosen. */
typedef enum sb_reduce_kind {
    SB_REDUCE_SUM,      /* values; +0 for none */
    SB_REDUCE_SQUARES,  /* their squares; +0 for none */
    SB_REDUCE_ABSOLUTE, /* their magnitudes; +0 for none */
    SB_REDUCE_MAXIMUM,  /* the greatest one, NaN above all; -infinity of none */
    SB_REDUCE_PRODUCT,  /* their product, in the order of numerics/product.h; 1 of none */
    SB_REDUCE_MINIMUM,  /* the least one, NaN below all; +infinity of none */
} sb_reduce_kind;

/* Rows side by side that are normalised at once: a line of the cache. */
#define SB_ROW_COLUMNS 16

typedef struct sb_reduce_kernels {
    /* The reduction of x[0 .. n). */
    float (*row)(sb_reduce_kind kind, int64_t n, const float *x);
    /* y[r] is the reduction of x[r], x[r + stride], …, n values, for r below `width`; x is of f32, f16 or bf16. Stride in
     * elements. */
    void (*columns)(sb_reduce_kind kind, sb_dtype dtype, int64_t n, int64_t width, const void *x, int64_t stride,
                    float *y);
    /* y[r] is the reduction of x[2 r] and x[2 r + 1], for r below `count`. */
    void (*pairs)(sb_reduce_kind kind, int64_t count, const float *x, float *y);
    /* The same of x[r] and other[r]; y[r * y_stride]. */
    void (*pairs_apart)(sb_reduce_kind kind, int64_t count, const float *x, const float *other, float *y,
                        int64_t y_stride);
    /* Blocks of a row that come one after the other: a row's total so far, and the reduction of its next block. */
    float (*join)(sb_reduce_kind kind, float total, float block);
} sb_reduce_kernels;

/* What is `columns` in the tables. */
void sb_reduce_columns_scalar(sb_reduce_kind kind, sb_dtype dtype, int64_t n, int64_t width, const void *x,
                              int64_t stride, float *y);
void sb_reduce_columns_avx2(sb_reduce_kind kind, sb_dtype dtype, int64_t n, int64_t width, const void *x,
                            int64_t stride, float *y);
void sb_reduce_columns_avx512(sb_reduce_kind kind, sb_dtype dtype, int64_t n, int64_t width, const void *x,
                              int64_t stride, float *y);

extern const sb_reduce_kernels sb_reduce_kernels_scalar, sb_reduce_kernels_avx2, sb_reduce_kernels_avx512;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_reduce_kernels *sb_reduce_kernels_for(sb_isa isa);

#endif
