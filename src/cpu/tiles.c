#include "cpu/tiles.h"

#include "tensor/block.h"

/* Innermost extents below which rows are joined. */
#define SHORT 64
/* Elements of a rectangle of joined rows. */
#define JOINED 1024
/* A rectangle of an operand whose rows lie across the memory: a line of it in each row, and as many rows as fit. */
#define ACROSS_ROWS 16
#define ACROSS_COLUMNS 128
/* Elements below which a walk is over before rectangles would have paid. */
#define FEW 512
/* Bytes of a thread's rectangles: on its stack, and within the second-level cache. Each begins at a cache line. */
#define PACKED_BYTES 65536
#define LINE 64

/* Whether operand i has gaps between the elements of its rows. */
static bool is_across(const sb_walk *walk, const size_t *sizes, int i) {
    int64_t step = walk->steps[i][walk->rank - 1];
    return step != 0 && step != (int64_t)sizes[i];
}

/* The dimension along which the first operand that lies across is adjacent; -1: there is none. */
static int find_across(const sb_walk *walk, const size_t *sizes) {
    for (int i = 1; i < walk->operands; i++) {
        for (int d = walk->rank - 2; d >= 0 && is_across(walk, sizes, i); d--) {
            if (walk->steps[i][d] == (int64_t)sizes[i])
                return d;
        }
    }
    return -1;
}

/* Whether the rows of operand i lie behind each other, so that it needs no packing where rows are joined. */
static bool continues(const sb_tiles *tiles, int i) {
    const sb_walk *walk = tiles->walk;
    int64_t step = walk->steps[i][walk->rank - 1];
    return walk->steps[i][tiles->partner] == step * tiles->columns && (step == 0 || step == (int64_t)tiles->sizes[i]);
}

static bool needs_packing(const sb_tiles *tiles, int i) {
    if (tiles->joined)
        return !continues(tiles, i);
    return i > 0 && is_across(tiles->walk, tiles->sizes, i) &&
           tiles->walk->steps[i][tiles->partner] == (int64_t)tiles->sizes[i];
}

/* How many rows a rectangle has such that what is packed fits into a thread's memory. */
static void choose_rows(sb_tiles *tiles) {
    int64_t all = tiles->walk->dims[tiles->partner], bytes = 0;
    for (int i = 0; i < tiles->walk->operands; i++)
        bytes += tiles->packed[i] ? (int64_t)tiles->sizes[i] : 0;
    tiles->rows = tiles->joined ? JOINED / tiles->columns : ACROSS_ROWS;
    int64_t fitting = PACKED_BYTES / (bytes * tiles->columns > 0 ? bytes * tiles->columns : 1);
    tiles->rows = tiles->rows > fitting ? fitting : tiles->rows;
    tiles->rows = tiles->rows > all ? all : tiles->rows;
}

bool sb_tiles_start(sb_tiles *tiles, const sb_walk *walk, const size_t *sizes, sb_walk_row *row, void *context) {
    int last = walk->rank - 1, across = find_across(walk, sizes);
    if (walk->rank < 2 || walk->elements < FEW || (walk->dims[last] >= SHORT && across < 0))
        return false;
    *tiles = (sb_tiles){.walk = walk,
                        .row = row,
                        .context = context,
                        .partner = across >= 0 ? across : last - 1,
                        .joined = walk->dims[last] < SHORT,
                        .count = 1};
    tiles->columns = tiles->joined || walk->dims[last] < ACROSS_COLUMNS ? walk->dims[last] : ACROSS_COLUMNS;
    for (int i = 0; i < walk->operands; i++) {
        tiles->sizes[i] = sizes[i];
        tiles->packed[i] = needs_packing(tiles, i);
    }
    choose_rows(tiles);
    if (tiles->rows < 2)
        return false;
    tiles->elements = tiles->rows * tiles->columns;
    size_t place = 0;
    for (int i = 0; i < walk->operands; i++) {
        tiles->places[i] = place;
        place += tiles->packed[i] ? ((size_t)tiles->elements * sizes[i] + LINE - 1) / LINE * LINE : 0;
    }
    for (int d = 0; d < walk->rank; d++) {
        int64_t step = d == last ? tiles->columns : d == tiles->partner ? tiles->rows : 1;
        tiles->count *= (walk->dims[d] + step - 1) / step;
    }
    return true;
}

/* ---- running ---- */

/* A rectangle: where it begins, and its extents. */
typedef struct tile {
    int64_t rows, columns;
    char *data[SB_WALK_OPERANDS]; /* the first element of each operand */
} tile;

static void find_tile(const sb_tiles *tiles, int64_t index, tile *tile) {
    const sb_walk *walk = tiles->walk;
    for (int i = 0; i < walk->operands; i++)
        tile->data[i] = walk->data[i];
    for (int d = walk->rank - 1; d >= 0; d--) {
        int64_t step = d == walk->rank - 1 ? tiles->columns : d == tiles->partner ? tiles->rows : 1;
        int64_t count = (walk->dims[d] + step - 1) / step, first = index % count * step;
        index /= count;
        int64_t left = walk->dims[d] - first, extent = left < step ? left : step;
        if (d == walk->rank - 1)
            tile->columns = extent;
        else if (d == tiles->partner)
            tile->rows = extent;
        for (int i = 0; i < walk->operands; i++)
            tile->data[i] += first * walk->steps[i][d];
    }
}

/* What a thread has packed, so that rows which repeat (a factor for each channel) are packed once. */
typedef struct packing {
    _Alignas(LINE) char memory[PACKED_BYTES + SB_WALK_OPERANDS * LINE];
    const char *from[SB_WALK_OPERANDS];
    int64_t rows[SB_WALK_OPERANDS];
} packing;

static sb_block operand_block(const sb_tiles *tiles, const tile *tile, int i) {
    return (sb_block){tile->data[i], tiles->walk->steps[i][tiles->partner],
                      tiles->walk->steps[i][tiles->walk->rank - 1]};
}

static sb_block packed_block(const sb_tiles *tiles, const tile *tile, packing *packing, int i) {
    int64_t size = (int64_t)tiles->sizes[i];
    return (sb_block){packing->memory + tiles->places[i], tile->columns * size, size};
}

static void pack(const sb_tiles *tiles, const tile *tile, packing *packing, int i) {
    bool repeats = tiles->walk->steps[i][tiles->partner] == 0 && tile->columns == tiles->columns;
    if (repeats && packing->from[i] == tile->data[i] && packing->rows[i] >= tile->rows)
        return;
    packing->from[i] = tile->data[i];
    packing->rows[i] = tile->rows;
    sb_block_move(tiles->sizes[i], tile->rows, tile->columns, packed_block(tiles, tile, packing, i),
                  operand_block(tiles, tile, i));
}

static void run_joined(const sb_tiles *tiles, const tile *tile, packing *packing) {
    const sb_walk *walk = tiles->walk;
    char *data[SB_WALK_OPERANDS];
    int64_t steps[SB_WALK_OPERANDS];
    for (int i = 0; i < walk->operands; i++) {
        data[i] = tiles->packed[i] ? packing->memory + tiles->places[i] : tile->data[i];
        steps[i] = tiles->packed[i] ? (int64_t)tiles->sizes[i] : walk->steps[i][walk->rank - 1];
    }
    tiles->row(tiles->context, tile->rows * tile->columns, data, steps);
    if (tiles->packed[0])
        sb_block_move(tiles->sizes[0], tile->rows, tile->columns, operand_block(tiles, tile, 0),
                      packed_block(tiles, tile, packing, 0));
}

static void run_rows(const sb_tiles *tiles, const tile *tile, packing *packing) {
    const sb_walk *walk = tiles->walk;
    char *data[SB_WALK_OPERANDS];
    int64_t steps[SB_WALK_OPERANDS], row_steps[SB_WALK_OPERANDS];
    for (int i = 0; i < walk->operands; i++) {
        sb_block seen = tiles->packed[i] ? packed_block(tiles, tile, packing, i) : operand_block(tiles, tile, i);
        data[i] = seen.data;
        steps[i] = seen.column;
        row_steps[i] = seen.row;
    }
    for (int64_t r = 0; r < tile->rows; r++) {
        tiles->row(tiles->context, tile->columns, data, steps);
        for (int i = 0; i < walk->operands; i++)
            data[i] += row_steps[i];
    }
}

void sb_tiles_run(void *context, int64_t begin, int64_t end) {
    const sb_tiles *tiles = context;
    packing packing;
    for (int i = 0; i < tiles->walk->operands; i++)
        packing.from[i] = NULL;
    for (int64_t index = begin; index < end; index++) {
        tile tile;
        find_tile(tiles, index, &tile);
        for (int i = 1; i < tiles->walk->operands; i++) {
            if (tiles->packed[i])
                pack(tiles, &tile, &packing, i);
        }
        (tiles->joined ? run_joined : run_rows)(tiles, &tile, &packing);
    }
}
