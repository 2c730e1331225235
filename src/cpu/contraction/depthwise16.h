/* Depthwise convolutions of f16 and bf16, one channel in and out of each group: lanes are channels, and each is a chain of 16-bit steps
 * (numerics/chain.h). As products of matrices they would have one column of a tile's 64.
 *
 * Only a chain's rounding to 16 bits is wanted, so f32 sums are computed first, with a bound of how far the chain may be, as chain16_near.h has
 * it for products. Let A = Σ |x w|, of n taps in g groups, and u = 2^-25. No exponent of a step is above that of A, so the chain truncates
 * n + g terms, each by less than u A, and g results, by less than 4u A; a sum of n products, which are exact, is rounded n times, by half an
 * ulp or u A · 2 at most, and so are both ends: together u A (3 n + 5 g + 2), and 2 % for what is of second order. That holds where no product
 * is below 2^-126 and nothing overflows, so elements must be within LEAST and MOST or zeros; else all is computed by the chain. */
#ifndef SB_CPU_CONTRACTION_DEPTHWISE16_H
#define SB_CPU_CONTRACTION_DEPTHWISE16_H

#include "cpu/contraction/conv16.h"

/* Exponent fields: what a zero and what an infinity or NaN has in place of one. A sum of two is negative where a factor is zero, and
 * above every ordinary one where a factor is special, whatever the other is. */
#define SB_DEPTHWISE16_ZERO (-2000)
#define SB_DEPTHWISE16_SPECIAL 8000

#define SB_DEPTHWISE16_LEAST 0x1p-60f
#define SB_DEPTHWISE16_MOST 0x1p30f
#define SB_DEPTHWISE16_TAPS 1024 /* for which 2 % suffice */

/* Elements taken apart. Special ones have the value 0. */
typedef struct sb_depthwise16_parts {
    const uint16_t *raw;
    const float *values;
    const int16_t *fields;
} sb_depthwise16_parts;

/** Takes `count` elements apart. */
typedef void sb_depthwise16_widen(sb_dtype dtype, int64_t count, const uint16_t *raw, float *values, int16_t *fields);

typedef struct sb_depthwise16_pixel {
    sb_dtype dtype;
    int64_t channels, taps;
    sb_depthwise16_parts x, w; /* w: [tap][channel] */
    const int64_t *offsets;    /* of channel 0 in x of what each tap reads */
    float *sums;               /* [channel] */
    float *highest;            /* [channel] */
} sb_depthwise16_pixel;

/** The chains of all channels of one output position. */
typedef void sb_depthwise16_chains(const sb_depthwise16_pixel *pixel);

/** The ends of what the chains may be, to `sums` and `highest`. Of x it reads `raw` alone. */
typedef void sb_depthwise16_near(const sb_depthwise16_pixel *pixel);

/** Whether `count` elements are zeros or within LEAST and MOST. */
typedef bool sb_depthwise16_moderate(sb_dtype dtype, const uint16_t *raw, int64_t count);

extern sb_depthwise16_widen sb_depthwise16_widen_scalar;
extern sb_depthwise16_chains sb_depthwise16_chains_scalar;
extern sb_depthwise16_near sb_depthwise16_near_scalar;
extern sb_depthwise16_moderate sb_depthwise16_moderate_scalar;
#if SB_HAS_X86_KERNELS
extern sb_depthwise16_widen sb_depthwise16_widen_avx2, sb_depthwise16_widen_avx512;
extern sb_depthwise16_chains sb_depthwise16_chains_avx2, sb_depthwise16_chains_avx512;
extern sb_depthwise16_near sb_depthwise16_near_avx2, sb_depthwise16_near_avx512;
extern sb_depthwise16_moderate sb_depthwise16_moderate_avx2, sb_depthwise16_moderate_avx512;
#endif

/** Taps [first, first + count), a group at most, of a channel, behind `before`: by the definition. */
float sb_depthwise16_step(const sb_depthwise16_pixel *pixel, int64_t first, int64_t count, int64_t channel,
                          float before);

/** Whether the convolution is one that sb_depthwise16_run computes. */
bool sb_depthwise16_fits(const sb_conv16 *conv);

/** The same as sb_conv16_run. */
sb_status sb_depthwise16_run(sb_call *call, const sb_conv16 *conv);

#endif
