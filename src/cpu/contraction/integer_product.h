/* Products of operands that are made of 8-bit integers (ops/integer_product.h), with the quantization behind them.
 *
 * An element's f32 chain is the exact sum of integers times both scales, but for roundings: step k is off by at most 2^-24 of
 * the sum S(k) that is there by then. The chain is cut into chunks, and the sums S at their ends are known on the way. In the
 * first half of a chunk S(k) is not further from the S before it than what lies between, and in the second half from the S
 * behind it:
 *
 *     Σ |S(k)| ≤ half · (|S| before + |S| behind) + Σ w |a b| ≤ half · (|S| + |S|) + √(Σ a²) · √(Σ w² b²)
 *
 * by Cauchy and Schwarz, where w is how far an element is from the chunk's middle, and some more for the roundings of the
 * operands themselves. Where the quotient by the result's scale is further from a half than 1.02 · 2^-24 of all that, the integer
 * is certain. Where it is not, the vector of columns that the element is in is computed as it is defined. */
#ifndef SB_CPU_CONTRACTION_INTEGER_PRODUCT_H
#define SB_CPU_CONTRACTION_INTEGER_PRODUCT_H

#include "base/isa.h"
#include "cpu/elementwise/quantize_trip.h"

/* B's integers lie in panels of as many columns as a tile has, [k / 4][column][4], as the instructions take them. Whatever there
 * is for each column is there up to a multiple of this, which all panels divide. */
#define SB_INTEGER_COLUMNS 64
/* Rows of A that are turned into integers at once, at most, and bytes of them: the more, the less often columns of B in f32 are
 * read for one row or two whose results are not certain. */
#define SB_INTEGER_ROWS 240
#define SB_INTEGER_BYTES ((int64_t)256 << 10)
/* The weight of a chunk's element is this and how far it is from the middle. */
#define SB_INTEGER_WEIGHT 17

/* A block of rows by a range of panels. A row's elements are those of its taps, channel after channel. */
typedef struct sb_integer_block {
    int64_t rows, taps, channels, k, n; /* k is taps · channels */
    int64_t chunk, chunks, columns;     /* a chunk's length; chunks of k; n, up to a multiple of SB_INTEGER_COLUMNS */
    const float *const *a;              /* [rows][taps]: the first channel of each */
    int64_t a_step;                     /* from one channel to the next */
    float a_reciprocal;
    int32_t a_least;
    uint8_t *integers; /* [rows][pitch]: a's, from a_least up; zeros behind k */
    int64_t pitch;     /* a multiple of 4 */
    float *row_norms;  /* [rows][chunks]: √(Σ n²) of A's integers */
    const int8_t *panels;
    const float *packed; /* B, in panels of packed_panel columns: [k][column] */
    int64_t packed_panel;
    const int32_t *starts; /* [chunks][columns]: a_least times the sum of a column's integers up to the chunk's end */
    const float *norms;    /* [chunks][columns]: √(Σ w² m²) of B's integers */
    const float *factors;  /* [columns]: from a sum of integers to the quotient */
    const float *offsets;  /* [columns]: the bias over the result's scale */
    const float *biases;   /* [columns] */
    int64_t first_panel, last_panel;
    float *y;
    int64_t y_row_stride;
    const sb_quantize_trip *trip;
} sb_integer_block;

typedef struct sb_integer_kernels {
    int64_t panel; /* columns */
    void (*convert)(const sb_integer_block *block);
    void (*compute)(const sb_integer_block *block);
} sb_integer_kernels;

/** The kernels of an instruction set; NULL: this processor has no sums of products of 8 bits there. */
const sb_integer_kernels *sb_integer_kernels_of(sb_isa isa);

#if SB_HAS_X86_KERNELS
extern const sb_integer_kernels sb_integer_kernels_avx2, sb_integer_kernels_avx512;
#endif

#endif
