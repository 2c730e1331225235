/* What kernels that fold splits share (docs/numerics.md, section 10, 6 and 7): parts of rows, and what a split does to the totals of its
 * row, which is worked out for many splits side by side. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_FOLD_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_FOLD_CUH

#include "cuda/attention/attention16.cuh"
#include "cuda/common/words.cuh"

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
SB_CUDA_FUNCTION sb_cuda_words4 sb_attention16_load_part_words(const float *from) {
#if defined(__CUDA_ARCH__)
    return __ldcg((const sb_cuda_words4 *)(const void *)from);
#else
    return *(const sb_cuda_words4 *)(const void *)from;
#endif
}

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

/* ---- a row by a warp ---- */

/* The steps of splits `first` to `first` + 31, of which `count` are there, a lane each; *highest is the largest exponent so far. */
SB_CUDA_FUNCTION sb_attention16_step sb_attention16_find_steps(const sb_cuda_attention *p, int64_t part,
                                                               const sb_attention_place *at, int32_t first,
                                                               int32_t count, int32_t *highest, bool *is_nan) {
    const int lane = (int)threadIdx.x % 32;
    sb_attention16_part read = {0, 0, NONE};
    if (lane < count)
        read = sb_attention16_load_part(p, part, at, first + lane, 0);
    int32_t largest = read.maximum;
    SB_CUDA_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
        const int32_t other = sb_cuda_shuffle_from_s32(largest, lane >= distance ? lane - distance : lane);
        largest = other > largest ? other : largest;
    }
    const int32_t ahead = sb_cuda_shuffle_from_s32(largest, lane > 0 ? lane - 1 : 0);
    const int32_t before = lane > 0 && ahead > *highest ? ahead : *highest;
    largest = sb_cuda_shuffle_from_s32(largest, 31);
    *highest = largest > *highest ? largest : *highest;
    *is_nan |= sb_cuda_first_lane(read.maximum == -NONE) >= 0;
    return sb_attention16_find_step(read.maximum, read.sum, before);
}

/* Splits whose values are on their way together. */
#define FOLD_BATCH 8

/* Four columns of splits `first` to `first` + 7, of which `count` are there. */
SB_CUDA_FUNCTION void sb_attention16_load_batch(const float *from, int64_t between, int32_t count,
                                                sb_cuda_words4 values[FOLD_BATCH]) {
    SB_CUDA_UNROLL
    for (int i = 0; i < FOLD_BATCH; i++) {
        const sb_cuda_words4 none = {0, 0, 0, 0};
        values[i] = i < count ? sb_attention16_load_part_words(from + i * between) : none;
    }
}

/* Folds all splits of a row from `first_split` on, in four columns of each lane from `column` on; lanes without columns come, too. */
template <int HALF>
SB_CUDA_FUNCTION void sb_attention16_fold_by_warp(const sb_cuda_attention *p, int64_t part,
                                                  const sb_attention_place *at, int32_t first_split, int32_t splits,
                                                  int column) {
    const int64_t between = SB_CUDA_ATTENTION_PARTIAL(p->value_width);
    const bool is_column = column < p->value_width;
    const float *from = sb_attention16_partial(p, part, at, first_split) + (is_column ? column : 0);
    float totals[4] = {0, 0, 0, 0}, sum = 0;
    int32_t highest = NONE;
    bool is_nan = false;
    sb_cuda_words4 now[FOLD_BATCH], then[FOLD_BATCH];
    sb_attention16_load_batch(from, between, splits, now);
    SB_CUDA_KEEP_LOOP
    for (int32_t first = 0; first < splits; first += 32) {
        const int32_t count = splits - first < 32 ? splits - first : 32;
        const sb_attention16_step own =
            sb_attention16_find_steps(p, part, at, first_split + first, count, &highest, &is_nan);
        SB_CUDA_KEEP_LOOP
        for (int i = 0; i < count; i += FOLD_BATCH) {
            from += FOLD_BATCH * between;
            sb_attention16_load_batch(from, between, splits - first - i - FOLD_BATCH, then);
            SB_CUDA_UNROLL
            for (int j = 0; j < FOLD_BATCH; j++) {
                sb_attention16_step by = {sb_cuda_shuffle_from_f32(own.before, i + j),
                                          sb_cuda_shuffle_from_f32(own.own, i + j),
                                          sb_cuda_shuffle_from_f32(own.sum, i + j), 0};
                sb_attention16_take_step(&totals[0], sb_bits_to_f32(now[j].x), by);
                sb_attention16_take_step(&totals[1], sb_bits_to_f32(now[j].y), by);
                sb_attention16_take_step(&totals[2], sb_bits_to_f32(now[j].z), by);
                sb_attention16_take_step(&totals[3], sb_bits_to_f32(now[j].w), by);
                sb_attention16_take_step(&sum, by.sum, by);
                now[j] = then[j];
            }
        }
    }
    const float share = sb_div_f32(1, sum);
    SB_CUDA_UNROLL
    for (int i = 0; i < 4 && is_column; i += 2)
        sb_attention16_give_result<HALF>(p, at, column + i, totals[i], totals[i + 1], is_nan, highest, share);
}

#endif
