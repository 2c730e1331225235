#include "cpu/contraction/chain16_near.h"

#include <string.h>

#include "cpu/contraction/chain16_internal.h"

enum { ROWS = SB_CHAIN16_NEAR_ROWS, COLUMNS = SB_CHAIN16_PANEL };

/* Rows that are worth measuring a panel, which fewer multiply where it lies (chain16_sweep.h), and rows times groups that are worth it. */
enum { FEWEST_ROWS = 3, FEWEST_STEPS = 32 };

/* Groups of a panel whose pairs stay near while all rows are taken over them: 128 KiB. */
enum { SEGMENT = 64 };

/* ---- what it is for ---- */

/* Whether rounding what steps [0, *count) come to says all of a chain that anybody asks for, and they rise with it or fall. */
static bool find_rounding(const sb_epilogue *epilogue, int *count) {
    *count = 0;
    for (int i = 0; epilogue != NULL && i < epilogue->count; i++) {
        const sb_epilogue_step *step = &epilogue->steps[i];
        if (step->kind == SB_EPILOGUE_CALL && step->nature == SB_EPILOGUE_ROUNDS_FIRST)
            return true;
        if (step->kind == SB_EPILOGUE_GATE || (step->kind == SB_EPILOGUE_CALL && step->nature != SB_EPILOGUE_MONOTONE))
            return false;
        *count = i + 1;
    }
    return true;
}

static bool is_for_bf16(const sb_chain16_args *args) {
    return args->dtype == SB_BF16 && args->c_dtype == SB_BF16 && args->initial == NULL;
}

bool sb_chain16_near_fits(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t rows) {
    const int64_t groups = sb_chain16_groups(args->k);
    int count;
    return kernels->near != NULL && is_for_bf16(args) && rows >= FEWEST_ROWS && groups <= kernels->near->groups &&
           rows * groups >= FEWEST_STEPS && find_rounding(args->epilogue, &count);
}

/* ---- memory ---- */

/* Blocks of rows that a panel is measured for. */
enum { BLOCKS = 2 };

/* Of a block's tile. */
typedef struct tile_memory {
    _Alignas(64) float sums[ROWS * COLUMNS], passed[ROWS * COLUMNS];
    float low[ROWS * COLUMNS];
    sb_chain16_measures rows;
} tile_memory;

/* Of whatever tile is worked on. */
typedef struct panel_memory {
    sb_chain16_measures columns;
    _Alignas(64) float high[COLUMNS];
    sb_chain16_lanes lanes; /* of uncertain elements */
    uint16_t pairs[SEGMENT * SB_CHAIN16_GROUP * COLUMNS];
} panel_memory;

/* Rows of A, and their tile. */
typedef struct block {
    int64_t first, count;
    sb_chain16_near_rows rows;
    tile_memory *tile;
    uint16_t *elements; /* [rows][groups of 16], of rows that are copied */
} block;

typedef struct near {
    const sb_chain16_args *args;
    const sb_chain16_kernels *kernels;
    int64_t groups;
    int steps; /* of the epilogue, ahead of the rounding */
    panel_memory *memory;
    block blocks[BLOCKS];
    uint16_t *panel; /* of B, where it comes unpacked */
    const uint16_t **runs;
    void *chains; /* the workspace of sb_chain16_run_chains */
} near;

static int64_t blocks_of(const sb_chain16_args *args) {
    return args->m > ROWS ? BLOCKS : 1;
}

size_t sb_chain16_near_bytes(const sb_chain16_args *args) {
    const int64_t blocks = blocks_of(args);
    size_t bytes = sizeof(panel_memory), panel = sb_chain16_packed_bytes(args->k, COLUMNS);
    if (!is_for_bf16(args))
        return 64;
    if (panel == 0 || !sb_chain16_add_bytes(&bytes, blocks, sizeof(tile_memory)) ||
        !sb_chain16_add_bytes(&bytes, 2 * blocks + (args->packed_b == NULL), panel) ||
        (args->point != NULL && !sb_chain16_add_bytes(&bytes, args->runs, sizeof(uint16_t *))))
        return 0;
    return bytes;
}

/* The chains' memory comes first. */
static near cut_memory(const sb_chain16_kernels *kernels, const sb_chain16_args *args, void *workspace) {
    const size_t panel = sb_chain16_packed_bytes(args->k, COLUMNS) / sizeof(uint16_t);
    const int64_t blocks = blocks_of(args);
    near n = {.args = args, .kernels = kernels, .groups = sb_chain16_groups(args->k), .chains = workspace};
    n.memory = (panel_memory *)(void *)((char *)workspace + sb_chain16_chain_bytes(args));
    tile_memory *tiles = (tile_memory *)(void *)(n.memory + 1);
    uint16_t *rest = (uint16_t *)(void *)(tiles + blocks);
    for (int64_t i = 0; i < blocks; i++, rest += 2 * panel) {
        n.blocks[i].tile = tiles + i;
        n.blocks[i].elements = rest;
        n.blocks[i].rows.panel = rest + panel;
    }
    n.panel = rest;
    n.runs = (const uint16_t **)(void *)(rest + (args->packed_b != NULL ? 0 : panel));
    find_rounding(args->epilogue, &n.steps);
    return n;
}

/* ---- rows and columns ---- */

static bool are_moderate(const sb_chain16_measures *measures, int64_t count) {
    bool moderate = true;
    for (int64_t i = 0; i < count; i++)
        moderate = moderate && measures->tops[i] < SB_CHAIN16_NEAR_TOP;
    return moderate;
}

/* Finds a block's rows, which are copied where they lie in pieces or not in whole groups, and measures them; false: they are for the
 * chain. */
static bool take_rows(near *n, block *own) {
    const sb_chain16_args *args = n->args;
    const int64_t pitch = n->groups * SB_CHAIN16_GROUP;
    const bool is_whole = args->k == pitch && (args->point != NULL ? args->runs == 1 : args->a_column_stride == 1);
    sb_chain16_measures *measures = &own->tile->rows;
    for (int64_t r = 0; r < own->count; r++) {
        uint16_t *to = own->elements + r * pitch;
        own->rows.lines[r] = to;
        if (is_whole && args->point == NULL) {
            own->rows.lines[r] = args->a + (own->first + r) * args->a_row_stride;
        } else if (is_whole) {
            args->point(args->point_context, own->first + r, 0, 1, &own->rows.lines[r]);
        } else {
            sb_chain16_copy_row(args, own->first + r, n->runs, to);
            memset(to + args->k, 0, (size_t)(pitch - args->k) * sizeof *to);
        }
    }
    sb_chain16_pack_columns(pitch, (int)own->count, own->rows.lines, own->rows.panel);
    memset(measures, 0, sizeof *measures);
    n->kernels->near->measure(own->rows.panel, n->groups, measures, NULL);
    n->kernels->near->finish(measures);
    return are_moderate(measures, own->count);
}

/* The quick sums of a panel; false: its columns are for the chain. */
static bool sum_panel(near *n, int64_t blocks, const uint16_t *panel, int64_t columns) {
    const sb_chain16_near *kernels = n->kernels->near;
    panel_memory *memory = n->memory;
    memset(&memory->columns, 0, sizeof memory->columns);
    for (int64_t i = 0; i < blocks; i++) {
        const size_t bytes = (size_t)(n->blocks[i].count * COLUMNS) * sizeof(float);
        memset(n->blocks[i].tile->sums, 0, bytes);
        memset(n->blocks[i].tile->passed, 0, bytes);
    }
    for (int64_t first = 0; first < n->groups; first += SEGMENT) {
        const int64_t groups = n->groups - first < SEGMENT ? n->groups - first : SEGMENT;
        kernels->measure(panel + first * SB_CHAIN16_GROUP * COLUMNS, groups, &memory->columns, memory->pairs);
        for (int64_t i = 0; i < blocks; i++) {
            const block *own = &n->blocks[i];
            kernels->sum(own->rows.lines, first * SB_CHAIN16_GROUP, own->count, memory->pairs, groups, own->tile->sums,
                         own->tile->passed);
        }
    }
    kernels->finish(&memory->columns);
    return are_moderate(&memory->columns, columns);
}

/* ---- what is certain ---- */

/* Columns [begin, end) of the panel that begins with `first`. */
typedef struct columns {
    int64_t first, begin, end;
} columns;

/* The columns of row r of a block whose rounding is not certain; the row becomes a number for each that rounds alike. */
static uint64_t find_uncertain(near *n, const block *own, int64_t r, columns at) {
    const sb_chain16_near *kernels = n->kernels->near;
    const tile_memory *tile = own->tile;
    float *low = own->tile->low + r * COLUMNS, *high = n->memory->high;
    kernels->bound(tile->sums + r * COLUMNS, tile->passed + r * COLUMNS, tile->rows.tops[r], tile->rows.norms[r],
                   &n->memory->columns, low, high);
    if (n->steps == 0)
        return kernels->differ(low, high);
    _Alignas(64) float lowest[COLUMNS];
    memcpy(lowest, low, sizeof lowest);
    float *const ends[] = {lowest, high};
    for (int i = 0; i < 2; i++)
        n->kernels->f32->epilogue_row(n->args->epilogue->steps, n->steps, ends[i] + (at.begin - at.first),
                                      own->first + r, at.begin, at.end - at.begin);
    return kernels->differ(lowest, high);
}

/* All uncertain elements of a tile; returns how many. */
static int64_t list_uncertain(near *n, const block *own, columns at) {
    const int64_t end = at.end - at.first;
    const uint64_t upper = end < COLUMNS ? ((uint64_t)1 << end) - 1 : ~(uint64_t)0;
    const uint64_t wanted = upper & (~(uint64_t)0 << (at.begin - at.first));
    sb_chain16_lanes *lanes = &n->memory->lanes;
    int64_t count = 0;
    for (int64_t r = 0; r < own->count; r++) {
        for (uint64_t left = wanted & find_uncertain(n, own, r, at); left != 0; left &= left - 1) {
            lanes->rows[count] = (uint16_t)sb_chain16_place((int)r);
            lanes->columns[count++] = (uint16_t)sb_chain16_place(__builtin_ctzll(left));
        }
    }
    return count;
}

/* An element's chain by its definition. */
static float define_chain(const near *n, const block *own, const uint16_t *panel, int row, int column_place) {
    return sb_chain16_bf16(own->rows.lines[row], 1, panel + column_place, COLUMNS, n->args->k, 0.0f);
}

static void compute_chains(near *n, const block *own, const uint16_t *panel, int64_t count) {
    sb_chain16_lanes *lanes = &n->memory->lanes;
    const int64_t together = n->kernels->near->lanes;
    /* Lanes that are left over do what the last one does. */
    for (int64_t i = count; i % together != 0; i++) {
        lanes->rows[i] = lanes->rows[count - 1];
        lanes->columns[i] = lanes->columns[count - 1];
    }
    if (count > 0)
        n->kernels->near->chains(&own->rows, panel, n->groups, lanes, (count + together - 1) / together);
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = i % 2 * (together / 2) + i % together / 2;
        const int row = sb_chain16_at_place(lanes->rows[i]), column = sb_chain16_at_place(lanes->columns[i]);
        float found = lanes->found[i / together * together + place];
        if ((lanes->strange[i / together] >> place & 1) != 0)
            found = define_chain(n, own, panel, row, lanes->columns[i]);
        own->tile->low[row * COLUMNS + column] = found;
    }
}

/* ---- all of it ---- */

static void run_chains(const near *n, const block *own, int64_t begin, int64_t end) {
    sb_chain16_run_chains(n->kernels, n->args, own->first, own->first + own->count, begin, end, n->chains);
}

/* A block's columns, whose sums are there. */
static void settle_block(near *n, const block *own, const uint16_t *panel, columns at) {
    const int64_t count = list_uncertain(n, own, at);
    /* Half of a tile one by one takes as long as all of it. */
    if (count > own->count * (at.end - at.begin) / 2) {
        run_chains(n, own, at.begin, at.end);
        return;
    }
    compute_chains(n, own, panel, count);
    sb_chain16_store_tile(n->args, n->kernels, own->first, own->count, at.first, COLUMNS, at.begin, at.end,
                          own->tile->low);
}

static void run_panel(near *n, int64_t blocks, columns at) {
    const uint16_t *panel = sb_chain16_panel_at(n->args, at.first, n->panel);
    const bool is_summed = sum_panel(n, blocks, panel, at.end - at.first);
    for (int64_t i = 0; i < blocks; i++) {
        if (is_summed)
            settle_block(n, &n->blocks[i], panel, at);
        else
            run_chains(n, &n->blocks[i], at.begin, at.end);
    }
}

/* Rows [row, m1), as many as there are blocks for. */
static void run_rows(near *n, int64_t row, int64_t m1, int64_t n0, int64_t n1) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < blocks_of(n->args) && row < m1; i++, row += ROWS) {
        block *own = &n->blocks[blocks];
        own->first = row;
        own->count = m1 - row < ROWS ? m1 - row : ROWS;
        if (take_rows(n, own))
            blocks++;
        else
            run_chains(n, own, n0, n1);
    }
    for (int64_t first = n0 / COLUMNS * COLUMNS; first < n1 && blocks > 0; first += COLUMNS) {
        const columns at = {first, first > n0 ? first : n0, first + COLUMNS < n1 ? first + COLUMNS : n1};
        run_panel(n, blocks, at);
    }
}

void sb_chain16_near_run(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1,
                         int64_t n0, int64_t n1, void *workspace) {
    near n = cut_memory(kernels, args, workspace);
    for (int64_t row = m0; row < m1; row += ROWS * blocks_of(args))
        run_rows(&n, row, m1, n0, n1);
}
