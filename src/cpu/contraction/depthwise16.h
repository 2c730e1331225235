/* Depthwise convolutions of f16 and bf16, one channel in and out of each group: lanes are channels, and each is a chain of 16-bit steps
 * (numerics/chain.h). As products of matrices they would have one column of a tile's 64. */
#ifndef SB_CPU_CONTRACTION_DEPTHWISE16_H
#define SB_CPU_CONTRACTION_DEPTHWISE16_H

#include "cpu/contraction/conv16.h"

/* Exponent fields: what a zero and what an infinity or NaN has in place of one. A sum of two is negative where a factor is zero, and
 * above every ordinary one where a factor is special, whatever the other is. */
#define SB_DEPTHWISE16_ZERO (-2000)
#define SB_DEPTHWISE16_SPECIAL 8000

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
} sb_depthwise16_pixel;

/** The chains of all channels of one output position. */
typedef void sb_depthwise16_chains(const sb_depthwise16_pixel *pixel);

extern sb_depthwise16_widen sb_depthwise16_widen_scalar;
extern sb_depthwise16_chains sb_depthwise16_chains_scalar;
#if SB_HAS_X86_KERNELS
extern sb_depthwise16_widen sb_depthwise16_widen_avx2, sb_depthwise16_widen_avx512;
extern sb_depthwise16_chains sb_depthwise16_chains_avx2, sb_depthwise16_chains_avx512;
#endif

/** Whether the convolution is one that sb_depthwise16_run computes. */
bool sb_depthwise16_fits(const sb_conv16 *conv);

/** The same as sb_conv16_run. */
sb_status sb_depthwise16_run(sb_call *call, const sb_conv16 *conv);

#endif
