/* Folding what splits have come to (docs/numerics.md, section 10, 6 and 7), in ascending order: by a kernel of its own, or by the block of
 * threads that has finished the last split of some rows. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_FOLD_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_FOLD_CUH

#include "cuda/attention/attention16.cuh"

/* Splits whose parts are on their way at once. */
#define TOGETHER 8

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

/* What other blocks of the launch may have written: past the first-level cache, which does not know. */
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

/* Splits that the row does not reach need not have been written. */
SB_CUDA_FUNCTION sb_attention16_column sb_attention16_begin_column(const sb_attention_place *at, int64_t column) {
    const sb_attention16_column begun = {*at,
                                         column,
                                         at->reach.first / SB_ATTENTION_SPLIT,
                                         (at->reach.last + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT,
                                         {NONE, 0},
                                         0,
                                         false};
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

/* COUNT columns, of any rows, whose parts are on their way together. */
template <class E, int COUNT>
SB_CUDA_FUNCTION void sb_attention16_fold_columns(const sb_cuda_attention *p, int64_t parts_first,
                                                  sb_attention16_column *columns) {
    bool goes_on = true;
    SB_CUDA_KEEP_LOOP
    while (goes_on) {
        sb_attention16_part parts[COUNT][TOGETHER / COUNT];
        goes_on = false;
        SB_CUDA_UNROLL
        for (int c = 0; c < COUNT; c++) {
            const sb_attention16_column *own = &columns[c];
            SB_CUDA_UNROLL
            for (int i = 0; i < TOGETHER / COUNT; i++) {
                if (own->next + i < own->end)
                    parts[c][i] = sb_attention16_load_part(p, parts_first, &own->at, own->next + i, own->column);
            }
        }
        SB_CUDA_UNROLL
        for (int c = 0; c < COUNT; c++) {
            sb_attention16_column *own = &columns[c];
            SB_CUDA_UNROLL
            for (int i = 0; i < TOGETHER / COUNT; i++) {
                if (own->next + i >= own->end)
                    continue;
                own->is_nan |= parts[c][i].maximum == -NONE;
                sb_attention16_fold_value(&own->value, parts[c][i].value,
                                          sb_attention16_fold_row(&own->total, parts[c][i].maximum, parts[c][i].sum));
            }
            own->next += TOGETHER / COUNT;
            goes_on |= own->next < own->end;
        }
    }
    SB_CUDA_UNROLL
    for (int c = 0; c < COUNT; c++)
        sb_attention16_end_column<E>(p, &columns[c]);
}

#undef TOGETHER
#endif
