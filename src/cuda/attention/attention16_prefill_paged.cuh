/* Attention by warpgroups (attention16_prefill.cuh) over keys on pages: the warp that fetches in place of a thread.
 *
 * A block of 128 keys comes in copies of as many lines as pages have in one piece, 16 to 128, a lane for each copy of 64 elements; or in
 * one where its pages lie one behind the other, as those of a prompt mostly do. Pages are looked up for 512 keys at once, a lane for 16 of
 * them, while the 512 before are fetched. Tiles are those of sequences with so many rows as `more_than` and `up_to` say. What lies behind a sequence's last key on its page may be anything, so that values from there on
 * are made zeros of; a page that the table does not say is any one of those that there are, and no row sees it. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_PREFILL_PAGED_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_PREFILL_PAGED_CUH

#include "cuda/attention/attention16_prefill_fetch.cuh"

#if SB_HOPPER

/* Tile `index`, and its sequence, by a whole warp: as sb_attention16_find_paged_tile counts them. */
SB_CUDA_FUNCTION void sb_prefill_find_paged(const sb_cuda_attention16_tiles *p, uint32_t index, sb_prefill_tile *tile,
                                            int32_t *sequence) {
    const sb_cuda_attention *attention = &p->attention;
    const uint32_t rest = sb_cuda_divide(index, &p->by_key_heads);
    const sb_attention_sequence found = sb_attention_find_sequence(attention, rest, p->rows);
    tile->there = found.number >= 0;
    if (!tile->there)
        return;
    const int32_t rows = (int32_t)found.rows, group = (int32_t)attention->group;
    const int32_t first = ((rows - 1) / p->queries - (int32_t)found.index) * p->queries, left = rows - first;
    const int32_t there = left < p->queries ? left : p->queries;
    *sequence = (int32_t)found.number;
    tile->index = index;
    tile->batch = 0;
    tile->key_head = (int32_t)(index - rest * p->by_key_heads.divisor);
    tile->first_query = (int32_t)found.begin + first;
    tile->used = there * group;
    tile->length = (int32_t)found.length;
    tile->known = tile->length;
    tile->output = sb_attention_at(&attention->y, 0, tile->key_head * group, tile->first_query, 0);
    sb_prefill_bound(attention, found.length - rows + first, there - 1, tile);
}

/* ---- pages ---- */

/* Keys whose pages are known at once, and of each lane. */
#define WINDOW_KEYS SB_ATTENTION_SPLIT
#define LANE_KEYS (WINDOW_KEYS / 32)

/* The lane's page of the keys from WINDOW_KEYS * number on, and of those behind them. */
struct sb_prefill_pages {
    int32_t sequence, number, now, next;
};

SB_CUDA_FUNCTION int32_t sb_prefill_look_up(const sb_cuda_attention16_prefill *p, int32_t sequence, int32_t number) {
    const sb_pages *pages = &p->work.attention.pages;
    const uint32_t key = (uint32_t)number * WINDOW_KEYS + threadIdx.x % 32 * LANE_KEYS;
    const int64_t column = sb_cuda_divide(key, &p->by_page);
    return column < pages->columns ? (int32_t)sb_pages_hold(pages, sb_pages_entry(pages, sequence, column)) : 0;
}

SB_CUDA_FUNCTION sb_prefill_pages sb_prefill_open_pages(const sb_cuda_attention16_prefill *p, int32_t sequence,
                                                        int32_t key) {
    const int32_t number = key / WINDOW_KEYS;
    const sb_prefill_pages pages = {sequence, number, sb_prefill_look_up(p, sequence, number),
                                    sb_prefill_look_up(p, sequence, number + 1)};
    return pages;
}

/* Goes on to the next keys. */
SB_CUDA_FUNCTION void sb_prefill_turn_pages(const sb_cuda_attention16_prefill *p, sb_prefill_pages *pages) {
    pages->number++;
    pages->now = pages->next;
    pages->next = sb_prefill_look_up(p, pages->sequence, pages->number + 1);
}

/* ---- fetching ---- */

/* What brings a block of keys, or values: in copies of lines that lie in one piece, or all lines where their pages do. */
struct sb_prefill_operand {
    const sb_tensor_map *apart, *together;
};

/* Whether the copies of a block, a lane each, begin as many lines one behind the other as each has. Lines that no row sees may be any. */
SB_CUDA_FUNCTION bool sb_prefill_are_together(int32_t begin, int copy, int lines, int copies, bool is_seen) {
    const int32_t first = sb_cuda_shuffle_from_s32(begin, 0);
    const bool is_astray = (int)threadIdx.x % 32 < copies && is_seen && begin != first + copy * lines;
    return sb_cuda_first_lane(is_astray) < 0;
}

/* The block of keys from `block` on of a head, of a sequence of `length` keys. */
template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch_lines(const sb_cuda_attention16_prefill *p, const sb_prefill_shared *shared,
                                             sb_prefill_operand operand, const sb_prefill_pages *pages, int block,
                                             int head, int length, sb_prefill_ring<D> *ring) {
    const int lane = (int)threadIdx.x % 32, lines = KEYS / p->copies, copy = lane % p->copies, chunk = lane / p->copies;
    const int32_t key = block + copy * lines;
    const int32_t known = block / WINDOW_KEYS == pages->number ? pages->now : pages->next;
    const int32_t page = sb_cuda_shuffle_from_s32(known, key % WINDOW_KEYS / LANE_KEYS);
    const int32_t line = key - (int32_t)(sb_cuda_divide((uint32_t)key, &p->by_page) * p->by_page.divisor);
    const int32_t begin = p->are_together != 0 ? page * (int32_t)p->by_page.divisor + line : 0;
    const bool together = p->are_together != 0 && sb_prefill_are_together(begin, copy, lines, p->copies, key < length);
    const uint32_t arrived = shared->full + 8 * ring->stage, unit = sb_prefill_unit(shared, ring);
    /* Nobody copies before all have seen that there is room: the barrier could be two phases further when the last one looks. */
    sb_barrier_wait(shared->empty + 8 * ring->stage, ring->phase ^ 1);
    if (lane == 0)
        sb_barrier_expect(arrived, UNIT(D));
    __syncwarp();
    if (chunk < UNIT_CHUNKS(D) && !together)
        sb_tensor_load(unit + (uint32_t)(chunk * CHUNK_BYTES + copy * lines * 128), operand.apart, arrived, 64 * chunk,
                       line, head, page);
    else if (chunk < UNIT_CHUNKS(D) && copy == 0)
        sb_tensor_load(unit + (uint32_t)(chunk * CHUNK_BYTES), operand.together, arrived, 64 * chunk, begin, head, 0);
    sb_prefill_next(ring);
}

/* Finds the block's next tile in which a row sees a key, from round `*round` on; false: there is none. */
SB_CUDA_FUNCTION bool sb_prefill_find_next_paged(const sb_cuda_attention16_tiles *p, int *round, sb_prefill_tile *tile,
                                                 int32_t *sequence) {
    tile->there = false;
    SB_CUDA_KEEP_LOOP
    for (uint32_t index; (index = sb_prefill_index(*round)) < (uint32_t)p->tiles;) {
        ++*round;
        sb_prefill_find_paged(p, index, tile, sequence);
        if (!tile->there || !tile->is_empty)
            return tile->there;
    }
    tile->there = false;
    return false;
}

/* Describes that tile, the `number`th, and fetches what its first scores take. */
template <int D>
SB_CUDA_FUNCTION bool sb_prefill_begin_paged(const sb_cuda_attention16_prefill *p, const sb_prefill_shared *shared,
                                             int number, int *round, sb_prefill_tile *tile, sb_prefill_pages *pages,
                                             sb_prefill_ring<D> *ring) {
    const uint32_t place = (uint32_t)(number % TILES);
    const sb_prefill_operand keys = {&p->k, &p->k_together};
    int32_t sequence = 0;
    const bool is_there = sb_prefill_find_next_paged(&p->work, round, tile, &sequence);
    const bool leads = threadIdx.x % 32 == 0;
    if (leads) {
        sb_barrier_wait(shared->tile_empty + 8 * place, (uint32_t)(number / TILES & 1) ^ 1);
        shared->tiles[place] = *tile;
        sb_barrier_arrive(shared->tile_full + 8 * place);
    }
    if (!is_there)
        return false;
    *pages = sb_prefill_open_pages(p, sequence, tile->block);
    sb_prefill_fetch_queries<D>(p, shared, tile, leads, ring);
    sb_prefill_fetch_lines<D>(p, shared, keys, pages, tile->block, tile->key_head, tile->length, ring);
    return true;
}

template <int D>
SB_CUDA_FUNCTION void sb_prefill_fetch_paged(const sb_cuda_attention16_prefill *p, const sb_prefill_shared *shared) {
    const sb_prefill_operand keys = {&p->k, &p->k_together}, values = {&p->v, &p->v_together};
    sb_prefill_ring<D> ring = sb_prefill_begin_ring<D>();
    int number = 0, round = 0;
    sb_prefill_tile tile;
    sb_prefill_pages pages;
    bool is_there = sb_prefill_begin_paged<D>(p, shared, number++, &round, &tile, &pages, &ring);
    SB_CUDA_KEEP_LOOP
    while (is_there) {
        const int last = tile.last, head = tile.key_head, length = tile.length;
        SB_CUDA_KEEP_LOOP
        for (int block = tile.block; block < last; block += KEYS) {
            sb_prefill_fetch_lines<D>(p, shared, keys, &pages, block + KEYS, head, length, &ring);
            sb_prefill_fetch_lines<D>(p, shared, values, &pages, block, head, length, &ring);
            if ((block + KEYS) % WINDOW_KEYS == 0)
                sb_prefill_turn_pages(p, &pages);
        }
        const sb_prefill_pages before = pages;
        is_there = sb_prefill_begin_paged<D>(p, shared, number++, &round, &tile, &pages, &ring);
        sb_prefill_fetch_lines<D>(p, shared, values, &before, last, head, length, &ring);
    }
}

/* Zeros of the block's tiles whose rows see no key, and words of tiles that are not there: by a warp that does nothing else. */
SB_CUDA_FUNCTION void sb_prefill_give_nothing_paged(const sb_cuda_attention16_prefill *p) {
    sb_prefill_tile tile;
    int32_t sequence;
    tile.there = true;
    SB_CUDA_KEEP_LOOP
    for (int round = 0; sb_prefill_index(round) < (uint32_t)p->work.tiles; round++) {
        tile.index = sb_prefill_index(round);
        tile.used = 0;
        if (tile.there)
            sb_prefill_find_paged(&p->work, sb_prefill_index(round), &tile, &sequence);
        if (!tile.there || tile.is_empty)
            sb_prefill_give_zeros(p, &tile);
    }
}

#endif

#endif
