/* The inner kernels of the 16-bit tensor-core chain: one table per instruction set, one packed
 * layout for all.
 *
 * Vectors run over columns of B. A kernel takes one group of 16 k for a block of rows of A and a
 * tile of columns, and takes every accumulator of the block one group further. Working group by
 * group over many rows hides the latency of the chain (each group's scale depends on the previous
 * group's result), and lets the expansion of a B tile, 16 × tile columns, be paid once for the
 * whole block of rows.
 *
 * How the exponent E is found: next to the values, both operands carry for each element how far its
 * exponent lies below the group's largest ("drop", a byte that saturates at 255, the drop of a
 * zero). The smallest sum of two drops over the group, with saturating byte arithmetic, is how far
 * E lies below the sum of the two largest exponents ("tops"). That costs two byte instructions per
 * k for a whole register of bytes, four times fewer than the lanes of the products.
 *
 * Infinities, NaN, overflow, underflow and E near its floor are left to the reference, lane by
 * lane. Of the corner rules of numerics/chain.h the kernels themselves know four, which change with
 * it: a product with a zero factor does not raise E; a subnormal operand has its format's lowest
 * exponent; a sum of zero is +0; so a group of zeros keeps every accumulator but -0. */
#ifndef SB_CPU_CONTRACTION_CHAIN16_KERNELS_H
#define SB_CPU_CONTRACTION_CHAIN16_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu/contraction/chain16.h"
#include "cpu/contraction/gemm_kernels.h"
#include "numerics/chain.h"
#include "numerics/convert.h"

enum {
    SB_CHAIN16_DROP_ZERO = 255,
    /* Tops of groups without a nonzero element, and of groups that only the reference may handle
     * (an infinity, a NaN, an element of 2^SB_CHAIN16_TOP_LIMIT or more). Any sum with the second
     * exceeds the ordinary range, any other sum with the first lies below it. */
    SB_CHAIN16_TOP_ZERO = -1000,
    SB_CHAIN16_TOP_EXCEPTIONAL = 4000,
    /* With tops below this, a saturated drop (at least 255) leaves products below 2^-129, outside
     * the ordinary range, and no product overflows f32. */
    SB_CHAIN16_TOP_LIMIT = 63,
    /* The ordinary range of E, as biased exponent fields: E from -100 to 96. Inside it the scales
     * 2^(25-E) and 2^(E-25) are normal, no product overflows, a product that underflows has a true
     * value below one unit, and S * 2^(E-25) is normal and finite whenever it is not zero. */
    SB_CHAIN16_FIELD_LOW = 27,
    SB_CHAIN16_FIELD_HIGH = 223
};

/** Where column j of a panel lies within a packed row of 64: two columns 16 apart share a 32-bit lane, so that a shift
 * or a mask is all it takes to get f32 lanes from bf16 in the order of the columns. */
static inline int sb_chain16_place(int column) {
    return (column & 32) + (column & 15) * 2 + ((column >> 4) & 1);
}

/** Which column lies at a place of a packed row. */
static inline int sb_chain16_at_place(int place) {
    return (place & 32) + (place & 1) * 16 + (place >> 1 & 15);
}

/** One row of A in one group, ready for the kernels. */
typedef struct sb_chain16_a {
    _Alignas(64) float value[SB_CHAIN16_GROUP]; /* infinities and NaN may be any number */
    uint16_t raw[SB_CHAIN16_GROUP];
    uint8_t drop[SB_CHAIN16_GROUP];
    int32_t top; /* largest exponent + 127, or a special top */
    /* Whether the sum of the 17 terms might leave int32. In units of 2^E, 16 products stay below 16 * 4 = 64, which is
     * 2^31, and the accumulator's term below 2, which is 2^26. So int32 always holds the sum of the products, and the
     * whole sum unless the products exceed 62. As b's significands are below 2, the 16 significands of a then exceed
     * 31: fractions above 15 of 16, so at most one fraction is below a half. That is the condition tested. */
    uint32_t overflow;
} sb_chain16_a;

/** What few rows need beside a record: their elements' drops as 16-bit lanes have exponent fields, twice in each word. */
typedef struct sb_chain16_few {
    uint32_t below[SB_CHAIN16_GROUP];
    bool ordinary; /* whether lanes may be, which an overflow or a special top rules out */
} sb_chain16_few;

/** Sets `few` from a record. */
static inline void sb_chain16_few_of(sb_dtype dtype, const sb_chain16_a *a, sb_chain16_few *few) {
    int fraction_bits = dtype == SB_BF16 ? 7 : 10;
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        uint32_t below = a->drop[k] == SB_CHAIN16_DROP_ZERO ? 0xffff : (uint32_t)a->drop[k] << fraction_bits;
        few->below[k] = below | below << 16;
    }
    few->ordinary = !a->overflow && a->top != SB_CHAIN16_TOP_ZERO && a->top < SB_CHAIN16_TOP_EXCEPTIONAL;
}

/** A tile of B in one group: `columns` of the kernels' columns, in order, at most one panel. The
 * order of the drops is the kernels' own. */
typedef struct sb_chain16_b {
    _Alignas(64) float value[SB_CHAIN16_GROUP][SB_CHAIN16_PANEL];
    uint8_t drop[SB_CHAIN16_GROUP][SB_CHAIN16_PANEL];
    int32_t top[SB_CHAIN16_PANEL]; /* largest exponent, not biased, or a special top */
    const uint16_t *raw;           /* the tile's columns in a packed panel: (k, j) at k * PANEL + place(j) */
    int valid;                     /* columns that exist; the others hold zeros and harmless exponents */
    bool exceptional;              /* some column's top is SB_CHAIN16_TOP_EXCEPTIONAL */
} sb_chain16_b;

typedef struct sb_chain16_near sb_chain16_near;

/** The kernels of one instruction set. All are pure over their arguments. */
struct sb_chain16_kernels {
    const char *name;
    const sb_gemm_kernels *f32; /* whose epilogue applies to finished sums */
    int columns;                /* of a tile: divides SB_CHAIN16_PANEL */

    /** Expands `groups` × 16 elements of one row; record g goes to `a[g * stride]`. dtype: SB_BF16 or SB_F16. */
    void (*expand_a)(sb_dtype dtype, const uint16_t *elements, int64_t groups, sb_chain16_a *a, int64_t stride);

    /** Expands 16 packed rows of a panel, from the first place of a tile's columns; only `valid`
     * (at least 1) of these exist. `panel` must outlive `tile`. */
    void (*expand_b)(sb_dtype dtype, const uint16_t *panel, int valid, sb_chain16_b *tile);

    /** Takes `acc[rows][columns]` one group further. */
    void (*step)(sb_dtype dtype, const sb_chain16_a *a, int64_t rows, const sb_chain16_b *tile, float *acc);

    /** Takes `acc[rows][SB_CHAIN16_PANEL]` through `groups` groups of a panel, of whose columns `valid` (at least 1) exist.
     * Records and what belongs to them are [groups][rows]. `tile` is for what is not ordinary. NULL where expanding each
     * group is as quick. */
    void (*sweep)(sb_dtype dtype, const sb_chain16_a *a, const sb_chain16_few *few, int64_t rows, int64_t groups,
                  const uint16_t *panel, int valid, sb_chain16_b *tile, float *acc);

    /** Rounds `count` values once, to nearest even, to bf16 or f16. */
    void (*round)(sb_dtype dtype, const float *values, int64_t count, uint16_t *out);

    /** Products that are rounded to bf16 at once (chain16_near.h); NULL: by the chain. */
    const sb_chain16_near *near;
};

/** A group's top, without the bias, from its largest exponent field (0: only zeros). */
static inline int32_t sb_chain16_top(int32_t field, sb_chain16_format format) {
    int32_t top = field - format.bias;
    if (field == format.exponent_mask || top >= SB_CHAIN16_TOP_LIMIT)
        return SB_CHAIN16_TOP_EXCEPTIONAL;
    return field == 0 ? SB_CHAIN16_TOP_ZERO : top;
}

/** What every table has for `round`: a loop to be compiled for the table's instruction set. */
static inline void sb_chain16_round(sb_dtype dtype, const float *values, int64_t count, uint16_t *out) {
    if (dtype == SB_BF16) {
        for (int64_t i = 0; i < count; i++)
            out[i] = sb_bf16_from_f32(values[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            out[i] = sb_f16_from_f32(values[i]);
    }
}

extern const sb_chain16_kernels sb_chain16_kernels_scalar;
extern const sb_chain16_kernels sb_chain16_kernels_avx2;
extern const sb_chain16_kernels sb_chain16_kernels_avx512;
/* With the processor's multiply-adds of bf16: sb_isa_multiplies_bf16. */
extern const sb_chain16_kernels sb_chain16_kernels_avx512_bf16;

#endif
