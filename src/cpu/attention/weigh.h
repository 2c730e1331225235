/* What attention does between its two products, a row at a time: scores of a block of keys become weights. One table for
 * each instruction set; every function has the bits of ops/attention_row.h. */
#ifndef SB_CPU_ATTENTION_WEIGH_H
#define SB_CPU_ATTENTION_WEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include <samebit/dtype.h>
#include <samebit/isa.h>

#include "ops/attention_values.h"

/* What all rows of a call have alike. */
typedef struct sb_attention_formula {
    sb_dtype dtype; /* of weights where they meet values: f16, bf16 or f32 */
    bool direct;    /* scores are taken as the chain leaves them, their scale being in `split` */
    bool biased;    /* or else: a bias is added */
    float scale, cap;
    sb_split_scale_f32 split;
} sb_attention_formula;

/* A row's sum of weights: of the present split, or of all before it. */
typedef struct sb_attention_sum {
    bool any, is_nan; /* whether a key was seen; whether the whole row is NaN */
    int32_t maximum;
    float lanes[SB_SPLIT_LANES]; /* of all before: folded, in the first */
} sb_attention_sum;

/* What became of a block. */
typedef struct sb_attention_marks {
    int first, last; /* every weight outside of these keys is +0: first = last if all are */
    bool gaps;       /* there are such between them, too */
    float factor;    /* what the sums of the split are to be multiplied by before; 1: they stay */
} sb_attention_marks;

typedef struct sb_attention_kernels {
    /* The scores of `count` keys (1 to SB_ATTENTION_BLOCK) become weights as stored, with +0 from there up to a multiple of 16,
     * to which scores must be readable; for f16 and bf16 their bits go to `stored`, too. Keys from `first` up to and without
     * `last` are seen, but for those whose bias is −∞; `bias` may be NULL. A row that is NaN gets weights of +0. */
    sb_attention_marks (*weigh)(const sb_attention_formula *formula, int count, int first, int last, const float *bias,
                                float *scores, uint16_t *stored, sb_attention_sum *row);
    /* The biases of `count` keys, `step` elements of `dtype` (bool or a formula's) apart. False is −∞, and true 0. */
    void (*load_bias)(sb_dtype dtype, const char *mask, int64_t step, int count, float *bias);
    /* values = values · factor. */
    void (*scale)(float *values, int64_t count, float factor);
    /* total = total · total_factor + sums · sums_factor, each operation rounded; no factor is anything but a power of two. */
    void (*fold)(float *total, float total_factor, const float *sums, float sums_factor, int64_t count);
} sb_attention_kernels;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_attention_kernels *sb_attention_kernels_for(sb_isa isa);

#endif
