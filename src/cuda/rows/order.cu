/* ArgMax, ArgMin, Hardmax, TopK, CumSum and CumProd. Types are parameters: what is compared are the keys of
 * ops/order.h, 64-bit integers, whatever the type. Threads meet at every SB_CUDA_BARRIER. */
#include "cuda/rows/order_parameters.h"
#include "cuda/rows/rows.cuh"
#include "ops/number.h"
#include "ops/order.h"

/* A key that is larger for what comes first: of the largest elements or the least. */
SB_CUDA_FUNCTION int64_t key_of(int32_t dtype, const char *element, int least) {
    int64_t key = sb_order_key((sb_dtype)dtype, element, 0, least != 0);
    return least ? ~key : key;
}

/* Copies an element of `bytes` bytes. */
SB_CUDA_FUNCTION void copy_element(char *to, const char *from, int bytes) {
    switch (bytes) {
    case 1:
        *(uint8_t *)(void *)to = *(const uint8_t *)(const void *)from;
        break;
    case 2:
        *(uint16_t *)(void *)to = *(const uint16_t *)(const void *)from;
        break;
    case 4:
        *(uint32_t *)(void *)to = *(const uint32_t *)(const void *)from;
        break;
    default:
        *(uint64_t *)(void *)to = *(const uint64_t *)(const void *)from;
        break;
    }
}

SB_CUDA_FUNCTION int bytes_of(int32_t dtype) {
    switch (dtype) {
    case SB_BOOL:
    case SB_U8:
    case SB_S8:
        return 1;
    case SB_U16:
    case SB_S16:
    case SB_F16:
    case SB_BF16:
        return 2;
    case SB_U32:
    case SB_S32:
    case SB_F32:
        return 4;
    default:
        return 8;
    }
}

/* ---- the best element ---- */

/* Whether (key, index) is better than (best, at): of equal keys the first index is, or the last.
 * An index of -1 stands for no candidate. */
SB_CUDA_FUNCTION int beats(int64_t key, int64_t index, int64_t best, int64_t at, int last) {
    if (index < 0 || at < 0)
        return index >= 0;
    if (key != best)
        return key > best;
    return last ? index > at : index < at;
}

SB_CUDA_BLOCK_KERNEL(sb_cuda_arg_best, sb_cuda_arg, p) {
    SB_CUDA_SHARED int64_t keys[32], places[32];
    const sb_cuda_rows *rows = &p->rows;
    const int64_t length = SB_CUDA_ROWS_LENGTH(rows), count = SB_CUDA_ROWS_COUNT(rows);
    if (length == 0 && count != 0 && p->fault != NULL)
        *p->fault = SB_FAULT_CHOICE;
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);
        int64_t best = 0, at = -1;
        for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
            int64_t key = key_of(p->dtype, in + SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_IN, i), p->least);
            if (beats(key, i, best, at, p->last)) {
                best = key;
                at = i;
            }
        }
        for (int half = 16; half > 0; half /= 2) {
            int64_t key = (int64_t)sb_cuda_shuffle_down_u64((uint64_t)best, half, 32);
            int64_t place = (int64_t)sb_cuda_shuffle_down_u64((uint64_t)at, half, 32);
            if (beats(key, place, best, at, p->last)) {
                best = key;
                at = place;
            }
        }
        if (threadIdx.x % 32 == 0) {
            keys[threadIdx.x / 32] = best;
            places[threadIdx.x / 32] = at;
        }
        SB_CUDA_BARRIER();
        best = keys[0];
        at = places[0];
        for (unsigned warp = 1; warp < blockDim.x / 32; warp++) {
            if (beats(keys[warp], places[warp], best, at, p->last)) {
                best = keys[warp];
                at = places[warp];
            }
        }
        SB_CUDA_BARRIER();
        if (!p->one_hot && threadIdx.x == 0)
            p->best[row] = at;
        if (p->one_hot) {
            char *out = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);
            for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
                sb_number_store((sb_dtype)p->dtype, out + SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_OUT, i), 0, i == at);
        }
    }
}

/* ---- running sums and products ---- */

#define CUMULATIVE(suffix, type, LOAD, STORE)                                                                          \
    SB_CUDA_KERNEL(sb_cuda_cumulative_##suffix, sb_cuda_cumulative, p) {                                               \
        const sb_cuda_rows *rows = &p->rows;                                                                           \
        int64_t in_step = rows->inner_steps[SB_CUDA_ROW_IN][0];                                                        \
        int64_t out_step = rows->inner_steps[SB_CUDA_ROW_OUT][0];                                                      \
        const int64_t length = SB_CUDA_ROWS_LENGTH(rows), count = SB_CUDA_ROWS_COUNT(rows);                            \
        SB_CUDA_EACH(row, count) {                                                                                     \
            const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);                                             \
            char *out = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);                                                 \
            type running = (type)(p->product != 0);                                                                    \
            for (int64_t i = 0; i < length; i++) {                                                                     \
                int64_t at = p->reverse ? length - 1 - i : i;                                                          \
                type value = LOAD(in + at * in_step);                                                                  \
                type joined = i == 0 ? value : p->product ? (type)(running * value) : (type)(running + value);         \
                STORE(out + at * out_step, p->exclusive ? running : joined);                                           \
                running = joined;                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
#define LOAD_f16(data) sb_f16_to_f32(*(const uint16_t *)(const void *)(data))
#define LOAD_bf16(data) sb_bf16_to_f32(*(const uint16_t *)(const void *)(data))
#define LOAD_f32(data) (*(const float *)(const void *)(data))
#define LOAD_f64(data) (*(const double *)(const void *)(data))
#define LOAD_8(data) (*(const uint8_t *)(const void *)(data))
#define LOAD_16(data) (*(const uint16_t *)(const void *)(data))
#define LOAD_32(data) (*(const uint32_t *)(const void *)(data))
#define LOAD_64(data) (*(const uint64_t *)(const void *)(data))
#define STORE_f16(data, value) (*(uint16_t *)(void *)(data) = sb_f16_from_f32(value))
#define STORE_bf16(data, value) (*(uint16_t *)(void *)(data) = sb_bf16_from_f32(value))
#define STORE_f32(data, value) (*(float *)(void *)(data) = (value))
#define STORE_f64(data, value) (*(double *)(void *)(data) = (value))
#define STORE_8(data, value) (*(uint8_t *)(void *)(data) = (uint8_t)(value))
#define STORE_16(data, value) (*(uint16_t *)(void *)(data) = (uint16_t)(value))
#define STORE_32(data, value) (*(uint32_t *)(void *)(data) = (uint32_t)(value))
#define STORE_64(data, value) (*(uint64_t *)(void *)(data) = (value))
CUMULATIVE(f16, float, LOAD_f16, STORE_f16)
CUMULATIVE(bf16, float, LOAD_bf16, STORE_bf16)
CUMULATIVE(f32, float, LOAD_f32, STORE_f32)
CUMULATIVE(f64, double, LOAD_f64, STORE_f64)
/* Integers wrap, so their signs do not matter. */
CUMULATIVE(8, uint32_t, LOAD_8, STORE_8)
CUMULATIVE(16, uint32_t, LOAD_16, STORE_16)
CUMULATIVE(32, uint32_t, LOAD_32, STORE_32)
CUMULATIVE(64, uint64_t, LOAD_64, STORE_64)

/* ---- the first k ---- */

/* Whether candidate (key, index) comes before the other one; indices differ. No candidate is one
 * with the least key and an index behind all others. */
SB_CUDA_FUNCTION int before(int64_t key, int64_t index, int64_t other, int64_t other_index) {
    return key != other ? key > other : index < other_index;
}

/* Sorts `count` candidates, a power of 2, by bitonic merging. */
SB_CUDA_FUNCTION void sort_candidates(int64_t *keys, int64_t *places, int count) {
    for (int run = 2; run <= count; run *= 2) {
        for (int distance = run / 2; distance > 0; distance /= 2) {
            for (int i = (int)threadIdx.x; i < count / 2; i += (int)blockDim.x) {
                int low = (i / distance) * 2 * distance + i % distance, high = low + distance;
                int ascending = (low & run) == 0;
                int swap = before(keys[high], places[high], keys[low], places[low]);
                if (swap == ascending) {
                    int64_t key = keys[low], place = places[low];
                    keys[low] = keys[high];
                    places[low] = places[high];
                    keys[high] = key;
                    places[high] = place;
                }
            }
            SB_CUDA_BARRIER();
        }
    }
}

/* A block for each row keeps the best candidates in the first half of what it sorts, and tries the
 * others by halves; most pieces of a long row have none that is good enough, and are not sorted. */
SB_CUDA_BLOCK_KERNEL(sb_cuda_topk_select, sb_cuda_topk, p) {
    SB_CUDA_SHARED int64_t keys[SB_CUDA_SORTED];
    SB_CUDA_SHARED int64_t places[SB_CUDA_SORTED];
    SB_CUDA_SHARED int better;
    const sb_cuda_rows *rows = &p->rows;
    int bytes = bytes_of(p->dtype);
    for (int64_t row = blockIdx.x; row < rows->count; row += gridDim.x) {
        const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);
        char *out = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row);
        /* A row that fits is sorted once. */
        int sorted = 2;
        while (sorted < SB_CUDA_SORTED && sorted < rows->length)
            sorted *= 2;
        int64_t next = 0;
        while (next == 0 || next < rows->length) {
            int kept = next == 0 ? 0 : SB_CUDA_SELECTED, room = sorted - kept;
            if (threadIdx.x == 0)
                better = next == 0;
            SB_CUDA_BARRIER();
            for (int i = (int)threadIdx.x; i < room; i += (int)blockDim.x) {
                int64_t at = next + i, key = INT64_MIN, place = INT64_MAX;
                if (at < rows->length) {
                    place = at;
                    key = key_of(p->dtype, in + at * rows->inner_steps[SB_CUDA_ROW_IN][0], !p->largest);
                    if (kept > 0 && before(key, place, keys[p->k - 1], places[p->k - 1]))
                        better = 1;
                }
                keys[kept + i] = key;
                places[kept + i] = place;
            }
            SB_CUDA_BARRIER();
            if (better)
                sort_candidates(keys, places, sorted);
            SB_CUDA_BARRIER();
            next += room;
        }
        for (int64_t i = threadIdx.x; i < p->k; i += blockDim.x) {
            copy_element(out + i * rows->inner_steps[SB_CUDA_ROW_OUT][0],
                         in + places[i] * rows->inner_steps[SB_CUDA_ROW_IN][0], bytes);
            if (p->indices != NULL)
                p->indices[(out - rows->data[SB_CUDA_ROW_OUT] + i * rows->inner_steps[SB_CUDA_ROW_OUT][0]) / bytes] =
                    places[i];
        }
        SB_CUDA_BARRIER();
    }
}

/* For large k: each element counts those that come before it. */
SB_CUDA_KERNEL(sb_cuda_topk_count, sb_cuda_topk, p) {
    const sb_cuda_rows *rows = &p->rows;
    int64_t in_step = rows->inner_steps[SB_CUDA_ROW_IN][0];
    int64_t out_step = rows->inner_steps[SB_CUDA_ROW_OUT][0];
    int bytes = bytes_of(p->dtype);
    SB_CUDA_EACH(element, rows->count * rows->length) {
        int64_t row = element / rows->length, at = element - row * rows->length, rank = 0;
        const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);
        int64_t key = key_of(p->dtype, in + at * in_step, !p->largest);
        for (int64_t i = 0; i < rows->length; i++)
            rank += i != at && before(key_of(p->dtype, in + i * in_step, !p->largest), i, key, at);
        if (rank < p->k) {
            char *out = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row) + rank * out_step;
            copy_element(out, in + at * in_step, bytes);
            if (p->indices != NULL)
                p->indices[(out - rows->data[SB_CUDA_ROW_OUT]) / bytes] = at;
        }
    }
}
