/* Functions of whole rows of f32, one table per instruction set: what LpNormalization, MeanVarianceNormalization, ReduceLogSumExp and
 * LRN compute. Sums are in the order of numerics/reduce.h bit for bit. */
#ifndef SB_CPU_ROWS_WHOLE_ROWS_H
#define SB_CPU_ROWS_WHOLE_ROWS_H

#include <stdint.h>

#include <samebit/isa.h>

typedef enum sb_row_function {
    SB_ROW_BY_SUM,        /* x / the sum of magnitudes; +0 where that is 0 */
    SB_ROW_BY_ROOT,       /* x / the root of the sum of squares; likewise */
    SB_ROW_MEAN_VARIANCE, /* (x - mean) / (root of the variance + 1e-9) */
    SB_ROW_LOG_SUM_EXP    /* log(sum of exp(x - m)) + m, m the maximum, or +0 where that is infinite: one number */
} sb_row_function;

/* The positions of one strip of LRN: channel c of position p is x[c * x_stride + p], and so is its result in y. */
typedef struct sb_lrn_strip {
    int64_t channels, positions; /* of them, at most SB_LRN_POSITIONS */
    const float *x;
    int64_t x_stride;
    int64_t before, after; /* channels that take part on each side */
    float weight, bias, beta;
} sb_lrn_strip;

#define SB_LRN_POSITIONS 128

typedef struct sb_whole_row_kernels {
    /* Row x of n elements; y, which may be x, gets the results, but where the function has one, which is given. */
    float (*row)(sb_row_function function, int64_t n, const float *x, float *y);
    /* `width` rows side by side, at most SB_ROW_COLUMNS (cpu/rows/reduce_rows.h), which is how far apart the n elements of each lie in
     * `values`; these become the results, or else results[w] do. */
    void (*columns)(sb_row_function function, int64_t n, int width, float *values, float *results);
    /* The results of channel c of the strip. */
    void (*lrn)(const sb_lrn_strip *strip, int64_t c, float *y);
} sb_whole_row_kernels;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_whole_row_kernels *sb_whole_row_kernels_for(sb_isa isa);

#endif
