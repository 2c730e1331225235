/* Products of matrices of 8-bit integers less their zero points, exact modulo 2^32: packing, and register tiles, a form for each
 * instruction set.
 *
 * Left elements a are taken as u8 and right ones b as s8: an s8 left one has 128 added, a u8 right one has 128 taken off, and so have
 * the zero points p and q. They are multiplied as they are, and what that gives too much is taken off:
 *
 *     Σ (a - p)(b - q) = Σ a b - p · Σ b - q · Σ (a - p)
 *
 * The first correction has sums of right columns, which lie behind the packed column, the second sums of left rows. So the right
 * side is packed from what it holds alone. A form says how many products along k one instruction adds up: four where the processor
 * has dot products of u8 by s8 (VNNI), else two of elements that are widened to 16 bits. */
#ifndef SB_CPU_CONTRACTION_INTEGER_H
#define SB_CPU_CONTRACTION_INTEGER_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"
#include "ops/quantized_values.h"

/* Columns of a panel, at most. */
#define SB_INTEGER_PANEL 32

/* What zero points are moved by, as their elements are. */
static inline int32_t sb_integer_left_shift(sb_dtype dtype) {
    return dtype == SB_S8 ? 128 : 0;
}
static inline int32_t sb_integer_right_shift(sb_dtype dtype) {
    return dtype == SB_U8 ? -128 : 0;
}

/** One row of the left side as words of the form, the last one filled up with 0; returns the sum of its elements as u8. */
typedef uint32_t sb_integer_row(sb_dtype dtype, const void *a, int64_t stride, int64_t k, void *to);

typedef struct sb_integer_tile {
    int64_t rows, words;
    int64_t columns;             /* of the panel, 1 to as many as it has */
    const uint8_t *a;            /* [rows][words][4 bytes] */
    const int32_t *zeros;        /* of the rows, shifted */
    const uint32_t *sums;        /* of the rows, less their zero points */
    const uint8_t *panel;        /* packed */
    const int32_t *column_zeros; /* shifted, SB_INTEGER_PANEL of them */
    int32_t *c;
    int64_t c_stride;
} sb_integer_tile;

/** Any number of rows by one panel. */
typedef void sb_integer_multiply(const sb_integer_tile *tile);

typedef struct sb_integer_form {
    int64_t together; /* elements of a left word, which are multiplied together: 2 of 16 bits or 4 of 8 */
    int64_t panel;    /* columns */
    sb_integer_row *row;
    sb_integer_multiply *multiply;
} sb_integer_form;

/** The quickest form of an instruction set on this processor. */
const sb_integer_form *sb_integer_form_of(sb_isa isa);

/** Words of 4 bytes of a left row. */
static inline int64_t sb_integer_words(const sb_integer_form *form, int64_t k) {
    return k / form->together + (k % form->together != 0);
}

/** What tells packed right sides of one form from those of others: below 1024. */
static inline uint64_t sb_integer_layout(const sb_integer_form *form) {
    return (uint64_t)(form->panel << 4 | form->together);
}

static inline int64_t sb_integer_panels(const sb_integer_form *form, int64_t n) {
    return n / form->panel + (n % form->panel != 0);
}

/** Bytes of one packed panel, [words][column][together] and the sums of the columns; 0 when the size overflows. */
size_t sb_integer_panel_bytes(const sb_integer_form *form, int64_t k);
/** Bytes of a packed right side: its panels, columns filled up with 0; 0 when the size overflows. */
size_t sb_integer_packed_bytes(const sb_integer_form *form, int64_t k, int64_t n);

/* b[k, n], of s8 or u8, strides in elements. */
typedef struct sb_integer_right {
    sb_dtype dtype;
    const void *b;
    int64_t k_stride, column_stride, k, n;
} sb_integer_right;

/** Packs the panels [begin, end). */
void sb_integer_pack(const sb_integer_form *form, const sb_integer_right *right, int64_t begin, int64_t end,
                     uint8_t *packed);

/** to[i] = x[i] - zero. */
typedef void sb_integer_widen(sb_dtype dtype, const void *x, int64_t count, int32_t zero, int16_t *to);

/** One pixel of a depthwise convolution: y[c] is the sum over taps of from[tap][c] * w[tap * channels + c], modulo 2^32. */
typedef void sb_integer_depthwise(int64_t channels, int64_t taps, const int16_t *const *from, const int16_t *w,
                                  int32_t *y);

/** y[i], of s8 or u8, is sb_quantized_rescale of sums[i] + bias[i], modulo 2^32, with multipliers[i] and the zero point. */
typedef void sb_integer_rescale(sb_dtype dtype, int64_t count, const int32_t *sums, const int32_t *bias,
                                const float *multipliers, int32_t zero, void *y);

extern sb_integer_rescale sb_integer_rescale_scalar;
extern sb_integer_widen sb_integer_widen_scalar;
extern sb_integer_depthwise sb_integer_depthwise_scalar;
extern const sb_integer_form sb_integer_pairs_scalar;
#if SB_HAS_X86_KERNELS
extern sb_integer_rescale sb_integer_rescale_avx2, sb_integer_rescale_avx512;
extern sb_integer_widen sb_integer_widen_avx2, sb_integer_widen_avx512;
extern sb_integer_depthwise sb_integer_depthwise_avx2, sb_integer_depthwise_avx512;
extern const sb_integer_form sb_integer_pairs_avx2, sb_integer_pairs_avx512;
/* Where sb_isa_adds_products. */
extern const sb_integer_form sb_integer_fours_avx2, sb_integer_fours_avx512;
#endif

#endif
