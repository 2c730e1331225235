/* Products of bf16 that are rounded to bf16 at once, without the chain where its last bits do not matter.
 *
 * A chain (numerics/chain.h) truncates at each step, which takes four instructions for each product and as many again for the exponents;
 * multiply-adds of f32, or the processor's own of bf16, take one or a half. They come to another f32, but what is kept of that are
 * 8 bits of 24. So sums are computed the quick way, together with a bound of how far the chain may be from them. Where both
 * ends of what is possible round to the same bf16, that is the chain's; elsewhere, in 3 to 8 % of elements, and 20 % of sums of 8,192, the
 * chain is computed, for 16 or 32 elements at a time that lie anywhere in a tile. So the bits are the chain's, whatever the inputs.
 *
 * The bound, in units of u = 2^-25, of an element whose quick sum behind group g is q_g, and whose chain there is c_g:
 *
 *   - a step truncates up to 16 terms, each by less than u · 2^E, where 2^E <= max(2^P, |c_(g-1)|) and P is the largest e(a) + e(b) of
 *     the group; then its result, by less than 2^-23 |c_g| = 4u |c_g|;
 *   - the quick way adds the sum of a group to that of those before: half an ulp, 2u |q_g|; and the ends of what is possible are
 *     rounded themselves: 2u |q|;
 *   - in a group's own sum, which is that of two halves that begin with 0, product i is in at most w_i = 9 - 2 ⌊(i mod 8) / 2⌋ roundings of
 *     half an ulp: 2u Σ w_i |a_i b_i|.
 *
 * Let S = Σ_g |q_g|, T(a) = √Σ_g 4^(largest exponent of a in the group), N(a) = √Σ w_i a_i². By Cauchy's inequality, over all groups,
 *
 *     |chain - q| <= u (24 S + 16 T(a) T(b) + 2 N(a) N(b)) · 1.02
 *
 * where the last factor stands for c in place of q in S, which makes less than 24 u · groups of difference, for up to 2^13 groups, and for
 * roundings of S, T and N themselves. T and N have 2^-40 added unless all elements are zeros: it outweighs what is lost where products or
 * squares are below 2^-126, and where the processor takes subnormal elements for zeros. With T below 2^25 nothing overflows, no
 * element is an infinity or a NaN, and no E that a subnormal element gives is one that lanes compute with; other rows and columns take
 * the chain.
 *
 * The harness has sums that are 0.64 of the bound from their chains (chain16.lost); ordinary ones are at 0.02 to 0.04. */
#ifndef SB_CPU_CONTRACTION_CHAIN16_NEAR_H
#define SB_CPU_CONTRACTION_CHAIN16_NEAR_H

#include "cpu/contraction/chain16.h"
#include "cpu/contraction/chain16_kernels.h"

/* Rows of a tile, which has SB_CHAIN16_PANEL columns; lanes of chains that are computed together, at least. */
#define SB_CHAIN16_NEAR_ROWS 64
#define SB_CHAIN16_NEAR_LEAST_LANES 16
#define SB_CHAIN16_NEAR_MOST (SB_CHAIN16_NEAR_ROWS * SB_CHAIN16_PANEL)
/* T, above which rows and columns take the chain. */
#define SB_CHAIN16_NEAR_TOP 0x1p25f
#define SB_CHAIN16_NEAR_FLOOR 0x1p-40f

/* Of 64 columns, or of 64 rows: Σ_g 4^(largest exponent), and half of Σ w x²; behind sb_chain16_near.finish T and N. */
typedef struct sb_chain16_measures {
    _Alignas(64) float tops[SB_CHAIN16_PANEL], norms[SB_CHAIN16_PANEL];
    uint32_t any[SB_CHAIN16_PANEL]; /* of all elements' magnitudes, or-ed: 0 where all are zeros */
} sb_chain16_measures;

/* Elements anywhere in a tile, as many together as a kernel's `lanes`. */
typedef struct sb_chain16_lanes {
    _Alignas(64) uint16_t
        rows[SB_CHAIN16_NEAR_MOST]; /* where an element's row and column lie in their panels: sb_chain16_place */
    uint16_t columns[SB_CHAIN16_NEAR_MOST];
    float
        found[SB_CHAIN16_NEAR_MOST]; /* of as many the chains of those with even numbers, then of those with odd ones */
    uint32_t strange[SB_CHAIN16_NEAR_MOST / SB_CHAIN16_NEAR_LEAST_LANES]; /* likewise, a bit each: not computed */
} sb_chain16_lanes;

/* A tile's rows of A: where each lies, in whole groups, and all of them as a packed panel of columns. */
typedef struct sb_chain16_near_rows {
    const uint16_t *lines[SB_CHAIN16_NEAR_ROWS];
    uint16_t *panel;
} sb_chain16_near_rows;

/** The kernels of one kind of processor. All are pure over their arguments, and pointers are aligned to 64 but for rows'. */
struct sb_chain16_near {
    int lanes;
    int64_t
        groups; /* of which the chain is quicker, with more of them: the more, the more of what they come to is uncertain */

    /** Measures `groups` groups of a packed panel further, and unless `pairs` is NULL puts its rows 2i and 2i + 1 into
     * pairs[i * 2 * SB_CHAIN16_PANEL]: column j's two elements side by side, columns in their order. */
    void (*measure)(const uint16_t *panel, int64_t groups, sb_chain16_measures *measures, uint16_t *pairs);

    /** From sums to T and N. */
    void (*finish)(sb_chain16_measures *measures);

    /** Takes quick sums[rows][SB_CHAIN16_PANEL] through `groups` groups, and adds what they are behind each, without sign, to `passed`. Row r
     * of A goes on at a[r] + first. */
    void (*sum)(const uint16_t *const *a, int64_t first, int64_t rows, const uint16_t *pairs, int64_t groups,
                float *sums, float *passed);

    /** The ends of what the chains of a row of a tile may be, from its sums. */
    void (*bound)(const float *sums, const float *passed, float top, float norm, const sb_chain16_measures *columns,
                  float *low, float *high);

    /** The columns whose ends round to different bf16. */
    uint64_t (*differ)(const float *low, const float *high);

    /** The chains of `count` times `lanes` lanes, count being at least 1: of finite elements whose T are below the limit. */
    void (*chains)(const sb_chain16_near_rows *a, const uint16_t *panel, int64_t groups, sb_chain16_lanes *lanes,
                   int64_t count);
};

extern const sb_chain16_near sb_chain16_near_avx2, sb_chain16_near_avx512, sb_chain16_near_pairs_avx512;

/** Whether `rows` rows of a product are computed so. */
bool sb_chain16_near_fits(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t rows);

/** What sb_chain16_near_run needs beside sb_chain16_chain_bytes, a multiple of 64; 0 when that overflows. */
size_t sb_chain16_near_bytes(const sb_chain16_args *args);

/** sb_chain16_run of a product that fits. */
void sb_chain16_near_run(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1,
                         int64_t n0, int64_t n1, void *workspace);

#endif
