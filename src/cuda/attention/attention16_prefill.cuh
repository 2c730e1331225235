/* Attention of many rows by warpgroups: tiles of 128 rows against blocks of 128 keys, by TMA and wgmma. Of heads of more than 128 elements
 * a tile has 64 rows: both warpgroups score them, and each sums half of the values' columns, as sums of all have no room in registers.
 *
 * A thread of one warpgroup fetches (attention16_prefill_fetch.cuh). The two other warpgroups have 64 rows each, from scores to the output. Each begins
 * the scores of a block and behind them the values of the block before, whose weights are in registers as the left factor, and
 * computes weights while the values are summed. The warpgroups take turns at beginning products, so that the weights of one are
 * computed while the other's products go on. So it goes through all blocks of all its tiles: the block behind a tile's last is the next
 * tile's first, so that the products of one tile hide the output of the one before.
 *
 * The definition's order (docs/numerics.md, section 10) is that of today's tiles of 64 rows (attention16_tile.cuh): a maximum of
 * each block of 128 keys, whose sums are multiplied by the power between two maxima before the block's values are added; chains over
 * 512 keys that begin at +0, where sums lie in registers; and totals of the splits before, which lie in shared memory, each
 * thread's own.
 *
 * Warps with a row that is NaN or sees no key, or has a block whose scores are all below about -0.7 million, leave
 * nothing but a word, for attention16_again.cu to compute by the definition. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_PREFILL_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_PREFILL_CUH

#include "cuda/attention/attention16_prefill_paged.cuh"
#include "cuda/contraction/wgmma.cuh"

#define KEY_GROUPS (KEYS / 8)
#define GROUP_THREADS 128
#define GROUP_COLUMNS(D) (SHARES_ROWS(D) ? (D) / 2 : (D))

#if SB_HOPPER

/* ---- a warpgroup ---- */

/* What a warpgroup goes by. */
template <int D> struct sb_prefill_group {
    int number; /* 0 or 1 */
    bool leads; /* the thread that speaks for it */
    sb_prefill_ring<D> ring;
    uint32_t queries; /* the address of its rows of a tile */
    int tiles, turns; /* that it has taken */
    float *totals;
};

template <int D>
SB_CUDA_FUNCTION void sb_prefill_release(const sb_prefill_shared *shared, const sb_prefill_group<D> *group, int stage) {
    if (group->leads)
        sb_barrier_arrive(shared->empty + 8 * stage);
}

/* The same of a block's parts, from `stage` on. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_release_block(const sb_prefill_shared *shared, const sb_prefill_group<D> *group,
                                               int stage) {
    SB_CUDA_UNROLL
    for (int part = 0; part < PARTS(D); part++)
        sb_prefill_release<D>(shared, group, (stage + part) % STAGES(D));
}

/* Says that this warp is done with the tile before the one that it took last. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_leave_tile(const sb_prefill_shared *shared, const sb_prefill_group<D> *group) {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        sb_barrier_arrive(shared->tile_empty + 8 * (uint32_t)((group->tiles - 2) % TILES));
}

/* Waits for the tile's queries, behind the last scores of the tile before, whose room is free by that. It is said when all warps have seen
 * them, and not behind products: the last values of the tile before may need the room. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_take_queries(const sb_prefill_shared *shared, sb_prefill_group<D> *group) {
    sb_barrier_wait(shared->full + 8 * group->ring.stage, group->ring.phase);
    group->queries =
        sb_prefill_exchange(shared, &group->ring) + (SHARES_ROWS(D) ? 0 : (uint32_t)group->number * (GROUP_ROWS * 128));
    sb_warpgroup_sync(1 + group->number);
    sb_prefill_release<D>(shared, group, group->ring.stage);
    sb_prefill_next(&group->ring);
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

/* Begins the scores of the block that comes next in the ring. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_begin_scores(const sb_prefill_shared *shared, sb_prefill_group<D> *group,
                                              float *scores) {
    const int chunk = 64 / 16;
    const uint64_t queries = sb_matrix_descriptor(group->queries, QUERY_CHUNK_BYTES(D), 1024);
    uint64_t keys[PARTS(D)];
    SB_CUDA_UNROLL
    for (int part = 0; part < PARTS(D); part++) {
        keys[part] = sb_matrix_descriptor(sb_prefill_unit(shared, &group->ring), CHUNK_BYTES, 1024);
        sb_barrier_wait(shared->full + 8 * group->ring.stage, group->ring.phase);
        sb_prefill_next(&group->ring);
    }
    SB_WGMMA_BEGIN();
    SB_CUDA_UNROLL
    for (int k = 0; k < D / 16; k++) {
        const int within = k % chunk * (32 / 16), part = k / chunk / UNIT_CHUNKS(D);
        sb_prefill_multiply_keys<HALF>(scores, k > 0, queries + k / chunk * (QUERY_CHUNK_BYTES(D) / 16) + within,
                                       keys[part] + k / chunk % UNIT_CHUNKS(D) * (CHUNK_BYTES / 16) + within);
    }
    SB_WGMMA_END();
}

/* Makes zeros of the values in a unit from line `known` on. Both warpgroups do, since each would have to wait for the other. */
template <int D> SB_CUDA_FUNCTION void sb_prefill_clear(uint32_t values, int known, int group) {
    const int thread = (int)threadIdx.x % GROUP_THREADS;
    SB_CUDA_KEEP_LOOP
    for (int piece = thread; piece < UNIT(D) / 16; piece += GROUP_THREADS) {
        const int line = piece / 8 % KEYS;
        if (line >= known)
            sb_shared_clear(values + 16 * piece);
    }
    sb_shared_written();
    sb_warpgroup_sync(1 + group);
}

/* Waits until the values of `block`, which come next in the ring, are there, without those that may be anything, and returns where
 * those are that the warpgroup sums. Values that a row does not see but another one does are numbers as a rule: where they are not,
 * the row is computed again. */
template <int D>
SB_CUDA_FUNCTION uint32_t sb_prefill_await_values(const sb_prefill_shared *shared, sb_prefill_group<D> *group,
                                                  const sb_prefill_tile *tile, int block) {
    uint32_t values = 0;
    SB_CUDA_UNROLL
    for (int part = 0; part < PARTS(D); part++) {
        sb_barrier_wait(shared->full + 8 * group->ring.stage, group->ring.phase);
        if (part == 0 || part == group->number)
            values = sb_prefill_unit(shared, &group->ring);
        sb_prefill_next(&group->ring);
    }
    if (SB_CUDA_SELDOM(block > tile->known - KEYS))
        sb_prefill_clear<D>(values, tile->known - block, group->number);
    return values;
}

/* Begins to add a block's weighted values to those before it, or with `adds` 0 to +0. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_begin_values(uint32_t from, int adds, const uint32_t weights[KEYS / 16][4],
                                              float *sums) {
    const uint64_t values = sb_matrix_descriptor(from, CHUNK_BYTES, 1024);
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
    bool again[2]; /* whether the definition has to compute it: of a NaN, and of scores too low to tell apart */
};

SB_CUDA_FUNCTION void sb_prefill_begin_rows(sb_prefill_rows *rows) {
    SB_CUDA_UNROLL
    EACH_ROW {
        rows->maximum[r] = rows->totals[r].maximum = NONE;
        rows->lanes[r] = rows->totals[r].sum = 0;
        rows->again[r] = false;
    }
}

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

/* Hides keys that a row does not see. Rows that are not there may see any. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_see(const sb_cuda_attention16_prefill *p, const sb_prefill_tile *tile, int block,
                                     float s[KEY_GROUPS][4]) {
    int begin[2], end[2];
    if (!SB_CUDA_SELDOM(!sb_prefill_is_inside(tile->plain, block)))
        return;
    SB_CUDA_UNROLL
    EACH_ROW {
        const int query = sb_prefill_query(p, sb_prefill_own_row<D>(r)), pair = sb_prefill_thread() % 4 * 2;
        const int first = tile->begin + query, behind = tile->end + query;
        begin[r] = (first > 0 ? first : 0) - block - pair;
        end[r] = (behind < 0 ? 0 : behind < tile->length ? behind : tile->length) - block - pair;
    }
    sb_attention16_hide_outside<KEY_GROUPS>(s, begin, end);
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
        EACH_ROW n[r] = sb_attention16_exponent(largest[r], by, &rows->again[r], &rows->again[r]);
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
        rows->again[r] |= sum != sum;
        by[r] = sb_attention16_fold_row(&rows->totals[r], rows->maximum[r], sum);
        rows->maximum[r] = NONE;
        rows->lanes[r] = 0;
    }
}

/* Folds the values of a split into the totals, which are the sums behind it where `is_last`, else in shared memory. */
template <int D, bool IS_LAST>
SB_CUDA_FUNCTION void sb_prefill_fold(const sb_attention16_factors by[2], float *totals, float *sums) {
    const int thread = (int)threadIdx.x % GROUP_THREADS;
    if (IS_LAST && !sb_prefill_any(by[0].is_none || by[1].is_none || !by[0].is_first || !by[1].is_first))
        return;
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

/* ---- output ---- */

/* Rows that have been summed, but for their sums of values. */
struct sb_prefill_done {
    float shares[2]; /* what those are to be multiplied by */
    bool again[2];
};

SB_CUDA_FUNCTION sb_prefill_done sb_prefill_end_rows(const sb_prefill_rows *rows) {
    sb_prefill_done done;
    SB_CUDA_UNROLL
    EACH_ROW {
        done.shares[r] = sb_div_f32(1, rows->totals[r].sum);
        done.again[r] = rows->again[r] || rows->totals[r].maximum == NONE;
    }
    return done;
}

/* The columns of a row that a warp has, in pieces of 16 bytes, and how many such rows 512 bytes hold. */
#define PIECES(D) (GROUP_COLUMNS(D) / 8)
#define ROWS_OF_512_BYTES(D) (32 / PIECES(D))

/* Where a piece of one of a warp's rows is put together, in the room that the warp has for totals: 512 bytes of each of the four warps side by
 * side. Pieces are turned about, so that eight rows of a matrix are in different banks. */
template <int D> SB_CUDA_FUNCTION uint32_t sb_prefill_piece(uint32_t totals, int row, int piece) {
    return totals + (uint32_t)(row / ROWS_OF_512_BYTES(D) * 2048 + row % ROWS_OF_512_BYTES(D) * (16 * PIECES(D)) +
                               (piece ^ (row & 7)) * 16);
}

/* Puts the warp's rows together, as they are rounded. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_round(uint32_t totals, const float shares[2], const float *sums) {
    const int lane = sb_prefill_thread() % 32;
    SB_CUDA_UNROLL
    for (int j = 0; j < PIECES(D); j += 2) {
        uint32_t pairs[4];
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++)
            pairs[i] =
                sb_cuda_round_pair<HALF>(sums[4 * j + 2 * i] * shares[i % 2], sums[4 * j + 2 * i + 1] * shares[i % 2]);
        sb_store_matrices(sb_prefill_piece<D>(totals, lane % 16, j + lane / 16), pairs[0], pairs[1], pairs[2],
                          pairs[3]);
    }
}

/* Gives out the rows, or says that the definition has to compute the warp's: where a sum is NaN, too. What is left in the room for totals is
 * not read before it is written. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_give(const sb_cuda_attention16_prefill *p, const sb_prefill_tile *tile,
                                      const sb_prefill_done *done, float *totals, const float *sums) {
    const int thread = sb_prefill_thread(), lane = thread % 32, first_row = thread / 32 * 16 % TILE_ROWS(D);
    bool again = false;
    SB_CUDA_UNROLL
    EACH_ROW {
        bool is_again = done->again[r];
        SB_CUDA_UNROLL
        for (int j = 0; j < GROUP_COLUMNS(D) / 8; j++)
            is_again |=
                sums[4 * j + 2 * r] != sums[4 * j + 2 * r] || sums[4 * j + 2 * r + 1] != sums[4 * j + 2 * r + 1];
        again |= sb_prefill_own_row<D>(r) < tile->used && is_again;
    }
    again = sb_prefill_any(again);
    if (lane == 0)
        p->work.again[tile->index * SB_CUDA_ATTENTION16_PREFILL_WARPS + (uint32_t)(thread / 32)] = again;
    if (SB_CUDA_SELDOM(again))
        return;
    const uint32_t room = sb_shared_address(totals) + (uint32_t)(thread % GROUP_THREADS / 32 * 512);
    sb_prefill_round<HALF, D>(room, done->shares, sums);
    sb_shared_written(); /* as behind all pieces of shared memory, though nobody but the warp reads these: the host holds to it */
    __syncwarp();
    const int piece = lane % PIECES(D);
    const int column = 8 * piece + (SHARES_ROWS(D) ? thread / GROUP_THREADS * GROUP_COLUMNS(D) : 0);
    const int rows = column < p->work.attention.value_width ? tile->used - first_row : 0;
    char *first = sb_prefill_output(p, tile, column);
    SB_CUDA_UNROLL
    for (int row = lane / PIECES(D); row < 16; row += ROWS_OF_512_BYTES(D)) {
        sb_cuda_words4 words;
        sb_shared_load_eight(sb_prefill_piece<D>(room, row, piece), (uint32_t *)&words);
        if (row < rows)
            *(sb_cuda_words4 *)(void *)sb_prefill_row(p, first, first_row + row) = words;
    }
}

/* ---- all of it ---- */

/* The next tile, once it is described. NULL: there is none. */
template <int D>
SB_CUDA_FUNCTION const sb_prefill_tile *sb_prefill_take_tile(const sb_prefill_shared *shared,
                                                             sb_prefill_group<D> *group) {
    const int number = group->tiles++;
    const sb_prefill_tile *tile = &shared->tiles[number % TILES];
    sb_barrier_wait(shared->tile_full + 8 * (number % TILES), (uint32_t)(number / TILES & 1));
    return tile->there ? tile : NULL;
}

template <int HALF, int D>
SB_CUDA_FUNCTION void sb_prefill_compute(const sb_cuda_attention16_prefill *p, const sb_prefill_shared *shared,
                                         int number) {
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)p->work.attention.scale);
    sb_prefill_group<D> group = {number,
                                 threadIdx.x % GROUP_THREADS == 0,
                                 sb_prefill_begin_ring<D>(),
                                 0,
                                 0,
                                 0,
                                 shared->totals + number * (GROUP_ROWS * GROUP_COLUMNS(D))};
    sb_prefill_rows rows;
    sb_prefill_done done;
    float scores[KEY_GROUPS * 4], sums[GROUP_COLUMNS(D) / 2], factors[2];
    uint32_t weights[KEYS / 16][4];
    sb_attention16_factors folding[2];
    const sb_prefill_tile *tile = sb_prefill_take_tile<D>(shared, &group), *next;
    if (tile == NULL)
        return;
    int block = tile->block, adds = 0, stage;
    sb_prefill_begin_rows(&rows);
    sb_prefill_take_queries<D>(shared, &group);
    stage = group.ring.stage;
    sb_prefill_begin_scores<HALF, D>(shared, &group, scores);
    SB_WGMMA_WAIT(0);
    sb_prefill_release_block<D>(shared, &group, stage);
    sb_prefill_see<D>(p, tile, block, (float(*)[4])scores);
    sb_prefill_raise((float(*)[4])scores, by, &rows, factors);
    sb_prefill_weigh<HALF>((const float(*)[4])scores, by, &rows, weights);
    /* From the values of `block` of `tile` to the weights of `following` of `next`. */
    SB_CUDA_KEEP_LOOP
    for (;;) {
        const bool leaves = block == tile->last, ends = leaves || (block + KEYS) % SB_ATTENTION_SPLIT == 0;
        int following = block + KEYS;
        next = tile;
        if (SB_CUDA_SELDOM(leaves)) {
            next = sb_prefill_take_tile<D>(shared, &group);
            if (next == NULL)
                break;
            sb_prefill_take_queries<D>(shared, &group);
            following = next->block;
        }
        sb_barrier_wait(shared->turns + 8 * number, (uint32_t)(group.turns++ + (number == 0)) & 1);
        stage = group.ring.stage;
        sb_prefill_begin_scores<HALF, D>(shared, &group, scores);
        const int values_stage = group.ring.stage;
        const uint32_t values = sb_prefill_await_values<D>(shared, &group, tile, block);
        sb_prefill_begin_values<HALF, D>(values, adds, weights, sums);
        /* Each warp by itself: else the turn could be this warpgroup's again before its last warp has seen this one. */
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            sb_barrier_arrive(shared->turns + 8 * (1 - number));
        SB_WGMMA_WAIT(1);
        sb_prefill_release_block<D>(shared, &group, stage);
        if (ends)
            sb_prefill_end_split(&rows, folding);
        if (leaves) {
            done = sb_prefill_end_rows(&rows);
            sb_prefill_begin_rows(&rows);
        }
        sb_prefill_see<D>(p, next, following, (float(*)[4])scores);
        sb_prefill_raise((float(*)[4])scores, by, &rows, factors);
        SB_WGMMA_WAIT(0);
        sb_prefill_release_block<D>(shared, &group, values_stage);
        if (SB_CUDA_SELDOM(leaves)) {
            sb_prefill_fold<D, true>(folding, group.totals, sums);
            sb_prefill_give<HALF, D>(p, tile, &done, group.totals, sums);
            sb_prefill_leave_tile<D>(shared, &group);
        } else if (ends) {
            sb_prefill_fold<D, false>(folding, group.totals, sums);
        } else {
            sb_prefill_rescale<D>(factors, sums);
        }
        adds = !ends;
        sb_prefill_weigh<HALF>((const float(*)[4])scores, by, &rows, weights);
        tile = next;
        block = following;
    }
    sb_prefill_begin_values<HALF, D>(sb_prefill_await_values<D>(shared, &group, tile, block), adds, weights, sums);
    SB_WGMMA_WAIT(0);
    sb_prefill_end_split(&rows, folding);
    sb_prefill_fold<D, true>(folding, group.totals, sums);
    done = sb_prefill_end_rows(&rows);
    sb_prefill_give<HALF, D>(p, tile, &done, group.totals, sums);
}

/* What fetches, and gives zeros: `thread` of the warpgroup that is there for that. */
template <int D, bool PAGED>
SB_CUDA_FUNCTION void sb_prefill_serve(const sb_cuda_attention16_prefill *p, const sb_prefill_shared *shared,
                                       int thread) {
    if (PAGED && thread / 32 == 0)
        sb_prefill_fetch_paged<D>(p, shared);
    else if (PAGED && thread / 32 == 1)
        sb_prefill_give_nothing_paged(p);
    else if (!PAGED && thread == 0)
        sb_prefill_fetch<D>(p, shared);
    else if (!PAGED && thread / 32 == 1)
        sb_prefill_give_nothing(p);
}

#define SB_CUDA_ATTENTION16_PREFILL_KERNEL(kernel, width, half, paged)                                                 \
    SB_HOPPER_KERNEL(kernel, sb_cuda_attention16_prefill, given, 1, SB_CUDA_ATTENTION16_PREFILL_THREADS) {             \
        SB_HOPPER_DYNAMIC_SHARED(shared_memory);                                                                       \
        SB_HOPPER_BARRIERS(full_barriers, STAGES(width));                                                              \
        SB_HOPPER_BARRIERS(empty_barriers, STAGES(width));                                                             \
        SB_HOPPER_BARRIERS(tile_barriers, 2 * TILES);                                                                  \
        SB_HOPPER_BARRIERS(turn_barriers, 2);                                                                          \
        SB_CUDA_SHARED sb_prefill_tile tiles[TILES];                                                                   \
        const uint32_t begin = sb_shared_address(shared_memory), first = (begin + 1023) / 1024 * 1024;                 \
        sb_prefill_shared shared;                                                                                      \
        shared.units = first;                                                                                          \
        shared.full = sb_shared_address(full_barriers);                                                                \
        shared.empty = sb_shared_address(empty_barriers);                                                              \
        shared.tile_full = sb_shared_address(tile_barriers);                                                           \
        shared.tile_empty = shared.tile_full + 8 * TILES;                                                              \
        shared.turns = sb_shared_address(turn_barriers);                                                               \
        shared.totals = (float *)(void *)(shared_memory + (first - begin) + SB_CUDA_ATTENTION16_PREFILL_UNITS(width)); \
        shared.tiles = tiles;                                                                                          \
        const int thread = (int)threadIdx.x, group = __shfl_sync(0xffffffffu, thread / GROUP_THREADS, 0);              \
        if (thread == 2 * GROUP_THREADS) {                                                                             \
            sb_tensor_map_prefetch(&given.q);                                                                          \
            sb_tensor_map_prefetch(&given.k);                                                                          \
            sb_tensor_map_prefetch(&given.v);                                                                          \
        }                                                                                                              \
        if (thread < STAGES(width)) {                                                                                  \
            sb_barrier_init(shared.full + 8 * thread, 1);                                                              \
            sb_barrier_init(shared.empty + 8 * thread, 2);                                                             \
            if (thread < TILES) {                                                                                      \
                sb_barrier_init(shared.tile_full + 8 * thread, 1);                                                     \
                sb_barrier_init(shared.tile_empty + 8 * thread, SB_CUDA_ATTENTION16_PREFILL_WARPS);                    \
            }                                                                                                          \
            if (thread < 2)                                                                                            \
                sb_barrier_init(shared.turns + 8 * thread, 4);                                                         \
            sb_barrier_init_done();                                                                                    \
        }                                                                                                              \
        __syncthreads();                                                                                               \
        SB_CUDA_DEPEND();                                                                                              \
        if (group == 2) {                                                                                              \
            SB_HOPPER_GIVE_REGISTERS(40);                                                                              \
            sb_prefill_serve<width, paged>(&given, &shared, thread - 2 * GROUP_THREADS);                               \
        } else {                                                                                                       \
            SB_HOPPER_TAKE_REGISTERS(232);                                                                             \
            sb_prefill_compute<half, width>(&given, &shared, group);                                                   \
        }                                                                                                              \
    }

/* A source's kernels. The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_PREFILL_F16(kernel, width, paged)                                                          \
    SB_CUDA_ATTENTION16_PREFILL_KERNEL(kernel##_f16, width, SB_CUDA_F16, paged)
#else
#define SB_CUDA_ATTENTION16_PREFILL_F16(kernel, width, paged)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_PREFILL_BF16(kernel, width, paged)                                                         \
    SB_CUDA_ATTENTION16_PREFILL_KERNEL(kernel##_bf16, width, SB_CUDA_BF16, paged)
#else
#define SB_CUDA_ATTENTION16_PREFILL_BF16(kernel, width, paged)
#endif
#define SB_CUDA_ATTENTION16_PREFILL(kernel, width, paged)                                                              \
    SB_CUDA_ATTENTION16_PREFILL_F16(kernel, width, paged)                                                              \
    SB_CUDA_ATTENTION16_PREFILL_BF16(kernel, width, paged)

#endif

#endif
