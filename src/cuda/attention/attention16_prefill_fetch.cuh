/* What attention by warpgroups (attention16_prefill.cuh) has in shared memory, and the thread that fetches it.
 *
 * Memory is units of 128 lines of up to 128 elements. One has the queries of a tile, the others are a ring, through which go, in
 * the order of their use, queries too: Q, K0, K1, V0, K2, V1, …, and behind the last K the next tile's Q and K0, and only then the
 * last V: so the next tile's scores begin with the last values of the one before. A unit that queries have come by leaves the ring
 * until the next ones do: the one which had the queries before takes its place.
 *
 * Tiles are described in a ring of their own, but for those whose rows see no key, which a warp beside has the zeros of. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_PREFILL_FETCH_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_PREFILL_FETCH_CUH

#include "cuda/attention/attention16.cuh"
#include "cuda/attention/attention16_prefill_parameters.h"
#include "cuda/contraction/hopper.cuh"

#define GROUP_ROWS 64
/* A tile's rows, and whether both warpgroups have the same, with columns of values of their own. */
#define TILE_ROWS(D) SB_CUDA_ATTENTION16_PREFILL_ROWS(D)
#define SHARES_ROWS(D) (TILE_ROWS(D) == GROUP_ROWS)
/* A unit's bytes, and units of a block of keys or values. */
#define UNIT(D) SB_CUDA_ATTENTION16_PREFILL_UNIT(D)
#define PARTS(D) SB_CUDA_ATTENTION16_PREFILL_PARTS(D)
#define STAGES(D) SB_CUDA_ATTENTION16_PREFILL_STAGES(D)
/* Bytes from 64 elements of a tile's queries to the next. */
#define QUERY_CHUNK_BYTES(D) (TILE_ROWS(D) * 128)
/* Bytes of 128 lines of 64 elements: what a copy brings, and from 64 elements to the next. */
#define CHUNK_BYTES (128 * 128)
#define UNIT_CHUNKS(D) (UNIT(D) / CHUNK_BYTES)
/* Tiles that are described at a time. */
#define TILES 4

#if SB_HOPPER

/* ---- tiles ---- */

/* Blocks of keys that all rows see, so many keys from `first` on: nothing is hidden of them or cleared. */
struct sb_prefill_plain {
    int32_t first;
    uint32_t keys;
};

SB_CUDA_FUNCTION sb_prefill_plain sb_prefill_find_plain(int32_t begin, int32_t end) {
    const int32_t first = (begin + KEYS - 1) / KEYS * KEYS, behind = end / KEYS * KEYS;
    const sb_prefill_plain plain = {first, first < behind ? (uint32_t)(behind - first) : 0};
    return plain;
}

SB_CUDA_FUNCTION bool sb_prefill_is_inside(sb_prefill_plain plain, int32_t block) {
    return (uint32_t)block - (uint32_t)plain.first < plain.keys;
}

/* A tile, as the thread that fetches finds it. Numbers have 32 bits (attention16.c, attention16_prefill.c), since else it takes a block of threads
 * longer to find its first one than to fetch it. */
struct sb_prefill_tile {
    uint32_t index;
    int32_t batch, key_head,
        first_query; /* with pages the batch is 0, and queries are counted among those of all sequences */
    int32_t used;    /* rows of it that are there */
    /* The first key that its first query sees, and that behind the last, each one further of the next query, but for where keys begin, and
     * end, which is `length`. */
    int32_t begin, end, length;
    int32_t block, last; /* the first keys of the first block of keys and of the last */
    int32_t known;       /* values from this key on may be anything: no row sees them, and no number has to be there */
    sb_prefill_plain plain;
    int64_t output;       /* elements from the output's beginning to its first row */
    bool there, is_empty; /* else it is behind the last one; and whether no row sees a key */
};

/* The block's tile of round `number`: the grid's tiles of a round go to its blocks forwards and backwards in turn, so that
 * the block with the longest tile of one has the shortest of the next. */
SB_CUDA_FUNCTION uint32_t sb_prefill_index(int number) {
    const uint32_t place = number % 2 != 0 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    return (uint32_t)number * gridDim.x + place;
}

/* Held within what a tile's rows may be added to; there are fewer keys than that. */
SB_CUDA_FUNCTION int32_t sb_prefill_within(int64_t key) {
    const int64_t most = INT32_MAX - KEYS;
    return (int32_t)(key < -most ? -most : key < most ? key : most);
}

/* Keys that a sample has. */
SB_CUDA_FUNCTION int32_t sb_prefill_length(const sb_cuda_attention *p, int32_t batch) {
    const int64_t keys = sb_cuda_used(p->used_fresh, p->fresh);
    return (int32_t)(p->lengths != NULL ? sb_attention_length(p->lengths[batch * p->lengths_stride], keys) : keys);
}

/* Which keys a tile's queries see, of which the first stands at `position` and `behind` come behind it (sb_attention_reach_of). */
SB_CUDA_FUNCTION void sb_prefill_bound(const sb_cuda_attention *p, int64_t position, int32_t behind,
                                       sb_prefill_tile *tile) {
    const int32_t begin = sb_prefill_within(p->left < 0 ? INT64_MIN : position - p->left);
    const int32_t end = sb_prefill_within(p->right < 0 ? INT64_MAX : position + p->right + 1);
    const int32_t first = begin > 0 ? begin : 0, full_first = begin + behind > 0 ? begin + behind : 0;
    const int32_t last = end + behind < tile->length ? end + behind : tile->length;
    tile->begin = begin;
    tile->end = end;
    tile->is_empty = behind < 0 || first >= last;
    tile->block = first / KEYS * KEYS;
    tile->last = (last - 1) / KEYS * KEYS;
    tile->plain = sb_prefill_find_plain(full_first, end < tile->length ? end : tile->length);
}

/* Tile `index`: as sb_attention16_find_tile counts them. */
SB_CUDA_FUNCTION void sb_prefill_find(const sb_cuda_attention16_tiles *p, uint32_t index, sb_prefill_tile *tile) {
    const sb_cuda_attention *attention = &p->attention;
    const uint32_t rest = sb_cuda_divide(index, &p->by_key_heads), number = sb_cuda_divide(rest, &p->by_batch);
    const int32_t queries = (int32_t)sb_cuda_used(attention->used_queries, attention->queries);
    const int32_t group = (int32_t)attention->group,
                  first = ((int32_t)attention->row_tiles - 1 - (int32_t)number) * p->queries;
    const int32_t left = queries > first ? queries - first : 0, there = left < p->queries ? left : p->queries;
    tile->there = true;
    tile->index = index;
    tile->batch = (int32_t)(rest - number * p->by_batch.divisor);
    tile->key_head = (int32_t)(index - rest * p->by_key_heads.divisor);
    tile->first_query = first;
    tile->used = there * group;
    tile->length = sb_prefill_length(attention, tile->batch);
    tile->known = tile->length < attention->fresh ? tile->length : INT32_MAX;
    tile->output = sb_attention_at(&attention->y, tile->batch, tile->key_head * group, first, 0);
    sb_prefill_bound(attention, (attention->lengths != NULL ? tile->length - queries : 0) + (int64_t)first, there - 1,
                     tile);
}

/* The query of a tile's row. */
SB_CUDA_FUNCTION int sb_prefill_query(const sb_cuda_attention16_prefill *p, int own) {
    return (int)sb_cuda_divide((uint32_t)own, &p->work.by_group);
}

/* Where column `column` of a tile's first row goes, and the same of row `own`. */
SB_CUDA_FUNCTION char *sb_prefill_output(const sb_cuda_attention16_prefill *p, const sb_prefill_tile *tile,
                                         int column) {
    return p->work.attention.y.data + 2 * (tile->output + column);
}

SB_CUDA_FUNCTION char *sb_prefill_row(const sb_cuda_attention16_prefill *p, char *first, int own) {
    const int query = sb_prefill_query(p, own), head = own - query * (int)p->work.by_group.divisor;
    return first + (uint64_t)(uint32_t)head * p->work.head_bytes + (uint64_t)(uint32_t)query * p->work.query_bytes;
}

/* ---- shared memory ---- */

/* Addresses of shared memory, and what of it threads read and write by themselves. */
struct sb_prefill_shared {
    uint32_t units;
    uint32_t full, empty;           /* a barrier of each stage of the ring */
    uint32_t tile_full, tile_empty; /* and of each tile that is described */
    uint32_t turns;                 /* one of each warpgroup: it may begin products */
    float *totals;                  /* of both warpgroups */
    sb_prefill_tile *tiles;
};

/* A stage of the ring, and which units its stages are now: four bits each, and one number. */
template <int D> struct sb_prefill_ring {
    int stage;
    uint32_t phase;
    uint32_t units, queries;
};

template <int D> SB_CUDA_FUNCTION sb_prefill_ring<D> sb_prefill_begin_ring(void) {
    const sb_prefill_ring<D> ring = {0, 0, 0x76543210u, STAGES(D)};
    return ring;
}

template <int D> SB_CUDA_FUNCTION void sb_prefill_next(sb_prefill_ring<D> *ring) {
    if (++ring->stage == STAGES(D)) {
        ring->stage = 0;
        ring->phase ^= 1;
    }
}

template <int D>
SB_CUDA_FUNCTION uint32_t sb_prefill_unit(const sb_prefill_shared *shared, const sb_prefill_ring<D> *ring) {
    return shared->units + (ring->units >> 4 * ring->stage & 15) * UNIT(D);
}

/* Keeps the stage's unit for queries, in exchange for the one that had those before, and returns where it is. */
template <int D>
SB_CUDA_FUNCTION uint32_t sb_prefill_exchange(const sb_prefill_shared *shared, sb_prefill_ring<D> *ring) {
    const uint32_t unit = ring->units >> 4 * ring->stage & 15;
    ring->units ^= (unit ^ ring->queries) << 4 * ring->stage;
    ring->queries = unit;
    return shared->units + unit * UNIT(D);
}

/* ---- fetching ---- */

template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch_block(const sb_prefill_shared *shared, const sb_tensor_map *map, int key,
                                             int head, int batch, sb_prefill_ring<D> *ring) {
    SB_CUDA_UNROLL
    for (int part = 0; part < PARTS(D); part++) {
        const uint32_t arrived = shared->full + 8 * ring->stage, unit = sb_prefill_unit(shared, ring);
        sb_barrier_wait(shared->empty + 8 * ring->stage, ring->phase ^ 1);
        sb_barrier_expect(arrived, UNIT(D));
        SB_CUDA_UNROLL
        for (int i = 0; i < UNIT_CHUNKS(D); i++)
            sb_tensor_load(unit + i * CHUNK_BYTES, map, arrived, 64 * (part * UNIT_CHUNKS(D) + i), key, head, batch);
        sb_prefill_next(ring);
    }
}

/* One thread of those that fetch `leads`. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch_queries(const sb_cuda_attention16_prefill *p, const sb_prefill_shared *shared,
                                               const sb_prefill_tile *tile, bool leads, sb_prefill_ring<D> *ring) {
    const uint32_t arrived = shared->full + 8 * ring->stage, unit = sb_prefill_exchange(shared, ring);
    if (leads) {
        sb_barrier_wait(shared->empty + 8 * ring->stage, ring->phase ^ 1);
        sb_barrier_expect(arrived, (uint32_t)(D / 64 * p->work.rows * 128));
        SB_CUDA_UNROLL
        for (int i = 0; i < D / 64; i++)
            sb_tensor_load(unit + i * QUERY_CHUNK_BYTES(D), &p->q, arrived, 64 * i,
                           tile->key_head * (int)p->work.attention.group, tile->first_query, tile->batch);
    }
    sb_prefill_next(ring);
}

/* Finds the block's next tile in which a row sees a key, from round `*round` on. */
SB_CUDA_FUNCTION void sb_prefill_find_next(const sb_cuda_attention16_tiles *p, int *round, sb_prefill_tile *tile) {
    tile->there = false;
    SB_CUDA_KEEP_LOOP
    for (uint32_t index; (index = sb_prefill_index(*round)) < (uint32_t)p->tiles;) {
        ++*round;
        sb_prefill_find(p, index, tile);
        if (!tile->is_empty)
            return;
        tile->there = false;
    }
}

/* Describes that tile, the `number`th. NULL: there is none. */
SB_CUDA_FUNCTION const sb_prefill_tile *sb_prefill_describe(const sb_cuda_attention16_prefill *p,
                                                            const sb_prefill_shared *shared, int number, int *round) {
    sb_prefill_tile *tile = &shared->tiles[number % TILES];
    sb_barrier_wait(shared->tile_empty + 8 * (number % TILES), (uint32_t)(number / TILES & 1) ^ 1);
    sb_prefill_find_next(&p->work, round, tile);
    sb_barrier_arrive(shared->tile_full + 8 * (number % TILES));
    return tile->there ? tile : NULL;
}

/* Describes the next tile, and fetches what its first scores take. */
template <int D>
SB_CUDA_FUNCTION const sb_prefill_tile *sb_prefill_begin_tile(const sb_cuda_attention16_prefill *p,
                                                              const sb_prefill_shared *shared, int number, int *round,
                                                              sb_prefill_ring<D> *ring) {
    const sb_prefill_tile *tile = sb_prefill_describe(p, shared, number, round);
    if (tile == NULL)
        return NULL;
    sb_prefill_fetch_queries<D>(p, shared, tile, true, ring);
    sb_prefill_fetch_block<D>(shared, &p->k, tile->block, tile->key_head, tile->batch, ring);
    return tile;
}

template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch(const sb_cuda_attention16_prefill *p, const sb_prefill_shared *shared) {
    sb_prefill_ring<D> ring = sb_prefill_begin_ring<D>();
    int number = 0, round = 0;
    const sb_prefill_tile *tile = sb_prefill_begin_tile<D>(p, shared, number++, &round, &ring);
    SB_CUDA_KEEP_LOOP
    while (tile != NULL) {
        const int last = tile->last, head = tile->key_head, batch = tile->batch;
        SB_CUDA_KEEP_LOOP
        for (int block = tile->block; block < last; block += KEYS) {
            sb_prefill_fetch_block<D>(shared, &p->k, block + KEYS, head, batch, &ring);
            sb_prefill_fetch_block<D>(shared, &p->v, block, head, batch, &ring);
        }
        tile = sb_prefill_begin_tile<D>(p, shared, number++, &round, &ring);
        sb_prefill_fetch_block<D>(shared, &p->v, last, head, batch, &ring);
    }
}

/* ---- tiles that there is nothing to fetch for ---- */

/* By a warp: that no row has to be computed again, and zeros of those that are there. */
SB_CUDA_FUNCTION void sb_prefill_give_zeros(const sb_cuda_attention16_prefill *p, const sb_prefill_tile *tile) {
    const int lane = (int)threadIdx.x % 32;
    if (lane < SB_CUDA_ATTENTION16_PREFILL_WARPS)
        p->work.again[tile->index * SB_CUDA_ATTENTION16_PREFILL_WARPS + (uint32_t)lane] = false;
    SB_CUDA_KEEP_LOOP
    for (int own = 0; own < tile->used; own++) {
        uint32_t *to = (uint32_t *)(void *)sb_prefill_row(p, sb_prefill_output(p, tile, 0), own);
        for (int pair = lane; 2 * pair < p->work.attention.value_width; pair += 32)
            to[pair] = 0;
    }
}

/* Zeros of the block's tiles whose rows see no key, by a warp that does nothing else. */
SB_CUDA_FUNCTION void sb_prefill_give_nothing(const sb_cuda_attention16_prefill *p) {
    sb_prefill_tile tile;
    SB_CUDA_KEEP_LOOP
    for (int round = 0; sb_prefill_index(round) < (uint32_t)p->work.tiles; round++) {
        sb_prefill_find(&p->work, sb_prefill_index(round), &tile);
        if (tile.is_empty)
            sb_prefill_give_zeros(p, &tile);
    }
}

#endif

#endif
