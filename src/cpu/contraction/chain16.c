#include "cpu/contraction/chain16.h"

#include <string.h>

#include "base/isa.h"
#include "cpu/contraction/chain16_internal.h"
#include "cpu/contraction/chain16_near.h"

/* Rows taken together: enough to make the expansion of a B tile a small part (1 % at 128 rows, 4 %
 * at 32, measured with AVX-512), few enough that the rows' records stay within 2 MiB. */
enum { MOST_ROWS = 128, FEWEST_ROWS = 32 };
#define RECORD_BYTES (2 << 20)

/* Rows that are taken over a panel by `sweep`: with as many, expanding tiles is as quick. */
enum { FEW_ROWS = 4 };

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

size_t sb_chain16_chain_bytes(const sb_chain16_args *args) {
    int64_t groups = sb_chain16_groups(args->k);
    int64_t block = rows_per_block(args->m, groups);
    int64_t records;
    size_t bytes = 0;
    size_t panel = args->packed_b ? 0 : sb_chain16_packed_bytes(args->k, SB_CHAIN16_PANEL);
    if ((!args->packed_b && panel == 0) || __builtin_mul_overflow(groups, block, &records) ||
        !sb_chain16_add_bytes(&bytes, 1, sizeof(sb_chain16_b)) ||
        !sb_chain16_add_bytes(&bytes, block, SB_CHAIN16_PANEL * sizeof(float)) ||
        !sb_chain16_add_bytes(&bytes, records, sizeof(sb_chain16_a)) ||
        !sb_chain16_add_bytes(&bytes, groups * few_of(block), sizeof(sb_chain16_few)) ||
        !sb_chain16_add_bytes(&bytes, 1, panel) ||
        !sb_chain16_add_bytes(&bytes, groups, SB_CHAIN16_GROUP * sizeof(uint16_t)) ||
        (args->point && !sb_chain16_add_bytes(&bytes, args->runs, sizeof(uint16_t *))))
        return 0;
    return bytes;
}

/* The same order as in sb_chain16_chain_bytes; each part is a whole number of cache lines long. */
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
        return sb_isa_multiplies_bf16() ? &sb_chain16_kernels_avx512_bf16 : &sb_chain16_kernels_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_chain16_kernels_avx2;
#endif
    return &sb_chain16_kernels_scalar;
}

void sb_chain16_copy_row(const sb_chain16_args *args, int64_t row, const uint16_t **runs, uint16_t *to) {
    const uint16_t *from = args->point ? NULL : args->a + row * args->a_row_stride;
    if (args->point) {
        args->point(args->point_context, row, 0, args->runs, runs);
        for (int64_t run = 0; run < args->runs; run++)
            memcpy(to + run * args->run_length, runs[run], (size_t)args->run_length * sizeof *to);
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
    int64_t groups = sb_chain16_groups(args->k), run_groups = args->run_length / SB_CHAIN16_GROUP;
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
            sb_chain16_copy_row(args, first + row, parts->runs, parts->elements);
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

void sb_chain16_store_tile(const sb_chain16_args *args, const sb_chain16_kernels *kernels, int64_t first_row,
                           int64_t rows, int64_t first_column, int64_t columns, int64_t begin, int64_t end,
                           float *acc) {
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
    int64_t groups = sb_chain16_groups(args->k);
    int valid = args->n - tile < columns ? (int)(args->n - tile) : columns;
    panel += tile % SB_CHAIN16_PANEL;
    for (int64_t group = 0; group < groups; group++, panel += SB_CHAIN16_GROUP * SB_CHAIN16_PANEL) {
        kernels->expand_b(args->dtype, panel, valid, parts->tile);
        if (group + 1 < groups)
            fetch_group(panel + SB_CHAIN16_GROUP * SB_CHAIN16_PANEL, columns);
        kernels->step(args->dtype, parts->records + group * rows, rows, parts->tile, parts->acc);
    }
}

const uint16_t *sb_chain16_panel_at(const sb_chain16_args *args, int64_t first, uint16_t *room) {
    if (args->packed_b)
        return args->packed_b + first * sb_chain16_groups(args->k) * SB_CHAIN16_GROUP;
    int columns = args->n - first < SB_CHAIN16_PANEL ? (int)(args->n - first) : SB_CHAIN16_PANEL;
    sb_chain16_pack_panel(args->k, columns, args->b + first * args->b_column_stride, args->b_row_stride,
                          args->b_column_stride, room);
    return room;
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
            panel = sb_chain16_panel_at(args, tile / SB_CHAIN16_PANEL * SB_CHAIN16_PANEL, parts->panel);
        start(args, row, rows, tile, columns, begin, end, parts->acc);
        advance(args, kernels, panel, tile, rows, parts);
        sb_chain16_store_tile(args, kernels, row, rows, tile, columns, begin, end, parts->acc);
    }
}

/* The same of few rows, panel by panel. */
static void run_panels(const sb_chain16_args *args, const sb_chain16_kernels *kernels, int64_t row, int64_t rows,
                       int64_t n0, int64_t n1, const workspace_parts *parts) {
    int64_t groups = sb_chain16_groups(args->k);
    for (int64_t i = 0; i < groups * rows; i++)
        sb_chain16_few_of(args->dtype, parts->records + i, parts->few + i);
    for (int64_t first = n0 / SB_CHAIN16_PANEL * SB_CHAIN16_PANEL; first < n1; first += SB_CHAIN16_PANEL) {
        int64_t begin = first > n0 ? first : n0;
        int64_t end = first + SB_CHAIN16_PANEL < n1 ? first + SB_CHAIN16_PANEL : n1;
        int valid = args->n - first < SB_CHAIN16_PANEL ? (int)(args->n - first) : SB_CHAIN16_PANEL;
        const uint16_t *panel = sb_chain16_panel_at(args, first, parts->panel);
        start(args, row, rows, first, SB_CHAIN16_PANEL, begin, end, parts->acc);
        kernels->sweep(args->dtype, parts->records, parts->few, rows, groups, panel, valid, parts->tile, parts->acc);
        sb_chain16_store_tile(args, kernels, row, rows, first, SB_CHAIN16_PANEL, begin, end, parts->acc);
    }
}

void sb_chain16_run_chains(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1,
                           int64_t n0, int64_t n1, void *workspace) {
    int64_t groups = sb_chain16_groups(args->k);
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

size_t sb_chain16_workspace_bytes(const sb_chain16_args *args) {
    size_t chains = sb_chain16_chain_bytes(args), near = sb_chain16_near_bytes(args), bytes;
    return chains != 0 && near != 0 && !__builtin_add_overflow(chains, near, &bytes) ? bytes : 0;
}

void sb_chain16_run(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1, int64_t n0,
                    int64_t n1, void *workspace) {
    if (m0 >= m1 || n0 >= n1)
        return;
    if (sb_chain16_near_fits(kernels, args, m1 - m0))
        sb_chain16_near_run(kernels, args, m0, m1, n0, n1, workspace);
    else
        sb_chain16_run_chains(kernels, args, m0, m1, n0, n1, workspace);
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
