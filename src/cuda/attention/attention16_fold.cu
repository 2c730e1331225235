/* What splits have come to, folded (docs/numerics.md, section 10, 6 and 7).
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16.cuh"

/* Splits whose parts are on their way at once. */
#define TOGETHER 8

typedef struct part {
    float value, sum;
    int32_t maximum;
} part;

/* `first`: as in a tile. */
SB_CUDA_FUNCTION part load_part(const sb_cuda_attention *p, int64_t first, const sb_attention_place *at, int64_t split,
                                int64_t column) {
    const float *from = sb_attention16_partial(p, first, at, split);
    part part;
    part.value = from[column];
    part.sum = from[p->value_width];
    part.maximum = ((const int32_t *)(const void *)from)[p->value_width + 1];
    return part;
}

/* A column of a row. Splits that the row does not reach need not have been written. */
template <class E>
SB_CUDA_FUNCTION void fold_column(const sb_cuda_attention *p, int64_t parts_first, const sb_attention_place *at,
                                  int64_t column) {
    const int64_t end = (at->reach.last + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT;
    sb_attention16_total total = {NONE, 0};
    float value = 0;
    bool is_nan = false;
    SB_CUDA_KEEP_LOOP
    for (int64_t first = at->reach.first / SB_ATTENTION_SPLIT; first < end; first += TOGETHER) {
        part parts[TOGETHER];
        SB_CUDA_UNROLL
        for (int i = 0; i < TOGETHER; i++)
            parts[i] = load_part(p, parts_first, at, first + i < end ? first + i : first, column);
        SB_CUDA_UNROLL
        for (int i = 0; i < TOGETHER; i++) {
            if (first + i >= end)
                continue;
            is_nan |= parts[i].maximum == -NONE;
            sb_attention16_fold_value(&value, parts[i].value,
                                      sb_attention16_fold_row(&total, parts[i].maximum, parts[i].sum));
        }
    }
    float result = is_nan ? sb_nan_f32() : 0;
    if (!is_nan && total.maximum != NONE)
        result = value * sb_div_f32(1, total.sum);
    sb_number_store(E::dtype, p->y.data, sb_attention_at(&p->y, at->batch, at->head, at->query, column),
                    (double)result);
}

/* A block of threads for each row, a column each at a time. */
template <int HALF, bool PAGED> SB_CUDA_FUNCTION void fold_rows(const sb_cuda_attention *p) {
    const int64_t count = p->batch * p->heads * p->part_rows;
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        sb_attention_place at;
        int64_t first;
        if (PAGED) {
            sb_attention_sequence found;
            int64_t number = row;
            const int64_t head = sb_cuda_take(&number, p->heads);
            at = sb_attention_paged_row(p, head, number, &found);
            if (!at.used)
                return;
            first = found.behind - found.begin;
        } else {
            at = sb_attention_row(p, row);
            first = at.batch * p->heads * p->part_rows;
        }
        SB_CUDA_KEEP_LOOP
        for (int64_t column = threadIdx.x; at.used && column < p->value_width; column += THREADS)
            fold_column<typename sb_attention16_element<HALF>::type>(p, first, &at, column);
    }
}

#define FOLD(name, half)                                                                                               \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_attention16_fold_##name, sb_cuda_attention, p, THREADS, 4) {                        \
        fold_rows<half, false>(p);                                                                                     \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention16_fold_##name##_paged, sb_cuda_attention, p, THREADS, 4) {          \
        fold_rows<half, true>(p);                                                                                      \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
FOLD(f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
FOLD(bf16, SB_CUDA_BF16)
#endif
