/* Attention of few rows that share keys, where what limits it is how quickly keys and values come from memory: a block of threads for
 * 8 rows and a split of 512 keys (or all keys, where there is room for no more).
 *
 * A warp fetches, by TMA, through a ring that goes on from one tile to the next: a stage is 64 keys, of which each of four warps scores
 * 16, or their values. Scores lie as keys x rows, so that a product has 16 keys and the 8 rows. The warps meet for the
 * maxima of the four blocks of keys, and for their weights; then each sums a quarter of the values' columns over all keys.
 *
 * What splits come to the block that comes last to its rows folds, a warp a row, where they have words to count themselves in; else a
 * kernel of its own does (attention16_fold.cu). Who that is changes no bit, as splits are folded in ascending order. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_STREAM_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_STREAM_CUH

/* The definition is computed by the warps that compute, without the one that fetches. */
#define SB_ATTENTION_BARRIER() sb_warpgroup_sync(1)

#include "cuda/contraction/hopper.cuh"

#include "cuda/attention/attention16_fold.cuh"
#include "cuda/attention/attention16_stream_tile.cuh"
#include "cuda/common/arrival.cuh"
#include "cuda/contraction/cluster.cuh"

#if SB_HOPPER

/* ---- scores ---- */

/* What a thread knows of the two rows whose scores it holds, 2 (lane mod 4) and the next. */
struct sb_stream_rows {
    sb_attention_reach reach[2];
    bool used[2];
    int32_t maximum[BLOCKS][2]; /* behind each block of keys; NONE: the row has seen no key */
    bool is_nan[2], again;
};

SB_CUDA_FUNCTION void sb_stream_fetch_matrices(bool turned, const unsigned char *from, uint32_t matrices[4]) {
    const uint16_t *row = (const uint16_t *)(const void *)from;
    if (turned)
        sb_attention16_fetch<true>(matrices, row);
    else
        sb_attention16_fetch<false>(matrices, row);
}

/* Scores of two units of 16 keys: of keys lane / 4 and lane / 4 + 8, two rows each. Elements behind the width, up to a multiple of 64, are
 * zeros of both, which change no sum. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_score(int width, const uint32_t queries[D / 16][2], const unsigned char *const units[2],
                                      sb_stream_steps steps, float s[2][4]) {
    const uint32_t lane = threadIdx.x % 32, own = sb_stream_eight(steps, lane % 16, lane / 16 * 8);
    SB_CUDA_UNROLL
    for (int i = 0; i < 8; i++)
        s[i / 4][i % 4] = 0;
    SB_CUDA_UNROLL
    for (int slice = 0; slice < D / 64; slice++) {
        uint32_t keys[4][2][4];
        if (slice * 64 >= width)
            continue;
        SB_CUDA_UNROLL
        for (int i = 0; i < 8; i++)
            sb_stream_fetch_matrices(false, units[i % 2] + slice * steps.slice + (own ^ (uint32_t)(i / 2 * 32)),
                                     keys[i / 2][i % 2]);
        SB_CUDA_UNROLL
        for (int i = 0; i < 8; i++)
            sb_cuda_multiply_matrices<HALF>(s[i % 2], keys[i / 2][i % 2], queries[slice * 4 + i / 2]);
    }
}

/* Keys that a row does not see become -infinity, and with them units that are not there. */
SB_CUDA_FUNCTION void sb_stream_hide(const sb_stream_rows *rows, int32_t start, float s[STAGES][4]) {
    const int32_t own = start + sb_stream_warp() * UNIT_KEYS + sb_stream_lane() / 4;
    SB_CUDA_UNROLL
    EACH_ROW {
        const int32_t first = (int32_t)rows->reach[r].first, last = (int32_t)rows->reach[r].last;
        SB_CUDA_UNROLL
        for (int i = 0; i < STAGES * 2; i++) {
            const int32_t key = own + i / 2 * WARPS * UNIT_KEYS + i % 2 * 8;
            if (key < first || key >= last)
                s[i / 2][i % 2 * 2 + r] = -sb_infinity_f32();
        }
    }
}

/* The scores of the warp's unit of each stage, as they come. Those of units that are not there may be anything. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_score_all(const sb_cuda_attention *p, const sb_stream_shared *shared,
                                          const sb_stream_tile *tile, sb_stream_steps steps,
                                          const uint32_t queries[D / 16][2], const sb_stream_rows *rows,
                                          sb_stream_place *at, float s[STAGES][4]) {
    const sb_stream_span seen = tile->seen;
    const int width = (int)p->width;
    SB_CUDA_UNROLL
    for (int stage = 0; stage < STAGES; stage += 2) {
        const unsigned char *units[2];
        int places[2];
        SB_CUDA_UNROLL
        for (int i = 0; i < 2; i++) {
            places[i] = sb_stream_has_stage(seen, stage + i) ? at->stage : -1;
            units[i] = shared->ring + at->stage * SB_CUDA_ATTENTION16_STREAM_STAGE(D) + sb_stream_warp() * steps.unit;
            if (places[i] < 0)
                continue;
            sb_barrier_wait(shared->full + 8 * at->stage, at->phase);
            sb_stream_next(shared, at);
        }
        if (places[0] < 0)
            units[0] = units[1];
        if (places[1] < 0)
            units[1] = units[0];
        if (places[0] >= 0 || places[1] >= 0)
            sb_stream_score<HALF, D>(width, queries, units, steps, s + stage);
        __syncwarp();
        SB_CUDA_UNROLL
        for (int i = 0; i < 2; i++) {
            if (sb_stream_lane() == 0 && places[i] >= 0)
                sb_barrier_arrive(shared->empty + 8 * places[i]);
        }
    }
    if (tile->full_begin > 0 || tile->full_end < SB_ATTENTION_SPLIT)
        sb_stream_hide(rows, tile->start, s);
}

/* ---- weights ---- */

/* Tells all warps the largest scores of the warp's keys of each block. */
SB_CUDA_FUNCTION void sb_stream_tell(const float s[STAGES][4], float *largest) {
    const int lane = sb_stream_lane();
    float tops[BLOCKS][2];
    SB_CUDA_UNROLL
    for (int block = 0; block < BLOCKS; block++) {
        SB_CUDA_UNROLL
        EACH_ROW {
            float top = -sb_infinity_f32();
            SB_CUDA_UNROLL
            for (int i = 0; i < BLOCK_STAGES; i++) {
                const float *own = s[block * BLOCK_STAGES + i];
                top = sb_attention16_larger(sb_attention16_larger(top, own[r]), own[r + 2]);
            }
            tops[block][r] = top;
        }
    }
    SB_CUDA_UNROLL
    for (int distance = 4; distance < 32; distance *= 2) {
        SB_CUDA_UNROLL
        for (int i = 0; i < BLOCKS * 2; i++)
            tops[i / 2][i % 2] =
                sb_attention16_larger(tops[i / 2][i % 2], sb_cuda_shuffle_exchange_f32(tops[i / 2][i % 2], distance));
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < BLOCKS * 2; i++) {
        if (lane < 4)
            largest[(i / 2 * ROWS + 2 * lane + i % 2) * WARPS + sb_stream_warp()] = tops[i / 2][i % 2];
    }
}

/* Finds the rows' maxima block by block. */
SB_CUDA_FUNCTION void sb_stream_raise(const sb_stream_shared *shared, sb_split_scale_f32 by, sb_stream_rows *rows) {
    const int row = sb_stream_lane() % 4 * 2;
    SB_CUDA_UNROLL
    EACH_ROW {
        int32_t maximum = NONE;
        SB_CUDA_UNROLL
        for (int block = 0; block < BLOCKS; block++) {
            const float *own = shared->largest + (block * ROWS + row + r) * WARPS;
            float top = own[0];
            SB_CUDA_UNROLL
            for (int warp = 1; warp < WARPS; warp++)
                top = sb_attention16_larger(top, own[warp]);
            const int32_t n = sb_attention16_exponent(top, by, &rows->is_nan[r], &rows->again);
            if (threadIdx.x < 4)
                shared->factors[block * ROWS + row + r] = n > maximum ? sb_split_factor_f32(maximum, n) : 1;
            maximum = n > maximum ? n : maximum;
            rows->maximum[block][r] = maximum;
        }
    }
}

/* Weights of the warp's keys, as rows x keys. */
template <int HALF>
SB_CUDA_FUNCTION void sb_stream_weigh(const float s[STAGES][4], sb_split_scale_f32 by, const sb_stream_rows *rows,
                                      uint16_t *weights) {
    const int lane = sb_stream_lane();
    SB_CUDA_UNROLL
    for (int stage = 0; stage < STAGES; stage += 2) {
        const int32_t *maximum = rows->maximum[stage / BLOCK_STAGES];
        const float shift[2] = {sb_attention16_shift(maximum[0]), sb_attention16_shift(maximum[1])};
        uint32_t pairs[4];
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            const float *own = s[stage + i / 2] + i % 2 * 2;
            pairs[i] = sb_cuda_round_pair<HALF>(sb_attention16_weight(own[0], by.scale, shift[0]),
                                                sb_attention16_weight(own[1], by.scale, shift[1]));
        }
        const int unit = (stage + lane / 16) * WARPS + sb_stream_warp();
        const uint16_t *to = weights + lane % 8 * WEIGHTS_PITCH + unit * UNIT_KEYS + lane / 8 % 2 * 8;
        sb_store_turned_matrices(sb_shared_address(to), pairs[0], pairs[1], pairs[2], pairs[3]);
    }
    sb_shared_written();
}

/* ---- values ---- */

/* A thread's sums: of columns lane / 4 and lane / 4 + 8 of each 16 of the warp's, two rows each; and its lane of the weights of row lane / 4. */
template <int D> struct sb_stream_sums {
    float values[D / 64][4];
    float lane;
};

#define EACH_COLUMNS for (int c = 0; c < D / 64; c++)

/* Multiplies what was summed by a block's factors, of 8 rows. */
template <int D> SB_CUDA_FUNCTION void sb_stream_rescale(const float *factors, sb_stream_sums<D> *sums) {
    const int lane = sb_stream_lane();
    const float of[2] = {factors[lane % 4 * 2], factors[lane % 4 * 2 + 1]};
    sums->lane = sums->lane * factors[lane / 4];
    SB_CUDA_UNROLL
    EACH_COLUMNS {
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++)
            sums->values[c][i] = sums->values[c][i] * of[i % 2];
    }
}

/* Makes zeros of the values in the warp's columns that no row of the tile sees: lines before `begin` and from `end` on of a stage. */
template <int D>
SB_CUDA_FUNCTION void sb_stream_clear(const unsigned char *units, sb_stream_steps steps, int begin, int end) {
    const uint32_t column = (uint32_t)sb_stream_warp() * (D / WARPS);
    SB_CUDA_KEEP_LOOP
    for (int piece = sb_stream_lane(); piece < WARPS * UNIT_KEYS * (D / WARPS / 8); piece += 32) {
        const int line = piece % (WARPS * UNIT_KEYS);
        const uint32_t further = (uint32_t)(piece / (WARPS * UNIT_KEYS) * 8);
        if (line < begin || line >= end)
            sb_shared_clear(sb_shared_address(units) + (uint32_t)(line / UNIT_KEYS * steps.unit) +
                            sb_stream_eight(steps, (uint32_t)(line % UNIT_KEYS), column + further));
    }
    sb_shared_written();
    __syncwarp();
}

/* Adds a stage's weighted values to the warp's columns. Its units are all brought before any is multiplied. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_add(const uint32_t weights[WARPS][2], const unsigned char *units, sb_stream_steps steps,
                                    sb_stream_sums<D> *sums) {
    const uint32_t lane = threadIdx.x % 32, first = (uint32_t)sb_stream_warp() * (D / WARPS);
    const uint32_t own = sb_stream_eight(steps, lane / 16 * 8 + lane % 8, first + lane / 8 % 2 * 8);
    uint32_t values[D / 64][WARPS][4];
    SB_CUDA_UNROLL
    EACH_COLUMNS {
        SB_CUDA_UNROLL
        for (int i = 0; i < WARPS; i++)
            sb_stream_fetch_matrices(true, units + i * steps.unit + (own ^ (uint32_t)(c * 32)), values[c][i]);
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < WARPS; i++) {
        SB_CUDA_UNROLL
        EACH_COLUMNS sb_cuda_multiply_matrices<HALF>(sums->values[c], values[c][i], weights[i]);
    }
}

/* Adds a stage's weights up. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_add_up(const uint32_t weights[WARPS][2], sb_stream_sums<D> *sums) {
    SB_CUDA_UNROLL
    for (int i = 0; i < WARPS * 2; i++) {
        float low, high;
        sb_cuda_widen_pair<HALF>(weights[i / 2][i % 2], &low, &high);
        sums->lane = sums->lane + low;
        sums->lane = sums->lane + high;
    }
}

/* All values of the tile in the warp's columns, as their stages come. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_sum(const sb_stream_shared *shared, const sb_stream_tile *tile, sb_stream_steps steps,
                                    sb_stream_place *at, sb_stream_sums<D> *sums) {
    const int lane = sb_stream_lane();
    const sb_stream_span seen = tile->seen;
    const uint16_t *own = shared->weights + lane % 8 * WEIGHTS_PITCH + lane / 8 * 8;
    sums->lane = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 16; i++)
        sums->values[i / 4][i % 4] = 0;
    SB_CUDA_KEEP_LOOP
    for (int stage = seen.begin_unit / WARPS; stage * WARPS < seen.end_unit; stage++) {
        const unsigned char *units = shared->ring + at->stage * SB_CUDA_ATTENTION16_STREAM_STAGE(D);
        const int first = stage * WARPS * UNIT_KEYS;
        uint32_t weights[WARPS][2];
        sb_attention16_fetch<false>(weights[0], own + first);
        sb_attention16_fetch<false>(weights[2], own + first + 2 * UNIT_KEYS);
        if (stage % BLOCK_STAGES == 0)
            sb_stream_rescale<D>(shared->factors + stage / BLOCK_STAGES * ROWS, sums);
        sb_barrier_wait(shared->full + 8 * at->stage, at->phase);
        if (SB_CUDA_SELDOM(first < seen.begin || first + WARPS * UNIT_KEYS > seen.end))
            sb_stream_clear<D>(units, steps, seen.begin - first, seen.end - first);
        sb_stream_add<HALF, D>(weights, units, steps, sums);
        if (sb_stream_warp() == 0)
            sb_stream_add_up<HALF, D>(weights, sums);
        __syncwarp();
        if (lane == 0)
            sb_barrier_arrive(shared->empty + 8 * at->stage);
        sb_stream_next(shared, at);
    }
}

/* ---- what comes of it ---- */

/* Whether the definition has to compute the rows. Columns that are not there have come to anything. */
template <int D>
SB_CUDA_FUNCTION bool sb_stream_fails(const sb_cuda_attention *p, const sb_stream_rows *rows,
                                      const sb_stream_sums<D> *sums) {
    const int width = (int)p->value_width - sb_stream_warp() * (D / WARPS);
    bool has_nan[2] = {false, false}, again = rows->again;
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 16; i++) {
        const float value = sums->values[i / 4][i % 4];
        has_nan[i % 2] |= i / 2 * 8 < width && value != value;
    }
    SB_CUDA_UNROLL
    EACH_ROW again |= rows->used[r] && has_nan[r] && !rows->is_nan[r] && rows->maximum[BLOCKS - 1][r] != NONE;
    return again;
}

/* Gives out the rows. Of two neighbouring columns, which two threads hold, one gives out those of one row, and the other of the other one. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_give(const sb_cuda_attention16_stream *given, const sb_stream_tile *tile,
                                     const sb_stream_rows *rows, const sb_stream_sums<D> *sums, const float *row_sums) {
    const sb_cuda_attention *p = &given->attention;
    int lane = sb_stream_lane();
    /* Found anew: what follows from it would else stay in registers from the tile's beginning on. */
    SB_HOPPER_KEEP("+r"(lane));
    const int r = lane / 4 % 2;
    const sb_attention_place row = sb_stream_row(given, tile, lane % 4 * 2 + r);
    const float sum = row_sums[lane % 4 * 2 + r];
    const bool is_nan = r == 0 ? rows->is_nan[0] : rows->is_nan[1];
    const int32_t maximum = r == 0 ? rows->maximum[BLOCKS - 1][0] : rows->maximum[BLOCKS - 1][1];
    if (tile->whole.split >= 0 && sb_stream_warp() == 0 && lane < 8 && row.used)
        sb_attention16_give_sum(p, &tile->whole, &row, is_nan, maximum, sum);
    const float share = sb_div_f32(1, sum);
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 32; i++) {
        const float *values = sums->values[i / 2] + i % 2 * 2;
        const float other = sb_cuda_shuffle_exchange_f32(r == 0 ? values[1] : values[0], 4);
        const float low = r == 0 ? values[0] : other, high = r == 0 ? other : values[1];
        const int64_t column = sb_stream_warp() * (D / WARPS) + 8 * i + lane / 8 * 2;
        if (row.used && column < p->value_width)
            sb_attention16_give<HALF>(p, &tile->whole, &row, column, low, high, is_nan, maximum, share);
    }
}

/* Behind a split, whose parts the block has written: folds the rows if those of the other splits are there. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_finish(const sb_cuda_attention16_stream *given, const sb_stream_shared *shared,
                                       const sb_stream_tile *tile) {
    const sb_cuda_attention *p = &given->attention;
    SB_ATTENTION_BARRIER();
    if (threadIdx.x == 0)
        *shared->last = sb_cuda_arrives_last(given->arrived + tile->word, (uint32_t)tile->splits);
    SB_ATTENTION_BARRIER();
    if (!*shared->last)
        return;
    SB_CUDA_KEEP_LOOP
    for (int number = sb_stream_warp(); number < ROWS; number += WARPS) {
        const sb_attention_place row = sb_stream_row(given, tile, number);
        SB_CUDA_KEEP_LOOP
        for (int first = 0; row.used && first < D; first += 128)
            sb_attention16_fold_by_warp<HALF>(p, tile->whole.part, &row, tile->first_split, tile->splits,
                                              first + sb_stream_lane() * 4);
    }
}

/* ---- all of it ---- */

/* All of a tile, by the four warps that compute. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_compute_tile(const sb_cuda_attention16_stream *given, const sb_stream_shared *shared,
                                             const sb_stream_tile *tile, sb_stream_steps steps, sb_split_scale_f32 by,
                                             sb_stream_place *at) {
    const sb_cuda_attention *p = &given->attention;
    typedef typename sb_attention16_element<HALF>::type E;
    const int lane = sb_stream_lane();
    uint32_t queries[D / 16][2];
    float s[STAGES][4];
    sb_stream_rows rows;
    sb_stream_sums<D> sums;
    const sb_attention_place row = sb_stream_row(given, tile, lane / 4);
    sb_attention16_load_few_queries<D>(p, &row, queries);
    SB_CUDA_UNROLL
    EACH_ROW {
        const sb_attention_place of = sb_stream_row(given, tile, lane % 4 * 2 + r);
        rows.used[r] = of.used;
        rows.reach[r] = of.reach;
        rows.is_nan[r] = false;
    }
    rows.again = false;
    sb_stream_score_all<HALF, D>(p, shared, tile, steps, queries, &rows, at, s);
    sb_stream_tell(s, shared->largest);
    SB_ATTENTION_BARRIER();
    if (threadIdx.x == 0)
        *shared->again = 0;
    sb_stream_raise(shared, by, &rows);
    sb_stream_weigh<HALF>(s, by, &rows, shared->weights);
    SB_ATTENTION_BARRIER();
    sb_stream_sum<HALF, D>(shared, tile, steps, at, &sums);
    const float sum = sb_attention16_join(sums.lane);
    if (sb_stream_warp() == 0 && lane % 4 == 0)
        shared->sums[lane / 4] = sum;
    if (sb_stream_fails<D>(p, &rows, &sums))
        *shared->again = 1;
    SB_ATTENTION_BARRIER();
    if (SB_CUDA_SELDOM(*shared->again))
        sb_attention16_again<E>(p, &tile->whole, ROWS, shared->weights);
    else
        sb_stream_give<HALF, D>(given, tile, &rows, &sums, shared->sums);
    if (given->arrived != NULL && tile->whole.split >= 0)
        sb_stream_finish<HALF, D>(given, shared, tile);
}

template <int HALF, int D>
SB_CUDA_FUNCTION void sb_stream_compute(const sb_cuda_attention16_stream *p, const sb_stream_shared *shared) {
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)p->attention.scale);
    const sb_stream_steps steps = sb_stream_find_steps<D>(p->copies);
    sb_stream_place at = {0, 0};
    SB_CUDA_KEEP_LOOP
    for (uint32_t number = 0;; number++) {
        const uint32_t turn = number % 2;
        const sb_stream_tile *tile = &shared->tiles[turn];
        sb_barrier_wait(shared->tiles_full + 8 * turn, number / 2 & 1);
        if (tile->is_behind)
            return;
        sb_stream_compute_tile<HALF, D>(p, shared, tile, steps, by, &at);
        __syncwarp();
        if (sb_stream_lane() == 0)
            sb_barrier_arrive(shared->tiles_empty + 8 * turn);
    }
}

/* The kernels of a source: heads of up to `width`. */
#define SB_CUDA_ATTENTION16_STREAM_KERNEL(width, name, half)                                                           \
    SB_HOPPER_KERNEL_BOUNDED(sb_cuda_attention16_stream_##width##_##name, sb_cuda_attention16_stream, given, 1,        \
                             SB_CUDA_ATTENTION16_STREAM_THREADS, SB_CUDA_ATTENTION16_STREAM_BLOCKS(width)) {           \
        SB_HOPPER_DYNAMIC_SHARED(shared_memory);                                                                       \
        SB_HOPPER_BARRIERS(full_barriers, SB_CUDA_ATTENTION16_STREAM_STAGES(width));                                   \
        SB_HOPPER_BARRIERS(empty_barriers, SB_CUDA_ATTENTION16_STREAM_STAGES(width));                                  \
        SB_HOPPER_BARRIERS(tile_barriers, 4);                                                                          \
        SB_CUDA_SHARED sb_stream_tile tiles[2];                                                                        \
        SB_CUDA_SHARED float largest[BLOCKS * ROWS * WARPS];                                                           \
        SB_CUDA_SHARED float factors[BLOCKS * ROWS];                                                                   \
        SB_CUDA_SHARED float sums[ROWS];                                                                               \
        SB_CUDA_SHARED int again, last;                                                                                \
        const uint32_t begin = sb_shared_address(shared_memory);                                                       \
        sb_stream_shared shared;                                                                                       \
        shared.ring = shared_memory + (1024 - begin % 1024) % 1024;                                                    \
        shared.full = sb_shared_address(full_barriers);                                                                \
        shared.empty = sb_shared_address(empty_barriers);                                                              \
        shared.tiles_full = sb_shared_address(tile_barriers);                                                          \
        shared.tiles_empty = shared.tiles_full + 16;                                                                   \
        shared.stages = given.stages;                                                                                  \
        shared.weights = (uint16_t *)(void *)(shared.ring + shared.stages * SB_CUDA_ATTENTION16_STREAM_STAGE(width));  \
        shared.factors = factors;                                                                                      \
        shared.largest = largest;                                                                                      \
        shared.sums = sums;                                                                                            \
        shared.again = &again;                                                                                         \
        shared.last = &last;                                                                                           \
        shared.tiles = tiles;                                                                                          \
        /* Else they are worked out anew wherever they are used. */                                                    \
        SB_HOPPER_KEEP("+r"(shared.full), "+r"(shared.empty));                                                         \
        const int thread = (int)threadIdx.x;                                                                           \
        if (thread < SB_CUDA_ATTENTION16_STREAM_STAGES(width)) {                                                       \
            sb_barrier_init(shared.full + 8 * thread, 1);                                                              \
            sb_barrier_init(shared.empty + 8 * thread, WARPS);                                                         \
            if (thread < 2) {                                                                                          \
                sb_barrier_init(shared.tiles_full + 8 * thread, 1);                                                    \
                sb_barrier_init(shared.tiles_empty + 8 * thread, WARPS);                                               \
            }                                                                                                          \
            sb_barrier_init_done();                                                                                    \
        }                                                                                                              \
        SB_CUDA_BARRIER();                                                                                             \
        SB_CUDA_DEPEND();                                                                                              \
        if (thread >= THREADS)                                                                                         \
            sb_stream_fetch<width>(&given, &shared);                                                                   \
        else                                                                                                           \
            sb_stream_compute<half, width>(&given, &shared);                                                           \
    }

/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_STREAM_F16(width) SB_CUDA_ATTENTION16_STREAM_KERNEL(width, f16, SB_CUDA_F16)
#else
#define SB_CUDA_ATTENTION16_STREAM_F16(width)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_STREAM_BF16(width) SB_CUDA_ATTENTION16_STREAM_KERNEL(width, bf16, SB_CUDA_BF16)
#else
#define SB_CUDA_ATTENTION16_STREAM_BF16(width)
#endif
#define SB_CUDA_ATTENTION16_STREAM(width)                                                                              \
    SB_CUDA_ATTENTION16_STREAM_F16(width)                                                                              \
    SB_CUDA_ATTENTION16_STREAM_BF16(width)

#endif

#endif
