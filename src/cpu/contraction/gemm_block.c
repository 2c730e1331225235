/* The blocking, and why.
 *
 *     for each part of k                 about SB_GEMM_K_BLOCK values; the chain goes on from C
 *         for each panel of B            [k part][panel]: L2, and L1 where k is short
 *             for each tile of rows      A's part of the block: L2
 *                 one register tile
 *
 * B is read from memory once per block of rows, A's part once per panel from L2 (two bytes a
 * cycle). Rows are shared out evenly over the tiles, as 7 + 8 rows take less time than 14 + 1.
 *
 * A is used where it lies, through row pointers, unless its values are strided or its rows lie at a
 * distance that puts them all into the same few cache sets; then each part is copied first, which
 * costs one pass over what every panel reads again. */
#include "cpu/contraction/gemm_block.h"

/* The longest part: one run that is not worth cutting. */
#define PART_LENGTH (SB_GEMM_K_BLOCK + SB_GEMM_K_BLOCK / 4)

/* A copied row: a part and one cache line, an odd number of lines, so that the rows of a tile start
 * in different sets. */
#define COPY_STRIDE (PART_LENGTH + 16)

/* Columns after which postponed epilogue steps catch up: few enough that they are still in L2. */
#define EPILOGUE_COLUMNS 256

/* Runs [first_run, first_run + runs) of the block, of each the values [offset, offset + length). */
typedef struct part {
    int64_t first_run, runs, offset, length;
    int64_t k; /* of the first value */
    bool first, last;
} part;

/* Where a part's rows are: in the operand, or copied. */
typedef struct rows_source {
    const float *const *a;
    int64_t run_step, offset, runs, length;
} rows_source;

typedef struct workspace {
    const float *pointers[SB_GEMM_BLOCK_ROWS];
    _Alignas(64) float rows[SB_GEMM_BLOCK_ROWS * COPY_STRIDE];
} workspace;

size_t sb_gemm_block_workspace_bytes(void) {
    return sb_gemm_lines(sizeof(workspace));
}

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Whether the rows of a tile would evict each other from an L1 of 8 ways: sets repeat every 4096
 * bytes. The middle run is looked at, as a convolution's first ones may point into the padding. */
static bool rows_collide(const sb_gemm_kernels *kernels, const sb_gemm_block *block) {
    const int64_t ways = 8;
    if (kernels->rows <= ways || block->rows < kernels->rows || block->n1 - block->n0 < 4 * kernels->panel)
        return false;
    const float *const *middle = block->a + block->runs / 2 * block->a_run_step;
    int64_t distance = (int64_t)((uintptr_t)middle[1] - (uintptr_t)middle[0]);
    return distance != 0 && distance % 4096 == 0;
}

static rows_source copied_rows(const sb_gemm_kernels *kernels, const sb_gemm_block *block, const part *p) {
    workspace *workspace = block->workspace;
    for (int64_t r = 0; r < block->rows; r++)
        workspace->pointers[r] = workspace->rows + r * COPY_STRIDE;
    if (block->a_column_stride != 1) {
        kernels->copy(block->rows, p->length, block->a[0] + block->a_offset + p->offset * block->a_column_stride,
                      block->a_row_stride, block->a_column_stride, workspace->rows, COPY_STRIDE);
    } else {
        for (int64_t run = 0; run < p->runs; run++) {
            const float *const *a = block->a + (p->first_run + run) * block->a_run_step;
            for (int64_t r = 0; r < block->rows; r++)
                kernels->copy(1, p->length, a[r] + block->a_offset + p->offset, 0, 1,
                              workspace->rows + r * COPY_STRIDE + run * p->length, 0);
        }
    }
    return (rows_source){.a = workspace->pointers, .runs = p->runs > 0, .length = p->runs * p->length};
}

/* Brings rows [row, row + count) of C, the next tile's, nearer while this one computes: stores
 * alone would wait for memory. */
static void fetch_rows(const sb_gemm_block *block, int64_t row, int64_t count, int64_t c_offset, int64_t columns) {
    for (int64_t r = row; r < row + count; r++)
        for (int64_t j = 0; j < columns; j += 16)
            __builtin_prefetch(block->c[r] + c_offset + j, 1);
}

/* Has tile `t`, of `rows` rows, fetch some of what the next ones read, spread over its steps: a burst
 * would block its own loads.
 *
 * Of A the first share of the next block's tile `t` in the last panel, and in the first panel the
 * last share of the next tile: other panels find A near. Where the next rows are is only known where
 * rows lie behind each other. In other panels, of the panel of B at `next` (NULL: unknown), which
 * comes from memory where the weights of a whole network do not fit a cache; four tiles fetch all of
 * a panel of 32 columns. */
static void fetch_ahead(const sb_gemm_block *block, const rows_source *source, sb_gemm_tile *tile, int64_t rows,
                        const float *next, int64_t t) {
    const int64_t row_bytes = source->length * (int64_t)sizeof(float);
    const int64_t share = source->runs * source->length * SB_GEMM_PREFETCH;
    const char *a = (const char *)(tile->a[0] + source->offset);
    tile->prefetch = (const char *)tile->b;
    if ((next == NULL || tile->n == block->n0) && source->runs == 1 && rows > 1 &&
        (uintptr_t)tile->a[rows - 1] - (uintptr_t)tile->a[0] == (uintptr_t)((rows - 1) * row_bytes))
        tile->prefetch =
            next == NULL ? a + block->rows * row_bytes : a + 2 * rows * row_bytes - minimum(share, rows * row_bytes);
    else if (next != NULL && (t + 1) * SB_GEMM_PREFETCH <= tile->b_step * (int64_t)sizeof(float))
        tile->prefetch = (const char *)next + t * share;
}

/* All rows of the block in one panel (or, with `wide`, several). The panel after it is at `next`, NULL: unknown. */
static void compute_panel(const sb_gemm_kernels *kernels, const sb_gemm_block *block, const rows_source *source,
                          sb_gemm_tile *tile, bool wide, const float *next) {
    const int64_t tiles = divide_up(block->rows, kernels->rows);
    for (int64_t t = 0, row = 0; t < tiles; t++) {
        int64_t rows = (block->rows - row) / (tiles - t);
        tile->a = source->a + row;
        tile->c = block->c + row;
        tile->m = block->m + row;
        row += rows;
        fetch_ahead(block, source, tile, rows, next, t);
        if (block->far && t + 1 < tiles)
            fetch_rows(block, row, (block->rows - row) / (tiles - t - 1), tile->c_offset, kernels->panel);
        else if (block->far && tile->n + tile->columns < block->n1)
            fetch_rows(block, 0, block->rows / tiles, tile->c_offset + tile->columns, kernels->panel);
        (wide ? kernels->wide : kernels->tile)[rows - 1](tile);
    }
}

void sb_gemm_epilogue_rows(const sb_gemm_kernels *kernels, const sb_epilogue_step *step, int steps, float *const *row,
                           int64_t offset, int64_t m, int64_t rows, int64_t n, int64_t count) {
    if (steps == 1 && step->kind == SB_EPILOGUE_CALL && step->call_rows != NULL) {
        step->call_rows(step->context, row, offset, m, rows, n, count);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        kernels->epilogue_row(step, steps, row[r] + offset, m + r, n, count);
}

/* The epilogue's steps that cannot run in registers, and all after them, on columns [n, n + count). */
static void epilogue_columns(const sb_gemm_kernels *kernels, const sb_gemm_block *block, int done, int64_t n,
                             int64_t count) {
    if (block->epilogue != NULL && done < block->epilogue->count)
        sb_gemm_epilogue_rows(kernels, block->epilogue->steps + done, block->epilogue->count - done, block->c,
                              n - block->n0, block->m, block->rows, n, count);
}

static void compute_part(const sb_gemm_kernels *kernels, const sb_gemm_block *block, const part *p, bool copies) {
    rows_source source = {.a = block->a + p->first_run * block->a_run_step,
                          .run_step = block->a_run_step,
                          .offset = p->offset + block->a_offset,
                          .runs = p->runs,
                          .length = p->length};
    if (copies)
        source = copied_rows(kernels, block, p);

    int steps = 0;
    if (p->last && block->epilogue != NULL)
        while (steps < block->epilogue->count && sb_epilogue_in_registers(&block->epilogue->steps[steps]))
            steps++;

    sb_gemm_tile tile = {.a_run_step = source.run_step,
                         .a_offset = source.offset,
                         .runs = source.runs,
                         .length = source.length,
                         .b_step = block->b_step,
                         .b_panel_step = block->b_panel_step,
                         .continues = block->continues || !p->first,
                         .steps = steps,
                         .step = block->epilogue != NULL ? block->epilogue->steps : NULL};
    const float *first_panel = block->b - block->panel_offset + p->k * block->b_step;
    const float *panel = first_panel;
    int64_t lacking = block->panel_offset, stored = block->n0;
    for (int64_t n = block->n0; n < block->n1;) {
        int64_t panels = 1;
        if (block->rows <= SB_GEMM_WIDE_ROWS && lacking == 0 &&
            block->n1 - n >= kernels->panel * kernels->wide_panels[block->rows - 1])
            panels = kernels->wide_panels[block->rows - 1];
        tile.b = panel + lacking;
        tile.columns = minimum(panels * kernels->panel - lacking, block->n1 - n);
        tile.c_offset = n - block->n0;
        tile.n = n;
        n += tile.columns;
        panel += panels * block->b_panel_step;
        const float *next = n < block->n1 ? panel : p->last ? NULL : first_panel + p->runs * p->length * block->b_step;
        compute_panel(kernels, block, &source, &tile, panels > 1, block->b_step == kernels->panel ? next : NULL);
        lacking = 0;
        if (p->last && (n - stored >= EPILOGUE_COLUMNS || n == block->n1)) {
            epilogue_columns(kernels, block, steps, stored, n - stored);
            stored = n;
        }
    }
}

/* Parts of nearly equal size: whole runs where they are short, else pieces of one run. */
static void plan_parts(int64_t runs, int64_t length, int64_t *runs_step, int64_t *length_step) {
    *runs_step = 1;
    *length_step = length;
    if (length > PART_LENGTH) {
        int64_t pieces = divide_up(length, SB_GEMM_K_BLOCK);
        *length_step = minimum((divide_up(length, pieces) + 15) & ~(int64_t)15, PART_LENGTH);
    } else {
        int64_t most = length < SB_GEMM_K_BLOCK ? SB_GEMM_K_BLOCK / length : 1;
        *runs_step = divide_up(runs, divide_up(runs, most));
    }
}

bool sb_gemm_in_one_pass(int64_t runs, int64_t length) {
    if (runs <= 0 || length <= 0)
        return true;
    int64_t runs_step, length_step;
    plan_parts(runs, length, &runs_step, &length_step);
    return runs_step >= runs && length_step >= length;
}

void sb_gemm_block_compute(const sb_gemm_kernels *kernels, const sb_gemm_block *block) {
    if (block->rows <= 0 || block->n0 >= block->n1)
        return;
    if (block->runs <= 0 || block->length <= 0) {
        compute_part(kernels, block, &(part){.first = true, .last = true}, false);
        return;
    }
    const bool copies = block->a_column_stride != 1 || rows_collide(kernels, block);
    int64_t runs_step, length_step;
    plan_parts(block->runs, block->length, &runs_step, &length_step);
    for (int64_t run = 0; run < block->runs; run += runs_step) {
        for (int64_t offset = 0; offset < block->length; offset += length_step) {
            part p = {.first_run = run,
                      .runs = minimum(runs_step, block->runs - run),
                      .offset = offset,
                      .length = minimum(length_step, block->length - offset),
                      .k = run * block->length + offset,
                      .first = run == 0 && offset == 0};
            p.last = run + p.runs == block->runs && offset + p.length == block->length;
            compute_part(kernels, block, &p, copies);
        }
    }
}
