/* What splits come to where each is computed by itself (docs/numerics.md, section 10, 6): sums of a row of a split, in memory, and how
 * they are folded. Of rows whose sums are f32. */
#ifndef SB_CUDA_ATTENTION_ATTENTION_PARTS_CUH
#define SB_CUDA_ATTENTION_ATTENTION_PARTS_CUH

#include "cuda/attention/attention_row.cuh"

/* The exponent of a row that has seen no key; that of a row which is NaN is its opposite. */
#define SB_ATTENTION_NONE (-SB_SPLIT_EXPONENT_LIMIT)

/* The part of a row's split. `first` is added to a query's number for that of its parts, of a head. */
SB_CUDA_FUNCTION float *sb_attention_partial(const sb_cuda_attention *p, int64_t first, const sb_attention_place *at,
                                             int64_t split) {
    const int64_t row = at->head * p->part_rows + first + at->query;
    return p->partial + (row * p->splits + split) * SB_CUDA_ATTENTION_PARTIAL(p->value_width);
}

/* Stores what the definition has come to, by all threads of a block; column -1: none. */
template <class E>
SB_CUDA_FUNCTION void sb_attention_store_part(const sb_cuda_attention *p, float *to, int64_t column,
                                              const sb_attention_sums<E, sb_attention_real_f32> *sums) {
    if (column >= 0)
        to[column] = sums->value;
    if (threadIdx.x == 0) {
        to[p->value_width] = sums->sum;
        ((int32_t *)(void *)to)[p->value_width + 1] = sums->outcome == SB_CUDA_ATTENTION_NOTHING ? SB_ATTENTION_NONE
                                                      : sums->outcome == SB_CUDA_ATTENTION_NAN   ? -SB_ATTENTION_NONE
                                                                                                 : sums->maximum;
    }
}

/* What a row's splits have come to so far, but for the values. */
typedef struct sb_attention_part_total {
    int32_t maximum; /* SB_ATTENTION_NONE: nothing */
    float sum;
} sb_attention_part_total;

/* By what the split's values and those before it are multiplied. */
typedef struct sb_attention_part_factors {
    float own, before;
    bool is_none, is_first;
} sb_attention_part_factors;

/* Folds a split's row, but for the values, which sb_attention_fold_value does. */
SB_CUDA_FUNCTION sb_attention_part_factors sb_attention_fold_row(sb_attention_part_total *total, int32_t maximum,
                                                                 float sum) {
    sb_attention_part_factors by = {1, 1, maximum == SB_ATTENTION_NONE, total->maximum == SB_ATTENTION_NONE};
    if (by.is_none)
        return by;
    if (by.is_first) {
        total->sum = sum;
        total->maximum = maximum;
    } else if (maximum < total->maximum) {
        by.own = sb_split_factor_f32(maximum, total->maximum);
        total->sum = total->sum + sum * by.own;
    } else {
        by.before = sb_split_factor_f32(total->maximum, maximum);
        total->sum = total->sum * by.before + sum;
        total->maximum = maximum;
    }
    return by;
}

SB_CUDA_FUNCTION void sb_attention_fold_value(float *total, float value, sb_attention_part_factors by) {
    if (by.is_none)
        return;
    *total = by.is_first ? value : *total * by.before + value * by.own;
}

/* Row `row` of a block of threads, which is a query of a head of a sample, or with pages of any sequence; *first as above. */
SB_CUDA_FUNCTION sb_attention_place sb_attention_row_at(const sb_cuda_attention *p, int64_t row, int64_t *first) {
    sb_attention_sequence found;
    if (p->pages.table == NULL) {
        const sb_attention_place at = sb_attention_row(p, row);
        *first = at.batch * p->heads * p->part_rows;
        return at;
    }
    const int64_t head = sb_cuda_take(&row, p->heads);
    const sb_attention_place at = sb_attention_paged_row(p, head, row, &found);
    *first = found.behind - found.begin;
    return at;
}

#endif
