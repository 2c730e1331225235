/* Products of matrices of 8-bit integers less their zero points, exact modulo 2^32: packing, and register tiles, one function per
 * instruction set.
 *
 * Elements are widened to 16 bits, the left ones less their zero points beforehand, the right ones where they are used, and multiplied
 * in pairs along k, whose sum fits 32. The zero
 * points of the right ones are taken off at the end, as they are a multiple of the left row's sum: so the right side can be packed
 * from what it holds alone. */
#ifndef SB_CPU_CONTRACTION_INTEGER_H
#define SB_CPU_CONTRACTION_INTEGER_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"
#include "ops/quantized_values.h"

/* Columns of a panel. */
#define SB_INTEGER_PANEL 32

/** Pairs along k, the last one filled up with 0. */
static inline int64_t sb_integer_pairs(int64_t k) {
    return k / 2 + k % 2;
}

/** Bytes of a packed right side: panels of [pairs][SB_INTEGER_PANEL][2] bytes, columns filled up with 0; 0 when the size overflows. */
size_t sb_integer_packed_bytes(int64_t k, int64_t n);

/** Packs the panels [begin, end) of b[k, n], of s8 or u8, strides in elements. */
void sb_integer_pack(const void *b, int64_t k_stride, int64_t column_stride, int64_t k, int64_t n, int64_t begin,
                     int64_t end, uint8_t *packed);

/** One row of the left side, widened less its zero point and filled up to pairs; returns its sum. */
typedef int32_t sb_integer_row(sb_dtype dtype, const void *a, int64_t stride, int64_t k, int32_t zero, int16_t *to);

typedef struct sb_integer_tile {
    int64_t rows, pairs;
    int64_t columns;      /* of the panel, 1 to SB_INTEGER_PANEL */
    const int16_t *a;     /* [rows][pairs][2] */
    const int32_t *sums;  /* of the rows */
    const uint8_t *panel; /* packed, of this dtype: */
    sb_dtype dtype;
    const int32_t *zeros; /* of the columns, SB_INTEGER_PANEL of them */
    int32_t *c;
    int64_t c_stride;
} sb_integer_tile;

/** Any number of rows by one panel. */
typedef void sb_integer_multiply(const sb_integer_tile *tile);

/** One pixel of a depthwise convolution: y[c] is the sum over taps of from[tap][c] * w[tap * channels + c], modulo 2^32. */
typedef void sb_integer_depthwise(int64_t channels, int64_t taps, const int16_t *const *from, const int16_t *w,
                                  int32_t *y);

/** y[i], of s8 or u8, is sb_quantized_rescale of sums[i] + bias[i], modulo 2^32, with multipliers[i] and the zero point. */
typedef void sb_integer_rescale(sb_dtype dtype, int64_t count, const int32_t *sums, const int32_t *bias,
                                const float *multipliers, int32_t zero, void *y);

extern sb_integer_rescale sb_integer_rescale_scalar;
extern sb_integer_depthwise sb_integer_depthwise_scalar;
/** The quickest of an instruction set on this processor. */
sb_integer_multiply *sb_integer_multiply_of(sb_isa isa);

extern sb_integer_row sb_integer_row_scalar;
extern sb_integer_multiply sb_integer_multiply_scalar;
#if SB_HAS_X86_KERNELS
extern sb_integer_row sb_integer_row_avx2, sb_integer_row_avx512;
extern sb_integer_rescale sb_integer_rescale_avx2, sb_integer_rescale_avx512;
extern sb_integer_depthwise sb_integer_depthwise_avx2, sb_integer_depthwise_avx512;
extern sb_integer_multiply sb_integer_multiply_avx2, sb_integer_multiply_avx512;
extern sb_integer_multiply sb_integer_multiply_avx2_vnni, sb_integer_multiply_avx512_vnni;
#endif

#endif
