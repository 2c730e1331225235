/* What kernels that fold splits share (docs/numerics.md, section 10, 6 and 7): parts of rows, and what a split does to the totals of its
 * row, which is worked out for many splits side by side. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_FOLD_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_FOLD_CUH

#include "cuda/attention/attention16.cuh"

typedef struct sb_attention16_part {
    float value, sum;
    int32_t maximum;
} sb_attention16_part;

/* A column of a row, and what its splits have come to so far. */
typedef struct sb_attention16_column {
    sb_attention_place at;
    int64_t column, next, end; /* the next split, and the one behind the last */
    sb_attention16_total total;
    float value;
    bool is_nan;
} sb_attention16_column;

/* Past the first-level cache: nobody reads it again. */
SB_CUDA_FUNCTION float sb_attention16_load_part_word(const float *from) {
#if defined(__CUDA_ARCH__)
    return __ldcg(from);
#else
    return *from;
#endif
}

/* `first`: as in a tile. */
SB_CUDA_FUNCTION sb_attention16_part sb_attention16_load_part(const sb_cuda_attention *p, int64_t first,
                                                              const sb_attention_place *at, int64_t split,
                                                              int64_t column) {
    const float *from = sb_attention16_partial(p, first, at, split);
    sb_attention16_part part;
    part.value = sb_attention16_load_part_word(from + column);
    part.sum = sb_attention16_load_part_word(from + p->value_width);
    part.maximum = (int32_t)sb_bits_from_f32(sb_attention16_load_part_word(from + p->value_width + 1));
    return part;
}

/* Splits that the row does not reach need not have been written; a row that sees no key may begin within the last one. */
SB_CUDA_FUNCTION sb_attention16_column sb_attention16_begin_column(const sb_attention_place *at, int64_t column) {
    const int64_t end = (at->reach.last + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT;
    const sb_attention16_column begun = {
        *at, column, at->reach.first / SB_ATTENTION_SPLIT, at->reach.first < at->reach.last ? end : 0, {NONE, 0},
        0,   false};
    return begun;
}

template <class E>
SB_CUDA_FUNCTION void sb_attention16_end_column(const sb_cuda_attention *p, const sb_attention16_column *c) {
    float result = c->is_nan ? sb_nan_f32() : 0;
    if (!c->is_nan && c->total.maximum != NONE)
        result = c->value * sb_div_f32(1, c->total.sum);
    sb_number_store(E::dtype, p->y.data, sb_attention_at(&p->y, c->at.batch, c->at.head, c->at.query, c->column),
                    (double)result);
}

/* What a split does to the totals of its row. */
typedef struct sb_attention16_step {
    float before, own; /* by which what was before and the split's are multiplied, but for the two below */
    float sum;         /* of its weights */
    int32_t maximum;   /* its largest exponent, as in a part */
} sb_attention16_step;
#define STEP_FIRST (-1.0f)   /* as `before`: nothing was before */
#define STEP_SKIPPED (-2.0f) /* the row sees no key of the split */

/* The step of a split whose part says `maximum` and `sum`, where the largest exponent of those before it is `before`. */
SB_CUDA_FUNCTION sb_attention16_step sb_attention16_find_step(int32_t maximum, float sum, int32_t before) {
    sb_attention16_step step = {STEP_SKIPPED, 0, sum, maximum};
    if (maximum == NONE)
        return step;
    step.before = before == NONE ? STEP_FIRST : maximum < before ? 1 : sb_split_factor_f32(before, maximum);
    step.own = maximum < before ? sb_split_factor_f32(maximum, before) : 1;
    return step;
}

/* Folds a value, or the sum of weights, as sb_attention16_fold_row and _value do: a factor of 1 changes nothing. */
SB_CUDA_FUNCTION void sb_attention16_take_step(float *total, float value, sb_attention16_step by) {
    if (by.before == STEP_FIRST)
        *total = value;
    else if (by.before != STEP_SKIPPED)
        *total = *total * by.before + value * by.own;
}

#endif
