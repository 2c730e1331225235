/* What splits have come to, folded (docs/numerics.md, section 10, 6 and 7): steps are worked out for 128 splits side by side, so that a
 * column has nothing to do for each of them but a multiplication and a sum, and values are on their way meanwhile.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16_fold.cuh"

/* Steps of 128 splits at a time, a thread each. */
typedef struct fold_memory {
    sb_attention16_step steps[THREADS];
    int32_t tops[THREADS / 32];
    int is_nan;
} fold_memory;

/* Values of so many splits are on their way while those before them are folded. */
#define BATCH 32

/* The largest of the values that threads before this one have, and of `least`. All threads of the block. */
SB_CUDA_FUNCTION int32_t largest_before(int32_t value, int32_t least, fold_memory *shared, int32_t *largest) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    SB_CUDA_UNROLL
    for (int distance = 1; distance < 32; distance *= 2) {
        const int32_t other = sb_cuda_shuffle_from_s32(value, (lane - distance) & 31);
        value = lane >= distance && other > value ? other : value;
    }
    int32_t before = sb_cuda_shuffle_from_s32(value, (lane - 1) & 31);
    before = lane > 0 ? before : NONE;
    if (lane == 31)
        shared->tops[warp] = value;
    SB_CUDA_BARRIER();
    before = before > least ? before : least;
    *largest = least;
    for (int i = 0; i < THREADS / 32; i++) {
        const int32_t top = shared->tops[i];
        before = i < warp && top > before ? top : before;
        *largest = top > *largest ? top : *largest;
    }
    return before;
}

/* Steps of `count` splits from `first` on, up to 128; `*highest` is the largest exponent so far. */
SB_CUDA_FUNCTION void find_steps(const sb_cuda_attention *p, int64_t part, const sb_attention_place *at, int64_t first,
                                 int64_t count, int32_t *highest, fold_memory *shared) {
    float sum = 0;
    int32_t maximum = NONE, largest;
    if (threadIdx.x < count) {
        const sb_attention16_part read = sb_attention16_load_part(p, part, at, first + threadIdx.x, 0);
        maximum = read.maximum;
        sum = read.sum;
    }
    const int32_t before = largest_before(maximum, *highest, shared, &largest);
    if (maximum == -NONE)
        shared->is_nan = 1;
    shared->steps[threadIdx.x] = sb_attention16_find_step(maximum, sum, before);
    *highest = largest;
    SB_CUDA_BARRIER();
}

SB_CUDA_FUNCTION void load_values(const sb_cuda_attention *p, int64_t part, const sb_attention_place *at, int64_t split,
                                  int64_t end, int64_t column, float values[BATCH]) {
    const float *from = sb_attention16_partial(p, part, at, split) + column;
    const int64_t between = SB_CUDA_ATTENTION_PARTIAL(p->value_width);
    SB_CUDA_UNROLL
    for (int i = 0; i < BATCH; i++)
        values[i] = split + i < end ? sb_attention16_load_part_word(from + i * between) : 0;
}

/* Folds values of the splits whose steps begin at `steps`. */
SB_CUDA_FUNCTION void fold_values(const sb_attention16_step *steps, const float values[BATCH], float *total,
                                  float *sum) {
    SB_CUDA_UNROLL
    for (int i = 0; i < BATCH; i++) {
        const sb_attention16_step by = steps[i];
        sb_attention16_take_step(total, values[i], by);
        sb_attention16_take_step(sum, by.sum, by);
    }
}

/* A column of a row for each thread, of those from `first` on. */
template <class E>
SB_CUDA_FUNCTION void fold_columns(const sb_cuda_attention *p, int64_t part, const sb_attention_place *at,
                                   int64_t first, fold_memory *shared) {
    const bool is_column = first + threadIdx.x < p->value_width;
    const int64_t column = is_column ? first + (int64_t)threadIdx.x : 0;
    sb_attention16_column own = sb_attention16_begin_column(at, column);
    int32_t highest = NONE;
    if (threadIdx.x == 0)
        shared->is_nan = 0;
    SB_CUDA_KEEP_LOOP
    for (; own.next < own.end; own.next += THREADS) {
        const int64_t left = own.end - own.next, count = left < THREADS ? left : THREADS;
        float now[BATCH], then[BATCH];
        load_values(p, part, at, own.next, own.end, column, now);
        SB_CUDA_BARRIER();
        find_steps(p, part, at, own.next, count, &highest, shared);
        SB_CUDA_KEEP_LOOP
        for (int64_t i = 0; i < count; i += BATCH) {
            load_values(p, part, at, own.next + i + BATCH, own.end, column, then);
            fold_values(shared->steps + i, now, &own.value, &own.total.sum);
            SB_CUDA_UNROLL
            for (int j = 0; j < BATCH; j++)
                now[j] = then[j];
        }
    }
    SB_CUDA_BARRIER();
    own.total.maximum = highest;
    own.is_nan = shared->is_nan != 0;
    if (is_column)
        sb_attention16_end_column<E>(p, &own);
    SB_CUDA_BARRIER();
}

/* A block of threads for each row. */
template <int HALF, bool PAGED> SB_CUDA_FUNCTION void fold_rows(const sb_cuda_attention *p) {
    SB_CUDA_SHARED fold_memory shared;
    const int64_t count = p->batch * p->heads * p->part_rows;
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        sb_attention_place at;
        int64_t part;
        if (PAGED) {
            sb_attention_sequence found;
            int64_t number = row;
            const int64_t head = sb_cuda_take(&number, p->heads);
            at = sb_attention_paged_row(p, head, number, &found);
            if (!at.used)
                return;
            part = found.behind - found.begin;
        } else {
            at = sb_attention_row(p, row);
            part = at.batch * p->heads * p->part_rows;
        }
        SB_CUDA_KEEP_LOOP
        for (int64_t first = 0; at.used && first < p->value_width; first += THREADS)
            fold_columns<typename sb_attention16_element<HALF>::type>(p, part, &at, first, &shared);
    }
}

#define FOLD(name, half)                                                                                               \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention16_fold_##name, sb_cuda_attention, p, THREADS, 2) {                  \
        fold_rows<half, false>(p);                                                                                     \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention16_fold_##name##_paged, sb_cuda_attention, p, THREADS, 2) {          \
        fold_rows<half, true>(p);                                                                                      \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
FOLD(f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
FOLD(bf16, SB_CUDA_BF16)
#endif
