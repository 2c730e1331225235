/* Attention of few rows by tensor cores: a block of 128 threads for a split of 512 keys (or all splits of few), with all of up
 * to 16 rows that share its keys. What limits it is memory, so keys and values come in a ring of blocks of 128 of which all
 * but one are on their way. Each warp scores a quarter of a block's keys; all weights meet in shared memory, and each warp sums
 * a quarter of the values' columns, in units of 16.
 *
 * Where there is room for few splits, the block that has finished the last one of some rows folds them all: blocks count themselves in
 * a word of these rows, which the last one sets back. Who that is changes no bit, as splits are folded in ascending order. The only split
 * of some rows goes straight to the output. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_DECODE_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_DECODE_CUH

#include "cuda/attention/attention16_fold.cuh"

#define ROWS SB_CUDA_ATTENTION16_DECODE_ROWS
#define WARPS (THREADS / 32)
#define OWN_KEYS (KEYS / WARPS)
#define OWN_GROUPS (OWN_KEYS / 8)
#define STAGES SB_CUDA_ATTENTION16_STAGES(D)
/* Whether splits may stay together. */
#define FOLDS (D == 256)
#define WEIGHTS_PITCH SB_CUDA_ATTENTION16_PITCH(KEYS)

/* A block's shared memory. */
template <int D> struct sb_attention16_decode_memory {
    uint16_t *ring;    /* [stages][128][pitch] */
    uint16_t *weights; /* [16][pitch] */
    float *largest;    /* [warps][16]; at the end [0] has the sums of weights */
    int *again;        /* and behind it whether the block is the last one to finish */
    float *totals;     /* where splits stay together: values of each thread, side by side */
};

template <int D> SB_CUDA_FUNCTION sb_attention16_decode_memory<D> sb_attention16_decode_cut(unsigned char *memory) {
    sb_attention16_decode_memory<D> shared;
    shared.ring = (uint16_t *)(void *)memory;
    shared.weights = shared.ring + SB_CUDA_ATTENTION16_STAGES(D) * SB_CUDA_ATTENTION16_UNIT(D) / 2;
    shared.largest = (float *)(void *)(shared.weights + ROWS * WEIGHTS_PITCH);
    shared.again = (int *)(void *)(shared.largest + WARPS * ROWS);
    shared.totals = (float *)(void *)(shared.again + 4);
    return shared;
}

/* A thread's sums. Every warp knows the maxima of all rows, and the first one the lanes of weights. */
template <int D> struct sb_attention16_decode_sums {
    int32_t maximum[2]; /* NONE while the row has seen no key */
    bool is_nan[2], again;
    float lanes[2];
    sb_attention16_total totals[2];
    float values[(D / 16 + WARPS - 1) / WARPS][8];
};

#define EACH_UNIT for (int u = 0; u < (D / 16 + WARPS - 1) / WARPS; u++)

/* ---- tiles one behind the other ---- */

/* A tile whose keys are fetched or summed, in shared memory: a block of threads has the one that it sums and AHEAD more, so that what it
 * fetches goes on from the last keys of one to the first of the next. Of these there are as many as a ring has units for where
 * tiles have one block of keys each. */
#define AHEAD 2
typedef struct sb_attention16_stream {
    sb_attention16_tile tile;
    sb_attention_lines<int32_t> keys, values;
    int32_t first, blocks; /* where its first block of keys begins; how many there are: none without a further tile */
    bool has_other_rows;   /* than the tile before */
} sb_attention16_stream;

/* Where a thread is in what is fetched, and in the ring. */
typedef struct sb_attention16_cursor {
    int stream, unit; /* of a stream: the keys of a block, then its values, and so on */
    int to, from;     /* the stage that is filled next, and the one that is read next */
    sb_attention16_pages pages;
} sb_attention16_cursor;

SB_CUDA_FUNCTION int sb_attention16_next_stream(int stream) {
    return stream == AHEAD ? 0 : stream + 1;
}

template <int D> SB_CUDA_FUNCTION int sb_attention16_next_stage(int stage) {
    return stage == SB_CUDA_ATTENTION16_STAGES(D) - 1 ? 0 : stage + 1;
}

/* Begins to copy the next unit, if there is one. A batch in any case. */
template <int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_begin(const sb_cuda_attention *p, const sb_attention16_stream *streams,
                                                  uint16_t *ring, sb_attention16_cursor *at) {
    const sb_attention16_stream *own = &streams[at->stream];
    uint16_t *to = ring + at->to * (SB_CUDA_ATTENTION16_UNIT(D) / 2);
    const int units = 2 * own->blocks;
    at->to = sb_attention16_next_stage<D>(at->to);
    if (units > 0) {
        const bool is_values = at->unit % 2 != 0;
        const int64_t block = own->first + at->unit / 2 * KEYS, width = is_values ? p->value_width : p->width;
        const sb_attention_lines<int32_t> lines = is_values ? own->values : own->keys;
        if (PAGED && !is_values) {
            if (at->unit == 0)
                at->pages.next = sb_attention16_look_up(p, &own->tile, block + threadIdx.x);
            sb_attention16_turn(p, &own->tile, block + threadIdx.x, &at->pages);
        }
        if (PAGED)
            sb_attention16_load_paged<D>(lines, at->pages.line, width, to);
        else
            sb_attention16_load<D>(lines, &own->tile, block, width, to);
        if (++at->unit == units) {
            at->unit = 0;
            at->stream = sb_attention16_next_stream(at->stream);
        }
    }
    SB_CUDA_COPIES_END();
}

/* Fills the ring but for one stage. */
template <int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_fill(const sb_cuda_attention *p, const sb_attention16_stream *streams,
                                                 uint16_t *ring, sb_attention16_cursor *at) {
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < SB_CUDA_ATTENTION16_STAGES(D) - 1; i++)
        sb_attention16_decode_begin<D, PAGED>(p, streams, ring, at);
}

/* The next unit, once all of it is there; what comes behind the LATER units that have been begun since may still be on its way. */
template <int D, int LATER>
SB_CUDA_FUNCTION const uint16_t *sb_attention16_decode_turn(const uint16_t *ring, sb_attention16_cursor *at) {
    const uint16_t *unit = ring + at->from * (SB_CUDA_ATTENTION16_UNIT(D) / 2);
    SB_CUDA_COPIES_WAIT(LATER);
    SB_CUDA_BARRIER();
    at->from = sb_attention16_next_stage<D>(at->from);
    return unit;
}

/* Scores of the warp's 32 keys of a block. WHOLE: heads have D elements, so that no fetch waits for a decision. */
template <int HALF, int D, bool WHOLE>
SB_CUDA_FUNCTION void sb_attention16_decode_scores(const sb_cuda_attention *p, const uint32_t queries[D / 16][4],
                                                   const uint16_t *keys, float s[OWN_GROUPS][4]) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int i = 0; i < OWN_GROUPS * 4; i++)
        s[i / 4][i % 4] = 0;
    SB_CUDA_UNROLL
    for (int k = 0; k < D / 16; k++) {
        if (!WHOLE && k * 16 >= p->width)
            continue;
        SB_CUDA_UNROLL
        for (int n = 0; n < OWN_GROUPS / 2; n++) {
            uint32_t fetched[4];
            const int key = warp * OWN_KEYS + n * 16 + lane / 16 * 8 + lane % 8;
            sb_attention16_fetch<false>(fetched, keys + key * SB_CUDA_ATTENTION16_PITCH(D) + k * 16 + lane / 8 % 2 * 8);
            sb_cuda_multiply_matrices<HALF>(s[2 * n], queries[k], fetched);
            sb_cuda_multiply_matrices<HALF>(s[2 * n + 1], queries[k], fetched + 2);
        }
    }
}

/* The rows' maxima with this block, which all warps have scored, and what was summed brought to them. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_decode_raise(const float *largest, sb_split_scale_f32 by, bool has_half,
                                                  sb_attention16_decode_sums<D> *sums) {
    const int lane = (int)threadIdx.x % 32;
    EACH_ROW {
        float top = largest[lane / 4 + 8 * r];
        SB_CUDA_UNROLL
        for (int warp = 1; warp < WARPS; warp++)
            top = sb_attention16_larger(top, largest[warp * ROWS + lane / 4 + 8 * r]);
        const int32_t n = sb_attention16_exponent(top, by, &sums->is_nan[r], &sums->again);
        if (n <= sums->maximum[r] || (r == 1 && has_half))
            continue;
        const float factor = sb_split_factor_f32(sums->maximum[r], n);
        sums->maximum[r] = n;
        sums->lanes[r] = sums->lanes[r] * factor;
        SB_CUDA_UNROLL
        EACH_UNIT {
            SB_CUDA_UNROLL
            for (int i = 0; i < 4; i++)
                sums->values[u][i / 2 * 4 + 2 * r + i % 2] = sums->values[u][i / 2 * 4 + 2 * r + i % 2] * factor;
        }
    }
}

/* The weights of the warp's keys. `has_half`: there are no rows from the eighth on, whose weights may be any. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_decode_weigh(const float s[OWN_GROUPS][4], sb_split_scale_f32 by,
                                                  const sb_attention16_decode_sums<D> *sums, bool has_half,
                                                  uint16_t *weights) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    EACH_ROW {
        const int32_t less = LESS(sums->maximum[r] == NONE ? 0 : sums->maximum[r]);
        if (r == 1 && has_half)
            continue;
        SB_CUDA_UNROLL
        for (int j = 0; j < OWN_GROUPS; j++) {
            uint16_t *to = weights + (lane / 4 + 8 * r) * WEIGHTS_PITCH + warp * OWN_KEYS + 8 * j + lane % 4 * 2;
            *(uint32_t *)(void *)to = sb_cuda_round_pair<HALF>(sb_attention16_weight<HALF>(s[j][2 * r], by, less),
                                                               sb_attention16_weight<HALF>(s[j][2 * r + 1], by, less));
        }
    }
}

/* A block's weighted values behind those before it: of the warp's units of 16 columns; and the weights' own sums. */
template <int HALF, int D, bool WHOLE>
SB_CUDA_FUNCTION void sb_attention16_decode_add(const sb_cuda_attention *p, const uint16_t *weights,
                                                const uint16_t *values, bool has_half,
                                                sb_attention16_decode_sums<D> *sums) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    uint32_t left[KEYS / 16][4];
    SB_CUDA_UNROLL
    for (int k = 0; k < KEYS / 16; k++)
        sb_attention16_fetch<false>(left[k], weights + lane % 16 * WEIGHTS_PITCH + k * 16 + lane / 16 * 8);
    SB_CUDA_UNROLL
    for (int k = 0; k < KEYS / 16; k++) {
        SB_CUDA_UNROLL
        EACH_UNIT {
            uint32_t right[4];
            const int column = (warp + u * WARPS) * 16;
            if (!WHOLE && column >= p->value_width)
                continue;
            sb_attention16_fetch<true>(right, values + (k * 16 + lane % 16) * SB_CUDA_ATTENTION16_PITCH(D) + column +
                                                  lane / 16 * 8);
            sb_cuda_multiply_matrices<HALF>(sums->values[u], left[k], right);
            sb_cuda_multiply_matrices<HALF>(sums->values[u] + 4, left[k], right + 2);
        }
    }
    /* Behind all products: a decision between them would have each wait for what it fetches. */
    if (warp != 0)
        return;
    SB_CUDA_UNROLL
    for (int k = 0; k < KEYS / 16; k++) {
        SB_CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            float low, high;
            if (i % 2 == 1 && has_half)
                continue;
            sb_cuda_widen_pair<HALF>(left[k][i], &low, &high);
            sums->lanes[i % 2] = sums->lanes[i % 2] + low;
            sums->lanes[i % 2] = sums->lanes[i % 2] + high;
        }
    }
}

#define EACH_VALUE                                                                                                     \
    SB_CUDA_UNROLL                                                                                                     \
    EACH_UNIT SB_CUDA_UNROLL for (int i = 0; i < 8; i++)

template <int D> SB_CUDA_FUNCTION void sb_attention16_decode_clear(sb_attention16_decode_sums<D> *sums) {
    EACH_ROW {
        sums->maximum[r] = NONE;
        sums->lanes[r] = 0;
    }
    EACH_VALUE sums->values[u][i] = 0;
}

/* Folds a split into the totals. Sums of weights are the first warp's, who has their lanes. */
template <int D> SB_CUDA_FUNCTION void sb_attention16_decode_fold(sb_attention16_decode_sums<D> *sums, float *totals) {
    sb_attention16_factors by[2];
    EACH_ROW by[r] = sb_attention16_fold_row(&sums->totals[r], sums->maximum[r], sb_attention16_join(sums->lanes[r]));
    EACH_VALUE sb_attention16_fold_value(&totals[(u * 8 + i) * THREADS + threadIdx.x], sums->values[u][i],
                                         by[i % 4 / 2]);
    sb_attention16_decode_clear<D>(sums);
}

SB_CUDA_FUNCTION void sb_attention16_decode_rows(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                 sb_attention_place rows[2]) {
    EACH_ROW rows[r] = sb_attention16_row(p, tile, tile->first_row + (int)threadIdx.x % 32 / 4 + 8 * r);
}

/* Hides what rows do not see of the warp's keys from `own` on, and with a mask, a cap or the like makes of their products what
 * they are. */
template <class E, bool GENERAL>
SB_CUDA_FUNCTION void sb_attention16_decode_see(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                int64_t block, int64_t own, float s[OWN_GROUPS][4]) {
    sb_attention_place rows[2];
    if (!GENERAL && block >= tile->full_begin && block + KEYS <= tile->full_end)
        return;
    sb_attention16_decode_rows(p, tile, rows);
    if (GENERAL)
        sb_attention16_finish<E, OWN_GROUPS>(p, s, rows, own);
    else
        sb_attention16_hide<OWN_GROUPS>(s, rows, own);
}

/* All keys of the block's split, or of all splits if the tile has no split. Heads of up to 128 have one then. Behind it `totals`
 * and `values` are what the rows come to. */
template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void
sb_attention16_decode_sum(const sb_cuda_attention *p, const sb_attention16_stream *streams, int current,
                          sb_attention16_cursor *at, const uint32_t queries[D / 16][4],
                          sb_attention16_decode_memory<D> shared, sb_attention16_decode_sums<D> *sums) {
    typedef typename sb_attention16_element<HALF>::type E;
    const sb_attention16_tile *tile = &streams[current].tile;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const sb_split_scale_f32 by = sb_split_scale_of_f32((float)sb_attention_factor(p));
    const bool is_whole = p->width == D && p->value_width == D, has_half = tile->rows - tile->first_row <= ROWS / 2;
    const int32_t end = streams[current].first + streams[current].blocks * KEYS;
    SB_CUDA_KEEP_LOOP
    for (int32_t block = streams[current].first; block < end; block += KEYS) {
        float s[OWN_GROUPS][4], largest[2];
        const uint16_t *unit = sb_attention16_decode_turn<D, STAGES - 2>(shared.ring, at);
        if (is_whole)
            sb_attention16_decode_scores<HALF, D, true>(p, queries, unit, s);
        else
            sb_attention16_decode_scores<HALF, D, false>(p, queries, unit, s);
        sb_attention16_decode_see<E, GENERAL>(p, tile, block, block + warp * OWN_KEYS, s);
        sb_attention16_largest<OWN_GROUPS>(s, largest);
        EACH_ROW {
            if (lane % 4 == 0)
                shared.largest[warp * ROWS + lane / 4 + 8 * r] = largest[r];
        }
        SB_CUDA_BARRIER();
        sb_attention16_decode_raise<D>(shared.largest, by, has_half, sums);
        /* These keys and the values before them are done with. Nothing that shared memory is asked for comes soon behind the copies, which
         * keep it busy for 400 cycles each time. */
        sb_attention16_decode_begin<D, PAGED>(p, streams, shared.ring, at);
        sb_attention16_decode_begin<D, PAGED>(p, streams, shared.ring, at);
        sb_attention16_decode_weigh<HALF, D>(s, by, sums, has_half, shared.weights);
        unit = sb_attention16_decode_turn<D, STAGES - 1>(shared.ring, at);
        if (is_whole)
            sb_attention16_decode_add<HALF, D, true>(p, shared.weights, unit, has_half, sums);
        else
            sb_attention16_decode_add<HALF, D, false>(p, shared.weights, unit, has_half, sums);
        if (FOLDS && tile->split < 0 && (block + KEYS >= tile->end || (block + KEYS) % SB_ATTENTION_SPLIT == 0))
            sb_attention16_decode_fold<D>(sums, shared.totals);
    }
    if (FOLDS && tile->split < 0) {
        EACH_VALUE sums->values[u][i] =
            sums->totals[i % 4 / 2].maximum != NONE ? shared.totals[(u * 8 + i) * THREADS + threadIdx.x] : 0;
        return;
    }
    EACH_ROW {
        sums->totals[r].maximum = sums->maximum[r];
        sums->totals[r].sum = sb_attention16_join(sums->lanes[r]);
    }
}

/* Gives out what a thread has of a row. */
template <int HALF, int D>
SB_CUDA_FUNCTION void sb_attention16_decode_give(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                 const sb_attention_place *row,
                                                 const sb_attention16_decode_sums<D> *sums, int r, float sum) {
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int32_t maximum = sums->totals[r].maximum;
    const float share = sb_div_f32(1, sum);
    if (tile->split >= 0 && warp == 0 && lane % 4 == 0)
        sb_attention16_give_sum(p, tile, row, sums->is_nan[r], maximum, sum);
    SB_CUDA_UNROLL
    EACH_UNIT {
        SB_CUDA_UNROLL
        for (int half = 0; half < 2; half++) {
            const int64_t column = (warp + u * WARPS) * 16 + half * 8 + lane % 4 * 2;
            if (column < p->value_width)
                sb_attention16_give<HALF>(p, tile, row, column, sums->values[u][half * 4 + 2 * r],
                                          sums->values[u][half * 4 + 2 * r + 1], sums->is_nan[r], maximum, share);
        }
    }
}

/* Rows by the definition, whose scratch is where the ring is: what is on its way there comes first, and is fetched again. */
template <class E, int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_again(const sb_cuda_attention *p, const sb_attention16_stream *streams,
                                                  int current, sb_attention16_cursor *at,
                                                  sb_attention16_decode_memory<D> shared) {
    SB_CUDA_COPIES_WAIT(0);
    SB_CUDA_BARRIER();
    sb_attention16_again<E>(p, &streams[current].tile, ROWS, shared.ring);
    SB_CUDA_BARRIER();
    at->stream = sb_attention16_next_stream(current);
    at->unit = 0;
    at->to = at->from;
    sb_attention16_decode_fill<D, PAGED>(p, streams, shared.ring, at);
}

/* All of a tile. Behind it a thread may still read shared memory. */
template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_tile(const sb_cuda_attention *p, const sb_attention16_stream *streams,
                                                 int current, sb_attention16_cursor *at,
                                                 const uint32_t queries[D / 16][4],
                                                 sb_attention16_decode_memory<D> shared) {
    typedef typename sb_attention16_element<HALF>::type E;
    const sb_attention16_tile *tile = &streams[current].tile;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    sb_attention16_decode_sums<D> sums;
    sums.again = false;
    EACH_ROW {
        sums.totals[r].maximum = NONE;
        sums.totals[r].sum = 0;
        sums.is_nan[r] = false;
    }
    sb_attention16_decode_clear<D>(&sums);
    if (threadIdx.x == 0)
        *shared.again = 0;
    sb_attention16_decode_sum<HALF, D, GENERAL, PAGED>(p, streams, current, at, queries, shared, &sums);
    SB_CUDA_BARRIER();
    EACH_ROW {
        if (warp == 0 && lane % 4 == 0)
            shared.largest[lane / 4 + 8 * r] = sums.totals[r].sum;
    }
    /* Rows that are not there have seen no key. */
    EACH_VALUE {
        const int r = i % 4 / 2;
        sums.again |= !sums.is_nan[r] && sums.totals[r].maximum != NONE && sums.values[u][i] != sums.values[u][i];
    }
    if (sums.again)
        *shared.again = 1;
    SB_CUDA_BARRIER();
    if (SB_CUDA_SELDOM(*shared.again)) {
        sb_attention16_decode_again<E, D, PAGED>(p, streams, current, at, shared);
        return;
    }
    sb_attention_place rows[2];
    sb_attention16_decode_rows(p, tile, rows);
    EACH_ROW {
        if (rows[r].used)
            sb_attention16_decode_give<HALF, D>(p, tile, &rows[r], &sums, r, shared.largest[lane / 4 + 8 * r]);
    }
}

/* ---- splits that come together ---- */

/* How many splits some row of the tile sees. */
SB_CUDA_FUNCTION int64_t sb_attention16_seen_splits(const sb_cuda_attention *p, const sb_attention16_tile *tile) {
    const int64_t last = tile->first_row + ROWS < tile->rows ? tile->first_row + ROWS : tile->rows;
    const int64_t begin = sb_attention16_reach(p, tile, tile->first_row / tile->group).first;
    const int64_t end = sb_attention16_reach(p, tile, (last - 1) / tile->group).last;
    return begin < end ? (end + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT - begin / SB_ATTENTION_SPLIT : 0;
}

/* Whether the tile's split is the first one that there is a tile for. */
template <bool PAGED>
SB_CUDA_FUNCTION bool sb_attention16_is_first(const sb_cuda_attention *p, const sb_attention16_tile *tile) {
    return tile->split == (PAGED ? sb_attention_splits_of(p, tile->rows / tile->group, tile->length).first : 0);
}

/* The word of the tile's rows. Of several sequences the tiles of one come to no more than what its rows fill, and one. */
template <bool PAGED>
SB_CUDA_FUNCTION uint32_t *sb_attention16_word(const sb_cuda_attention *p, const sb_attention16_tile *tile) {
    const int64_t before =
        PAGED ? tile->first_query * tile->group / ROWS + tile->at.sequence : tile->at.batch * p->row_tiles;
    return p->arrived + (before + tile->first_row / ROWS) * p->key_heads + tile->at.key_head;
}

/* Counts the block, behind what it has written and before what it will read. Returns how many have been before. */
SB_CUDA_FUNCTION uint32_t sb_attention16_arrive(uint32_t *word) {
#if defined(__CUDA_ARCH__)
    __threadfence();
    const uint32_t before = atomicAdd(word, 1u);
    __threadfence();
    return before;
#else
    return (*word)++;
#endif
}

#define OWN_FOLD SB_CUDA_ATTENTION16_OWN_FOLD

/* Steps of all splits of all rows of the tile, in `steps`, of which a row has OWN_FOLD. Splits that a row does not reach are as those
 * of which it sees no key. */
SB_CUDA_FUNCTION void sb_attention16_tile_steps(const sb_cuda_attention *p, const sb_attention16_tile *tile, int rows,
                                                sb_attention16_step *steps) {
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < rows * OWN_FOLD; i += THREADS) {
        const sb_attention_place at = sb_attention16_row(p, tile, tile->first_row + i / OWN_FOLD);
        const sb_attention16_column own = sb_attention16_begin_column(&at, 0);
        const int64_t split = own.next + i % OWN_FOLD;
        sb_attention16_part part = {0, 0, NONE};
        if (split < own.end)
            part = sb_attention16_load_part(p, tile->part, &at, split, 0);
        steps[i].sum = part.sum;
        steps[i].maximum = part.maximum;
    }
    SB_CUDA_BARRIER();
    SB_CUDA_KEEP_LOOP
    for (int i = (int)threadIdx.x; i < rows * OWN_FOLD; i += THREADS) {
        int32_t before = NONE;
        SB_CUDA_KEEP_LOOP
        for (int j = i / OWN_FOLD * OWN_FOLD; j < i; j++)
            before = steps[j].maximum > before ? steps[j].maximum : before;
        const sb_attention16_step step = sb_attention16_find_step(steps[i].maximum, steps[i].sum, before);
        steps[i].before = step.before;
        steps[i].own = step.own;
    }
    SB_CUDA_BARRIER();
}

/* All rows of the tile, a column of one for each thread, whose splits are on their way together. `steps` is room for OWN_FOLD of 16 rows. All
 * threads of the block. */
template <class E>
APART void sb_attention16_fold_tile(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                    sb_attention16_step *steps) {
    const int64_t left = tile->rows - tile->first_row, rows = left < ROWS ? left : ROWS;
    sb_attention16_tile_steps(p, tile, (int)rows, steps);
    const int64_t count = rows * p->value_width;
    SB_CUDA_KEEP_LOOP
    for (int64_t first = threadIdx.x; first < count; first += THREADS) {
        float values[OWN_FOLD];
        int64_t row = first;
        const int64_t column = sb_cuda_take(&row, p->value_width);
        const sb_attention_place at = sb_attention16_row(p, tile, tile->first_row + row);
        const sb_attention16_step *own = steps + row * OWN_FOLD;
        sb_attention16_column c = sb_attention16_begin_column(&at, column);
        const float *from = sb_attention16_partial(p, tile->part, &at, c.next) + column;
        SB_CUDA_UNROLL
        for (int i = 0; i < OWN_FOLD; i++)
            values[i] = c.next + i < c.end
                            ? sb_attention16_load_part_word(from + i * SB_CUDA_ATTENTION_PARTIAL(p->value_width))
                            : 0;
        SB_CUDA_UNROLL
        for (int i = 0; i < OWN_FOLD; i++) {
            const sb_attention16_step by = own[i];
            sb_attention16_take_step(&c.value, values[i], by);
            sb_attention16_take_step(&c.total.sum, by.sum, by);
            c.is_nan |= by.maximum == -NONE;
            c.total.maximum = by.maximum > c.total.maximum ? by.maximum : c.total.maximum;
        }
        sb_attention16_end_column<E>(p, &c);
    }
}

/* Behind a split of the tile, whose parts the block has written: folds all of them if the others are there. */
template <class E, bool PAGED, int D>
SB_CUDA_FUNCTION void sb_attention16_finish_split(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                  sb_attention16_decode_memory<D> shared) {
    SB_CUDA_BARRIER();
    if (threadIdx.x == 0) {
        uint32_t *word = sb_attention16_word<PAGED>(p, tile);
        const bool is_last = sb_attention16_arrive(word) + 1 == (uint32_t)sb_attention16_seen_splits(p, tile);
        shared.again[1] = is_last;
        if (is_last)
            *word = 0;
    }
    SB_CUDA_BARRIER();
    if (shared.again[1])
        sb_attention16_fold_tile<E>(p, tile, (sb_attention16_step *)(void *)shared.weights);
}

/* ---- all of it ---- */

/* Finds the next tile of the block of threads from `*index` on and says what it is in `stream`, or that there is none. Rows that see no
 * key have their zeros here. `before` is the tile before, NULL for the first one, and `*rows_before` a number of its rows; `steps` room for a fold. */
template <class E, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode_find(const sb_cuda_attention *p, int64_t *index, int64_t *rows_before,
                                                 const sb_attention16_stream *before, sb_attention16_stream *stream,
                                                 sb_attention16_step *steps) {
    sb_attention16_tile tile;
    bool is_there = false, has_keys = false;
    SB_CUDA_KEEP_LOOP
    while (!has_keys && *index >= 0) {
        is_there = sb_attention16_take_tile<PAGED>(p, *index, ROWS, before ? &before->tile : NULL, &tile);
        *index = is_there ? *index + gridDim.x : -1;
        if (!is_there || tile.first_row >= tile.rows)
            continue;
        has_keys = tile.begin < tile.end;
        const int64_t splits = p->arrived ? sb_attention16_seen_splits(p, &tile) : -1;
        if (tile.split < 0 ? !has_keys : splits == 0 && sb_attention16_is_first<PAGED>(p, &tile))
            sb_attention16_fold_tile<E>(p, &tile, steps);
        if (splits == 1 && has_keys)
            tile.split = -1;
    }
    if (!is_there) {
        if (threadIdx.x == 0)
            stream->blocks = 0;
        return;
    }
    const int64_t number = (PAGED ? tile.at.sequence : tile.at.batch) * p->row_tiles + tile.first_row / ROWS;
    const int64_t rows = number * p->key_heads + tile.at.key_head;
    if (threadIdx.x == 0) {
        const int32_t first = (int32_t)(tile.begin - tile.begin % KEYS);
        stream->tile = tile;
        stream->keys = PAGED ? sb_attention16_paged_lines(&p->k, &tile.at)
                             : sb_attention_lines_of<int32_t>(&p->past_k, &p->k, &tile.at, 2);
        stream->values = PAGED ? sb_attention16_paged_lines(&p->v, &tile.at)
                               : sb_attention_lines_of<int32_t>(&p->past_v, &p->v, &tile.at, 2);
        stream->first = first;
        stream->blocks = ((int32_t)tile.end - first + KEYS - 1) / KEYS;
        stream->has_other_rows = rows != *rows_before;
    }
    *rows_before = rows;
}

template <int HALF, int D, bool GENERAL, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_decode(const sb_cuda_attention *p) {
    typedef typename sb_attention16_element<HALF>::type E;
    DYNAMIC_SHARED(memory);
    SB_CUDA_SHARED sb_attention16_stream streams[AHEAD + 1];
    const sb_attention16_decode_memory<D> shared = sb_attention16_decode_cut<D>(memory);
    sb_attention16_step *steps = (sb_attention16_step *)(void *)shared.weights;
    sb_attention16_cursor at = {0, 0, 0, 0, {-1, 0}};
    uint32_t queries[D / 16][4];
    int64_t index = blockIdx.x, rows_before = -1;
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < AHEAD; i++) {
        sb_attention16_decode_find<E, PAGED>(p, &index, &rows_before, i > 0 ? &streams[i - 1] : NULL, &streams[i],
                                             steps);
        SB_CUDA_BARRIER();
    }
    sb_attention16_decode_fill<D, PAGED>(p, streams, shared.ring, &at);
    int last = AHEAD;
    SB_CUDA_KEEP_LOOP
    for (int current = 0; streams[current].blocks > 0; current = sb_attention16_next_stream(current)) {
        const sb_attention16_tile *tile = &streams[current].tile;
        sb_attention16_decode_find<E, PAGED>(p, &index, &rows_before, &streams[last == 0 ? AHEAD : last - 1],
                                             &streams[last], steps);
        last = sb_attention16_next_stream(last);
        if (streams[current].has_other_rows) {
            sb_attention_place rows[2];
            sb_attention16_decode_rows(p, tile, rows);
            sb_attention16_load_queries<D>(p, rows, queries);
        }
        sb_attention16_decode_tile<HALF, D, GENERAL, PAGED>(p, streams, current, &at, queries, shared);
        if (p->arrived && tile->split >= 0)
            sb_attention16_finish_split<E, PAGED, D>(p, tile, shared);
        SB_CUDA_BARRIER();
    }
    SB_CUDA_COPIES_WAIT(0);
}

/* The kernels of a source, whose modules are `module`_<name>: heads of up to `width`, how many blocks a multiprocessor shall take,
 * and whether keys lie on pages. */
#define SB_CUDA_ATTENTION16_DECODE_KERNEL(module, name, half, width, blocks, is_paged, suffix, is_general)             \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_##module##_##name##suffix, sb_cuda_attention, p, THREADS, blocks) {           \
        sb_attention16_decode<half, width, is_general, is_paged>(p);                                                   \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_DECODE_F16(module, width, blocks, is_paged)                                                \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, f16, SB_CUDA_F16, width, blocks, is_paged, , false)                      \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, f16, SB_CUDA_F16, width, blocks, is_paged, _masked, true)
#else
#define SB_CUDA_ATTENTION16_DECODE_F16(module, width, blocks, is_paged)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
#define SB_CUDA_ATTENTION16_DECODE_BF16(module, width, blocks, is_paged)                                               \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, bf16, SB_CUDA_BF16, width, blocks, is_paged, , false)                    \
    SB_CUDA_ATTENTION16_DECODE_KERNEL(module, bf16, SB_CUDA_BF16, width, blocks, is_paged, _masked, true)
#else
#define SB_CUDA_ATTENTION16_DECODE_BF16(module, width, blocks, is_paged)
#endif
#define SB_CUDA_ATTENTION16_DECODE(module, width, blocks, is_paged)                                                    \
    SB_CUDA_ATTENTION16_DECODE_F16(module, width, blocks, is_paged)                                                    \
    SB_CUDA_ATTENTION16_DECODE_BF16(module, width, blocks, is_paged)

#endif
