/* Attention by the definition (ops/attention_run.c), whatever the types, strides and masks: one row, which is a query of a
 * head, by the first 128 threads of a block, a key each; then a column of the values each. */
#ifndef SB_CUDA_ATTENTION_ATTENTION_ROW_CUH
#define SB_CUDA_ATTENTION_ATTENTION_ROW_CUH

#include "cuda/attention/attention_parameters.h"
#include "cuda/attention/attention_sequences.cuh"
#include "cuda/common/index.cuh"
#include "cuda/common/shuffle.cuh"
#include "numerics/chain.h"
#include "ops/attention_values.h"
#include "ops/number.h"
#include "ops/real.h"
#include "ops/type_lists.h"

/* Where the threads that compute a row meet: all of the block, unless who includes this says otherwise. */
#if !defined(SB_ATTENTION_BARRIER)
#define SB_ATTENTION_BARRIER() SB_CUDA_BARRIER()
#endif

/* ---- types ---- */

#define SB_DEFINE_ATTENTION_ELEMENT(name, suffix, half, type, chain_type, chain, step)                                 \
    struct sb_attention_##suffix {                                                                                     \
        typedef type stored;                                                                                           \
        typedef chain_type sum;                                                                                        \
        static const sb_dtype dtype = SB_##name;                                                                       \
        static const bool is_half = half, may_be_given = false;                                                        \
        SB_CUDA_FUNCTION sum contract(const char *a, int64_t a_step, const char *b, int64_t b_step, int64_t count) {   \
            return chain((const type *)(const void *)a, a_step, (const type *)(const void *)b, b_step, count, 0);      \
        }                                                                                                              \
        SB_CUDA_FUNCTION sum add(const type *a, const type *b, sum value) {                                            \
            return step;                                                                                               \
        }                                                                                                              \
    };
SB_DEFINE_ATTENTION_ELEMENT(F16, f16, true, uint16_t, float, sb_chain16_f16, sb_chain16_step_f16(a, b, value))
SB_DEFINE_ATTENTION_ELEMENT(BF16, bf16, true, uint16_t, float, sb_chain16_bf16, sb_chain16_step_bf16(a, b, value))
SB_DEFINE_ATTENTION_ELEMENT(F32, f32, false, float, float, sb_chain_f32, sb_fma_f32(*a, *b, value))
SB_DEFINE_ATTENTION_ELEMENT(F64, f64, false, double, double, sb_chain_f64, sb_fma_f64(*a, *b, value))

#define SB_DEFINE_ATTENTION_REAL(suffix, type)                                                                         \
    struct sb_attention_real_##suffix {                                                                                \
        typedef type real;                                                                                             \
        typedef sb_split_scale_##suffix scale;                                                                         \
        SB_CUDA_FUNCTION scale scale_of(double factor) {                                                               \
            return sb_split_scale_of_##suffix((type)factor);                                                           \
        }                                                                                                              \
        SB_CUDA_FUNCTION int32_t exponent(real s, scale by) {                                                          \
            const real held = sb_split_hold_##suffix(s, by), shifted = sb_split_shifted_##suffix(held, by);            \
            return held != held ? SB_SPLIT_EXPONENT_LIMIT : sb_split_exponent_##suffix(shifted);                       \
        }                                                                                                              \
        SB_CUDA_FUNCTION real factor(int32_t exponent, int32_t maximum) {                                              \
            return sb_split_factor_##suffix(exponent, maximum);                                                        \
        }                                                                                                              \
        SB_CUDA_FUNCTION real weight(sb_dtype dtype, real s, scale by, int32_t maximum) {                              \
            return sb_attention_weight_##suffix(dtype, s, by, maximum);                                                \
        }                                                                                                              \
        SB_CUDA_FUNCTION real fold(const real *lanes) {                                                                \
            return sb_split_fold_##suffix(lanes[0], lanes[1], lanes[2], lanes[3]);                                     \
        }                                                                                                              \
        SB_CUDA_FUNCTION real reciprocal(real sum) {                                                                   \
            return sb_div_##suffix(1, sum);                                                                            \
        }                                                                                                              \
        SB_CUDA_FUNCTION real nan() {                                                                                  \
            return sb_nan_##suffix();                                                                                  \
        }                                                                                                              \
    };
SB_DEFINE_ATTENTION_REAL(f32, float)
SB_DEFINE_ATTENTION_REAL(f64, double)

SB_CUDA_FUNCTION float sb_attention_rescale(float value, int32_t lowered) {
    return value * sb_split_factor_f32(lowered, 0);
}
SB_CUDA_FUNCTION double sb_attention_rescale(double value, int32_t lowered) {
    return value * sb_split_factor_f64(lowered, 0);
}
SB_CUDA_FUNCTION float sb_attention_finish(float s, double scale, double cap, bool biased, double bias) {
    return sb_attention_finish_f32(s, (float)scale, (float)cap, biased, (float)bias);
}
SB_CUDA_FUNCTION double sb_attention_finish(double s, double scale, double cap, bool biased, double bias) {
    return sb_attention_finish_f64(s, scale, cap, biased, bias);
}

/* ---- where a row is ---- */

typedef struct sb_attention_place {
    int64_t batch, head, key_head, query;
    int64_t sequence; /* with pages */
    int64_t past, keys, mask_keys, mask_step;
    sb_attention_reach reach;
    bool used; /* whether anybody looks at the row */
} sb_attention_place;

SB_CUDA_FUNCTION int64_t sb_attention_at(const sb_cuda_attention_array *array, int64_t batch, int64_t head, int64_t row,
                                         int64_t column) {
    return batch * array->batch + head * array->head + row * array->row + column * array->column;
}

/* What the queries of a sample have in common; `queries` are those that are used. */
SB_CUDA_FUNCTION sb_attention_place sb_attention_sample(const sb_cuda_attention *p, int64_t batch, int64_t *length) {
    sb_attention_place at;
    at.batch = batch;
    at.past = sb_cuda_used(p->used_past, p->past);
    at.keys = at.past + sb_cuda_used(p->used_fresh, p->fresh);
    at.mask_keys = sb_cuda_used(p->used_mask, p->mask_keys);
    at.mask_step = p->mask.column;
    if (p->mask_repeats && at.mask_keys == 1) {
        at.mask_keys = at.keys;
        at.mask_step = 0;
    }
    *length = p->lengths != NULL ? sb_attention_length(p->lengths[batch * p->lengths_stride], at.keys) : at.keys;
    return at;
}

/* Which keys a query sees, but for the mask's elements. */
SB_CUDA_FUNCTION sb_attention_reach sb_attention_reach_at(const sb_cuda_attention *p, const sb_attention_place *at,
                                                          int64_t length, int64_t query) {
    int64_t position = at->past + query;
    if (p->lengths != NULL)
        position = length - sb_cuda_used(p->used_queries, p->queries) + query;
    if (p->mask_kind != SB_CUDA_ATTENTION_NO_MASK && at->mask_keys < length)
        length = at->mask_keys;
    return sb_attention_reach_of(position, length, p->left, p->right);
}

SB_CUDA_FUNCTION sb_attention_place sb_attention_row(const sb_cuda_attention *p, int64_t row) {
    int64_t batch = row, query = sb_cuda_take(&batch, p->queries), head = sb_cuda_take(&batch, p->heads), length;
    sb_attention_place at = sb_attention_sample(p, batch, &length);
    at.head = head;
    at.key_head = head / p->group;
    at.query = query;
    at.sequence = 0;
    at.reach = sb_attention_reach_at(p, &at, length, query);
    at.used = query < sb_cuda_used(p->used_queries, p->queries);
    return at;
}

/* The same where there are several sequences, by a whole warp: row `row` of `head` of all that have parts, from the last sequence on.
 * Not used: there are not so many. */
SB_CUDA_FUNCTION sb_attention_place sb_attention_paged_row(const sb_cuda_attention *p, int64_t head, int64_t row,
                                                           sb_attention_sequence *found) {
    int64_t length;
    sb_attention_place at = sb_attention_sample(p, 0, &length);
    *found = sb_attention_find_sequence(p, row, 0);
    at.head = head;
    at.key_head = head / p->group;
    at.query = found->begin + found->index;
    at.sequence = found->number;
    at.reach = sb_attention_reach_of(found->length - found->rows + found->index, found->length, p->left, p->right);
    at.used = found->number >= 0;
    return at;
}

/* ---- scores ---- */

/* Whether scores go to the softmax as the chain leaves them. */
SB_CUDA_FUNCTION bool sb_attention_is_direct(const sb_cuda_attention *p) {
    return p->cap == 0 && p->mask_kind != SB_CUDA_ATTENTION_BIAS && sb_attention_is_moderate(p->scale);
}

SB_CUDA_FUNCTION double sb_attention_factor(const sb_cuda_attention *p) {
    return sb_attention_is_direct(p) ? p->scale : 1;
}

/* How the keys of a sample and head lie, or their values: the past's come first. `Step` is a type that holds keys, and what lies
 * between two in bytes. */
template <class Step> struct sb_attention_lines {
    const char *past, *fresh; /* `fresh` as if what is new began at key 0 */
    Step past_step, fresh_step, past_count;
};

template <class Step>
SB_CUDA_FUNCTION sb_attention_lines<Step> sb_attention_lines_of(const sb_cuda_attention_array *past,
                                                                const sb_cuda_attention_array *fresh,
                                                                const sb_attention_place *at, int64_t element_bytes) {
    sb_attention_lines<Step> lines;
    lines.past = past->data + sb_attention_at(past, at->batch, at->key_head, 0, 0) * element_bytes;
    lines.fresh = fresh->data + sb_attention_at(fresh, at->batch, at->key_head, -at->past, 0) * element_bytes;
    lines.past_step = (Step)(past->row * element_bytes);
    lines.fresh_step = (Step)(fresh->row * element_bytes);
    lines.past_count = (Step)at->past;
    return lines;
}

/* Where a line begins, which is a key or its value: the one place that finds it, by its number among those that lie in a row. With
 * pages these are the page's own, or of all pages together where the way from one to the next is a multiple of a line's. */
template <class Step> SB_CUDA_FUNCTION const char *sb_attention_line(const sb_attention_lines<Step> *lines, Step key) {
    const bool is_past = key < lines->past_count;
    return (is_past ? lines->past : lines->fresh) + (int64_t)key * (is_past ? lines->past_step : lines->fresh_step);
}

/* Where a key begins, or its value, however the arrays lie; `*step` is what lies between its elements, in elements. */
SB_CUDA_FUNCTION const char *sb_attention_find(const sb_cuda_attention *p, const sb_attention_place *at,
                                               const sb_cuda_attention_array *past,
                                               const sb_cuda_attention_array *fresh, int64_t key, int64_t element_bytes,
                                               int64_t *step) {
    const sb_attention_lines<int64_t> lines = sb_attention_lines_of<int64_t>(past, fresh, at, element_bytes);
    int64_t line = key, page = 0;
    if (p->pages.table != NULL)
        page = sb_pages_find(&p->pages, at->sequence, key, &line);
    *step = (key < at->past ? past : fresh)->column;
    return sb_attention_line<int64_t>(&lines, line) + page * fresh->batch * element_bytes;
}

template <class E>
SB_CUDA_FUNCTION typename E::stored sb_attention_value(const sb_cuda_attention *p, const sb_attention_place *at,
                                                       int64_t key, int64_t column) {
    int64_t step;
    const char *from = sb_attention_find(p, at, &p->past_v, &p->v, key, (int64_t)sizeof(typename E::stored), &step);
    return ((const typename E::stored *)(const void *)from)[column * step];
}

/* The chain of a query and a key. */
template <class E>
SB_CUDA_FUNCTION typename E::sum sb_attention_chain(const sb_cuda_attention *p, const sb_attention_place *at,
                                                    int64_t key) {
    int64_t step;
    const char *k = sb_attention_find(p, at, &p->past_k, &p->k, key, (int64_t)sizeof(typename E::stored), &step);
    const char *q =
        p->q.data + sb_attention_at(&p->q, at->batch, at->head, at->query, 0) * (int64_t)sizeof(typename E::stored);
    return E::contract(q, p->q.column, k, step, p->width);
}

/* Whether a key is seen, and its bias. */
SB_CUDA_FUNCTION bool sb_attention_look(const sb_cuda_attention *p, const sb_attention_place *at, sb_dtype dtype,
                                        int64_t key, double *bias) {
    const bool reached = key >= at->reach.first && key < at->reach.last;
    *bias = 0;
    if (p->mask_kind == SB_CUDA_ATTENTION_NO_MASK || key >= at->mask_keys)
        return reached;
    const int64_t index = sb_attention_at(&p->mask, at->batch, at->head, at->query, 0) + key * at->mask_step;
    if (p->mask_kind == SB_CUDA_ATTENTION_TRUTH)
        return reached && p->mask.data[index] != 0;
    *bias = sb_number_load(dtype, p->mask.data, index);
    return reached && *bias != -sb_infinity_f64();
}

/* A given score or probability. */
SB_CUDA_FUNCTION double sb_attention_given(const sb_cuda_attention *p, const sb_attention_place *at, int64_t key) {
    const int64_t index = sb_attention_at(&p->given, at->batch, at->head, at->query, key);
    return p->given_dtype == SB_F64 ? ((const double *)(const void *)p->given.data)[index]
                                    : (double)sb_real_load_f32((sb_dtype)p->given_dtype, p->given.data, index);
}

/* A score as the softmax takes it. Kernels whose E says so look whether scores are given: those of a scale of 1, without a cap
 * and a mask. */
template <class E, class R>
SB_CUDA_FUNCTION typename R::real sb_attention_score(const sb_cuda_attention *p, const sb_attention_place *at,
                                                     int64_t key, double bias) {
    if (E::may_be_given && p->given.data != NULL)
        return (typename R::real)sb_attention_given(p, at, key);
    const typename E::sum z = sb_attention_chain<E>(p, at, key);
    if (sb_attention_is_direct(p))
        return (typename R::real)z;
    return (typename R::real)sb_attention_finish(z, p->scale, p->cap, p->mask_kind == SB_CUDA_ATTENTION_BIAS, bias);
}

/* The score of a key, and its exponent: -SB_SPLIT_EXPONENT_LIMIT if it takes no part, and SB_SPLIT_EXPONENT_LIMIT or more if
 * the row is NaN for it. */
template <class E, class R>
SB_CUDA_FUNCTION int32_t sb_attention_find_key(const sb_cuda_attention *p, const sb_attention_place *at, int64_t key,
                                               typename R::real *s) {
    double bias;
    *s = 0;
    if (key >= at->keys || !sb_attention_look(p, at, E::dtype, key, &bias))
        return -SB_SPLIT_EXPONENT_LIMIT;
    *s = sb_attention_score<E, R>(p, at, key, bias);
    return R::exponent(*s, R::scale_of(sb_attention_factor(p)));
}

/* The weight of a key that takes part. */
template <class E, class R>
SB_CUDA_FUNCTION typename R::real sb_attention_weight(const sb_cuda_attention *p, typename R::real s, int32_t maximum) {
    return R::weight(E::dtype, s, R::scale_of(sb_attention_factor(p)), maximum);
}

/* ---- splits ---- */

#define SB_ATTENTION_THREADS SB_ATTENTION_BLOCK

/* What the threads of a row share. */
template <class E, class R> struct sb_attention_scratch {
    uint64_t largest[SB_ATTENTION_THREADS / 32];
    typename E::stored weights[SB_ATTENTION_BLOCK];
    typename R::real lanes[SB_SPLIT_LANES];
};

/* Of a split: `value` is the thread's column's. */
template <class E, class R> struct sb_attention_sums {
    int outcome;
    int32_t maximum;
    typename R::real sum;
    typename E::sum value;
};

/* The largest exponent of the block's first 128 threads, for all threads. */
template <class E, class R>
SB_CUDA_FUNCTION int32_t sb_attention_largest(int32_t n, sb_attention_scratch<E, R> *shared) {
    const int thread = (int)threadIdx.x;
    uint64_t largest = (uint64_t)((int64_t)n + 2 * SB_SPLIT_EXPONENT_LIMIT);
    for (int distance = 16; distance > 0; distance /= 2) {
        const uint64_t other = sb_cuda_shuffle_exchange_u64(largest, distance);
        largest = other > largest ? other : largest;
    }
    if (thread < SB_ATTENTION_THREADS && thread % 32 == 0)
        shared->largest[thread / 32] = largest;
    SB_ATTENTION_BARRIER();
    for (int warp = 0; warp < SB_ATTENTION_THREADS / 32; warp++)
        largest = warp == 0 || shared->largest[warp] > largest ? shared->largest[warp] : largest;
    return (int32_t)((int64_t)largest - 2 * SB_SPLIT_EXPONENT_LIMIT);
}

/* A block's weighted values of a column, behind those before it. */
template <class E>
SB_CUDA_FUNCTION typename E::sum sb_attention_add_block(const sb_cuda_attention *p, const sb_attention_place *at,
                                                        int64_t block, const typename E::stored *weights,
                                                        int64_t column, typename E::sum value) {
    const int group = E::is_half ? SB_CHAIN16_GROUP : 1;
    typename E::stored left[SB_CHAIN16_GROUP], right[SB_CHAIN16_GROUP];
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < SB_ATTENTION_BLOCK; first += group) {
        bool any = false;
        for (int i = 0; i < group; i++) {
            left[i] = weights[first + i];
            right[i] = 0;
            if (left[i] != 0) {
                right[i] = sb_attention_value<E>(p, at, block + first + i, column);
                any = true;
            }
        }
        if (any)
            value = E::add(left, right, value);
    }
    return value;
}

/* The split that begins at `start`, for a block of whole warps, 128 threads or more. `column` is the thread's, of the values;
 * -1: none. */
template <class E, class R>
SB_CUDA_FUNCTION void sb_attention_split(const sb_cuda_attention *p, const sb_attention_place *at, int64_t start,
                                         int64_t column, sb_attention_scratch<E, R> *shared,
                                         sb_attention_sums<E, R> *sums) {
    const int thread = (int)threadIdx.x;
    const int64_t end = at->keys - start < SB_ATTENTION_SPLIT ? at->keys : start + SB_ATTENTION_SPLIT;
    typename R::real lane = 0;
    sums->outcome = SB_CUDA_ATTENTION_NOTHING;
    sums->maximum = 0;
    sums->sum = 0;
    sums->value = 0;
    SB_CUDA_KEEP_LOOP
    for (int64_t block = start; block < end; block += SB_ATTENTION_BLOCK) {
        if (block + SB_ATTENTION_BLOCK <= at->reach.first || block >= at->reach.last)
            continue;
        typename R::real s = 0;
        int32_t n = -SB_SPLIT_EXPONENT_LIMIT;
        if (thread < SB_ATTENTION_THREADS)
            n = sb_attention_find_key<E, R>(p, at, block + thread, &s);
        const int32_t largest = sb_attention_largest<E, R>(n, shared);
        if (largest >= SB_SPLIT_EXPONENT_LIMIT) {
            sums->outcome = SB_CUDA_ATTENTION_NAN;
            SB_ATTENTION_BARRIER();
            return;
        }
        if (largest != -SB_SPLIT_EXPONENT_LIMIT) {
            if (sums->outcome != SB_CUDA_ATTENTION_NOTHING && largest > sums->maximum) {
                lane = lane * R::factor(sums->maximum, largest);
                sums->value = sb_attention_rescale(sums->value, sums->maximum - largest);
            }
            if (sums->outcome == SB_CUDA_ATTENTION_NOTHING || largest > sums->maximum)
                sums->maximum = largest;
            sums->outcome = SB_CUDA_ATTENTION_SUM;
            if (thread < SB_ATTENTION_THREADS)
                sb_number_store(E::dtype, shared->weights, thread,
                                n != -SB_SPLIT_EXPONENT_LIMIT ? (double)sb_attention_weight<E, R>(p, s, sums->maximum)
                                                              : 0.0);
            SB_ATTENTION_BARRIER();
            for (int i = 0; i < SB_ATTENTION_BLOCK && thread < SB_SPLIT_LANES; i++) {
                if (sb_split_lane(i) == thread)
                    lane = lane + (typename R::real)sb_number_load(E::dtype, shared->weights, i);
            }
            if (column >= 0)
                sums->value = sb_attention_add_block<E>(p, at, block, shared->weights, column, sums->value);
        }
        SB_ATTENTION_BARRIER();
    }
    if (thread < SB_SPLIT_LANES)
        shared->lanes[thread] = lane;
    SB_ATTENTION_BARRIER();
    sums->sum = R::fold(shared->lanes);
    SB_ATTENTION_BARRIER();
}

/* Folds a split into those before it. */
template <class E, class R>
SB_CUDA_FUNCTION void sb_attention_fold(sb_attention_sums<E, R> *total, const sb_attention_sums<E, R> *split) {
    if (total->outcome == SB_CUDA_ATTENTION_NOTHING) {
        *total = *split;
    } else if (split->maximum < total->maximum) {
        total->sum = total->sum + split->sum * R::factor(split->maximum, total->maximum);
        total->value = total->value + sb_attention_rescale(split->value, split->maximum - total->maximum);
    } else {
        total->sum = total->sum * R::factor(total->maximum, split->maximum) + split->sum;
        total->value = sb_attention_rescale(total->value, total->maximum - split->maximum) + split->value;
        total->maximum = split->maximum;
    }
}

/* All splits of a row. */
template <class E, class R>
SB_CUDA_FUNCTION void sb_attention_sum_row(const sb_cuda_attention *p, const sb_attention_place *at, int64_t column,
                                           sb_attention_scratch<E, R> *shared, sb_attention_sums<E, R> *total) {
    sb_attention_sums<E, R> split;
    total->outcome = SB_CUDA_ATTENTION_NOTHING;
    total->maximum = 0;
    total->sum = 0;
    total->value = 0;
    SB_CUDA_KEEP_LOOP
    for (int64_t start = at->reach.first - at->reach.first % SB_ATTENTION_SPLIT; start < at->reach.last;
         start += SB_ATTENTION_SPLIT) {
        sb_attention_split<E, R>(p, at, start, column, shared, &split);
        if (split.outcome == SB_CUDA_ATTENTION_NAN) {
            total->outcome = SB_CUDA_ATTENTION_NAN;
            return;
        }
        if (split.outcome != SB_CUDA_ATTENTION_NOTHING)
            sb_attention_fold<E, R>(total, &split);
    }
}

/* An element of the output. */
template <class E, class R>
SB_CUDA_FUNCTION void sb_attention_store(const sb_cuda_attention *p, const sb_attention_place *at, int64_t column,
                                         const sb_attention_sums<E, R> *total) {
    typename R::real value = total->outcome == SB_CUDA_ATTENTION_NAN ? R::nan() : 0;
    if (total->outcome == SB_CUDA_ATTENTION_SUM)
        value = (typename R::real)total->value * R::reciprocal(total->sum);
    sb_number_store(E::dtype, p->y.data, sb_attention_at(&p->y, at->batch, at->head, at->query, column), (double)value);
}

#endif
