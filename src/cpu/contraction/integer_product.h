/* Products of operands that are made of 8-bit integers (ops/integer_product.h), with the quantization behind them.
 *
 * An element's f32 chain is the exact sum of integers times both scales, but for roundings: step k is off by at most 2^-24 of
 * the sum S(k) that is there by then. K is cut into chunks of 128. Of a chunk that begins with the sum S, whose integers are
 * known on the way,
 *
 *     Σ |S(k)| ≤ length · |S| + Σ (elements left in the chunk) |a b| ≤ length · |S| + √(Σ w a²) · √(Σ w b²)
 *
 * by Cauchy and Schwarz, where w is the elements left and some more for the roundings of the operands themselves. Where the
 * quotient by the result's scale is further from a half than 1.02 · 2^-24 of all that, the integer is certain. Where it is
 * not, the vector of columns that the element is in is computed as it is defined. */
#ifndef SB_CPU_CONTRACTION_INTEGER_PRODUCT_H
#define SB_CPU_CONTRACTION_INTEGER_PRODUCT_H

#include "base/isa.h"
#include "cpu/elementwise/quantize_trip.h"

/* B's integers lie in panels of as many columns as a tile has, [k / 4][column][4], as the instructions take them. Whatever there
 * is for each column is there up to a multiple of this, which all panels divide. */
#define SB_INTEGER_COLUMNS 64
#define SB_INTEGER_CHUNK 128
/* Rows of A that are turned into integers at once. */
#define SB_INTEGER_ROWS 80
/* The weight of a chunk's element is this and the elements behind it. */
#define SB_INTEGER_WEIGHT 17

/* A block of rows by a range of panels. */
typedef struct sb_integer_block {
    int64_t rows, k, n;
    int64_t chunks, columns; /* of k; of n, up to a multiple of SB_INTEGER_COLUMNS */
    const float *a;
    int64_t a_row_stride, a_k_stride;
    float a_reciprocal;
    int32_t a_least;
    uint8_t *integers; /* [rows][pitch]: a's, from a_least up; zeros behind k */
    int64_t pitch;     /* a multiple of 4 */
    float *row_norms;  /* [rows][chunks]: √(Σ w n²) of A's integers */
    const int8_t *panels;
    const float *packed; /* B as sb_gemm_f32_pack_b has it */
    int64_t packed_panel;
    const int32_t *starts; /* [chunks][columns]: a_least times the sum of a column's integers up to the chunk's end */
    const float *norms;    /* [chunks][columns]: √(Σ w m²) of B's integers */
    const float *factors;  /* [columns]: from a sum of integers to the quotient */
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
