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

typedef struct tile_memory {
    _Alignas(64) float sums[ROWS * COLUMNS], passed[ROWS * COLUMNS];
    float low[ROWS * COLUMNS], high[COLUMNS];
    sb_chain16_measures row_measures, column_measures;
    sb_chain16_lanes lanes; /* of uncertain elements */
    uint16_t pairs[SEGMENT * SB_CHAIN16_GROUP * COLUMNS];
} tile_memory;

/* What is made of a block of rows, and its memory. */
typedef struct near {
    const sb_chain16_args *args;
    const sb_chain16_kernels *kernels;
    int64_t groups;
    int steps; /* of the epilogue, ahead of the rounding */
    tile_memory *tile;
    sb_chain16_near_rows rows;
    uint16_t *elements; /* [rows][groups of 16], of rows that are copied */
    uint16_t *panel;    /* of B, where it comes unpacked */
    const uint16_t **runs;
    void *chains; /* the workspace of sb_chain16_run_chains */
} near;

size_t sb_chain16_near_bytes(const sb_chain16_args *args) {
    size_t bytes = sizeof(tile_memory), panel = sb_chain16_packed_bytes(args->k, COLUMNS);
    if (!is_for_bf16(args))
        return 64;
    if (panel == 0 || !sb_chain16_add_bytes(&bytes, args->packed_b != NULL ? 2 : 3, panel) ||
        (args->point != NULL && !sb_chain16_add_bytes(&bytes, args->runs, sizeof(uint16_t *))))
        return 0;
    return bytes;
}

/* The chains' memory comes first. */
static near cut_memory(const sb_chain16_kernels *kernels, const sb_chain16_args *args, void *workspace) {
    const size_t panel = sb_chain16_packed_bytes(args->k, COLUMNS) / sizeof(uint16_t);
    near n = {.args = args, .kernels = kernels, .groups = sb_chain16_groups(args->k), .chains = workspace};
    n.tile = (tile_memory *)(void *)((char *)workspace + sb_chain16_chain_bytes(args));
    n.elements = (uint16_t *)(void *)(n.tile + 1);
    n.rows.panel = n.elements + panel;
    n.panel = n.rows.panel + panel;
    n.runs = (const uint16_t **)(void *)(n.panel + (args->packed_b != NULL ? 0 : panel));
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

/* Finds rows, which are copied where they lie in pieces or not in whole groups, and measures them; false: they are for the chain. */
static bool take_rows(near *n, int64_t row, int64_t rows) {
    const sb_chain16_args *args = n->args;
    const int64_t pitch = n->groups * SB_CHAIN16_GROUP;
    const bool is_whole = args->k == pitch && (args->point != NULL ? args->runs == 1 : args->a_column_stride == 1);
    for (int64_t r = 0; r < rows; r++) {
        uint16_t *to = n->elements + r * pitch;
        n->rows.lines[r] = to;
        if (is_whole && args->point == NULL) {
            n->rows.lines[r] = args->a + (row + r) * args->a_row_stride;
        } else if (is_whole) {
            args->point(args->point_context, row + r, 0, 1, &n->rows.lines[r]);
        } else {
            sb_chain16_copy_row(args, row + r, n->runs, to);
            memset(to + args->k, 0, (size_t)(pitch - args->k) * sizeof *to);
        }
    }
    sb_chain16_pack_columns(pitch, (int)rows, n->rows.lines, n->rows.panel);
    memset(&n->tile->row_measures, 0, sizeof n->tile->row_measures);
    n->kernels->near->measure(n->rows.panel, n->groups, &n->tile->row_measures, NULL);
    n->kernels->near->finish(&n->tile->row_measures);
    return are_moderate(&n->tile->row_measures, rows);
}

/* The quick sums of a panel; false: its columns are for the chain. */
static bool sum_panel(near *n, const uint16_t *panel, int64_t rows, int64_t columns) {
    const sb_chain16_near *kernels = n->kernels->near;
    tile_memory *tile = n->tile;
    memset(tile->sums, 0, (size_t)(rows * COLUMNS) * sizeof *tile->sums);
    memset(tile->passed, 0, (size_t)(rows * COLUMNS) * sizeof *tile->passed);
    memset(&tile->column_measures, 0, sizeof tile->column_measures);
    for (int64_t first = 0; first < n->groups; first += SEGMENT) {
        const int64_t groups = n->groups - first < SEGMENT ? n->groups - first : SEGMENT;
        kernels->measure(panel + first * SB_CHAIN16_GROUP * COLUMNS, groups, &tile->column_measures, tile->pairs);
        kernels->sum(n->rows.lines, first * SB_CHAIN16_GROUP, rows, tile->pairs, groups, tile->sums, tile->passed);
    }
    kernels->finish(&tile->column_measures);
    return are_moderate(&tile->column_measures, columns);
}

/* ---- what is certain ---- */

/* The columns of a row whose rounding is not certain; the row becomes a number for each that rounds alike. */
static uint64_t find_uncertain(near *n, int64_t row, int64_t r, int64_t first, int64_t begin, int64_t end) {
    const sb_chain16_near *kernels = n->kernels->near;
    tile_memory *tile = n->tile;
    float *low = tile->low + r * COLUMNS;
    kernels->bound(tile->sums + r * COLUMNS, tile->passed + r * COLUMNS, tile->row_measures.tops[r],
                   tile->row_measures.norms[r], &tile->column_measures, low, tile->high);
    if (n->steps == 0)
        return kernels->differ(low, tile->high);
    _Alignas(64) float lowest[COLUMNS];
    memcpy(lowest, low, sizeof lowest);
    float *const ends[] = {lowest, tile->high};
    for (int i = 0; i < 2; i++)
        n->kernels->f32->epilogue_row(n->args->epilogue->steps, n->steps, ends[i] + (begin - first), row + r, begin,
                                      end - begin);
    return kernels->differ(lowest, tile->high);
}

/* All uncertain elements of a tile; returns how many. */
static int64_t list_uncertain(near *n, int64_t row, int64_t rows, int64_t first, int64_t begin, int64_t end) {
    const uint64_t upper = end - first < COLUMNS ? ((uint64_t)1 << (end - first)) - 1 : ~(uint64_t)0;
    const uint64_t wanted = upper & (~(uint64_t)0 << (begin - first));
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (uint64_t left = wanted & find_uncertain(n, row, r, first, begin, end); left != 0; left &= left - 1) {
            n->tile->lanes.rows[count] = (uint16_t)sb_chain16_place((int)r);
            n->tile->lanes.columns[count++] = (uint16_t)sb_chain16_place(__builtin_ctzll(left));
        }
    }
    return count;
}

/* An element's chain by its definition. */
static float define_chain(const near *n, const uint16_t *panel, int row, int column_place) {
    return sb_chain16_bf16(n->rows.lines[row], 1, panel + column_place, COLUMNS, n->args->k, 0.0f);
}

static void compute_chains(near *n, const uint16_t *panel, int64_t count) {
    sb_chain16_lanes *lanes = &n->tile->lanes;
    const int64_t together = n->kernels->near->lanes;
    /* Lanes that are left over do what the last one does. */
    for (int64_t i = count; i % together != 0; i++) {
        lanes->rows[i] = lanes->rows[count - 1];
        lanes->columns[i] = lanes->columns[count - 1];
    }
    if (count > 0)
        n->kernels->near->chains(&n->rows, panel, n->groups, lanes, (count + together - 1) / together);
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = i % 2 * (together / 2) + i % together / 2;
        const int row = sb_chain16_at_place(lanes->rows[i]), column = sb_chain16_at_place(lanes->columns[i]);
        float found = lanes->found[i / together * together + place];
        if ((lanes->strange[i / together] >> place & 1) != 0)
            found = define_chain(n, panel, row, lanes->columns[i]);
        n->tile->low[row * COLUMNS + column] = found;
    }
}

/* ---- all of it ---- */

static void run_rows(near *n, int64_t row, int64_t rows, int64_t n0, int64_t n1) {
    if (!take_rows(n, row, rows)) {
        sb_chain16_run_chains(n->kernels, n->args, row, row + rows, n0, n1, n->chains);
        return;
    }
    for (int64_t first = n0 / COLUMNS * COLUMNS; first < n1; first += COLUMNS) {
        const int64_t begin = first > n0 ? first : n0, end = first + COLUMNS < n1 ? first + COLUMNS : n1;
        const uint16_t *panel = sb_chain16_panel_at(n->args, first, n->panel);
        const bool is_summed = sum_panel(n, panel, rows, end - first);
        const int64_t count = is_summed ? list_uncertain(n, row, rows, first, begin, end) : 0;
        /* Half of a tile one by one takes as long as all of it. */
        if (!is_summed || count > rows * (end - begin) / 2) {
            sb_chain16_run_chains(n->kernels, n->args, row, row + rows, begin, end, n->chains);
            continue;
        }
        compute_chains(n, panel, count);
        sb_chain16_store_tile(n->args, n->kernels, row, rows, first, COLUMNS, begin, end, n->tile->low);
    }
}

void sb_chain16_near_run(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1,
                         int64_t n0, int64_t n1, void *workspace) {
    near n = cut_memory(kernels, args, workspace);
    for (int64_t row = m0; row < m1; row += ROWS)
        run_rows(&n, row, m1 - row < ROWS ? m1 - row : ROWS, n0, n1);
}
