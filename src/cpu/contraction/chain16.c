#include "cpu/contraction/chain16.h"

#include <string.h>

#include "base/isa.h"
#include "cpu/contraction/chain16_kernels.h"

/* Rows taken together: enough to make the expansion of a B tile a small part (1 % at 128 rows, 4 %
 * at 32, measured with AVX-512), few enough that the rows' records stay within 2 MiB. */
enum { MOST_ROWS = 128, FEWEST_ROWS = 32 };
#define RECORD_BYTES (2 << 20)

/* Rows that are taken over a panel by `sweep`: with as many, expanding tiles is as quick. */
enum { FEW_ROWS = 4 };

static int64_t groups_of(int64_t k) {
    return k / SB_CHAIN16_GROUP + (k % SB_CHAIN16_GROUP != 0);
}

static int64_t rows_per_block(int64_t rows, int64_t groups) {
    int64_t fitting = groups == 0 ? MOST_ROWS : RECORD_BYTES / (int64_t)sizeof(sb_chain16_a) / groups;
    int64_t block = fitting < FEWEST_ROWS ? FEWEST_ROWS : fitting > MOST_ROWS ? MOST_ROWS : fitting;
    return rows < block ? rows : block;
}

static int64_t few_of(int64_t rows) {
    return rows < FEW_ROWS ? rows : FEW_ROWS;
}

/* The parts of the workspace. */
typedef struct workspace_parts {
    sb_chain16_b *tile;
    float *acc;            /* [rows][columns of a tile] */
    sb_chain16_a *records; /* [groups][rows] */
    sb_chain16_few *few;   /* the same, where rows are few */
    uint16_t *panel;       /* of B, when it comes unpacked */
    uint16_t *elements;    /* one row of A, padded with zeros to whole groups */
    const uint16_t **runs; /* of one row of A, where it lies in runs */
} workspace_parts;

/* Adds `count` elements of `size` bytes, rounded up to whole cache lines; false on overflow. */
static bool add_bytes(size_t *total, int64_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    return !__builtin_add_overflow(*total, (bytes + 63) / 64 * 64, total) && *total <= SIZE_MAX / 2;
}

size_t sb_chain16_packed_bytes(int64_t k, int64_t n) {
    int64_t rows, columns, elements;
    size_t bytes = 64;
    if (__builtin_add_overflow(k, SB_CHAIN16_GROUP - 1, &rows) ||
        __builtin_add_overflow(n, SB_CHAIN16_PANEL - 1, &columns) ||
        __builtin_mul_overflow(rows / SB_CHAIN16_GROUP * SB_CHAIN16_GROUP,
                               columns / SB_CHAIN16_PANEL * SB_CHAIN16_PANEL, &elements) ||
        !add_bytes(&bytes, elements, sizeof(uint16_t)))
        return 0;
    return bytes;
}

size_t sb_chain16_workspace_bytes(const sb_chain16_args *args) {
    int64_t groups = groups_of(args->k);
    int64_t block = rows_per_block(args->m, groups);
    int64_t records;
    size_t bytes = 0;
    size_t panel = args->packed_b ? 0 : sb_chain16_packed_bytes(args->k, SB_CHAIN16_PANEL);
    if ((!args->packed_b && panel == 0) || __builtin_mul_overflow(groups, block, &records) ||
        !add_bytes(&bytes, 1, sizeof(sb_chain16_b)) || !add_bytes(&bytes, block, SB_CHAIN16_PANEL * sizeof(float)) ||
        !add_bytes(&bytes, records, sizeof(sb_chain16_a)) ||
        !add_bytes(&bytes, groups * few_of(block), sizeof(sb_chain16_few)) || !add_bytes(&bytes, 1, panel) ||
        !add_bytes(&bytes, groups, SB_CHAIN16_GROUP * sizeof(uint16_t)) ||
        (args->point && !add_bytes(&bytes, args->runs, sizeof(uint16_t *))))
        return 0;
    return bytes;
}

/* The same order as in sb_chain16_workspace_bytes; each part is a whole number of cache lines long. */
static workspace_parts divide(const sb_chain16_args *args, int64_t block, int64_t groups, void *workspace) {
    workspace_parts parts;
    parts.tile = workspace;
    parts.acc = (float *)(void *)(parts.tile + 1);
    parts.records = (sb_chain16_a *)(void *)(parts.acc + block * SB_CHAIN16_PANEL);
    parts.few = (sb_chain16_few *)(void *)(parts.records + block * groups);
    parts.panel =
        (uint16_t *)((char *)parts.few + (few_of(block) * groups * (int64_t)sizeof(sb_chain16_few) + 63) / 64 * 64);
    parts.elements =
        parts.panel + (args->packed_b ? 0 : sb_chain16_packed_bytes(args->k, SB_CHAIN16_PANEL) / sizeof(uint16_t));
    parts.runs = (const uint16_t **)(void *)(parts.elements + (groups + 1) / 2 * 2 * SB_CHAIN16_GROUP);
    return parts;
}

const sb_chain16_kernels *sb_chain16_kernels_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_chain16_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_chain16_kernels_avx2;
#endif
    return &sb_chain16_kernels_scalar;
}

/* ---- packing ---- */

/* Vectors that every machine has. */
typedef uint16_t halves __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t words __attribute__((vector_size(16), aligned(2), may_alias));
enum { LINES = 8 }; /* halves of a vector */

/* Rows k … k + 7 of the columns `at` … `at` + 3 and those 16 behind them, whose elements share 32-bit words. NULL is a column of
 * zeros. */
static void transpose_words(const uint16_t *const *columns, int at, int64_t k, uint16_t *panel) {
    words low[4], high[4];
    for (int i = 0; i < 4; i++) {
        const uint16_t *left = columns[at + i], *right = columns[at + 16 + i];
        const halves a = left != NULL ? *(const halves *)(const void *)(left + k) : (halves){0};
        const halves b = right != NULL ? *(const halves *)(const void *)(right + k) : (halves){0};
        low[i] = (words)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        high[i] = (words)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    uint16_t *to = panel + k * SB_CHAIN16_PANEL + sb_chain16_place(at);
    for (int half = 0; half < 2; half++, to += 4 * SB_CHAIN16_PANEL) {
        const words *x = half == 0 ? low : high;
        const words even = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
        const words even_next = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
        const words odd = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
        const words odd_next = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
        *(words *)(void *)to = __builtin_shufflevector(even, even_next, 0, 1, 4, 5);
        *(words *)(void *)(to + SB_CHAIN16_PANEL) = __builtin_shufflevector(even, even_next, 2, 3, 6, 7);
        *(words *)(void *)(to + 2 * SB_CHAIN16_PANEL) = __builtin_shufflevector(odd, odd_next, 0, 1, 4, 5);
        *(words *)(void *)(to + 3 * SB_CHAIN16_PANEL) = __builtin_shufflevector(odd, odd_next, 2, 3, 6, 7);
    }
}

void sb_chain16_pack_columns(int64_t k, int count, const uint16_t *const *columns, uint16_t *panel) {
    const uint16_t *column[SB_CHAIN16_PANEL] = {NULL};
    const int64_t whole = k - k % LINES, rows = groups_of(k) * SB_CHAIN16_GROUP;
    memcpy(column, columns, (size_t)count * sizeof *column);
    for (int64_t row = 0; row < whole; row += LINES) {
        for (int at = 0; at < SB_CHAIN16_PANEL; at = (at & 15) == 12 ? at + 20 : at + 4)
            transpose_words(column, at, row, panel);
    }
    memset(panel + whole * SB_CHAIN16_PANEL, 0, (size_t)((rows - whole) * SB_CHAIN16_PANEL) * sizeof *panel);
    for (int64_t row = whole; row < k; row++) {
        for (int j = 0; j < count; j++)
            panel[row * SB_CHAIN16_PANEL + sb_chain16_place(j)] = columns[j][row];
    }
}

/* A row of a panel, from its columns in their order. */
static void interleave(const uint16_t *line, uint16_t *panel) {
    for (int at = 0; at < SB_CHAIN16_PANEL; at = (at & 8) != 0 ? at + 24 : at + LINES) {
        const halves a = *(const halves *)(const void *)(line + at);
        const halves b = *(const halves *)(const void *)(line + at + 16);
        uint16_t *to = panel + sb_chain16_place(at);
        *(halves *)(void *)to = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        *(halves *)(void *)(to + LINES) = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
}

/* One panel of at most 64 columns. */
static void pack_panel(int64_t k, int columns, const uint16_t *b, int64_t row_stride, int64_t column_stride,
                       uint16_t *panel) {
    if (row_stride == 1 && column_stride != 1) {
        const uint16_t *column[SB_CHAIN16_PANEL];
        for (int j = 0; j < columns; j++)
            column[j] = b + j * column_stride;
        sb_chain16_pack_columns(k, columns, column, panel);
        return;
    }
    uint16_t line[SB_CHAIN16_PANEL] = {0};
    for (int64_t row = 0; row < k; row++, panel += SB_CHAIN16_PANEL, b += row_stride) {
        const bool is_whole = column_stride == 1 && columns == SB_CHAIN16_PANEL;
        const uint16_t *from = is_whole ? b : line;
        for (int j = 0; j < columns && !is_whole; j++)
            line[j] = b[j * column_stride];
        interleave(from, panel);
    }
    int64_t padding = groups_of(k) * SB_CHAIN16_GROUP - k;
    memset(panel, 0, (size_t)padding * SB_CHAIN16_PANEL * sizeof(uint16_t));
}

void sb_chain16_pack_b(int64_t k, int64_t n, const uint16_t *b, int64_t row_stride, int64_t column_stride, int64_t n0,
                       int64_t n1, uint16_t *packed) {
    int64_t padded = groups_of(k) * SB_CHAIN16_GROUP;
    for (int64_t first = n0; first < n1; first += SB_CHAIN16_PANEL) {
        int columns = n - first < SB_CHAIN16_PANEL ? (int)(n - first) : SB_CHAIN16_PANEL;
        pack_panel(k, columns, b + first * column_stride, row_stride, column_stride, packed + first * padded);
    }
}

int64_t sb_chain16_packed_place(int64_t length, int64_t k, int64_t n) {
    int64_t within = n % SB_CHAIN16_PANEL;
    return (n - within) * groups_of(length) * SB_CHAIN16_GROUP + k * SB_CHAIN16_PANEL + sb_chain16_place((int)within);
}

/* Copies one row of A to parts->elements. */
static void copy_row(const sb_chain16_args *args, int64_t row, const workspace_parts *parts) {
    uint16_t *to = parts->elements;
    const uint16_t *from = args->point ? NULL : args->a + row * args->a_row_stride;
    if (args->point) {
        args->point(args->point_context, row, 0, args->runs, parts->runs);
        for (int64_t run = 0; run < args->runs; run++)
            memcpy(to + run * args->run_length, parts->runs[run], (size_t)args->run_length * sizeof *to);
    } else if (args->a_column_stride == 1) {
        memcpy(to, from, (size_t)args->k * sizeof *to);
    } else {
        for (int64_t k = 0; k < args->k; k++)
            to[k] = from[k * args->a_column_stride];
    }
}

/* Expands rows [first, first + rows) of A, those of whole groups where they lie. */
static void prepare_rows(const sb_chain16_args *args, const sb_chain16_kernels *kernels, int64_t first, int64_t rows,
                         const workspace_parts *parts) {
    int64_t groups = groups_of(args->k), run_groups = args->run_length / SB_CHAIN16_GROUP;
    bool whole_runs = args->point && args->run_length % SB_CHAIN16_GROUP == 0;
    bool in_place = !args->point && args->a_column_stride == 1 && args->k % SB_CHAIN16_GROUP == 0;
    memset(parts->elements, 0, (size_t)groups * SB_CHAIN16_GROUP * sizeof *parts->elements);
    for (int64_t row = 0; row < rows; row++) {
        sb_chain16_a *records = parts->records + row;
        if (whole_runs) {
            args->point(args->point_context, first + row, 0, args->runs, parts->runs);
            for (int64_t run = 0; run < args->runs; run++)
                kernels->expand_a(args->dtype, parts->runs[run], run_groups, records + run * run_groups * rows, rows);
        } else if (in_place) {
            kernels->expand_a(args->dtype, args->a + (first + row) * args->a_row_stride, groups, records, rows);
        } else {
            copy_row(args, first + row, parts);
            kernels->expand_a(args->dtype, parts->elements, groups, records, rows);
        }
    }
}

/* Sets acc[rows][columns] to where the chains start. Columns outside [begin, end) belong to other
 * rectangles and start from zero. */
static void start(const sb_chain16_args *args, int64_t first_row, int64_t rows, int64_t first_column, int64_t columns,
                  int64_t begin, int64_t end, float *acc) {
    memset(acc, 0, (size_t)(rows * columns) * sizeof(float));
    for (int64_t row = 0; args->initial && row < rows; row++) {
        const float *from = args->initial + (first_row + row) * args->initial_row_stride;
        for (int64_t j = begin; j < end; j++)
            acc[row * columns + j - first_column] = from[j * args->initial_column_stride];
    }
}

/* Stores `count` sums that lie `acc_stride` apart, `stride` elements apart from element `at` of C. */
static void store(const sb_chain16_args *args, const sb_chain16_kernels *kernels, const float *acc, int64_t acc_stride,
                  int64_t count, int64_t at, int64_t stride) {
    _Static_assert(MOST_ROWS >= SB_CHAIN16_PANEL, "a line of a tile fits, whichever way it runs");
    float gathered[MOST_ROWS];
    uint16_t rounded[MOST_ROWS];
    if (acc_stride != 1) {
        for (int64_t i = 0; i < count; i++)
            gathered[i] = acc[i * acc_stride];
        acc = gathered;
    }
    if (args->c_dtype == SB_F32) {
        float *c = (float *)args->c + at;
        for (int64_t i = 0; i < count; i++)
            c[i * stride] = acc[i];
        return;
    }
    uint16_t *c = (uint16_t *)args->c + at;
    if (stride == 1) {
        kernels->round(args->c_dtype, acc, count, c);
        return;
    }
    kernels->round(args->c_dtype, acc, count, rounded);
    for (int64_t i = 0; i < count; i++)
        c[i * stride] = rounded[i];
}

/* Hands the columns [begin, end) of a finished tile to the epilogue and stores them, along
 * whichever direction of C is contiguous. */
static void store_tile(const sb_chain16_args *args, const sb_chain16_kernels *kernels, int64_t first_row, int64_t rows,
                       int64_t first_column, int64_t columns, int64_t begin, int64_t end, float *acc) {
    acc += begin - first_column;
    for (int64_t row = 0; args->epilogue && row < rows; row++)
        kernels->f32->epilogue_row(args->epilogue->steps, args->epilogue->count, acc + row * columns, first_row + row,
                                   begin, end - begin);
    int64_t at = first_row * args->c_row_stride + begin * args->c_column_stride;
    if (args->c_row_stride == 1 && args->c_column_stride != 1) {
        for (int64_t j = 0; j < end - begin; j++)
            store(args, kernels, acc + j, columns, rows, at + j * args->c_column_stride, 1);
    } else {
        for (int64_t row = 0; row < rows; row++)
            store(args, kernels, acc + row * columns, 1, end - begin, at + row * args->c_row_stride,
                  args->c_column_stride);
    }
}

/* Brings a group of a tile nearer while the one before it is worked on: weights come from memory, and a group of many rows
 * takes so long that the processor has given up fetching ahead. */
static void fetch_group(const uint16_t *panel, int columns) {
    for (int k = 0; k < SB_CHAIN16_GROUP; k++) {
        for (int at = 0; at < columns; at += 32) /* 64 bytes */
            __builtin_prefetch(panel + k * SB_CHAIN16_PANEL + at);
    }
}

/* Takes the tile from column `tile` on, for `rows` prepared rows, through all groups of the panel. */
static void advance(const sb_chain16_args *args, const sb_chain16_kernels *kernels, const uint16_t *panel, int64_t tile,
                    int64_t rows, const workspace_parts *parts) {
    int columns = kernels->columns;
    int64_t groups = groups_of(args->k);
    int valid = args->n - tile < columns ? (int)(args->n - tile) : columns;
    panel += tile % SB_CHAIN16_PANEL;
    for (int64_t group = 0; group < groups; group++, panel += SB_CHAIN16_GROUP * SB_CHAIN16_PANEL) {
        kernels->expand_b(args->dtype, panel, valid, parts->tile);
        if (group + 1 < groups)
            fetch_group(panel + SB_CHAIN16_GROUP * SB_CHAIN16_PANEL, columns);
        kernels->step(args->dtype, parts->records + group * rows, rows, parts->tile, parts->acc);
    }
}

/* The panel that begins with column `first`: in packed B, or packed here. */
static const uint16_t *panel_at(const sb_chain16_args *args, int64_t first, const workspace_parts *parts) {
    if (args->packed_b)
        return args->packed_b + first * groups_of(args->k) * SB_CHAIN16_GROUP;
    int columns = args->n - first < SB_CHAIN16_PANEL ? (int)(args->n - first) : SB_CHAIN16_PANEL;
    pack_panel(args->k, columns, args->b + first * args->b_column_stride, args->b_row_stride, args->b_column_stride,
               parts->panel);
    return parts->panel;
}

/* Rows [row, row + rows), which are prepared, and columns [n0, n1): tile by tile. */
static void run_tiles(const sb_chain16_args *args, const sb_chain16_kernels *kernels, int64_t row, int64_t rows,
                      int64_t n0, int64_t n1, const workspace_parts *parts) {
    int columns = kernels->columns;
    const uint16_t *panel = NULL;
    for (int64_t tile = n0 / columns * columns; tile < n1; tile += columns) {
        int64_t begin = tile > n0 ? tile : n0;
        int64_t end = tile + columns < n1 ? tile + columns : n1;
        if (!panel || tile % SB_CHAIN16_PANEL == 0)
            panel = panel_at(args, tile / SB_CHAIN16_PANEL * SB_CHAIN16_PANEL, parts);
        start(args, row, rows, tile, columns, begin, end, parts->acc);
        advance(args, kernels, panel, tile, rows, parts);
        store_tile(args, kernels, row, rows, tile, columns, begin, end, parts->acc);
    }
}

/* The same of few rows, panel by panel. */
static void run_panels(const sb_chain16_args *args, const sb_chain16_kernels *kernels, int64_t row, int64_t rows,
                       int64_t n0, int64_t n1, const workspace_parts *parts) {
    int64_t groups = groups_of(args->k);
    for (int64_t i = 0; i < groups * rows; i++)
        sb_chain16_few_of(args->dtype, parts->records + i, parts->few + i);
    for (int64_t first = n0 / SB_CHAIN16_PANEL * SB_CHAIN16_PANEL; first < n1; first += SB_CHAIN16_PANEL) {
        int64_t begin = first > n0 ? first : n0;
        int64_t end = first + SB_CHAIN16_PANEL < n1 ? first + SB_CHAIN16_PANEL : n1;
        int valid = args->n - first < SB_CHAIN16_PANEL ? (int)(args->n - first) : SB_CHAIN16_PANEL;
        const uint16_t *panel = panel_at(args, first, parts);
        start(args, row, rows, first, SB_CHAIN16_PANEL, begin, end, parts->acc);
        kernels->sweep(args->dtype, parts->records, parts->few, rows, groups, panel, valid, parts->tile, parts->acc);
        store_tile(args, kernels, row, rows, first, SB_CHAIN16_PANEL, begin, end, parts->acc);
    }
}

void sb_chain16_run(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1, int64_t n0,
                    int64_t n1, void *workspace) {
    if (m0 >= m1 || n0 >= n1)
        return;
    int64_t groups = groups_of(args->k);
    int64_t block = rows_per_block(m1 - m0, groups);
    workspace_parts parts = divide(args, block, groups, workspace);
    for (int64_t row = m0; row < m1; row += block) {
        int64_t rows = m1 - row < block ? m1 - row : block;
        prepare_rows(args, kernels, row, rows, &parts);
        if (rows <= FEW_ROWS && kernels->sweep != NULL)
            run_panels(args, kernels, row, rows, n0, n1, &parts);
        else
            run_tiles(args, kernels, row, rows, n0, n1, &parts);
    }
}

static uint16_t element_of_a(const sb_chain16_args *args, int64_t m, int64_t k) {
    const uint16_t *run;
    if (!args->point)
        return args->a[m * args->a_row_stride + k * args->a_column_stride];
    args->point(args->point_context, m, k / args->run_length, 1, &run);
    return run[k % args->run_length];
}

static uint16_t element_of_b(const sb_chain16_args *args, int64_t k, int64_t n) {
    if (!args->packed_b)
        return args->b[k * args->b_row_stride + n * args->b_column_stride];
    return args->packed_b[sb_chain16_packed_place(args->k, k, n)];
}

/* One element of C before its rounding. */
static float reference_sum(const sb_chain16_args *args, int64_t m, int64_t n) {
    float acc = args->initial ? args->initial[m * args->initial_row_stride + n * args->initial_column_stride] : 0.0f;
    for (int64_t first = 0; first < args->k; first += SB_CHAIN16_GROUP) {
        uint16_t left[SB_CHAIN16_GROUP] = {0}, right[SB_CHAIN16_GROUP] = {0};
        for (int64_t k = first; k < args->k && k < first + SB_CHAIN16_GROUP; k++) {
            left[k - first] = element_of_a(args, m, k);
            right[k - first] = element_of_b(args, k, n);
        }
        acc = args->dtype == SB_BF16 ? sb_chain16_step_bf16(left, right, acc) : sb_chain16_step_f16(left, right, acc);
    }
    return args->epilogue ? sb_epilogue_reference(args->epilogue, acc, m, n) : acc;
}

void sb_chain16_reference(const sb_chain16_args *args, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    for (int64_t m = m0; m < m1; m++) {
        for (int64_t n = n0; n < n1; n++) {
            float sum = reference_sum(args, m, n);
            int64_t at = m * args->c_row_stride + n * args->c_column_stride;
            if (args->c_dtype == SB_F32)
                ((float *)args->c)[at] = sum;
            else
                sb_chain16_round(args->c_dtype, &sum, 1, (uint16_t *)args->c + at);
        }
    }
}

sb_gemm_split sb_chain16_split(int64_t m, int64_t n, int threads) {
    sb_gemm_split split = {.m = m, .n = n, .m_step = m, .n_step = n, .m_parts = m > 0, .n_parts = n > 0};
    if (m <= 0 || n <= 0 || threads <= 1)
        return split;
    /* Two rectangles per thread, so that one slow thread does not hold up the others for long. */
    int64_t wanted = 2 * (int64_t)threads;
    int64_t panels = (n - 1) / SB_CHAIN16_PANEL + 1;
    /* Preparing a row's group costs 8 % of a step of 64 columns, and a tile of B 1.4 steps of one
     * row [measured]: rectangles keep 4 panels while that leaves enough of them, and 32 rows. */
    int64_t n_parts = panels / 4 < 1 ? 1 : panels / 4 < wanted ? panels / 4 : wanted;
    int64_t m_parts = (wanted + n_parts - 1) / n_parts;
    int64_t most = m / 32 < 1 ? 1 : m / 32;
    if (m_parts > most) {
        m_parts = most;
        n_parts = (wanted + m_parts - 1) / m_parts;
        n_parts = n_parts > panels ? panels : n_parts;
    }
    split.m_step = (m - 1) / m_parts + 1;
    split.n_step = ((panels - 1) / n_parts + 1) * SB_CHAIN16_PANEL;
    split.m_parts = (m - 1) / split.m_step + 1;
    split.n_parts = (n - 1) / split.n_step + 1;
    return split;
}
