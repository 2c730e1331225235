/* Attention of 8 rows at a time that share keys, of heads of up to 128, where what counts is how long a row waits: a cluster of four blocks
 * of 256 threads for a split of 512 keys.
 *
 * Each block scores 128 of the keys and tells all four what came of it; then each has all weights of the split, and sums a quarter of the
 * values' columns over all of its keys. So a split is read by four multiprocessors at once, and the only chain that is as long as its keys
 * is that of the values, 32 products. Keys and values are asked for before anything is waited for.
 *
 * The block that comes last to a quarter of the columns of some rows folds all their splits: blocks count themselves in a word, which the
 * last one sets back. Who that is changes no bit, as splits are folded in ascending order. The only split of some rows goes straight to
 * the output, whatever there is room for.
 *
 * The one new row of a sequence may be appended on the way: attention16_few_append.cuh, `append`, else NULL. Where keys lie, side by side or
 * on pages, and which rows are a tile: attention16_few_tile.cuh. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_FEW_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_FEW_CUH

#include "cuda/attention/attention16_few_append.cuh"
#include "cuda/attention/attention16_few_tile.cuh"
#include "cuda/attention/attention16_fold.cuh"
#include "cuda/common/arrival.cuh"
#include "cuda/common/follow.cuh"
#include "cuda/contraction/cluster.cuh"

#define FEW_WARPS (FEW_THREADS / 32)
/* Keys that a warp scores; and from one row of scores, or of weights, to the next: rows are in different banks. */
#define FEW_OWN (KEYS / FEW_WARPS)
#define SCORES_PITCH SB_CUDA_ATTENTION16_PITCH(SB_ATTENTION_SPLIT)
/* The warp that adds up weights, beside those that sum values. */
#define FEW_ADDING 4

/* A block's shared memory. */
typedef struct sb_attention16_few_memory {
    uint16_t *keys;    /* [128][pitch] */
    uint16_t *values;  /* [512][pitch], of a quarter of the columns; steps of a fold */
    float *scores;     /* [8][pitch]: all blocks write theirs */
    float *largest;    /* [8][4][8]: of each row, block of keys and warp; all blocks write theirs */
    uint16_t *weights; /* [8][pitch] */
    float *sums;       /* [8] */
    int *tops, *nans;  /* [8] each, in a fold */
    int *again, *last;
    sb_attention16_few_tile *tile; /* for functions apart */
    void *scratch;
} sb_attention16_few_memory;

template <int D> SB_CUDA_FUNCTION sb_attention16_few_memory sb_attention16_few_cut(unsigned char *memory) {
    sb_attention16_few_memory shared;
    shared.keys = (uint16_t *)(void *)memory;
    shared.values = shared.keys + KEYS * SB_CUDA_ATTENTION16_PITCH(D);
    shared.scores = (float *)(void *)(shared.values + SB_ATTENTION_SPLIT * SB_CUDA_ATTENTION16_PITCH(D / FEW_BLOCKS));
    shared.largest = shared.scores + FEW_ROWS * SCORES_PITCH;
    shared.weights = (uint16_t *)(void *)(shared.largest + FEW_ROWS * FEW_BLOCKS * FEW_WARPS);
    shared.sums = (float *)(void *)(shared.weights + FEW_ROWS * SCORES_PITCH);
    shared.tops = (int *)(void *)(shared.sums + FEW_ROWS);
    shared.nans = shared.tops + FEW_ROWS;
    shared.again = shared.nans + FEW_ROWS;
    shared.last = shared.again + 1;
    shared.tile = (sb_attention16_few_tile *)(void *)(shared.again + 4);
    shared.scratch = shared.tile + 1;
    return shared;
}

/* ---- scores ---- */

/* Scores of the warp's 16 keys, of which `keys` is the first; of row lane / 4 those of keys 2 (lane mod 4) and the next, and of those 8 further on. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_few_score(const sb_cuda_attention *p, const uint32_t queries[D / 16][2],
                                               const uint16_t *keys, float s[2][4]) {
    const int lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        s[i / 4][i % 4] = 0;
    SB_CUDA_UNROLL
    for (int k = 0; k < D / 16; k++) {
        const uint32_t left[4] = {queries[k][0], 0, queries[k][1], 0};
        uint32_t right[4];
        if (k * 16 >= p->width)
            continue;
        sb_attention16_fetch<false>(right, keys + (lane / 16 * 8 + lane % 8) * SB_CUDA_ATTENTION16_PITCH(D) + k * 16 +
                                               lane / 8 % 2 * 8);
        sb_cuda_multiply_matrices<HALF>(s[0], left, right);
        sb_cuda_multiply_matrices<HALF>(s[1], left, right + 2);
    }
}

/* Keys that the row does not see become -infinity; the others' largest, of the four threads that hold the row. */
SB_CUDA_FUNCTION float sb_attention16_few_hide(float s[2][4], const sb_attention16_few_row *row, int32_t first) {
    const int pair = (int)threadIdx.x % 4 * 2;
    const int begin = row->first - first, end = row->last - first;
    float largest = -sb_infinity_f32();
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++) {
        float *own = &s[i / 2][i % 2];
        const int key = i / 2 * 8 + pair + i % 2;
        if (key < begin || key >= end)
            *own = -sb_infinity_f32();
        largest = sb_attention16_larger(largest, *own);
    }
    largest = sb_attention16_larger(largest, sb_cuda_shuffle_exchange_f32(largest, 1));
    return sb_attention16_larger(largest, sb_cuda_shuffle_exchange_f32(largest, 2));
}

/* Tells all blocks of the cluster the warp's scores, and their largest: so many bytes for each row and block of keys. `rank` is the block's,
 * `told` the barrier that counts them. */
#define FEW_TOLD_BYTES (KEYS * 4 + FEW_WARPS * 4)
SB_CUDA_FUNCTION void sb_attention16_few_tell(const float s[2][4], float largest, uint32_t rank, int rows,
                                              uint32_t told, sb_attention16_few_memory shared) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, row = lane / 4;
    const int key = (int)rank * KEYS + warp * FEW_OWN + lane % 4 * 2;
    const uint32_t scores = sb_shared_address(shared.scores + row * SCORES_PITCH + key);
    if (row >= rows)
        return;
    SB_CUDA_UNROLL
    for (uint32_t block = 0; block < FEW_BLOCKS; block++) {
        sb_cluster_send_two(scores, block, s[0][0], s[0][1], told);
        sb_cluster_send_two(scores + 8 * sizeof(float), block, s[1][0], s[1][1], told);
    }
    /* A thread of the four for each block. */
    sb_cluster_send(sb_shared_address(shared.largest + (row * FEW_BLOCKS + (int)rank) * FEW_WARPS + warp),
                    (uint32_t)lane % 4, largest, told);
}

/* ---- weights ---- */

/* What lane 4 row + block of each warp knows of a row behind a block of keys. */
typedef struct sb_attention16_few_maximum {
    int32_t maximum;    /* the largest exponent up to that block; NONE while the row has seen no key */
    float factor;       /* by which the block multiplies what was summed before */
    bool is_nan, again; /* of the whole row */
} sb_attention16_few_maximum;

/* `begin` and `end`: blocks of keys that any row sees. */
SB_CUDA_FUNCTION sb_attention16_few_maximum sb_attention16_few_find_maximum(const float *largest, sb_split_scale_f32 by,
                                                                            int begin, int end, int rows) {
    const int lane = (int)threadIdx.x % 32, block = lane % FEW_BLOCKS;
    sb_attention16_few_maximum own = {NONE, 1, false, false};
    float top = -sb_infinity_f32();
    if (block >= begin && block < end && lane / FEW_BLOCKS < rows) {
        SB_CUDA_UNROLL
        for (int warp = 0; warp < FEW_WARPS; warp++)
            top = sb_attention16_larger(top, largest[lane * FEW_WARPS + warp]);
    }
    own.maximum = sb_attention16_exponent(top, by, &own.is_nan, &own.again);
    SB_CUDA_UNROLL
    for (int distance = 1; distance < FEW_BLOCKS; distance *= 2) {
        const int32_t other = sb_cuda_shuffle_from_s32(own.maximum, block >= distance ? lane - distance : lane);
        own.maximum = other > own.maximum ? other : own.maximum;
    }
    const int32_t before = sb_cuda_shuffle_from_s32(own.maximum, block > 0 ? lane - 1 : lane);
    if (block > 0 && before < own.maximum)
        own.factor = sb_split_factor_f32(before, own.maximum);
    int32_t found = (own.is_nan ? 1 : 0) | (own.again ? 2 : 0);
    found |= sb_cuda_shuffle_exchange_s32(found, 1);
    found |= sb_cuda_shuffle_exchange_s32(found, 2);
    own.is_nan = (found & 1) != 0;
    own.again = (found & 2) != 0;
    return own;
}

/* Weights of two neighbouring keys for each thread, of all rows. */
template <int HALF>
SB_CUDA_FUNCTION void sb_attention16_few_weigh(const sb_attention16_few_maximum *own, sb_split_scale_f32 by, int begin,
                                               int end, int rows, sb_attention16_few_memory shared) {
    const int block = (int)threadIdx.x * 2 / KEYS;
    if (block < begin || block >= end)
        return;
    SB_CUDA_UNROLL
    for (int row = 0; row < FEW_ROWS; row++) {
        if (row >= rows)
            break;
        const int32_t maximum = sb_cuda_shuffle_from_s32(own->maximum, row * FEW_BLOCKS + block);
        const float shift = sb_attention16_shift(maximum);
        const sb_cuda_float2 s =
            *(const sb_cuda_float2 *)(const void *)(shared.scores + row * SCORES_PITCH + (int)threadIdx.x * 2);
        *(uint32_t *)(void *)(shared.weights + row * SCORES_PITCH + (int)threadIdx.x * 2) = sb_cuda_round_pair<HALF>(
            sb_attention16_weight(s.x, by.scale, shift), sb_attention16_weight(s.y, by.scale, shift));
    }
}

/* Weights of 32 keys of row lane / 4, as left factors: two pairs for each 16. */
SB_CUDA_FUNCTION void sb_attention16_few_fetch_weights(const uint16_t *weights, int key, uint32_t fetched[4]) {
    const int lane = (int)threadIdx.x % 32;
    sb_attention16_fetch<false>(fetched, weights + lane % 8 * SCORES_PITCH + key + lane / 8 * 8);
}

/* The sum of the weights of row lane / 4. Keys are those from 32 * `first` of the split to 32 * `end`. */
template <int HALF>
SB_CUDA_FUNCTION float sb_attention16_few_add(const sb_attention16_few_maximum *own, const uint16_t *weights, int first,
                                              int end) {
    const int lane = (int)threadIdx.x % 32;
    float sum = 0;
    SB_CUDA_KEEP_LOOP
    for (int block = first / 4; block * 4 < end; block++) {
        sum = sum * sb_cuda_shuffle_from_f32(own->factor, lane / 4 * 4 + block);
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            uint32_t fetched[4];
            if (block * 4 + i >= end)
                break;
            sb_attention16_few_fetch_weights(weights, (block * 4 + i) * 32, fetched);
            SB_CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                float low, high;
                sb_cuda_widen_pair<HALF>(fetched[j], &low, &high);
                sum = sum + low;
                sum = sum + high;
            }
        }
    }
    return sb_attention16_join(sum);
}

/* Weighted values of the warp's 8 columns, of which `values` has the first: of row lane / 4 columns 2 (lane mod 4) and the next. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_few_sum(const sb_attention16_few_maximum *own, const uint16_t *weights,
                                             const uint16_t *values, int first, int end, float sums[4]) {
    const int lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int i = 0; i < 4; i++)
        sums[i] = 0;
    SB_CUDA_KEEP_LOOP
    for (int block = first / 4; block * 4 < end; block++) {
        const float factor = sb_cuda_shuffle_from_f32(own->factor, lane / 4 * 4 + block);
        sums[0] = sums[0] * factor;
        sums[1] = sums[1] * factor;
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            const int key = (block * 4 + i) * 32;
            uint32_t fetched[4], right[4];
            if (block * 4 + i >= end)
                break;
            sb_attention16_few_fetch_weights(weights, key, fetched);
            sb_attention16_fetch<true>(right, values + (key + lane) * SB_CUDA_ATTENTION16_PITCH(D / FEW_BLOCKS));
            const uint32_t left[2][4] = {{fetched[0], 0, fetched[1], 0}, {fetched[2], 0, fetched[3], 0}};
            sb_cuda_multiply_matrices<HALF>(sums, left[0], right);
            sb_cuda_multiply_matrices<HALF>(sums, left[1], right + 2);
        }
    }
}

/* ---- splits that come together ---- */

/* Splits whose steps are worked out at once, and whose values are on their way together. */
#define FEW_STEPS 128
#define FEW_BATCH 16

SB_CUDA_FUNCTION void sb_attention16_few_load_parts(const sb_cuda_attention *p, const float *from, int32_t left,
                                                    float values[FEW_BATCH]) {
    SB_CUDA_UNROLL
    for (int i = 0; i < FEW_BATCH; i++)
        values[i] = i < left ? sb_attention16_load_part_word(from + i * SB_CUDA_ATTENTION_PARTIAL(p->value_width)) : 0;
}

/* Folds the block's columns of all rows of the tile, one for each thread. */
template <class E, int D>
APART void sb_attention16_few_fold(const sb_cuda_attention16_few *given, uint32_t rank,
                                   sb_attention16_few_memory shared) {
    const sb_cuda_attention *p = &given->attention;
    const sb_attention16_few_tile *own = shared.tile;
    const int64_t part = own->batch * p->heads * p->part_rows;
    sb_attention16_step *steps = (sb_attention16_step *)(void *)shared.values;
    const int warp = (int)threadIdx.x / 32, row = (int)threadIdx.x / (D / FEW_BLOCKS);
    const int column = (int)rank * (D / FEW_BLOCKS) + (int)threadIdx.x % (D / FEW_BLOCKS);
    const bool is_own = row < own->rows && column < p->value_width;
    const sb_attention_place stepped = sb_attention16_few_place(given, own, warp),
                             at = sb_attention16_few_place(given, own, is_own ? row : 0);
    sb_attention16_column c = {at, column, 0, 0, {NONE, 0}, 0, false};
    int32_t highest = NONE;
    bool is_nan = false;
    SB_CUDA_KEEP_LOOP
    for (int32_t first = 0; first < own->splits; first += FEW_STEPS) {
        const int32_t left = own->splits - first, count = left < FEW_STEPS ? left : FEW_STEPS;
        const int32_t split = own->first_split + first;
        const float *from = sb_attention16_partial(p, part, &at, split) + column;
        float now[FEW_BATCH], then[FEW_BATCH];
        sb_attention16_few_load_parts(p, from, is_own ? count : 0, now);
        SB_CUDA_KEEP_LOOP
        for (int i = 0; warp < own->rows && i < count; i += 32)
            steps[warp * FEW_STEPS + i + (int)threadIdx.x % 32] =
                sb_attention16_find_steps(p, part, &stepped, split + i, count - i, &highest, &is_nan);
        if (threadIdx.x % 32 == 0) {
            shared.tops[warp] = highest;
            shared.nans[warp] = is_nan;
        }
        SB_CUDA_BARRIER();
        SB_CUDA_KEEP_LOOP
        for (int i = 0; is_own && i < count; i += FEW_BATCH) {
            from += (int64_t)FEW_BATCH * SB_CUDA_ATTENTION_PARTIAL(p->value_width);
            sb_attention16_few_load_parts(p, from, count - i - FEW_BATCH, then);
            SB_CUDA_UNROLL
            for (int j = 0; j < FEW_BATCH; j++) {
                const sb_attention16_step by = steps[row * FEW_STEPS + i + j];
                sb_attention16_take_step(&c.value, now[j], by);
                sb_attention16_take_step(&c.total.sum, by.sum, by);
                now[j] = then[j];
            }
        }
        SB_CUDA_BARRIER();
    }
    if (!is_own)
        return;
    c.total.maximum = shared.tops[row];
    c.is_nan = shared.nans[row] != 0;
    sb_attention16_end_column<E>(p, &c);
}

/* Behind a split, whose parts the block has written: folds the block's columns if those of the other splits are there. */
template <class E, int D>
SB_CUDA_FUNCTION void sb_attention16_few_finish(const sb_cuda_attention16_few *given,
                                                const sb_attention16_few_tile *own, uint32_t rank,
                                                sb_attention16_few_memory shared) {
    SB_CUDA_BARRIER();
    if (threadIdx.x == 0)
        *shared.last = sb_cuda_arrives_last(sb_attention16_few_word(given, own, rank), (uint32_t)own->splits);
    SB_CUDA_BARRIER();
    if (*shared.last)
        sb_attention16_few_fold<E, D>(given, rank, shared);
}

/* ---- all of it ---- */

/* Rows by the definition: the block's columns. */
template <class E, int D>
APART void sb_attention16_few_again(const sb_cuda_attention16_few *given, uint32_t rank,
                                    sb_attention16_few_memory shared) {
    const sb_cuda_attention *p = &given->attention;
    const sb_attention16_few_tile *own = shared.tile;
    const sb_attention16_tile tile = sb_attention16_few_whole(given, own);
    const int64_t column = (int64_t)rank * (D / FEW_BLOCKS) + threadIdx.x;
    const bool is_own = threadIdx.x < D / FEW_BLOCKS && column < p->value_width;
    SB_CUDA_KEEP_LOOP
    for (int row = 0; row < own->rows; row++) {
        const sb_attention_place at = sb_attention16_few_place(given, own, row);
        sb_attention16_again_columns<E>(p, &tile, &at, is_own ? column : -1,
                                        (sb_attention_scratch<E, sb_attention_real_f32> *)shared.scratch);
        SB_CUDA_BARRIER();
    }
}

/* A block's part of what is written of a new row. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_few_give_new(const sb_cuda_attention *p, const sb_cuda_attention16_append *append,
                                                  sb_attention16_new_row row, const sb_attention16_few_tile *own,
                                                  uint32_t rank, const uint32_t queries[D / 16][2]) {
    if (row.at == SB_ATTENTION16_ASTRAY) {
        *append->fault = SB_FAULT_INDEX;
        return;
    }
    if (rank == 0 && row.at >= 0)
        sb_attention16_give_key<HALF, D>(append, &p->k, row, own->key_head);
    if (rank == 1 && row.at >= 0)
        sb_attention16_give_value<D>(append, &p->v, row, own->key_head);
    if (rank == 2 && threadIdx.x < 32)
        sb_attention16_give_queries<D>(&p->q, own->key_head, (int32_t)p->group, queries);
}

/* All that is written of a new row for a head of keys, by one block. */
template <int HALF, int D>
APART void sb_attention16_few_give_all(const sb_cuda_attention16_few *given, const sb_cuda_attention16_append *append,
                                       sb_attention16_few_memory shared) {
    const sb_attention16_few_tile *own = shared.tile;
    const sb_attention16_new_row row = sb_attention16_find_new(append);
    uint32_t queries[D / 16][2];
    sb_attention16_few_load_queries<D>(given, &append->queries, own, queries);
    sb_attention16_turn_queries<HALF, D>(append, row, queries);
    SB_CUDA_KEEP_LOOP
    for (uint32_t part = 0; part < FEW_BLOCKS; part++)
        sb_attention16_few_give_new<HALF, D>(&given->attention, append, row, own, part, queries);
    SB_CUDA_BARRIER();
}

/* All of a tile, of `queries`, which with a new row are yet to come, and of pages the lane's; the cluster has come to its barrier before, and comes to it when it has read what it was told. `told` is the
 * barrier that counts that, in this phase of it. */
template <int HALF, int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_few_tile_of(const sb_cuda_attention16_few *given,
                                                 const sb_cuda_attention16_append *append, sb_attention16_new_row fresh,
                                                 const sb_attention16_few_tile *own, int32_t page,
                                                 uint32_t queries[D / 16][2], uint32_t rank, uint32_t told,
                                                 uint32_t phase, sb_attention16_few_memory shared) {
    typedef typename sb_attention16_element<HALF>::type E;
    const sb_cuda_attention *p = &given->attention;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, quarter = (int)rank * (D / FEW_BLOCKS);
    const int32_t start = own->at_split * SB_ATTENTION_SPLIT, block = start + (int32_t)rank * KEYS;
    const bool has_keys = own->first < own->end;
    /* Blocks of keys of the split, and 32s of keys, that any row sees. */
    const int begin = has_keys ? (own->first - start) / KEYS : 0;
    const int end = has_keys ? (own->end - 1 - start) / KEYS + 1 : 0,
              steps = has_keys ? (own->end - 1 - start) / 32 + 1 : 0;
    const bool scores = (int)rank >= begin && (int)rank < end;
    if (scores)
        sb_attention16_few_load_keys<D, PAGED>(given, own, page, block, shared.keys);
    SB_CUDA_COPIES_END();
    if (has_keys)
        sb_attention16_few_load_values<D, PAGED>(given, own, page, quarter, shared.values);
    SB_CUDA_COPIES_END();
    if (threadIdx.x == 0) {
        *shared.again = 0;
        *shared.tile = *own;
        sb_barrier_expect(told, (uint32_t)((end - begin) * own->rows) * FEW_TOLD_BYTES);
    }
    if (append != NULL) {
        SB_CUDA_AWAIT();
        sb_attention16_few_load_queries<D>(given, &append->queries, own, queries);
    }
    /* Which piece of a new key, and of its value, the thread has copied that puts the new one there. */
    const bool is_seen = append != NULL && fresh.at >= own->first && fresh.at < own->end;
    const sb_attention16_few_piece new_key = sb_attention16_few_piece_of<D / 8>(fresh.at - block, KEYS);
    const sb_attention16_few_piece new_value =
        sb_attention16_few_piece_of<D / FEW_BLOCKS / 8>(fresh.at - start, SB_ATTENTION_SPLIT);
    sb_cuda_eight key, value;
    if (is_seen && new_key.is_own)
        key = sb_attention16_new_key<HALF, D>(append, fresh, own->key_head, new_key.column);
    if (is_seen && new_value.is_own)
        value = sb_attention16_new_value(append, own->key_head, quarter + new_value.column);
    if (append != NULL) {
        sb_attention16_turn_queries<HALF, D>(append, fresh, queries);
        if (own->at_split == own->first_split)
            sb_attention16_few_give_new<HALF, D>(p, append, fresh, own, rank, queries);
    }
    const sb_attention16_few_row row = sb_attention16_few_row_of(given, own, lane / 4);
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)sb_attention_factor(p));
    if (scores) {
        float s[2][4];
        SB_CUDA_COPIES_WAIT(1);
        if (is_seen && new_key.is_own)
            sb_cuda_store_eight((char *)(shared.keys + new_key.at), key);
        SB_CUDA_BARRIER();
        sb_attention16_few_score<HALF, D>(p, queries, shared.keys + warp * FEW_OWN * SB_CUDA_ATTENTION16_PITCH(D), s);
        const float largest = sb_attention16_few_hide(s, &row, block + warp * FEW_OWN);
        sb_cluster_wait();
        sb_attention16_few_tell(s, largest, rank, own->rows, told, shared);
    } else
        sb_cluster_wait();
    sb_barrier_wait(told, phase);
    const sb_attention16_few_maximum maximum =
        sb_attention16_few_find_maximum(shared.largest, by, begin, end, own->rows);
    sb_attention16_few_weigh<HALF>(&maximum, by, begin, end, own->rows, shared);
    SB_CUDA_COPIES_WAIT(0);
    if (is_seen && new_value.is_own)
        sb_cuda_store_eight((char *)(shared.values + new_value.at), value);
    SB_CUDA_BARRIER();
    sb_cluster_arrive_relaxed();
    const int32_t highest = sb_cuda_shuffle_from_s32(maximum.maximum, lane / 4 * 4 + FEW_BLOCKS - 1);
    const bool sums_values = warp < D / FEW_BLOCKS / 8 && quarter + warp * 8 < p->value_width;
    float sums[4];
    if (sums_values) {
        sb_attention16_few_sum<HALF, D>(&maximum, shared.weights, shared.values + warp * 8, begin * 4, steps, sums);
        const bool is_not = sums[0] != sums[0] || sums[1] != sums[1];
        if (row.used && (maximum.again || (is_not && !maximum.is_nan && highest != NONE)))
            *shared.again = 1;
    }
    if (warp == FEW_ADDING) {
        const float sum = sb_attention16_few_add<HALF>(&maximum, shared.weights, begin * 4, steps);
        if (lane % 4 == 0)
            shared.sums[lane / 4] = sum;
    }
    SB_CUDA_BARRIER();
    if (SB_CUDA_SELDOM(*shared.again)) {
        /* The definition takes everything from memory, where the blocks that write it may not have come to that. */
        if (append != NULL)
            sb_attention16_few_give_all<HALF, D>(given, append, shared);
        sb_attention16_few_again<E, D>(given, rank, shared);
        return;
    }
    const float sum = shared.sums[lane / 4];
    const sb_attention16_tile tile = sb_attention16_few_whole(given, own);
    const sb_attention_place at = sb_attention16_few_place(given, own, lane / 4);
    if (tile.split >= 0 && warp == FEW_ADDING && lane % 4 == 0 && row.used)
        sb_attention16_give_sum(p, &tile, &at, maximum.is_nan, highest, sum);
    if (sums_values && row.used) {
        const int64_t column = quarter + warp * 8 + lane % 4 * 2;
        sb_attention16_give<HALF>(p, &tile, &at, column, sums[0], sums[1], maximum.is_nan, highest, sb_div_f32(1, sum));
    }
}

/* Tiles of clusters a grid apart. */
template <int HALF, int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_few(const sb_cuda_attention16_few *given, const sb_cuda_attention16_append *append,
                                         uint32_t told, unsigned char *memory) {
    typedef typename sb_attention16_element<HALF>::type E;
    const sb_attention16_few_memory shared = sb_attention16_few_cut<D>(memory);
    const uint32_t rank = sb_cluster_rank();
    uint32_t phase = 0;
    sb_attention16_few_tile own;
    if (threadIdx.x == 0) {
        sb_barrier_init(told, 1);
        sb_barrier_init_done();
    }
    sb_cluster_arrive_relaxed();
    /* Weights of rows that are not there are multiplied, and nobody looks at what they come to: they may be any numbers. */
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < FEW_ROWS * SCORES_PITCH / 2; i += FEW_THREADS)
        ((uint32_t *)(void *)shared.weights)[i] = 0;
    SB_CUDA_DEPEND_UNLESS(append != NULL && append->ahead < 0);
    SB_CUDA_KEEP_LOOP
    for (uint32_t index = blockIdx.x / FEW_BLOCKS; sb_attention16_few_find<PAGED>(given, index, &own);
         index += gridDim.x / FEW_BLOCKS) {
        uint32_t queries[D / 16][2];
        sb_attention16_new_row fresh = {-1, -1};
        int32_t page = 0;
        if (!PAGED && append == NULL)
            sb_attention16_few_load_queries<D>(given, &given->attention.q, &own, queries);
        if (PAGED && given->left < 0)
            page = sb_attention16_few_look_up(given, own.sequence, own.number);
        if (append != NULL)
            fresh = sb_attention16_find_new(append);
        sb_attention16_few_count<PAGED>(given, &own);
        const int32_t rows = PAGED ? sb_attention16_few_sharing(given, &own) : 1;
        SB_CUDA_KEEP_LOOP
        for (; own.first_row < rows; own.first_row += FEW_ROWS) {
            sb_attention16_few_bound(given, &own);
            if (own.rows == 0)
                continue;
            if (PAGED)
                sb_attention16_few_load_queries<D>(given, &given->attention.q, &own, queries);
            if (PAGED && given->left >= 0)
                page = sb_attention16_few_look_up(given, own.sequence, own.at_split);
            sb_attention16_few_tile_of<HALF, D, PAGED>(given, append, fresh, &own, page, queries, rank, told, phase,
                                                       shared);
            phase ^= 1;
            if (own.splits > 1)
                sb_attention16_few_finish<E, D>(given, &own, rank, shared);
            SB_CUDA_BARRIER();
        }
    }
    if (append != NULL)
        SB_CUDA_AWAIT();
    sb_cluster_wait();
}

/* The kernels of a source: heads of up to `width`, on pages, or with a new row of that width. */
#define SB_CUDA_ATTENTION16_FEW_BODY(kernel, parameters, half, width, paged, attention, append)                        \
    SB_HOPPER_KERNEL_BOUNDED(kernel, parameters, given, FEW_BLOCKS, FEW_THREADS, 2) {                                  \
        SB_HOPPER_DYNAMIC_SHARED(memory);                                                                              \
        SB_HOPPER_BARRIERS(told_barriers, 1);                                                                          \
        sb_attention16_few<half, width, paged>(attention, append, sb_shared_address(told_barriers), memory);           \
    }
#define SB_CUDA_ATTENTION16_FEW_KERNEL(name, half, width)                                                              \
    SB_CUDA_ATTENTION16_FEW_BODY(sb_cuda_attention16_few_##width##_##name, sb_cuda_attention16_few, half, width,       \
                                 false, &given, NULL)
#define SB_CUDA_ATTENTION16_FEW_PAGED_KERNEL(name, half, width)                                                        \
    SB_CUDA_ATTENTION16_FEW_BODY(sb_cuda_attention16_few_paged_##width##_##name, sb_cuda_attention16_few, half, width, \
                                 true, &given, NULL)
#define SB_CUDA_ATTENTION16_FEW_APPENDED_KERNEL(name, half, width)                                                     \
    SB_CUDA_ATTENTION16_FEW_BODY(sb_cuda_attention16_few_appended_##width##_##name, sb_cuda_attention16_few_appended,  \
                                 half, width, false, &given.attention, &given.append)
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_FEW_F16(KERNEL, width) KERNEL(f16, SB_CUDA_F16, width)
#else
#define SB_CUDA_ATTENTION16_FEW_F16(KERNEL, width)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_FEW_BF16(KERNEL, width) KERNEL(bf16, SB_CUDA_BF16, width)
#else
#define SB_CUDA_ATTENTION16_FEW_BF16(KERNEL, width)
#endif
#define SB_CUDA_ATTENTION16_FEW(KERNEL, width)                                                                         \
    SB_CUDA_ATTENTION16_FEW_F16(KERNEL, width)                                                                         \
    SB_CUDA_ATTENTION16_FEW_BF16(KERNEL, width)

#endif
