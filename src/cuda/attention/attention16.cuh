/* What the kernels of attention by tensor cores share (docs/numerics.md, section 10): scalars, where their rows are, how keys
 * and values come to shared memory, and what parts of rows come to.
 *
 * A row is a query of one of the heads that share keys, so that these are read once for all. A multiplication of 16 k is a step
 * of the chain. A warp has 16 rows; a thread holds two of them, lane / 4 and lane / 4 + 8, and of every eight keys or columns
 * two neighbours. So the threads that hold a row are the four lanes of the denominator.
 *
 * Where a weight of +0 meets an infinity or a NaN in the values, which the definition leaves out, a tensor core makes a NaN
 * that stays. So does a value that is NaN. What ends with a NaN where no score was one is computed again by the definition;
 * so is what has a block of a row whose scores are all below about -0.7 million. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_CUH

#include "cuda/attention/attention_row.cuh"
#include "cuda/contraction/warp_products.cuh"

#if defined(__CUDACC__)
/* Code apart, whose registers do not count where it is called seldom. */
#define APART static __device__ __noinline__
#else
#define APART static
#endif

#define THREADS SB_CUDA_ATTENTION16_THREADS
#define KEYS SB_ATTENTION_BLOCK
#define NONE (-SB_SPLIT_EXPONENT_LIMIT)

/* Two rows of a thread. */
#define EACH_ROW for (int r = 0; r < 2; r++)

template <int HALF> struct sb_attention16_element;
template <> struct sb_attention16_element<SB_CUDA_F16> { typedef sb_attention_f16 type; };
template <> struct sb_attention16_element<SB_CUDA_BF16> { typedef sb_attention_bf16 type; };

/* ---- scalars ---- */

/* The larger one; a NaN wins. */
SB_CUDA_FUNCTION float sb_attention16_larger(float a, float b) {
#if defined(__CUDA_ARCH__)
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a != a || a > b ? a : b;
#endif
}

/* The larger one of a number and another, and this one for a NaN: one instruction, where a comparison and a choice are two. */
SB_CUDA_FUNCTION float sb_attention16_at_least(float number, float least) {
#if defined(__CUDA_ARCH__)
    float larger;
    asm("max.f32 %0, %1, %2;" : "=f"(larger) : "f"(number), "f"(least));
    return larger;
#else
    return number > least ? number : least;
#endif
}

/* The power of two of a weight's exponent: its rounding to 16 bits is that of sb_attention_weight_of_exponent. ex2.approx is within 2^-22
 * of the power, which no multiple of 2^-12 has as near to the middle between two numbers of bf16; of f16 all were compared on compute
 * capability 9.0, for which alone this is compiled (tests/cuda/check_exact.py). Below 2^-126 it is +0. */
SB_CUDA_FUNCTION float sb_attention16_power(float exponent) {
#if defined(__CUDA_ARCH__)
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
#else
    return sb_attention_weight_of_exponent(exponent);
#endif
}

/* What with a score times the scale gives a weight's exponent and the shift that rounds it. A maximum of NONE stands for no key that is
 * seen: all scores are -infinity, or too low to tell apart, and their weights +0. */
SB_CUDA_FUNCTION float sb_attention16_shift(int32_t maximum) {
    return SB_ATTENTION_GRID_SHIFT - (float)(maximum == NONE ? 0 : maximum);
}

/* The weight of a score, not rounded; a NaN for a NaN. */
SB_CUDA_FUNCTION float sb_attention16_weight(float s, float scale, float shift) {
    return sb_attention16_power(sb_fma_f32(s, scale, shift) - SB_ATTENTION_GRID_SHIFT);
}

/* ---- where rows are ---- */

/* Some rows of a head of keys: of a sample, or with pages of a sequence. */
typedef struct sb_attention16_tile {
    sb_attention_place at;        /* of the sample, or the sequence, and the head of keys */
    int64_t length, position;     /* keys that there are for all rows; where the first query stands among them */
    int64_t first_query;          /* number of that query among those of all sequences */
    int64_t part;                 /* added to a query's number that of its parts, of a head */
    int32_t group;                /* heads of queries of the head of keys */
    int64_t first_row, rows;      /* of the tile; used ones of the head of keys */
    int64_t begin, end;           /* keys that any row sees, but for the mask */
    int64_t full_begin, full_end; /* keys that every row sees */
    int64_t split;                /* -1: all */
} sb_attention16_tile;

SB_CUDA_FUNCTION sb_attention_reach sb_attention16_reach(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                         int64_t query) {
    return sb_attention_reach_of(tile->position + query, tile->length, p->left, p->right);
}

/* What a sample has, of rows that tensor cores find in 32 bits: queries and keys that are used, of which `past` lie by themselves and `length`
 * are there for all rows, and where the first query stands among them. */
typedef struct sb_attention16_counts {
    int32_t queries, past, keys, length, position;
} sb_attention16_counts;

SB_CUDA_FUNCTION sb_attention16_counts sb_attention16_count(const sb_cuda_attention *p, int32_t batch) {
    sb_attention16_counts of;
    of.queries = (int32_t)sb_cuda_used(p->used_queries, p->queries);
    of.past = (int32_t)sb_cuda_used(p->used_past, p->past);
    of.keys = of.past + (int32_t)sb_cuda_used(p->used_fresh, p->fresh);
    of.length = of.keys;
    of.position = of.past;
    if (p->lengths != NULL) {
        of.length = (int32_t)sb_attention_length(p->lengths[batch * p->lengths_stride], of.keys);
        of.position = of.length - of.queries;
    }
    return of;
}

/* sb_attention_reach_of in 32 bits, for windows that are held (sb_attention16_held). */
SB_CUDA_FUNCTION int32_t sb_attention16_first_key(int32_t left, int32_t position) {
    return left >= 0 && position > left ? position - left : 0;
}

SB_CUDA_FUNCTION int32_t sb_attention16_last_key(int32_t right, int32_t position, int32_t length) {
    return right >= 0 && right < length - 1 - position ? position + right + 1 : length;
}

/* Which keys a tile's rows see, from those of query `first` to those of `last`, in split `split` or in all, -1. */
SB_CUDA_FUNCTION void sb_attention16_bound_queries(const sb_cuda_attention *p, sb_attention16_tile *tile, int64_t first,
                                                   int64_t last, int64_t split) {
    const sb_attention_reach low = sb_attention16_reach(p, tile, first), high = sb_attention16_reach(p, tile, last);
    tile->split = split;
    tile->begin = low.first;
    tile->end = high.last;
    tile->full_begin = high.first;
    tile->full_end = low.last;
    if (split >= 0) {
        const int64_t start = split * SB_ATTENTION_SPLIT;
        tile->begin = tile->begin > start ? tile->begin : start;
        tile->end = tile->end < start + SB_ATTENTION_SPLIT ? tile->end : start + SB_ATTENTION_SPLIT;
    }
}

/* The same once it is known where they are: of up to `count` of them. */
SB_CUDA_FUNCTION void sb_attention16_bound(const sb_cuda_attention *p, sb_attention16_tile *tile, int count,
                                           int64_t split) {
    const int64_t last = tile->first_row + count < tile->rows ? tile->first_row + count : tile->rows;
    sb_attention16_bound_queries(p, tile, tile->first_row / tile->group, (last - 1) / tile->group, split);
}

/* Tiles, and with splits apart of each split. */
SB_CUDA_FUNCTION int64_t sb_attention16_tiles(const sb_cuda_attention *p) {
    return p->batch * p->key_heads * p->row_tiles * (p->splits != 0 ? p->splits : 1);
}

/* Where the rows of a head of keys of a sample are, of which there are so many queries. */
SB_CUDA_FUNCTION void sb_attention16_place_tile(const sb_cuda_attention *p, sb_attention16_tile *tile, int64_t batch,
                                                int64_t key_head, int64_t queries) {
    tile->at = sb_attention_sample(p, batch, &tile->length);
    tile->at.key_head = key_head;
    tile->position = p->lengths != NULL ? tile->length - queries : tile->at.past;
    if (p->mask_kind != SB_CUDA_ATTENTION_NO_MASK && tile->at.mask_keys < tile->length)
        tile->length = tile->at.mask_keys;
    tile->first_query = 0;
    tile->part = batch * p->heads * p->part_rows;
    tile->group = (int32_t)p->group;
    tile->rows = tile->group * queries;
}

/* Tile `index`, of up to `count` rows. Splits that are used come first, whatever there is room for; and the last rows, to which a
 * causal mask leaves most. */
SB_CUDA_FUNCTION sb_attention16_tile sb_attention16_find_tile(const sb_cuda_attention *p, int64_t index, int count) {
    sb_attention16_tile tile;
    int64_t rest = index;
    const int64_t key_head = sb_cuda_take(&rest, p->key_heads), batch = sb_cuda_take(&rest, p->batch);
    const int64_t number = p->row_tiles - 1 - sb_cuda_take(&rest, p->row_tiles);
    const int64_t queries = sb_cuda_used(p->used_queries, p->queries);
    sb_attention16_place_tile(p, &tile, batch, key_head, queries);
    tile.first_row = number * count;
    sb_attention16_bound(p, &tile, count, p->splits != 0 ? rest : -1);
    return tile;
}

/* Whether there is nothing to do for a tile: of splits apart nobody reads what no row sees. */
SB_CUDA_FUNCTION bool sb_attention16_is_idle(const sb_attention16_tile *tile) {
    return tile->first_row >= tile->rows || (tile->split >= 0 && tile->begin >= tile->end);
}

/* Whether the tiles behind it, too, are of splits that nobody sees. The first split is looked at in any case. */
SB_CUDA_FUNCTION bool sb_attention16_is_behind(const sb_cuda_attention *p, const sb_attention16_tile *tile) {
    return p->batch == 1 && p->row_tiles == 1 && tile->split > 0 && tile->end <= tile->split * SB_ATTENTION_SPLIT;
}

/* Tile `index` where there are several sequences, by a whole warp: those of the last sequence come first, with the splits that any of
 * its rows sees. False: neither it nor any behind it is there. */
SB_CUDA_FUNCTION bool sb_attention16_find_paged_tile(const sb_cuda_attention *p, int64_t index, int count,
                                                     sb_attention16_tile *tile) {
    int64_t rest = index, unused;
    const int64_t key_head = sb_cuda_take(&rest, p->key_heads);
    const sb_attention_sequence found = sb_attention_find_sequence(p, rest, count);
    if (found.number < 0)
        return false;
    const int64_t tiles = (found.rows * p->group + count - 1) / count;
    int64_t split = found.index;
    const int64_t number = tiles - 1 - sb_cuda_take(&split, tiles);
    tile->at = sb_attention_sample(p, 0, &unused);
    tile->at.key_head = key_head;
    tile->at.sequence = found.number;
    tile->length = found.length;
    tile->position = found.length - found.rows;
    tile->first_query = found.begin;
    tile->part = found.behind - found.begin;
    tile->group = (int32_t)p->group;
    tile->first_row = number * count;
    tile->rows = found.rows * p->group;
    sb_attention16_bound(p, tile, count,
                         p->splits != 0 ? split + sb_attention_splits_of(p, found.rows, found.length).first : -1);
    return true;
}

/* Either of them, by a whole warp. */
template <bool PAGED>
SB_CUDA_FUNCTION bool sb_attention16_take_tile(const sb_cuda_attention *p, int64_t index, int count,
                                               sb_attention16_tile *tile) {
    if (PAGED)
        return sb_attention16_find_paged_tile(p, index, count, tile);
    if (index >= sb_attention16_tiles(p))
        return false;
    *tile = sb_attention16_find_tile(p, index, count);
    return !sb_attention16_is_behind(p, tile);
}

/* A row of the tile as the definition sees it. */
SB_CUDA_FUNCTION sb_attention_place sb_attention16_row(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                       int64_t row) {
    sb_attention_place at = tile->at;
    const int64_t query = row / tile->group;
    at.query = tile->first_query + query;
    at.head = at.key_head * tile->group + row % tile->group;
    at.used = row < tile->rows;
    at.reach = sb_attention16_reach(p, tile, query);
    if (!at.used)
        at.reach.first = at.reach.last = 0;
    return at;
}

/* `part`: as in a tile. */
SB_CUDA_FUNCTION float *sb_attention16_partial(const sb_cuda_attention *p, int64_t part, const sb_attention_place *at,
                                               int64_t split) {
    const int64_t row = at->head * p->part_rows + part + at->query;
    return p->partial + (row * p->splits + split) * SB_CUDA_ATTENTION_PARTIAL(p->value_width);
}

/* ---- the definition ---- */

template <class E>
SB_CUDA_FUNCTION void sb_attention16_again_columns(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                   const sb_attention_place *at, int64_t column,
                                                   sb_attention_scratch<E, sb_attention_real_f32> *shared) {
    typedef sb_attention_real_f32 R;
    sb_attention_sums<E, R> sums;
    if (tile->split < 0) {
        sb_attention_sum_row<E, R>(p, at, column, shared, &sums);
        if (column >= 0)
            sb_attention_store<E, R>(p, at, column, &sums);
        return;
    }
    sb_attention_split<E, R>(p, at, tile->split * SB_ATTENTION_SPLIT, column, shared, &sums);
    float *to = sb_attention16_partial(p, tile->part, at, tile->split);
    if (column >= 0)
        to[column] = sums.value;
    if (threadIdx.x == 0) {
        to[p->value_width] = sums.sum;
        ((int32_t *)(void *)to)[p->value_width + 1] = sums.outcome == SB_CUDA_ATTENTION_NOTHING ? NONE
                                                      : sums.outcome == SB_CUDA_ATTENTION_NAN   ? -NONE
                                                                                                : sums.maximum;
    }
}

/* `count` rows by the definition, by 128 threads. */
template <class E>
APART void sb_attention16_again(const sb_cuda_attention *p, const sb_attention16_tile *tile, int count, void *memory) {
    sb_attention_scratch<E, sb_attention_real_f32> *shared = (sb_attention_scratch<E, sb_attention_real_f32> *)memory;
    SB_CUDA_KEEP_LOOP
    for (int64_t row = tile->first_row; row < tile->first_row + count && row < tile->rows; row++) {
        const sb_attention_place at = sb_attention16_row(p, tile, row);
        SB_CUDA_KEEP_LOOP
        for (int64_t first = 0; first < p->value_width; first += THREADS) {
            const int64_t column = first + threadIdx.x < p->value_width ? first + (int64_t)threadIdx.x : -1;
            sb_attention16_again_columns<E>(p, tile, &at, column, shared);
            SB_ATTENTION_BARRIER();
        }
    }
}

/* ---- from memory ---- */

template <bool TRANSPOSED> SB_CUDA_FUNCTION void sb_attention16_fetch(uint32_t *matrices, const uint16_t *row) {
    sb_cuda_fetch_matrices<TRANSPOSED>(matrices, (const sb_cuda_eight *)(const void *)row);
}

/* Begins to copy 128 lines of D elements, which lie `step` bytes apart from `from` on, by 128 threads. Of a copy of 16 bytes nothing is
 * worked out but its address, as the one before it and what lies between. */
template <int D> SB_CUDA_FUNCTION void sb_attention16_load_whole(const char *from, int32_t step, uint16_t *to) {
    const int together = THREADS / (D / 8), row = (int)threadIdx.x / (D / 8), column = (int)threadIdx.x % (D / 8) * 8;
    const int64_t between = (int64_t)step * together;
    from += (int64_t)step * row + column * 2;
    to += row * SB_CUDA_ATTENTION16_PITCH(D) + column;
    SB_CUDA_UNROLL
    for (int i = 0; i < KEYS / together; i++, from += between)
        sb_cuda_copy_16_or_zero(to + i * together * SB_CUDA_ATTENTION16_PITCH(D), from, true);
}

/* Begins to copy 128 keys, or their values, from `block` on, by 128 threads; zeros stand for those that no row sees, and for
 * columns behind `width`. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_load(const sb_cuda_attention_array *past, const sb_cuda_attention_array *fresh,
                                          const sb_attention16_tile *tile, int64_t block, int64_t width, uint16_t *to) {
    const sb_attention_lines<int32_t> lines = sb_attention_lines_of<int32_t>(past, fresh, &tile->at, 2);
    const int32_t begin = (int32_t)tile->begin, end = (int32_t)tile->end, key = (int32_t)block;
    /* As nearly all blocks are, but for threads that do not share out evenly what a line has. */
    if (THREADS % (D / 8) == 0 && width == D && key >= begin && key <= end - KEYS &&
        (key >= lines.past_count || key + KEYS <= lines.past_count)) {
        const int32_t step = key < lines.past_count ? lines.past_step : lines.fresh_step;
        sb_attention16_load_whole<D>(sb_attention_line<int32_t>(&lines, key), step, to);
        return;
    }
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < D / 8; first += 4) {
        SB_CUDA_UNROLL
        for (int i = first; i < first + 4; i++) {
            const int piece = i * THREADS + (int)threadIdx.x, row = piece / (D / 8), column = piece % (D / 8) * 8;
            const bool wanted = key + row >= begin && key + row < end && column < width;
            sb_cuda_copy_16_or_zero(
                to + row * SB_CUDA_ATTENTION16_PITCH(D) + column,
                sb_attention_line<int32_t>(&lines, wanted ? key + row : begin) + (wanted ? column * 2 : 0), wanted);
        }
    }
}

/* What a thread knows of pages: where one of the keys lies that its warp copies at present, and what the table says of that of the
 * block behind it, which is on its way meanwhile. */
typedef struct sb_attention16_pages {
    int32_t line; /* of all pages' lines; -1: no row sees the key */
    int64_t next;
} sb_attention16_pages;

SB_CUDA_FUNCTION bool sb_attention16_is_wanted(const sb_attention16_tile *tile, int64_t key) {
    return key >= tile->begin && key < tile->end;
}

/* What the table says of a key; keys and pages are numbers of 32 bits (attention16.c). */
SB_CUDA_FUNCTION int64_t sb_attention16_look_up(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                                int64_t key) {
    return sb_attention16_is_wanted(tile, key)
               ? sb_pages_entry(&p->pages, tile->at.sequence, (uint32_t)key / (uint32_t)p->pages.rows)
               : 0;
}

/* Goes on to the thread's key `key`, KEYS behind the one before. */
SB_CUDA_FUNCTION void sb_attention16_turn(const sb_cuda_attention *p, const sb_attention16_tile *tile, int64_t key,
                                          sb_attention16_pages *pages) {
    const int32_t row = (int32_t)((uint32_t)key % (uint32_t)p->pages.rows);
    const int32_t page = (int32_t)sb_pages_hold(&p->pages, pages->next);
    pages->line = sb_attention16_is_wanted(tile, key) ? page * (int32_t)p->page_lines + row : -1;
    pages->next = sb_attention16_look_up(p, tile, key + KEYS);
}

/* The lines of a head on all pages. */
SB_CUDA_FUNCTION sb_attention_lines<int32_t> sb_attention16_paged_lines(const sb_cuda_attention_array *array,
                                                                        const sb_attention_place *at) {
    sb_attention_lines<int32_t> lines = sb_attention_lines_of<int32_t>(array, array, at, 2);
    lines.past_count = 0;
    return lines;
}

/* The same as sb_attention16_load from pages: each warp copies 32 keys of a block, of whose lines each thread has one. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_load_paged(sb_attention_lines<int32_t> lines, int32_t own, int64_t width,
                                                uint16_t *to) {
    const int lane = (int)threadIdx.x % 32, first_row = (int)threadIdx.x / 32 * 32;
    SB_CUDA_KEEP_LOOP
    for (int first = 0; first < D / 8; first += 4) {
        SB_CUDA_UNROLL
        for (int i = first; i < first + 4; i++) {
            const int piece = i * 32 + lane, row = piece / (D / 8), column = piece % (D / 8) * 8;
            const int32_t line = sb_cuda_shuffle_from_s32(own, row);
            const bool wanted = line >= 0 && column < width;
            sb_cuda_copy_16_or_zero(to + (first_row + row) * SB_CUDA_ATTENTION16_PITCH(D) + column,
                                    sb_attention_line<int32_t>(&lines, wanted ? line : 0) + (wanted ? column * 2 : 0),
                                    wanted);
        }
    }
}

/* The left factor of 16 rows from `first` on, as a warp multiplies it; zeros for rows that are not there. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_load_queries(const sb_cuda_attention *p, const sb_attention_place *rows,
                                                  uint32_t queries[D / 16][4]) {
    const int pair = (int)threadIdx.x % 4 * 2;
    EACH_ROW {
        const char *from = p->q.data + sb_attention_at(&p->q, rows[r].batch, rows[r].head, rows[r].query, 0) * 2;
        SB_CUDA_UNROLL
        for (int k = 0; k < D / 16; k++) {
            SB_CUDA_UNROLL
            for (int half = 0; half < 2; half++) {
                const int column = 16 * k + 8 * half + pair;
                queries[k][r + 2 * half] =
                    rows[r].used && column < p->width ? *(const uint32_t *)(const void *)(from + column * 2) : 0;
            }
        }
    }
}

/* The same of 8 rows: a thread's pairs of `row`, which is lane / 4. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_load_few_queries(const sb_cuda_attention *p, const sb_attention_place *row,
                                                      uint32_t queries[D / 16][2]) {
    const int pair = (int)threadIdx.x % 4 * 2;
    const char *from = p->q.data + sb_attention_at(&p->q, row->batch, row->head, row->query, 0) * 2;
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 8; i++) {
        const int column = 8 * i + pair;
        queries[i / 2][i % 2] =
            row->used && column < p->width ? *(const uint32_t *)(const void *)(from + column * 2) : 0;
    }
}

/* ---- scores ---- */

/* Scores of a thread, of `GROUPS` times eight keys from `first` on: those of group j, row i / 2 and column i % 2. */
#define EACH_SCORE                                                                                                     \
    SB_CUDA_UNROLL                                                                                                     \
    for (int j = 0; j < GROUPS; j++)                                                                                   \
    SB_CUDA_UNROLL for (int i = 0; i < 4; i++)

SB_CUDA_FUNCTION int sb_attention16_within(int64_t key) {
    return key < 0 ? 0 : key > KEYS ? KEYS : (int)key;
}

/* Scores of a row become -infinity but for keys `begin` to `end` of the block, where they begin with the thread's pair. */
template <int GROUPS>
SB_CUDA_FUNCTION void sb_attention16_hide_outside(float s[GROUPS][4], const int begin[2], const int end[2]) {
    /* One by one, as seldom both are within the block. */
    if (end[0] < 8 * GROUPS || end[1] < 8 * GROUPS)
        EACH_SCORE s[j][i] = 8 * j + i % 2 < end[i / 2] ? s[j][i] : -sb_infinity_f32();
    if (begin[0] > 0 || begin[1] > 0)
        EACH_SCORE s[j][i] = 8 * j + i % 2 >= begin[i / 2] ? s[j][i] : -sb_infinity_f32();
}

/* Keys that a row does not see become -infinity. */
template <int GROUPS>
SB_CUDA_FUNCTION void sb_attention16_hide(float s[GROUPS][4], const sb_attention_place *rows, int64_t first) {
    const int pair = (int)threadIdx.x % 4 * 2;
    int begin[2], end[2];
    EACH_ROW {
        begin[r] = sb_attention16_within(rows[r].reach.first - first) - pair;
        end[r] = sb_attention16_within(rows[r].reach.last - first) - pair;
    }
    sb_attention16_hide_outside<GROUPS>(s, begin, end);
}

/* Scale, cap and mask, element by element. */
template <class E, int GROUPS>
SB_CUDA_FUNCTION void sb_attention16_finish(const sb_cuda_attention *p, float s[GROUPS][4],
                                            const sb_attention_place *rows, int64_t first) {
    const bool direct = sb_attention_is_direct(p), biased = p->mask_kind == SB_CUDA_ATTENTION_BIAS;
    const int pair = (int)threadIdx.x % 4 * 2;
    EACH_SCORE {
        double bias = 0;
        const int64_t key = first + 8 * j + pair + i % 2;
        const bool reached = key >= rows[i / 2].reach.first && key < rows[i / 2].reach.last;
        const bool seen = reached && sb_attention_look(p, &rows[i / 2], E::dtype, key, &bias);
        if (!direct)
            s[j][i] = sb_attention_finish(s[j][i], p->scale, p->cap, biased, bias);
        if (!seen)
            s[j][i] = -sb_infinity_f32();
    }
}

/* The largest of a thread's scores of a row, and of the four threads that hold the row. */
template <int GROUPS> SB_CUDA_FUNCTION void sb_attention16_largest(const float s[GROUPS][4], float *largest) {
    EACH_ROW largest[r] = -sb_infinity_f32();
    EACH_SCORE largest[i / 2] = sb_attention16_larger(largest[i / 2], s[j][i]);
    EACH_ROW {
        largest[r] = sb_attention16_larger(largest[r], sb_cuda_shuffle_exchange_f32(largest[r], 1));
        largest[r] = sb_attention16_larger(largest[r], sb_cuda_shuffle_exchange_f32(largest[r], 2));
    }
}

/* The exponent of a block's largest score; NONE if no key is seen, and if the row is NaN, which is noted. `again` becomes true
 * where the definition has to compute. */
SB_CUDA_FUNCTION int32_t sb_attention16_exponent(float largest, sb_split_scale_f32 by, bool *is_nan, bool *again) {
    const float held = sb_split_hold_f32(largest, by);
    const int32_t n = sb_split_exponent_f32(sb_split_shifted_f32(held, by));
    if (held != held || n >= -NONE) {
        *is_nan = true;
        return NONE;
    }
    *again |= n > NONE && n < NONE / 2;
    return n;
}

/* The sum of a row's four lanes. */
SB_CUDA_FUNCTION float sb_attention16_join(float lane) {
    const float pair = lane + sb_cuda_shuffle_exchange_f32(lane, 1);
    return pair + sb_cuda_shuffle_exchange_f32(pair, 2);
}

/* What a row's splits have come to so far, but for the values. */
typedef struct sb_attention16_total {
    int32_t maximum; /* NONE: nothing */
    float sum;
} sb_attention16_total;

/* By what the split's values and those before it are multiplied. */
typedef struct sb_attention16_factors {
    float own, before;
    bool is_none, is_first;
} sb_attention16_factors;

/* Folds a split's row, but for the values, which sb_attention16_fold_value does. */
SB_CUDA_FUNCTION sb_attention16_factors sb_attention16_fold_row(sb_attention16_total *total, int32_t maximum,
                                                                float sum) {
    sb_attention16_factors by = {1, 1, maximum == NONE, total->maximum == NONE};
    if (by.is_none)
        return by;
    if (by.is_first) {
        total->sum = sum;
        total->maximum = maximum;
    } else if (maximum < total->maximum) {
        by.own = sb_split_factor_f32(maximum, total->maximum);
        total->sum = total->sum + sum * by.own;
    } else {
        by.before = sb_split_factor_f32(total->maximum, maximum);
        total->sum = total->sum * by.before + sum;
        total->maximum = maximum;
    }
    return by;
}

SB_CUDA_FUNCTION void sb_attention16_fold_value(float *total, float value, sb_attention16_factors by) {
    if (by.is_none)
        return;
    *total = by.is_first ? value : *total * by.before + value * by.own;
}

/* ---- what comes of it ---- */

/* Gives out two neighbouring columns of a row that has been summed. */
template <int HALF>
SB_CUDA_FUNCTION void sb_attention16_give_result(const sb_cuda_attention *p, const sb_attention_place *row,
                                                 int64_t column, float low, float high, bool is_nan, int32_t maximum,
                                                 float share) {
    low = is_nan ? sb_nan_f32() : maximum == NONE ? 0 : low * share;
    high = is_nan ? sb_nan_f32() : maximum == NONE ? 0 : high * share;
    char *to = p->y.data + sb_attention_at(&p->y, row->batch, row->head, row->query, column) * 2;
    *(uint32_t *)(void *)to = sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(low, high));
}

/* The same of a row, or of its part of a split. */
template <int HALF>
SB_CUDA_FUNCTION void sb_attention16_give(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                          const sb_attention_place *row, int64_t column, float low, float high,
                                          bool is_nan, int32_t maximum, float share) {
    if (tile->split < 0) {
        sb_attention16_give_result<HALF>(p, row, column, low, high, is_nan, maximum, share);
        return;
    }
    float *to = sb_attention16_partial(p, tile->part, row, tile->split) + column;
    to[0] = low;
    to[1] = high;
}

/* Of a part, what is not its columns. */
SB_CUDA_FUNCTION void sb_attention16_give_sum(const sb_cuda_attention *p, const sb_attention16_tile *tile,
                                              const sb_attention_place *row, bool is_nan, int32_t maximum, float sum) {
    float *to = sb_attention16_partial(p, tile->part, row, tile->split);
    to[p->value_width] = sum;
    ((int32_t *)(void *)to)[p->value_width + 1] = is_nan ? -NONE : maximum;
}

#endif
