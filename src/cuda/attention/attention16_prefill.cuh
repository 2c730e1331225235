/* Attention of many rows by warpgroups: tiles of 128 rows against blocks of 128 keys, by TMA and wgmma. Of heads of more than 128 elements
 * a tile has 64 rows: both warpgroups score them, and each sums half of the values' columns, as sums of all have no room in registers.
 *
 * A thread of one warpgroup fetches: the queries of a tile once, then blocks of keys and values through a ring, in the order in
 * which they are used: K0, K1, V0, K2, V1, … The two other warpgroups have 64 rows each, from scores to the output. Each begins
 * the scores of a block and behind them the values of the block before, whose weights are in registers as the left factor, and
 * computes weights while the values are summed. The warpgroups take turns at beginning products, so that the weights of one are
 * computed while the other's products go on.
 *
 * The definition's order (docs/numerics.md, section 10) is that of today's tiles of 64 rows (attention16_tile.cuh): a maximum of
 * each block of 128 keys, whose sums are multiplied by the power between two maxima before the block's values are added; chains over
 * 512 keys that begin at +0, where sums lie in registers; and totals of the splits before, which lie in shared memory, each
 * thread's own.
 *
 * Rows whose sums are NaN without a score that is, and those with a block whose scores are all below about -0.7 million, leave
 * nothing but a word, for attention16_again.cu to compute by the definition. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_PREFILL_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_PREFILL_CUH

#include "cuda/attention/attention16.cuh"
#include "cuda/attention/attention16_prefill_parameters.h"
#include "cuda/contraction/hopper.cuh"
#include "cuda/contraction/wgmma.cuh"

#define KEY_GROUPS (KEYS / 8)
#define GROUP_THREADS 128
#define GROUP_ROWS 64
/* A tile's rows, and whether both warpgroups have the same, with columns of values of their own. */
#define TILE_ROWS(D) SB_CUDA_ATTENTION16_PREFILL_ROWS(D)
#define SHARES_ROWS(D) (TILE_ROWS(D) == GROUP_ROWS)
#define GROUP_COLUMNS(D) (SHARES_ROWS(D) ? (D) / 2 : (D))
/* Bytes from 64 elements of a tile's queries to the next. */
#define QUERY_CHUNK_BYTES(D) (TILE_ROWS(D) * 128)
/* Bytes of 128 lines of 64 elements: what a copy brings, and from 64 elements to the next. */
#define CHUNK_BYTES (128 * 128)

#if SB_HOPPER

/* ---- tiles ---- */

/* A tile, found by the thread that fetches. Keys are numbers of 32 bits (attention16.c). */
struct sb_prefill_tile {
    sb_attention16_tile whole;
    int32_t first_query;
    int32_t block, blocks;                    /* the first key of the first of so many blocks of keys */
    int32_t begin, end, full_begin, full_end; /* as in `whole` */
    bool there;                               /* else it is behind the last one */
};

/* The block's tile of round `number`: the grid's tiles of a round go to its blocks forwards and backwards in turn, so that
 * the block with the longest tile of one has the shortest of the next. */
SB_CUDA_FUNCTION uint32_t sb_prefill_index(int number) {
    const uint32_t place = number % 2 != 0 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    return (uint32_t)number * gridDim.x + place;
}

SB_CUDA_FUNCTION int32_t sb_prefill_within(int64_t key) {
    const int64_t most = INT32_MAX - KEYS;
    return (int32_t)(key < 0 ? 0 : key < most ? key : most);
}

/* Tile `index`: as sb_attention16_find_tile counts them, with numbers of 32 bits. */
SB_CUDA_FUNCTION void sb_prefill_find(const sb_cuda_attention16_tiles *p, uint32_t index, sb_prefill_tile *tile) {
    const sb_cuda_attention *attention = &p->attention;
    const uint32_t key_heads = (uint32_t)attention->key_heads, batches = (uint32_t)attention->batch;
    const uint32_t rest = index / key_heads, number = (uint32_t)attention->row_tiles - 1 - rest / batches;
    const int64_t queries = sb_cuda_used(attention->used_queries, attention->queries);
    const int32_t first = (int32_t)number * p->queries;
    const int64_t last = first + p->queries < queries ? first + p->queries - 1 : queries - 1;
    sb_attention16_tile *whole = &tile->whole;
    sb_attention16_place_tile(attention, whole, rest % batches, index % key_heads, queries);
    whole->first_row = (int64_t)first * whole->group;
    sb_attention16_bound_queries(attention, whole, first, last, -1);
    const bool is_empty = first >= queries || whole->begin >= whole->end;
    tile->there = true;
    tile->first_query = first;
    tile->begin = sb_prefill_within(whole->begin);
    tile->end = sb_prefill_within(whole->end);
    tile->full_begin = sb_prefill_within(whole->full_begin);
    tile->full_end = sb_prefill_within(whole->full_end);
    tile->block = tile->begin / KEYS * KEYS;
    tile->blocks = is_empty ? 0 : (tile->end - tile->block + KEYS - 1) / KEYS;
}

/* ---- shared memory ---- */

/* Addresses of shared memory, and what of it threads read and write by themselves. */
template <int D> struct sb_prefill_shared {
    uint32_t queries, ring;
    uint32_t full, empty;                 /* a barrier of each stage */
    uint32_t queries_full, queries_empty; /* one of each */
    uint32_t turns;                       /* one of each warpgroup: it may begin products */
    float *totals;                        /* of both warpgroups */
    sb_prefill_tile *tiles;               /* this one and the next one, which take turns */
};

template <int D> struct sb_prefill_place {
    int stage;
    uint32_t phase;
};

template <int D> SB_CUDA_FUNCTION void sb_prefill_next(sb_prefill_place<D> *at) {
    if (++at->stage == SB_CUDA_ATTENTION16_PREFILL_STAGES(D)) {
        at->stage = 0;
        at->phase ^= 1;
    }
}

template <int D>
SB_CUDA_FUNCTION uint32_t sb_prefill_stage(const sb_prefill_shared<D> *shared, const sb_prefill_place<D> *at) {
    return shared->ring + (uint32_t)at->stage * SB_CUDA_ATTENTION16_PREFILL_UNIT(D);
}

/* ---- fetching ---- */

template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch_block(const sb_prefill_shared<D> *shared, const sb_tensor_map *map, int key,
                                             int head, int batch, sb_prefill_place<D> *at) {
    const uint32_t arrived = shared->full + 8 * at->stage;
    sb_barrier_wait(shared->empty + 8 * at->stage, at->phase ^ 1);
    sb_barrier_expect(arrived, SB_CUDA_ATTENTION16_PREFILL_UNIT(D));
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 64; i++)
        sb_tensor_load(sb_prefill_stage(shared, at) + i * CHUNK_BYTES, map, arrived, 64 * i, key, head, batch);
    sb_prefill_next(at);
}

/* Queries, then the blocks of keys and values. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch_tile(const sb_cuda_attention16_prefill *p, const sb_prefill_shared<D> *shared,
                                            const sb_prefill_tile *tile, sb_prefill_place<D> *at) {
    const int blocks = tile->blocks, first = tile->block;
    const int head = (int)tile->whole.at.key_head, batch = (int)tile->whole.at.batch;
    if (blocks == 0) {
        sb_barrier_arrive(shared->queries_full);
        return;
    }
    sb_barrier_expect(shared->queries_full, (uint32_t)(D / 64 * p->work.rows * 128));
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 64; i++)
        sb_tensor_load(shared->queries + i * QUERY_CHUNK_BYTES(D), &p->q, shared->queries_full, 64 * i,
                       head * tile->whole.group, tile->first_query, batch);
    sb_prefill_fetch_block<D>(shared, &p->k, first, head, batch, at);
    SB_CUDA_KEEP_LOOP
    for (int block = 1; block <= blocks; block++) {
        if (block < blocks)
            sb_prefill_fetch_block<D>(shared, &p->k, first + block * KEYS, head, batch, at);
        sb_prefill_fetch_block<D>(shared, &p->v, first + (block - 1) * KEYS, head, batch, at);
    }
}

template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch(const sb_cuda_attention16_prefill *p, const sb_prefill_shared<D> *shared) {
    sb_prefill_place<D> at = {0, 0};
    int number = 0;
    SB_CUDA_KEEP_LOOP
    for (uint32_t index; (index = sb_prefill_index(number)) < (uint32_t)p->work.tiles; number++) {
        sb_prefill_tile *tile = &shared->tiles[number % 2];
        /* Behind the last scores of the tile before, so that nobody is still at the tile before that. */
        sb_barrier_wait(shared->queries_empty, (uint32_t)(number & 1) ^ 1);
        sb_prefill_find(&p->work, index, tile);
        sb_prefill_fetch_tile<D>(p, shared, tile, &at);
    }
    sb_barrier_wait(shared->queries_empty, (uint32_t)(number & 1) ^ 1);
    shared->tiles[number % 2].there = false;
    sb_barrier_arrive(shared->queries_full);
}

/* ---- products ---- */

template <int HALF>
SB_CUDA_FUNCTION void sb_prefill_multiply_keys(float *scores, int adds, uint64_t queries, uint64_t keys) {
    if (HALF == SB_CUDA_F16)
        SB_WGMMA_128(scores, adds, queries, keys, "f16", 0, 0);
    else
        SB_WGMMA_128(scores, adds, queries, keys, "bf16", 0, 0);
}

template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_multiply_values(float *sums, int adds, const uint32_t *weights, uint64_t values) {
    if (GROUP_COLUMNS(D) == 128 && HALF == SB_CUDA_F16)
        SB_WGMMA_LEFT_128(sums, adds, weights, values, "f16", 1);
    else if (GROUP_COLUMNS(D) == 128)
        SB_WGMMA_LEFT_128(sums, adds, weights, values, "bf16", 1);
    else if (HALF == SB_CUDA_F16)
        SB_WGMMA_LEFT_64(sums, adds, weights, values, "f16", 1);
    else
        SB_WGMMA_LEFT_64(sums, adds, weights, values, "bf16", 1);
}

/* Begins the scores of the block in a stage. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_begin_scores(const sb_prefill_shared<D> *shared, const sb_prefill_place<D> *at,
                                              uint32_t queries_address, float *scores) {
    const uint64_t queries = sb_matrix_descriptor(queries_address, QUERY_CHUNK_BYTES(D), 1024);
    const uint64_t keys = sb_matrix_descriptor(sb_prefill_stage(shared, at), CHUNK_BYTES, 1024);
    sb_barrier_wait(shared->full + 8 * at->stage, at->phase);
    SB_WGMMA_BEGIN();
    SB_CUDA_UNROLL
    for (int k = 0; k < D / 16; k++) {
        const int within = k % 4 * (32 / 16);
        sb_prefill_multiply_keys<HALF>(scores, k > 0, queries + k / 4 * (QUERY_CHUNK_BYTES(D) / 16) + within,
                                       keys + k / 4 * (CHUNK_BYTES / 16) + within);
    }
    SB_WGMMA_END();
}

/* Makes zeros of the values in a stage that no row of the tile sees: lines before `begin` and from `end` on. Both warpgroups do,
 * since each would have to wait for the other. */
template <int D> SB_CUDA_FUNCTION void sb_prefill_clear(uint32_t values, int begin, int end, int group) {
    const int thread = (int)threadIdx.x % GROUP_THREADS;
    SB_CUDA_KEEP_LOOP
    for (int piece = thread; piece < KEYS * D / 8; piece += GROUP_THREADS) {
        const int line = piece / 8 % KEYS;
        if (line < begin || line >= end)
            sb_shared_clear(values + 16 * piece);
    }
    sb_shared_written();
    sb_warpgroup_sync(1 + group);
}

/* Begins to add a block's weighted values to those before it, or with `adds` 0 to +0. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_begin_values(const sb_prefill_shared<D> *shared, const sb_prefill_place<D> *at,
                                              uint32_t column_bytes, int adds, const uint32_t weights[KEYS / 16][4],
                                              float *sums) {
    const uint64_t values = sb_matrix_descriptor(sb_prefill_stage(shared, at) + column_bytes, CHUNK_BYTES, 1024);
    SB_WGMMA_BEGIN();
    SB_CUDA_UNROLL
    for (int k = 0; k < KEYS / 16; k++)
        sb_prefill_multiply_values<HALF, D>(sums, k > 0 || adds, weights[k], values + k * (2048 / 16));
    SB_WGMMA_END();
}

/* ---- rows ---- */

/* What a thread knows of its two rows, but for the sums of values. */
struct sb_prefill_rows {
    int32_t maximum[2]; /* of the split; NONE while the row has seen no key of it */
    float lanes[2];
    sb_attention16_total totals[2]; /* of the splits before */
    bool is_nan[2], again[2];
};

/* The thread's number, worked out where it is asked for: what follows from it would take registers of all loops. */
SB_CUDA_FUNCTION int sb_prefill_thread(void) {
    int thread = (int)threadIdx.x;
    SB_HOPPER_KEEP("+r"(thread));
    return thread;
}

/* A thread's row in its tile. */
template <int D> SB_CUDA_FUNCTION int sb_prefill_own_row(int r) {
    const int thread = sb_prefill_thread();
    return thread / 32 * 16 % TILE_ROWS(D) + thread % 32 / 4 + 8 * r;
}

template <int D>
SB_CUDA_FUNCTION bool sb_prefill_is_used(const sb_cuda_attention16_prefill *p, const sb_prefill_tile *tile, int r) {
    const int own = sb_prefill_own_row<D>(r);
    return own < p->work.rows && tile->whole.first_row + own < tile->whole.rows;
}

/* Blocks of keys that all rows see, so many keys from `first` on, which lie in registers: nothing is hidden of them or cleared. */
struct sb_prefill_plain {
    int32_t first;
    uint32_t keys;
};

SB_CUDA_FUNCTION sb_prefill_plain sb_prefill_find_plain(const sb_prefill_tile *tile) {
    const int32_t first = (tile->full_begin + KEYS - 1) / KEYS * KEYS, end = tile->full_end / KEYS * KEYS;
    const sb_prefill_plain plain = {first, first < end ? (uint32_t)(end - first) : 0};
    return plain;
}

SB_CUDA_FUNCTION bool sb_prefill_is_inside(sb_prefill_plain plain, int32_t block) {
    return (uint32_t)block - (uint32_t)plain.first < plain.keys;
}

/* Hides keys that a row does not see. Rows that are not there may see any. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_see(const sb_cuda_attention16_prefill *p, const sb_prefill_tile *tile, int block,
                                     sb_prefill_plain plain, float s[KEY_GROUPS][4]) {
    sb_attention_place rows[2];
    if (!SB_CUDA_SELDOM(!sb_prefill_is_inside(plain, block)))
        return;
    SB_CUDA_UNROLL
    EACH_ROW rows[r].reach = sb_attention16_reach(&p->work.attention, &tile->whole,
                                                  tile->first_query + sb_prefill_own_row<D>(r) / tile->whole.group);
    sb_attention16_hide<KEY_GROUPS>(s, rows, block);
}

/* Has scores worked out here, and what is made of them behind. */
SB_CUDA_FUNCTION void sb_prefill_keep(float s[KEY_GROUPS][4]) {
    SB_CUDA_UNROLL
    for (int j = 0; j < KEY_GROUPS; j++)
        SB_CUDA_UNROLL for (int i = 0; i < 4; i++) SB_HOPPER_KEEP("+f"(s[j][i]));
}

/* ---- weights ---- */

/* The largest of three, as integers, and the least as integers without a sign. */
SB_CUDA_FUNCTION int32_t sb_prefill_most_of(int32_t a, int32_t b, int32_t c) {
#if defined(__CUDA_ARCH__)
    return __vimax3_s32(a, b, c);
#else
    const int32_t larger = a > b ? a : b;
    return larger > c ? larger : c;
#endif
}

SB_CUDA_FUNCTION uint32_t sb_prefill_least_of(uint32_t a, uint32_t b, uint32_t c) {
#if defined(__CUDA_ARCH__)
    return __vimin3_u32(a, b, c);
#else
    const uint32_t less = a < b ? a : b;
    return less < c ? less : c;
#endif
}

/* What a row's threads have of it, from what each has: the four threads that hold a row. */
SB_CUDA_FUNCTION int32_t sb_prefill_most_of_row(int32_t own) {
    own = sb_prefill_most_of(own, sb_cuda_shuffle_exchange_s32(own, 1), INT32_MIN);
    return sb_prefill_most_of(own, sb_cuda_shuffle_exchange_s32(own, 2), INT32_MIN);
}

SB_CUDA_FUNCTION uint32_t sb_prefill_least_of_row(uint32_t own) {
    own = sb_prefill_least_of(own, (uint32_t)sb_cuda_shuffle_exchange_s32((int32_t)own, 1), UINT32_MAX);
    return sb_prefill_least_of(own, (uint32_t)sb_cuda_shuffle_exchange_s32((int32_t)own, 2), UINT32_MAX);
}

/* Whether it is so for any thread of the warp. */
SB_CUDA_FUNCTION bool sb_prefill_any(bool is) {
#if defined(__CUDACC__)
    return __any_sync(0xffffffffu, is);
#else
    return sb_cuda_first_lane(is) >= 0;
#endif
}

/* The largest score of each of the thread's rows, of all threads that hold it, as an integer: three at a time, so that it takes half as
 * many instructions as by numbers. Integers have the order of numbers that are not below zero. Below zero the order is the other way
 * round, so that where a row has no other score the least as an integer without a sign is looked for, too; but not where the maximum is no
 * less than 0 already, which none of those raises. A NaN is the largest, or is passed over: it makes a NaN of the weights' sum. */
SB_CUDA_FUNCTION void sb_prefill_largest(const float s[KEY_GROUPS][4], const int32_t maximum[2], float largest[2]) {
    int32_t most[2];
    SB_CUDA_UNROLL
    EACH_ROW {
        int32_t high[2] = {INT32_MIN, INT32_MIN}; /* so that fewer instructions wait for the one before */
        SB_CUDA_UNROLL
        for (int j = 0; j < KEY_GROUPS; j++)
            high[j % 2] = sb_prefill_most_of(high[j % 2], (int32_t)sb_bits_from_f32(s[j][2 * r]),
                                             (int32_t)sb_bits_from_f32(s[j][2 * r + 1]));
        most[r] = sb_prefill_most_of_row(sb_prefill_most_of(high[0], high[1], INT32_MIN));
    }
    if (sb_prefill_any((most[0] < 0 && maximum[0] < 0) || (most[1] < 0 && maximum[1] < 0))) {
        SB_CUDA_UNROLL
        EACH_ROW {
            uint32_t low[2] = {UINT32_MAX, UINT32_MAX};
            SB_CUDA_UNROLL
            for (int j = 0; j < KEY_GROUPS; j++)
                low[j % 2] =
                    sb_prefill_least_of(low[j % 2], sb_bits_from_f32(s[j][2 * r]), sb_bits_from_f32(s[j][2 * r + 1]));
            const uint32_t least = sb_prefill_least_of_row(sb_prefill_least_of(low[0], low[1], UINT32_MAX));
            most[r] = most[r] < 0 ? (int32_t)least : most[r];
        }
    }
    SB_CUDA_UNROLL
    EACH_ROW largest[r] = sb_bits_to_f32((uint32_t)most[r]);
}

/* The exponents of a block's largest scores: what is said of them by sb_attention16_exponent is looked up where one is not far from
 * the ends of what it tells apart, of a NaN too. */
SB_CUDA_FUNCTION void sb_prefill_exponents(const float largest[2], sb_split_scale_f32 by, sb_prefill_rows *rows,
                                           int32_t n[2]) {
    bool is_near = true;
    SB_CUDA_UNROLL
    EACH_ROW {
        n[r] = sb_split_exponent_f32(sb_split_shifted_f32(largest[r], by));
        is_near &= (uint32_t)n[r] + (uint32_t)(-NONE / 2) < (uint32_t)-NONE;
    }
    if (SB_CUDA_SELDOM(!is_near)) {
        SB_CUDA_UNROLL
        EACH_ROW n[r] = sb_attention16_exponent(largest[r], by, &rows->is_nan[r], &rows->again[r]);
    }
}

/* Finds the maxima of the rows' split with a block's scores. `factors` are what the split's sums of values are to be multiplied by. */
SB_CUDA_FUNCTION void sb_prefill_raise(float s[KEY_GROUPS][4], sb_split_scale_f32 by, sb_prefill_rows *rows,
                                       float factors[2]) {
    int32_t n[2];
    float largest[2];
    /* Else the compiler makes something of them ahead of the wait for them, and so makes products wait for each other. */
    sb_prefill_keep(s);
    sb_prefill_largest(s, rows->maximum, largest);
    sb_prefill_exponents(largest, by, rows, n);
    SB_CUDA_UNROLL
    EACH_ROW {
        const int32_t maximum = n[r] > rows->maximum[r] ? n[r] : rows->maximum[r];
        factors[r] = sb_split_factor_f32(rows->maximum[r], maximum);
        rows->lanes[r] = rows->lanes[r] * factors[r];
        rows->maximum[r] = maximum;
    }
}

/* Scores of a block to rounded weights, as the left factor of its values, and their sums. No product may be in flight: those that read
 * weights would have to end before the first of these is written. Powers of two keep their unit busy longest: what is done to them, sums one
 * behind the other too, goes on beside. */
template <int HALF>
SB_CUDA_FUNCTION void sb_prefill_weigh(const float s[KEY_GROUPS][4], sb_split_scale_f32 by, sb_prefill_rows *rows,
                                       uint32_t weights[KEYS / 16][4]) {
    float shift[2];
    SB_CUDA_UNROLL
    EACH_ROW shift[r] = sb_attention16_shift(rows->maximum[r]);
    SB_CUDA_UNROLL
    for (int j = 0; j < KEY_GROUPS; j++) {
        SB_CUDA_UNROLL
        EACH_ROW {
            float low, high;
            const uint32_t pair = sb_cuda_round_pair<HALF>(sb_attention16_weight(s[j][2 * r], by.scale, shift[r]),
                                                           sb_attention16_weight(s[j][2 * r + 1], by.scale, shift[r]));
            sb_cuda_widen_pair<HALF>(pair, &low, &high);
            rows->lanes[r] = rows->lanes[r] + low;
            rows->lanes[r] = rows->lanes[r] + high;
            weights[j / 2][j % 2 * 2 + r] = pair;
        }
    }
}

/* Multiplies the split's sums by the powers between two maxima. */
template <int D> SB_CUDA_FUNCTION void sb_prefill_rescale(const float factors[2], float *sums) {
    if (factors[0] == 1 && factors[1] == 1)
        return;
    SB_CUDA_UNROLL
    for (int i = 0; i < GROUP_COLUMNS(D) / 2; i++)
        sums[i] = sums[i] * factors[i / 2 % 2];
}

/* Ends the split but for its values, and begins the next one. */
SB_CUDA_FUNCTION void sb_prefill_end_split(sb_prefill_rows *rows, sb_attention16_factors by[2]) {
    SB_CUDA_UNROLL
    EACH_ROW {
        const float sum = sb_attention16_join(rows->lanes[r]);
        rows->is_nan[r] |= sum != sum;
        by[r] = sb_attention16_fold_row(&rows->totals[r], rows->maximum[r], sum);
        rows->maximum[r] = NONE;
        rows->lanes[r] = 0;
    }
}

/* Folds the values of a split into the totals, which are the sums behind it where `is_last`, else in shared memory. */
template <int D, bool IS_LAST>
SB_CUDA_FUNCTION void sb_prefill_fold(const sb_attention16_factors by[2], float *totals, float *sums) {
    const int thread = (int)threadIdx.x % GROUP_THREADS;
    SB_CUDA_UNROLL
    for (int j = 0; j < GROUP_COLUMNS(D) / 8; j++) {
        sb_cuda_words4 *place = &((sb_cuda_words4 *)(void *)totals)[j * GROUP_THREADS + thread];
        sb_cuda_words4 words = *place;
        float total[4] = {sb_bits_to_f32(words.x), sb_bits_to_f32(words.y), sb_bits_to_f32(words.z),
                          sb_bits_to_f32(words.w)};
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++)
            sb_attention16_fold_value(&total[i], sums[4 * j + i], by[i / 2]);
        if (IS_LAST) {
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++)
                sums[4 * j + i] = total[i];
        } else {
            words.x = sb_bits_from_f32(total[0]);
            words.y = sb_bits_from_f32(total[1]);
            words.z = sb_bits_from_f32(total[2]);
            words.w = sb_bits_from_f32(total[3]);
            *place = words;
        }
    }
}

/* ---- a warpgroup's rows of a tile ---- */

/* What a warpgroup goes by. */
template <int D> struct sb_prefill_group {
    int number;                     /* 0 or 1 */
    uint32_t queries, column_bytes; /* of its rows, and from a unit's beginning to its columns of values */
    float *totals;
    sb_prefill_place<D> at; /* in the ring */
    int turns;              /* that it has had */
    bool leads;             /* the thread that speaks for it */
};

template <int D>
SB_CUDA_FUNCTION void sb_prefill_release(const sb_prefill_shared<D> *shared, const sb_prefill_group<D> *group,
                                         int stage) {
    if (group->leads)
        sb_barrier_arrive(shared->empty + 8 * stage);
}

/* Waits until the values of `block` are there, without those that no row sees. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_await_values(const sb_prefill_shared<D> *shared, const sb_prefill_group<D> *group,
                                              const sb_prefill_tile *tile, sb_prefill_plain plain, int block) {
    sb_barrier_wait(shared->full + 8 * group->at.stage, group->at.phase);
    if (SB_CUDA_SELDOM(!sb_prefill_is_inside(plain, block)) && (block < tile->begin || block + KEYS > tile->end))
        sb_prefill_clear<D>(sb_prefill_stage(shared, &group->at), sb_attention16_within(tile->begin - block),
                            sb_attention16_within(tile->end - block), group->number);
}

/* The blocks of a tile, of which there is one at least. Behind it the sums are what the rows come to. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_sum(const sb_cuda_attention16_prefill *p, const sb_prefill_shared<D> *shared,
                                     const sb_prefill_tile *tile, sb_split_scale_f32 by, sb_prefill_group<D> *group,
                                     sb_prefill_rows *rows, float *sums) {
    float scores[KEY_GROUPS * 4], factors[2];
    uint32_t weights[KEYS / 16][4];
    sb_attention16_factors folding[2];
    const int last = tile->block + (tile->blocks - 1) * KEYS;
    const sb_prefill_plain plain = sb_prefill_find_plain(tile);
    int block = tile->block, adds = 0;
    sb_prefill_begin_scores<HALF, D>(shared, &group->at, group->queries, scores);
    SB_WGMMA_WAIT(0);
    sb_prefill_release<D>(shared, group, group->at.stage);
    sb_prefill_next<D>(&group->at);
    sb_prefill_see<D>(p, tile, block, plain, (float(*)[4])scores);
    sb_prefill_raise((float(*)[4])scores, by, rows, factors);
    sb_prefill_weigh<HALF>((const float(*)[4])scores, by, rows, weights);
    SB_CUDA_KEEP_LOOP
    for (; block < last; block += KEYS) {
        const bool ends = (block + KEYS) % SB_ATTENTION_SPLIT == 0;
        sb_barrier_wait(shared->turns + 8 * group->number, (uint32_t)(group->turns++ + (group->number == 0)) & 1);
        sb_prefill_begin_scores<HALF, D>(shared, &group->at, group->queries, scores);
        const int keys_stage = group->at.stage;
        sb_prefill_next<D>(&group->at);
        sb_prefill_await_values<D>(shared, group, tile, plain, block);
        sb_prefill_begin_values<HALF, D>(shared, &group->at, group->column_bytes, adds, weights, sums);
        /* Each warp by itself: else the turn could be this warpgroup's again before its last warp has seen this one. */
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            sb_barrier_arrive(shared->turns + 8 * (1 - group->number));
        SB_WGMMA_WAIT(1);
        sb_prefill_release<D>(shared, group, keys_stage);
        if (ends)
            sb_prefill_end_split(rows, folding);
        sb_prefill_see<D>(p, tile, block + KEYS, plain, (float(*)[4])scores);
        sb_prefill_raise((float(*)[4])scores, by, rows, factors);
        SB_WGMMA_WAIT(0);
        sb_prefill_release<D>(shared, group, group->at.stage);
        sb_prefill_next<D>(&group->at);
        if (ends)
            sb_prefill_fold<D, false>(folding, group->totals, sums);
        else
            sb_prefill_rescale<D>(factors, sums);
        adds = !ends;
        sb_prefill_weigh<HALF>((const float(*)[4])scores, by, rows, weights);
    }
    if (group->leads)
        sb_barrier_arrive(shared->queries_empty);
    sb_prefill_await_values<D>(shared, group, tile, plain, block);
    sb_prefill_begin_values<HALF, D>(shared, &group->at, group->column_bytes, adds, weights, sums);
    SB_WGMMA_WAIT(0);
    sb_prefill_release<D>(shared, group, group->at.stage);
    sb_prefill_next<D>(&group->at);
    sb_prefill_end_split(rows, folding);
    sb_prefill_fold<D, true>(folding, group->totals, sums);
}

/* Gives out the rows, or says that the definition has to compute the warp's. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_give(const sb_cuda_attention16_prefill *p, const sb_prefill_tile *tile, uint32_t index,
                                      const sb_prefill_rows *rows, const float *sums) {
    const int thread = sb_prefill_thread(), lane = thread % 32, warp = thread / 32;
    const int first_column = SHARES_ROWS(D) ? warp / 4 * GROUP_COLUMNS(D) : 0;
    bool again = false;
    SB_CUDA_UNROLL
    EACH_ROW {
        bool has_nan = false;
        SB_CUDA_UNROLL
        for (int j = 0; j < GROUP_COLUMNS(D) / 8; j++)
            has_nan |= sums[4 * j + 2 * r] != sums[4 * j + 2 * r] || sums[4 * j + 2 * r + 1] != sums[4 * j + 2 * r + 1];
        has_nan &= !rows->is_nan[r] && rows->totals[r].maximum != NONE;
        again |= sb_prefill_is_used<D>(p, tile, r) && (rows->again[r] || has_nan);
    }
    const bool any = sb_cuda_first_lane(again) >= 0;
    if (lane == 0)
        p->work.again[index * SB_CUDA_ATTENTION16_PREFILL_WARPS + (uint32_t)warp] = any;
    if (SB_CUDA_SELDOM(any))
        return;
    SB_CUDA_UNROLL
    EACH_ROW {
        const sb_cuda_attention *attention = &p->work.attention;
        const int own = sb_prefill_own_row<D>(r), group = tile->whole.group;
        const int64_t first =
            sb_attention_at(&attention->y, tile->whole.at.batch, tile->whole.at.key_head * group + own % group,
                            tile->first_query + own / group, first_column + lane % 4 * 2);
        const float share = sb_div_f32(1, rows->totals[r].sum);
        const bool is_nan = rows->is_nan[r], is_none = rows->totals[r].maximum == NONE;
        if (!sb_prefill_is_used<D>(p, tile, r))
            continue;
        SB_CUDA_UNROLL
        for (int j = 0; j < GROUP_COLUMNS(D) / 8; j++) {
            const float low = sums[4 * j + 2 * r] * share, high = sums[4 * j + 2 * r + 1] * share;
            const uint32_t pair = sb_cuda_round_pair<HALF>(is_nan    ? sb_nan_f32()
                                                           : is_none ? 0
                                                                     : low,
                                                           is_nan    ? sb_nan_f32()
                                                           : is_none ? 0
                                                                     : high);
            if (first_column + 8 * j < attention->value_width)
                *(uint32_t *)(void *)(attention->y.data + (first + 8 * j) * 2) = sb_cuda_canonical_pair<HALF>(pair);
        }
    }
}

template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_compute(const sb_cuda_attention16_prefill *p, const sb_prefill_shared<D> *shared,
                                         int number) {
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)p->work.attention.scale);
    sb_prefill_group<D> group;
    group.number = number;
    group.queries = shared->queries + (SHARES_ROWS(D) ? 0 : (uint32_t)number * (GROUP_ROWS * 128));
    group.column_bytes = SHARES_ROWS(D) ? (uint32_t)number * (GROUP_COLUMNS(D) / 64 * CHUNK_BYTES) : 0;
    group.totals = shared->totals + number * (GROUP_ROWS * GROUP_COLUMNS(D));
    group.at.stage = 0;
    group.at.phase = 0;
    group.turns = 0;
    group.leads = threadIdx.x % GROUP_THREADS == 0;
    int count = 0;
    SB_CUDA_KEEP_LOOP
    for (;; count++) {
        const sb_prefill_tile *tile = &shared->tiles[count % 2];
        sb_barrier_wait(shared->queries_full, (uint32_t)count & 1);
        if (!tile->there)
            break;
        sb_prefill_rows rows;
        float sums[GROUP_COLUMNS(D) / 2];
        SB_CUDA_UNROLL
        EACH_ROW {
            rows.maximum[r] = rows.totals[r].maximum = NONE;
            rows.lanes[r] = rows.totals[r].sum = 0;
            rows.is_nan[r] = rows.again[r] = false;
        }
        if (tile->blocks > 0) {
            sb_prefill_sum<HALF, D>(p, shared, tile, by, &group, &rows, sums);
        } else {
            SB_CUDA_UNROLL
            for (int i = 0; i < GROUP_COLUMNS(D) / 2; i++)
                sums[i] = 0;
            sb_warpgroup_sync(1 + number); /* where products would have all of it meet */
            if (group.leads)
                sb_barrier_arrive(shared->queries_empty);
        }
        sb_prefill_give<HALF, D>(p, tile, sb_prefill_index(count), &rows, sums);
    }
}

/* ---- all of it ---- */

#define SB_CUDA_ATTENTION16_PREFILL_KERNEL(width, name, half)                                                          \
    SB_HOPPER_KERNEL(sb_cuda_attention16_prefill_##width##_##name, sb_cuda_attention16_prefill, given, 1,              \
                     SB_CUDA_ATTENTION16_PREFILL_THREADS) {                                                            \
        SB_HOPPER_DYNAMIC_SHARED(shared_memory);                                                                       \
        SB_HOPPER_BARRIERS(full_barriers, SB_CUDA_ATTENTION16_PREFILL_STAGES(width));                                  \
        SB_HOPPER_BARRIERS(empty_barriers, SB_CUDA_ATTENTION16_PREFILL_STAGES(width));                                 \
        SB_HOPPER_BARRIERS(queries_barriers, 2);                                                                       \
        SB_HOPPER_BARRIERS(turn_barriers, 2);                                                                          \
        SB_CUDA_SHARED sb_prefill_tile tiles[2];                                                                       \
        const uint32_t begin = sb_shared_address(shared_memory), first = (begin + 1023) / 1024 * 1024;                 \
        sb_prefill_shared<width> shared;                                                                               \
        shared.queries = first;                                                                                        \
        shared.ring = first + SB_CUDA_ATTENTION16_PREFILL_QUERIES(width);                                              \
        shared.full = sb_shared_address(full_barriers);                                                                \
        shared.empty = sb_shared_address(empty_barriers);                                                              \
        shared.queries_full = sb_shared_address(queries_barriers);                                                     \
        shared.queries_empty = shared.queries_full + 8;                                                                \
        shared.turns = sb_shared_address(turn_barriers);                                                               \
        shared.totals =                                                                                                \
            (float *)(void *)(shared_memory + (first - begin) + SB_CUDA_ATTENTION16_PREFILL_QUERIES(width) +           \
                              SB_CUDA_ATTENTION16_PREFILL_STAGES(width) * SB_CUDA_ATTENTION16_PREFILL_UNIT(width));    \
        shared.tiles = tiles;                                                                                          \
        const int thread = (int)threadIdx.x, group = __shfl_sync(0xffffffffu, thread / GROUP_THREADS, 0);              \
        if (thread < SB_CUDA_ATTENTION16_PREFILL_STAGES(width)) {                                                      \
            sb_barrier_init(shared.full + 8 * thread, 1);                                                              \
            sb_barrier_init(shared.empty + 8 * thread, 2);                                                             \
            if (thread < 2) {                                                                                          \
                sb_barrier_init(shared.queries_full + 8 * thread, 1 + thread);                                         \
                sb_barrier_init(shared.turns + 8 * thread, 4);                                                         \
            }                                                                                                          \
            sb_barrier_init_done();                                                                                    \
        }                                                                                                              \
        __syncthreads();                                                                                               \
        SB_CUDA_DEPEND();                                                                                              \
        if (group == 2) {                                                                                              \
            SB_HOPPER_GIVE_REGISTERS(40);                                                                              \
            if (thread == 2 * GROUP_THREADS)                                                                           \
                sb_prefill_fetch<width>(&given, &shared);                                                              \
        } else {                                                                                                       \
            SB_HOPPER_TAKE_REGISTERS(232);                                                                             \
            sb_prefill_compute<half, width>(&given, &shared, group);                                                   \
        }                                                                                                              \
    }

/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_PREFILL_F16(width) SB_CUDA_ATTENTION16_PREFILL_KERNEL(width, f16, SB_CUDA_F16)
#else
#define SB_CUDA_ATTENTION16_PREFILL_F16(width)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_PREFILL_BF16(width) SB_CUDA_ATTENTION16_PREFILL_KERNEL(width, bf16, SB_CUDA_BF16)
#else
#define SB_CUDA_ATTENTION16_PREFILL_BF16(width)
#endif
#define SB_CUDA_ATTENTION16_PREFILL(width)                                                                             \
    SB_CUDA_ATTENTION16_PREFILL_F16(width)                                                                             \
    SB_CUDA_ATTENTION16_PREFILL_BF16(width)

#endif

#endif
