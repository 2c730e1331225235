/* Attention of any types, strides and masks: a block of threads for each row and some columns of the values, by the
 * definition (attention_row.cuh); and what the operators give out or take beside: scores, probabilities, caches. */
#include "cuda/attention/attention_row.cuh"

/* Types whose scores may be given. */
#define ANY(suffix)                                                                                                    \
    struct any_##suffix : sb_attention_##suffix {                                                                      \
        static const bool may_be_given = true;                                                                         \
    };
ANY(f16)
ANY(bf16)
ANY(f32)
ANY(f64)

/* A block's row: of the head of a sample a query, or with pages one of any sequence's. */
SB_CUDA_FUNCTION sb_attention_place row_at(const sb_cuda_attention *p, int64_t row) {
    sb_attention_sequence found;
    if (p->pages.table == NULL)
        return sb_attention_row(p, row);
    const int64_t query = sb_cuda_take(&row, p->queries);
    return sb_attention_paged_row(p, row, query, &found);
}

#define ROWS(name, E, R)                                                                                               \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention_rows_##name, sb_cuda_attention, p, SB_ATTENTION_THREADS, 4) {       \
        SB_CUDA_SHARED sb_attention_scratch<E, R> shared;                                                              \
        const int64_t count = p->batch * p->heads * p->queries * p->tiles;                                             \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int64_t index = blockIdx.x; index < count; index += gridDim.x) {                                          \
            int64_t row = index, tile = sb_cuda_take(&row, p->tiles);                                                  \
            const sb_attention_place at = row_at(p, row);                                                              \
            if (!at.used)                                                                                              \
                continue;                                                                                              \
            int64_t column = tile * SB_CUDA_ATTENTION_COLUMNS + threadIdx.x;                                           \
            column = p->y.data != NULL && column < p->value_width ? column : -1;                                       \
            sb_attention_sums<E, R> total;                                                                             \
            sb_attention_sum_row<E, R>(p, &at, column, &shared, &total);                                               \
            if (column >= 0)                                                                                           \
                sb_attention_store<E, R>(p, &at, column, &total);                                                      \
            if (p->rows != NULL && tile == 0 && threadIdx.x == 0) {                                                    \
                p->rows[row].sum = (double)total.sum;                                                                  \
                p->rows[row].maximum = total.maximum;                                                                  \
                p->rows[row].outcome = total.outcome;                                                                  \
            }                                                                                                          \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
    }

/* Scores and probabilities, a thread for each: ops/attention_run.c, store_scores and store_probabilities. */
#define SCORES(name, E, R)                                                                                             \
    SB_CUDA_KERNEL(sb_cuda_attention_scores_##name, sb_cuda_attention, p) {                                            \
        const int64_t room = p->past + p->fresh;                                                                       \
        SB_CUDA_EACH(index, p->batch * p->heads * p->queries * room) {                                                 \
            int64_t row = index, key = sb_cuda_take(&row, room);                                                       \
            const sb_attention_place at = sb_attention_row(p, row);                                                    \
            double bias;                                                                                               \
            if (!at.used || key >= at.keys)                                                                            \
                continue;                                                                                              \
            const bool seen = sb_attention_look(p, &at, E::dtype, key, &bias);                                         \
            const E::sum z =                                                                                           \
                sb_attention_finish(sb_attention_chain<E>(p, &at, key), p->scale, p->stage >= CAPPED ? p->cap : 0,     \
                                    p->mask_kind == SB_CUDA_ATTENTION_BIAS && p->stage >= BIASED, bias);               \
            sb_number_store((sb_dtype)p->scores_dtype, p->scores.data,                                                 \
                            sb_attention_at(&p->scores, at.batch, at.head, at.query, key),                             \
                            p->stage == BIASED && !seen ? -sb_infinity_f64() : (double)z);                             \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_attention_shares_##name, sb_cuda_attention, p) {                                            \
        const int64_t room = p->past + p->fresh;                                                                       \
        SB_CUDA_EACH(index, p->batch * p->heads * p->queries * room) {                                                 \
            int64_t row = index, key = sb_cuda_take(&row, room);                                                       \
            const sb_attention_place at = sb_attention_row(p, row);                                                    \
            if (!at.used || key >= at.keys)                                                                            \
                continue;                                                                                              \
            const sb_cuda_attention_row *found = &p->rows[row];                                                        \
            R::real share = found->outcome == SB_CUDA_ATTENTION_NAN ? R::nan() : 0, s;                                 \
            if (found->outcome == SB_CUDA_ATTENTION_SUM) {                                                             \
                const int32_t n = sb_attention_find_key<E, R>(p, &at, key, &s);                                        \
                if (n != -SB_SPLIT_EXPONENT_LIMIT)                                                                     \
                    share = sb_attention_weight<E, R>(p, s, found->maximum) * R::reciprocal((R::real)found->sum);      \
            }                                                                                                          \
            sb_number_store((sb_dtype)p->scores_dtype, p->scores.data,                                                 \
                            sb_attention_at(&p->scores, at.batch, at.head, at.query, key), (double)share);             \
        }                                                                                                              \
    }

/* Of sb_attention_stage, in ops/attention.h. */
enum { CAPPED = 1, BIASED = 2 };

#define BOTH(name, E, R)                                                                                               \
    ROWS(name, E, R)                                                                                                   \
    SCORES(name, E, R)
BOTH(f16, any_f16, sb_attention_real_f32)
BOTH(f16_wide, any_f16, sb_attention_real_f64)
BOTH(bf16, any_bf16, sb_attention_real_f32)
BOTH(bf16_wide, any_bf16, sb_attention_real_f64)
BOTH(f32, any_f32, sb_attention_real_f32)
BOTH(f32_wide, any_f32, sb_attention_real_f64)
BOTH(f64_wide, any_f64, sb_attention_real_f64)

/* Values mixed by given probabilities, a thread for each element: ops/attention_run.c, sb_attention_mix. */
#define MIX(name, E, real, fma)                                                                                        \
    SB_CUDA_KERNEL(sb_cuda_attention_mix_##name, sb_cuda_attention, p) {                                               \
        SB_CUDA_EACH(index, p->batch * p->heads * p->queries * p->value_width) {                                       \
            int64_t row = index, column = sb_cuda_take(&row, p->value_width);                                          \
            const sb_attention_place at = sb_attention_row(p, row);                                                    \
            real sum = 0;                                                                                              \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int64_t key = 0; key < at.keys; key++) {                                                              \
                const real weight = (real)sb_attention_given(p, &at, key);                                             \
                if (weight != 0) {                                                                                     \
                    const E::stored value = sb_attention_value<E>(p, &at, key, column);                                \
                    sum = fma(weight, (real)sb_number_load(E::dtype, &value, 0), sum);                                 \
                }                                                                                                      \
            }                                                                                                          \
            sb_number_store(E::dtype, p->y.data, sb_attention_at(&p->y, at.batch, at.head, at.query, column),          \
                            (double)sum);                                                                              \
        }                                                                                                              \
    }
MIX(f16, sb_attention_f16, float, sb_fma_f32)
MIX(f16_wide, sb_attention_f16, double, sb_fma_f64)
MIX(bf16, sb_attention_bf16, float, sb_fma_f32)
MIX(bf16_wide, sb_attention_bf16, double, sb_fma_f64)
MIX(f32, sb_attention_f32, float, sb_fma_f32)
MIX(f32_wide, sb_attention_f32, double, sb_fma_f64)
MIX(f64_wide, sb_attention_f64, double, sb_fma_f64)

/* The cache behind a call. What lies behind the used rows of the past is overwritten by the new ones, which are all
 * copied as far as there is room. */
#define PRESENT(bits, type)                                                                                            \
    SB_CUDA_KERNEL(sb_cuda_attention_present_##bits, sb_cuda_attention_present, p) {                                   \
        const int64_t past = sb_cuda_used(p->used_past, p->past), begin = p->old.data != NULL ? 0 : past;              \
        const int64_t rows = p->elements / p->units / p->heads / p->batch;                                             \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t batch = index, unit = sb_cuda_take(&batch, p->units), at = begin + sb_cuda_take(&batch, rows);     \
            int64_t head = sb_cuda_take(&batch, p->heads);                                                             \
            if (at >= past + p->fresh)                                                                                 \
                continue;                                                                                              \
            const sb_cuda_attention_array *from = at < past ? &p->old : &p->source;                                    \
            ((type *)(void *)p->out.data)[sb_attention_at(&p->out, batch, head, at, unit)] =                           \
                ((const type *)(const void *)                                                                          \
                     from->data)[sb_attention_at(from, batch, head, at < past ? at : at - past, unit)];                \
        }                                                                                                              \
    }
SB_CUDA_SIZES(PRESENT)
PRESENT(128, sb_cuda_16_bytes)
