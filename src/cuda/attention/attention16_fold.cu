/* What splits have come to, folded (docs/numerics.md, section 10, 6 and 7): steps are worked out for 128 splits side by side, so that a
 * column has nothing to do for each of them but a multiplication and a sum, and values are on their way meanwhile.
 * Compiled for 90a alone. A module for each of bf16, f16. */
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
