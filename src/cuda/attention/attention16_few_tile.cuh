/* Tiles of attention16_few.cuh: where they are, which keys their rows see, and how queries, keys and values come from memory.
 *
 * Keys lie side by side, or (PAGED) on pages of 16 lines and more, of which a split lies on 32 at most: each warp looks all of them up at
 * once, a lane each, and asks its lanes for the page of a line. The rows of a sequence, of which only the device knows how many there are,
 * are tiles that a cluster goes through one by one: a step of decoding has one. */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_FEW_TILE_CUH
#define SB_CUDA_ATTENTION_ATTENTION16_FEW_TILE_CUH

#include "cuda/attention/attention16.cuh"
#include "cuda/attention/attention16_few_parameters.h"

#define FEW_ROWS SB_CUDA_ATTENTION16_FEW_ROWS
#define FEW_THREADS SB_CUDA_ATTENTION16_FEW_THREADS
#define FEW_BLOCKS SB_CUDA_ATTENTION16_FEW_BLOCKS

/* A tile: up to 8 rows of a head of keys, and a split. All of it in 32 bits, since nothing can be fetched before it is known. */
typedef struct sb_attention16_few_tile {
    int32_t batch, sequence, key_head;     /* with pages the batch is 0, else the sequence */
    sb_attention16_counts counts;          /* of the sample or sequence */
    int32_t first_query;                   /* of the sequence, among those of all */
    int32_t first_row;                     /* of the tile, among those that share keys: 0 but for long sequences */
    int32_t number;                        /* of the split among those that any row sees */
    int32_t at_split, first_split, splits; /* number `at_split` of those from `first_split` on that any row sees */
    int32_t first, end;                    /* keys of the split that any row sees */
    int32_t rows;                          /* none: there is nothing to do */
} __attribute__((aligned(16))) sb_attention16_few_tile; /* behind which numbers of 64 bits lie */

/* Where the tiles of index `index` are; false: neither they nor any behind them are there. */
template <bool PAGED>
SB_CUDA_FUNCTION bool sb_attention16_few_find(const sb_cuda_attention16_few *given, uint32_t index,
                                              sb_attention16_few_tile *own) {
    const uint32_t head = sb_cuda_divide(index, &given->by_key_heads), split = sb_cuda_divide(head, &given->by_samples);
    const int32_t sample = (int32_t)(head - split * given->by_samples.divisor);
    own->key_head = (int32_t)(index - head * given->by_key_heads.divisor);
    own->batch = PAGED ? 0 : sample;
    own->sequence = PAGED ? sample : 0;
    own->first_query = own->first_row = 0;
    own->number = (int32_t)split;
    return split < (uint32_t)given->attention.splits;
}

/* The counts of the tile's sequence, and where it begins, as sb_attention_find_sequence has them: by a whole warp, 32 sequences at a time
 * of those behind it, since it ends where any of them begins. */
SB_CUDA_FUNCTION void sb_attention16_few_count_sequence(const sb_cuda_attention *p, sb_attention16_few_tile *own) {
    const int lane = (int)threadIdx.x % 32;
    const int32_t sequences = (int32_t)p->pages.sequences, rows = (int32_t)p->pages.new_rows;
    const int64_t given = p->lengths[own->sequence * p->lengths_stride];
    int32_t begin = 0, end = rows;
    SB_CUDA_KEEP_LOOP
    for (int32_t top = own->sequence; top < sequences; top += 32) {
        const int32_t number = top + lane;
        const int64_t at = number == 0 ? 0 : number < sequences ? sb_pages_begin(&p->pages, number) : rows;
        const int32_t held = at < rows ? (int32_t)at : rows;
        if (number == own->sequence)
            begin = held;
        else
            end = held < end ? held : end;
    }
    own->first_query = sb_cuda_shuffle_from_s32(begin, 0);
    end = sb_cuda_smallest_s32(end);
    sb_attention16_counts *of = &own->counts;
    of->queries = end > own->first_query ? end - own->first_query : 0;
    of->past = 0;
    of->keys = (int32_t)(p->past + p->fresh);
    of->length = (int32_t)sb_attention_length(given, of->keys);
    of->position = of->length - of->queries;
}

template <bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_few_count(const sb_cuda_attention16_few *given, sb_attention16_few_tile *own) {
    if (PAGED)
        sb_attention16_few_count_sequence(&given->attention, own);
    else
        own->counts = sb_attention16_count(&given->attention, own->batch);
}

/* Rows of the sample or sequence that share keys. */
SB_CUDA_FUNCTION int32_t sb_attention16_few_sharing(const sb_cuda_attention16_few *given,
                                                    const sb_attention16_few_tile *own) {
    return own->counts.queries * (int32_t)given->by_group.divisor;
}

/* What rows from `first_row` on see of the split. */
SB_CUDA_FUNCTION void sb_attention16_few_bound(const sb_cuda_attention16_few *given, sb_attention16_few_tile *own) {
    const sb_attention16_counts *of = &own->counts;
    const int32_t rows = sb_attention16_few_sharing(given, own) - own->first_row,
                  held = rows < FEW_ROWS ? rows : FEW_ROWS;
    const int32_t first_query = (int32_t)sb_cuda_divide((uint32_t)own->first_row, &given->by_group);
    const int32_t last_row = own->first_row + (held > 0 ? held - 1 : 0);
    const int32_t last_query = (int32_t)sb_cuda_divide((uint32_t)last_row, &given->by_group);
    const int32_t begin = sb_attention16_first_key(given->left, of->position + first_query);
    const int32_t end = sb_attention16_last_key(given->right, of->position + last_query, of->length);
    own->first_split = begin < end ? begin / SB_ATTENTION_SPLIT : 0;
    own->splits = begin < end ? (end + SB_ATTENTION_SPLIT - 1) / SB_ATTENTION_SPLIT - own->first_split : 1;
    own->at_split = own->first_split + own->number;
    const int32_t start = own->at_split * SB_ATTENTION_SPLIT, stop = start + SB_ATTENTION_SPLIT;
    own->first = begin > start ? begin : start;
    own->end = end < stop ? end : stop;
    own->rows = own->number < own->splits ? held : 0;
}

/* The word in which a block counts that has quarter `quarter` of the columns of the tile's rows. Sequences' tiles have ascending numbers:
 * of one they begin with that of its first eight rows, and end below that of the next one's, which is one higher besides. */
SB_CUDA_FUNCTION uint32_t *sb_attention16_few_word(const sb_cuda_attention16_few *given,
                                                   const sb_attention16_few_tile *own, uint32_t quarter) {
    const int32_t row = own->first_query * (int32_t)given->by_group.divisor + own->first_row;
    const uint32_t tile = (uint32_t)(own->batch + own->sequence + row / FEW_ROWS);
    return given->arrived + (tile * given->by_key_heads.divisor + (uint32_t)own->key_head) * FEW_BLOCKS + quarter;
}

/* ---- rows ---- */

/* A row of the tile: its query, its head among those that share keys, and which keys it sees; none behind the last row. */
typedef struct sb_attention16_few_row {
    int32_t query, head, first, last;
    bool used;
} sb_attention16_few_row;

SB_CUDA_FUNCTION sb_attention16_few_row sb_attention16_few_row_of(const sb_cuda_attention16_few *given,
                                                                  const sb_attention16_few_tile *own, int row) {
    sb_attention16_few_row at;
    at.query = (int32_t)sb_cuda_divide((uint32_t)(own->first_row + row), &given->by_group);
    at.head = own->first_row + row - at.query * (int32_t)given->by_group.divisor;
    at.used = row < own->rows;
    at.first = at.used ? sb_attention16_first_key(given->left, own->counts.position + at.query) : 0;
    at.last = at.used ? sb_attention16_last_key(given->right, own->counts.position + at.query, own->counts.length) : 0;
    return at;
}

/* The same, and the tile, as other kernels have them, whose `split` is -1 where it is the rows' only one. */
SB_CUDA_FUNCTION sb_attention_place sb_attention16_few_place(const sb_cuda_attention16_few *given,
                                                             const sb_attention16_few_tile *own, int row) {
    const sb_attention16_few_row of = sb_attention16_few_row_of(given, own, row);
    sb_attention_place at = {};
    at.batch = own->batch;
    at.sequence = own->sequence;
    at.key_head = own->key_head;
    at.head = own->key_head * (int32_t)given->by_group.divisor + of.head;
    at.query = own->first_query + of.query;
    at.past = own->counts.past;
    at.keys = own->counts.keys;
    at.reach.first = of.first;
    at.reach.last = of.last;
    at.used = of.used;
    return at;
}

SB_CUDA_FUNCTION sb_attention16_tile sb_attention16_few_whole(const sb_cuda_attention16_few *given,
                                                              const sb_attention16_few_tile *own) {
    const sb_cuda_attention *p = &given->attention;
    sb_attention16_tile tile = {};
    tile.at = sb_attention16_few_place(given, own, 0);
    tile.length = own->counts.length;
    tile.position = own->counts.position;
    tile.part = own->batch * p->heads * p->part_rows;
    tile.group = (int32_t)given->by_group.divisor;
    tile.rows = own->rows;
    tile.split = own->splits > 1 ? own->at_split : -1;
    return tile;
}

/* ---- from memory ---- */

/* A thread's pairs of row lane / 4 of the rows of `q` from the tile's first on, for all that there is room for, whether they are used or
 * not: asked for before counts are known. */
template <int D>
SB_CUDA_FUNCTION void sb_attention16_few_load_queries(const sb_cuda_attention16_few *given,
                                                      const sb_cuda_attention_array *q,
                                                      const sb_attention16_few_tile *own, uint32_t queries[D / 16][2]) {
    const sb_cuda_attention *p = &given->attention;
    const int lane = (int)threadIdx.x % 32, row = own->first_row + lane / 4, pair = lane % 4 * 2;
    const int32_t group = (int32_t)given->by_group.divisor;
    const int32_t number = (int32_t)sb_cuda_divide((uint32_t)row, &given->by_group), head = row - number * group;
    const int32_t query = own->first_query + number;
    const char *from = q->data + sb_attention_at(q, own->batch, own->key_head * group + head, query, 0) * 2;
    const bool is_row = query < (int32_t)p->queries;
    SB_CUDA_UNROLL
    for (int i = 0; i < D / 8; i++) {
        const int column = 8 * i + pair;
        queries[i / 2][i % 2] =
            is_row && column < (int32_t)p->width ? *(const uint32_t *)(const void *)(from + column * 2) : 0;
    }
}

/* Begins to copy LINES keys, or their values, from `block` on, PIECES times eight columns of each from `column` on; zeros stand for those that
 * no row sees, and for columns behind `width`. What begins with rows that are not below the end of those that are seen stays as it is. */
template <int LINES, int PIECES>
SB_CUDA_FUNCTION void sb_attention16_few_load(const sb_cuda_attention_array *past, const sb_cuda_attention_array *fresh,
                                              const sb_attention16_few_tile *own, int32_t block, int column,
                                              int32_t width, uint16_t *to) {
    const int together = FEW_THREADS / PIECES, row = (int)threadIdx.x / PIECES, piece = (int)threadIdx.x % PIECES * 8;
    const int32_t first = own->first, end = own->end, key = block + row, split = own->counts.past;
    const bool is_column = column + piece < width;
    to += row * SB_CUDA_ATTENTION16_PITCH(PIECES * 8) + piece;
    /* As nearly all are: all of them in the past, or all new. */
    if (split <= first || split >= end) {
        const bool is_fresh = split <= first;
        const sb_cuda_attention_array *array = is_fresh ? fresh : past;
        const int32_t step = (int32_t)array->row * 2;
        const char *base = array->data + (own->batch * array->batch + own->key_head * array->head) * 2 +
                           (int64_t)(first - (is_fresh ? split : 0)) * step;
        const char *from = base + (int64_t)(key - first) * step + (column + piece) * 2;
        const int64_t between = (int64_t)step * together;
        SB_CUDA_UNROLL
        for (int i = 0; i < LINES / together; i++, from += between) {
            const int32_t at = key + i * together;
            const bool is_seen = is_column && at >= first && at < end;
            if (block + i * together < end)
                sb_cuda_copy_16_or_zero(to + i * together * SB_CUDA_ATTENTION16_PITCH(PIECES * 8),
                                        is_seen ? from : base, is_seen);
        }
        return;
    }
    sb_attention_place sample = {};
    sample.batch = own->batch;
    sample.key_head = own->key_head;
    sample.past = own->counts.past;
    const sb_attention_lines<int32_t> lines = sb_attention_lines_of<int32_t>(past, fresh, &sample, 2);
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < LINES / together && block + i * together < end; i++) {
        const int32_t at = key + i * together;
        const bool wanted = is_column && at >= first && at < end;
        sb_cuda_copy_16_or_zero(
            to + i * together * SB_CUDA_ATTENTION16_PITCH(PIECES * 8),
            sb_attention_line<int32_t>(&lines, wanted ? at : first) + (wanted ? (column + piece) * 2 : 0), wanted);
    }
}

/* The page of the lane's number among those that split `split` of a sequence lies on. */
SB_CUDA_FUNCTION int32_t sb_attention16_few_look_up(const sb_cuda_attention16_few *given, int32_t sequence,
                                                    int32_t split) {
    const sb_pages *pages = &given->attention.pages;
    const uint32_t first = sb_cuda_divide((uint32_t)(split * SB_ATTENTION_SPLIT), &given->by_page);
    const int64_t column = (int64_t)first + (int)threadIdx.x % 32;
    return column < pages->columns ? (int32_t)sb_pages_hold(pages, sb_pages_entry(pages, sequence, column)) : 0;
}

/* sb_attention16_few_load from pages, of which each lane has looked one up. */
template <int LINES, int PIECES>
SB_CUDA_FUNCTION void sb_attention16_few_load_paged(const sb_cuda_attention16_few *given,
                                                    const sb_cuda_attention_array *array,
                                                    const sb_attention16_few_tile *own, int32_t page, int32_t block,
                                                    int column, int32_t width, uint16_t *to) {
    const int together = FEW_THREADS / PIECES, row = (int)threadIdx.x / PIECES, piece = (int)threadIdx.x % PIECES * 8;
    const uint32_t first_page = sb_cuda_divide((uint32_t)(own->at_split * SB_ATTENTION_SPLIT), &given->by_page);
    const bool is_column = column + piece < width;
    const char *base = array->data + (own->key_head * array->head + column + piece) * 2;
    to += row * SB_CUDA_ATTENTION16_PITCH(PIECES * 8) + piece;
    SB_CUDA_UNROLL
    for (int i = 0; i < LINES / together; i++) {
        const int32_t key = block + row + i * together;
        const uint32_t number = sb_cuda_divide((uint32_t)key, &given->by_page);
        const int32_t line = key - (int32_t)(number * given->by_page.divisor);
        const int32_t own_page = sb_cuda_shuffle_from_s32(page, (int)((number - first_page) % 32));
        const bool is_seen = is_column && key >= own->first && key < own->end;
        if (block + i * together < own->end)
            sb_cuda_copy_16_or_zero(to + i * together * SB_CUDA_ATTENTION16_PITCH(PIECES * 8),
                                    is_seen ? base + (own_page * array->batch + line * array->row) * 2 : array->data,
                                    is_seen);
    }
}

/* The block's keys, and the quarter of the values of the split whose columns it sums. */
template <int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_few_load_keys(const sb_cuda_attention16_few *given,
                                                   const sb_attention16_few_tile *own, int32_t page, int32_t block,
                                                   uint16_t *to) {
    const sb_cuda_attention *p = &given->attention;
    if (PAGED)
        sb_attention16_few_load_paged<KEYS, D / 8>(given, &p->k, own, page, block, 0, (int32_t)p->width, to);
    else
        sb_attention16_few_load<KEYS, D / 8>(&p->past_k, &p->k, own, block, 0, (int32_t)p->width, to);
}

template <int D, bool PAGED>
SB_CUDA_FUNCTION void sb_attention16_few_load_values(const sb_cuda_attention16_few *given,
                                                     const sb_attention16_few_tile *own, int32_t page, int quarter,
                                                     uint16_t *to) {
    const sb_cuda_attention *p = &given->attention;
    const int32_t start = own->at_split * SB_ATTENTION_SPLIT, width = (int32_t)p->value_width;
    if (PAGED)
        sb_attention16_few_load_paged<SB_ATTENTION_SPLIT, D / FEW_BLOCKS / 8>(given, &p->v, own, page, start, quarter,
                                                                              width, to);
    else
        sb_attention16_few_load<SB_ATTENTION_SPLIT, D / FEW_BLOCKS / 8>(&p->past_v, &p->v, own, start, quarter, width,
                                                                        to);
}

/* The piece of a copied line that a thread begins to copy in sb_attention16_few_load<lines, PIECES>: its first column, and where it lies. */
typedef struct sb_attention16_few_piece {
    int column, at;
    bool is_own;
} sb_attention16_few_piece;

template <int PIECES>
SB_CUDA_FUNCTION sb_attention16_few_piece sb_attention16_few_piece_of(int32_t line, int32_t lines) {
    const int together = FEW_THREADS / PIECES, column = (int)threadIdx.x % PIECES * 8;
    const sb_attention16_few_piece piece = {column, line * SB_CUDA_ATTENTION16_PITCH(PIECES * 8) + column,
                                            line >= 0 && line < lines && line % together == (int)threadIdx.x / PIECES};
    return piece;
}

#endif
