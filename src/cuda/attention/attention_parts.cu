/* Splits of rows by themselves, by the definition, and splits that have been computed apart folded (docs/numerics.md, section 10, 6
 * and 7). */
#include "cuda/attention/attention_parts.cuh"

#define THREADS SB_ATTENTION_THREADS

/* ---- splits ---- */

/* A block of threads for each split of a row and some columns of the values. Splits that are used come first, whatever there is room
 * for; those that a row does not see leave nothing. */
template <class E> SB_CUDA_FUNCTION void compute_parts(const sb_cuda_attention *p) {
    typedef sb_attention_real_f32 R;
    SB_CUDA_SHARED sb_attention_scratch<E, R> shared;
    const int64_t rows = p->batch * p->heads * p->queries, count = rows * p->tiles * p->splits;
    SB_CUDA_KEEP_LOOP
    for (int64_t index = blockIdx.x; index < count; index += gridDim.x) {
        int64_t split = index, first;
        const int64_t tile = sb_cuda_take(&split, p->tiles), row = sb_cuda_take(&split, rows);
        const int64_t start = split * SB_ATTENTION_SPLIT;
        const sb_attention_place at = sb_attention_row_at(p, row, &first);
        if (!at.used || start >= at.reach.last || start + SB_ATTENTION_SPLIT <= at.reach.first)
            continue;
        int64_t column = tile * SB_CUDA_ATTENTION_COLUMNS + threadIdx.x;
        column = column < p->value_width ? column : -1;
        sb_attention_sums<E, R> sums;
        sb_attention_split<E, R>(p, &at, start, column, &shared, &sums);
        sb_attention_store_part<E>(p, sb_attention_partial(p, first, &at, split), column, &sums);
    }
}

/* ---- the fold ---- */

/* Splits whose parts are on their way at once. */
#define TOGETHER 8

typedef struct part {
    float value, sum;
    int32_t maximum;
} part;

/* `first`: as in a tile. */
SB_CUDA_FUNCTION part load_part(const sb_cuda_attention *p, int64_t first, const sb_attention_place *at, int64_t split,
                                int64_t column) {
    const float *from = sb_attention_partial(p, first, at, split);
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
    sb_attention_part_total total = {SB_ATTENTION_NONE, 0};
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
            is_nan |= parts[i].maximum == -SB_ATTENTION_NONE;
            sb_attention_fold_value(&value, parts[i].value,
                                    sb_attention_fold_row(&total, parts[i].maximum, parts[i].sum));
        }
    }
    float result = is_nan ? sb_nan_f32() : 0;
    if (!is_nan && total.maximum != SB_ATTENTION_NONE)
        result = value * sb_div_f32(1, total.sum);
    sb_number_store(E::dtype, p->y.data, sb_attention_at(&p->y, at->batch, at->head, at->query, column),
                    (double)result);
}

/* A block of threads for each row that has parts, a column each at a time. */
template <class E> SB_CUDA_FUNCTION void fold_rows(const sb_cuda_attention *p) {
    const int64_t count = p->batch * p->heads * p->part_rows;
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        int64_t first;
        const sb_attention_place at = sb_attention_row_at(p, row, &first);
        SB_CUDA_KEEP_LOOP
        for (int64_t column = threadIdx.x; at.used && column < p->value_width; column += THREADS)
            fold_column<E>(p, first, &at, column);
    }
}

#define PARTS(name, E)                                                                                                 \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention_parts_##name, sb_cuda_attention, p, THREADS, 4) {                   \
        compute_parts<E>(p);                                                                                           \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention_fold_##name, sb_cuda_attention, p, THREADS, 4) {                    \
        fold_rows<E>(p);                                                                                               \
    }
PARTS(f16, sb_attention_f16)
PARTS(bf16, sb_attention_bf16)
PARTS(f32, sb_attention_f32)
