/* Tiles of attention16_stream.cuh, and how their keys and values come to shared memory: what the warp that fetches does. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_STREAM_TILE_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_STREAM_TILE_CUH

#include "cuda/attention/attention16.cuh"
#include "cuda/attention/attention16_stream_parameters.h"
#include "cuda/contraction/hopper.cuh"

#if SB_HOPPER

#define WARPS (THREADS / 32)
#define UNIT_KEYS SB_CUDA_ATTENTION16_STREAM_KEYS
/* Of a split: units of keys, stages of them, blocks that share a maximum; and stages of such a block. */
#define UNITS (SB_ATTENTION_SPLIT / UNIT_KEYS)
#define STAGES (UNITS / WARPS)
#define BLOCKS (SB_ATTENTION_SPLIT / KEYS)
#define BLOCK_STAGES (STAGES / BLOCKS)
#define ROWS SB_CUDA_ATTENTION16_STREAM_ROWS
#define WEIGHTS_PITCH SB_CUDA_ATTENTION16_PITCH(SB_ATTENTION_SPLIT)
/* Bytes of 16 lines of 64 elements. */
#define SQUARE_BYTES (UNIT_KEYS * 128)

/* The number of a warp, whose units of keys and columns of values are its own. */
SB_CUDA_FUNCTION int sb_stream_warp(void) {
    return (int)(threadIdx.x / 32);
}

SB_CUDA_FUNCTION int sb_stream_lane(void) {
    return (int)(threadIdx.x % 32);
}

/* ---- tiles ---- */

/* Which keys of a split any row sees, from its first key on, and units of them. */
struct sb_stream_span {
    int32_t begin, end, begin_unit, end_unit;
};

/* A tile, found by the warp that fetches. Its `split` is -1 if its rows see one split alone, which then goes to the output, and nobody
 * folds. Keys and rows are numbers of 32 bits (attention16_stream.c). */
struct sb_stream_tile {
    sb_attention16_tile whole;
    sb_stream_span seen;
    int32_t start;                       /* the first key of its split */
    int32_t full_begin, full_end;        /* keys from there on that every row sees */
    int32_t first_query, first_in_group; /* of the tile's first row */
    int32_t first_split, splits;         /* those that any row sees, one at least */
    int32_t word;                        /* of those in which its splits count themselves */
    bool is_idle, is_behind;             /* nothing is to be done for it; nor for any behind it */
};

SB_CUDA_FUNCTION int32_t sb_stream_within(int64_t key) {
    return (int32_t)(key < 0 ? 0 : key < SB_ATTENTION_SPLIT ? key : SB_ATTENTION_SPLIT);
}

/* Finds out what is to be done for a tile: of split `split`, or of all, -1, if there is room for no more than one. */
SB_CUDA_FUNCTION void sb_stream_describe(const sb_cuda_attention16_stream *given, int64_t split, sb_stream_tile *tile) {
    sb_attention16_tile *whole = &tile->whole;
    const int32_t rows = (int32_t)whole->rows, first = (int32_t)whole->first_row, group = whole->group;
    const int32_t last = (first + ROWS < rows ? first + ROWS : rows) - 1, number = split < 0 ? 0 : (int32_t)split;
    tile->is_idle = first >= rows;
    if (tile->is_idle)
        return;
    tile->first_query = (int32_t)sb_cuda_divide((uint32_t)first, &given->by_group);
    tile->first_in_group = first - tile->first_query * group;
    const int32_t length = (int32_t)whole->length, at = (int32_t)whole->position + tile->first_query;
    const int32_t last_at = (int32_t)whole->position + (int32_t)sb_cuda_divide((uint32_t)last, &given->by_group);
    const int32_t begin = sb_attention16_first_key(given->left, at);
    const int32_t end = sb_attention16_last_key(given->right, last_at, length);
    const bool is_empty = begin >= end;
    tile->first_split = is_empty ? 0 : begin / SB_ATTENTION_SPLIT;
    tile->splits = is_empty ? 1 : (end + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT - tile->first_split;
    tile->is_idle = number < tile->first_split || number >= tile->first_split + tile->splits;
    whole->split = given->arrived == NULL || tile->splits > 1 ? split : -1;
    tile->start = number * SB_ATTENTION_SPLIT;
    tile->seen.begin = is_empty ? 0 : sb_stream_within(begin - tile->start);
    tile->seen.end = is_empty ? 0 : sb_stream_within(end - tile->start);
    tile->seen.begin_unit = tile->seen.begin / UNIT_KEYS;
    tile->seen.end_unit = (tile->seen.end + UNIT_KEYS - 1) / UNIT_KEYS;
    tile->full_begin = sb_stream_within(sb_attention16_first_key(given->left, last_at) - tile->start);
    tile->full_end = sb_stream_within(sb_attention16_last_key(given->right, at, length) - tile->start);
}

/* Tile `index` where keys lie side by side, without a past. Splits that are used come first, whatever there is room for. */
SB_CUDA_FUNCTION void sb_stream_find_sample(const sb_cuda_attention16_stream *given, uint32_t index,
                                            sb_stream_tile *tile) {
    const sb_cuda_attention *p = &given->attention;
    sb_attention16_tile *whole = &tile->whole;
    const uint32_t samples = sb_cuda_divide(index, &given->by_key_heads);
    const uint32_t tiles = sb_cuda_divide(samples, &given->by_batch);
    const uint32_t split = sb_cuda_divide(tiles, &given->by_row_tiles);
    const int32_t key_head = (int32_t)(index - samples * given->by_key_heads.divisor);
    const int32_t batch = (int32_t)(samples - tiles * given->by_batch.divisor);
    const int32_t number = (int32_t)(tiles - split * given->by_row_tiles.divisor);
    tile->is_behind = split >= (uint32_t)(p->splits != 0 ? p->splits : 1);
    if (tile->is_behind)
        return;
    const sb_attention16_counts of = sb_attention16_count(p, batch);
    const sb_attention_place none = {};
    whole->at = none;
    whole->at.batch = batch;
    whole->at.key_head = key_head;
    whole->at.keys = of.keys;
    whole->length = of.length;
    whole->position = of.position;
    whole->first_query = 0;
    whole->part = batch * p->heads * p->part_rows;
    whole->group = (int32_t)given->by_group.divisor;
    whole->rows = whole->group * of.queries;
    whole->first_row = number * ROWS;
    tile->word =
        (batch * (int32_t)given->by_row_tiles.divisor + number) * (int32_t)given->by_key_heads.divisor + key_head;
    sb_stream_describe(given, p->splits != 0 ? (int64_t)split : -1, tile);
    tile->is_behind = tile->is_idle && given->by_batch.divisor == 1 && given->by_row_tiles.divisor == 1 &&
                      whole->first_row < whole->rows && (int32_t)split >= tile->first_split + tile->splits;
}

/* The same where they lie on pages, by a whole warp. */
SB_CUDA_FUNCTION void sb_stream_find_paged(const sb_cuda_attention16_stream *given, int64_t index,
                                           sb_stream_tile *tile) {
    const sb_cuda_attention *p = &given->attention;
    sb_attention16_tile *whole = &tile->whole;
    tile->is_behind = !sb_attention16_find_paged_tile(p, index, ROWS, whole);
    if (tile->is_behind)
        return;
    sb_stream_describe(given, whole->split, tile);
    tile->word = (int32_t)((whole->at.key_head * p->part_rows + whole->part + whole->first_query + tile->first_query) *
                               whole->group +
                           tile->first_in_group);
}

/* Row `number` of the tile. */
SB_CUDA_FUNCTION sb_attention_place sb_stream_row(const sb_cuda_attention16_stream *given, const sb_stream_tile *tile,
                                                  int number) {
    const sb_attention16_tile *whole = &tile->whole;
    sb_attention_place at = whole->at;
    const int32_t place = tile->first_in_group + number;
    const int32_t further = (int32_t)sb_cuda_divide((uint32_t)place, &given->by_group);
    const int32_t query = tile->first_query + further;
    at.query = whole->first_query + query;
    at.head = at.key_head * whole->group + (place - further * whole->group);
    at.used = whole->first_row + number < whole->rows;
    const int32_t position = (int32_t)whole->position + query;
    at.reach.first = at.used ? sb_attention16_first_key(given->left, position) : 0;
    at.reach.last = at.used ? sb_attention16_last_key(given->right, position, (int32_t)whole->length) : 0;
    return at;
}

SB_CUDA_FUNCTION bool sb_stream_is_seen(sb_stream_span span, int unit) {
    return unit >= span.begin_unit && unit < span.end_unit;
}

SB_CUDA_FUNCTION bool sb_stream_has_stage(sb_stream_span span, int stage) {
    return (stage + 1) * WARPS > span.begin_unit && stage * WARPS < span.end_unit;
}

/* ---- shared memory ---- */

/* Addresses of shared memory, and what of it threads read and write by themselves. */
struct sb_stream_shared {
    unsigned char *ring;
    uint32_t full, empty;             /* a barrier of each stage */
    uint32_t tiles_full, tiles_empty; /* of this tile and the next one, which take turns */
    uint16_t *weights;                /* [8][pitch]; the definition's at the end */
    float *largest;                   /* [4][8][4]: of each block of keys and row, of each warp's */
    float *factors;                   /* [4][8]: by which a block of keys multiplies what was summed of a row before */
    float *sums;                      /* [8] */
    int *again, *last;
    sb_stream_tile *tiles;
    int stages;
};

struct sb_stream_place {
    int stage;
    uint32_t phase;
};

SB_CUDA_FUNCTION void sb_stream_next(const sb_stream_shared *shared, sb_stream_place *at) {
    if (++at->stage == shared->stages) {
        at->stage = 0;
        at->phase ^= 1;
    }
}

/* Bytes from a unit of a stage to the next, and from 64 elements of lines to the next. */
struct sb_stream_steps {
    int unit, slice;
};

template <int D> SB_CUDA_FUNCTION sb_stream_steps sb_stream_find_steps(int copies) {
    const sb_stream_steps together = {SQUARE_BYTES, WARPS * SQUARE_BYTES},
                          apart = {D / 64 * SQUARE_BYTES, SQUARE_BYTES};
    return copies == 1 ? together : apart;
}

/* Where eight elements of a line lie in a unit, with the copy engine's swizzle; those of column 16 * c further on, within 64, lie where
 * 32 * c is exclusive-or-ed to it. */
SB_CUDA_FUNCTION uint32_t sb_stream_eight(sb_stream_steps steps, uint32_t line, uint32_t column) {
    return column / 64 * (uint32_t)steps.slice + line * 128 + (column / 8 ^ line) % 8 * 16;
}

/* ---- fetching ---- */

/* Where the lane's unit of the split lies, along the dimensions of a map. */
struct sb_stream_line {
    int32_t key, page;
};

/* What one copy brings lies where its first unit does, seen or not: on the page of those that are. */
SB_CUDA_FUNCTION sb_stream_line sb_stream_find_line(const sb_cuda_attention *p, const sb_stream_tile *tile,
                                                    int copies) {
    const int unit = sb_stream_lane();
    const bool is_copied =
        copies == 1 ? sb_stream_has_stage(tile->seen, unit / WARPS) : sb_stream_is_seen(tile->seen, unit);
    sb_stream_line line = {tile->start + unit * UNIT_KEYS, (int32_t)tile->whole.at.batch};
    if (p->pages.table != NULL && is_copied) {
        const int32_t rows = (int32_t)p->pages.rows, column = line.key / rows;
        line.key -= column * rows;
        line.page = (int32_t)sb_pages_hold(&p->pages, sb_pages_entry(&p->pages, tile->whole.at.sequence, column));
    }
    return line;
}

/* Keys or values: what brings them, in how many slices, and the bytes of 16. */
struct sb_stream_operand {
    const sb_tensor_map *map;
    int slices, bytes;
};

/* Stage `number` of the split: a lane brings a copy. */
template <int D>
SB_CUDA_FUNCTION void sb_stream_fetch_stage(const sb_stream_shared *shared, sb_stream_operand operand,
                                            const sb_stream_tile *tile, sb_stream_line own, int number, int copies,
                                            sb_stream_place *at) {
    const int lane = sb_stream_lane(), unit = number * WARPS + lane;
    const uint32_t arrived = shared->full + 8 * at->stage;
    const int32_t key = sb_cuda_shuffle_from_s32(own.key, unit % UNITS);
    const int32_t page = sb_cuda_shuffle_from_s32(own.page, unit % UNITS);
    int count = WARPS;
    if (copies != 1) {
        count = 0;
        SB_CUDA_UNROLL
        for (int i = 0; i < WARPS; i++)
            count += sb_stream_is_seen(tile->seen, number * WARPS + i) ? 1 : 0;
    }
    sb_barrier_wait(shared->empty + 8 * at->stage, at->phase ^ 1);
    if (lane == 0)
        sb_barrier_expect(arrived, (uint32_t)(count * operand.bytes));
    __syncwarp();
    if (lane < copies && (copies == 1 || sb_stream_is_seen(tile->seen, unit))) {
        const sb_stream_steps steps = sb_stream_find_steps<D>(copies);
        const uint32_t to = sb_shared_address(shared->ring) +
                            (uint32_t)at->stage * SB_CUDA_ATTENTION16_STREAM_STAGE(D) + (uint32_t)(lane * steps.unit);
        SB_CUDA_KEEP_LOOP
        for (int i = 0; i < operand.slices; i++)
            sb_tensor_load_five(to + (uint32_t)(i * steps.slice), operand.map, arrived, 64 * i, key, 0,
                                (int)tile->whole.at.key_head, page);
    }
    sb_stream_next(shared, at);
}

template <int D>
SB_CUDA_FUNCTION void sb_stream_fetch_tile(const sb_cuda_attention16_stream *p, const sb_stream_shared *shared,
                                           const sb_stream_tile *tile, sb_stream_place *at) {
    const sb_stream_line own = sb_stream_find_line(&p->attention, tile, p->copies);
    const sb_stream_operand keys = {&p->k, p->key_slices, p->key_bytes},
                            values = {&p->v, p->value_slices, p->value_bytes};
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < 2 * STAGES; i++) {
        if (sb_stream_has_stage(tile->seen, i % STAGES))
            sb_stream_fetch_stage<D>(shared, i < STAGES ? keys : values, tile, own, i % STAGES, p->copies, at);
    }
}

template <int D>
SB_CUDA_FUNCTION void sb_stream_fetch(const sb_cuda_attention16_stream *p, const sb_stream_shared *shared) {
    sb_stream_place at = {0, 0};
    sb_stream_tile tile;
    uint32_t number = 0;
    SB_CUDA_KEEP_LOOP
    for (uint32_t index = blockIdx.x;; index += gridDim.x) {
        if (p->attention.pages.table != NULL)
            sb_stream_find_paged(p, index, &tile);
        else
            sb_stream_find_sample(p, index, &tile);
        if (!tile.is_behind && tile.is_idle)
            continue;
        const uint32_t turn = number % 2;
        sb_barrier_wait(shared->tiles_empty + 8 * turn, (number / 2 & 1) ^ 1);
        if (sb_stream_lane() == 0) {
            shared->tiles[turn] = tile;
            sb_barrier_arrive(shared->tiles_full + 8 * turn);
        }
        if (tile.is_behind)
            return;
        sb_stream_fetch_tile<D>(p, shared, &tile, &at);
        number++;
    }
}

#endif

#endif
