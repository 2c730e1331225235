#include "cpu/chain16.h"

#include <string.h>

#include "base/isa.h"
#include "cpu/chain16_kernels.h"

/* Rows taken together: enough to make the expansion of a B tile a small part (2 % at 128 rows, 8 %
 * at 32, measured with AVX-512), few enough that the rows' records stay within 2 MiB. */
enum { MOST_ROWS = 128, FEWEST_ROWS = 32 };
#define RECORD_BYTES (2 << 20)

static int64_t groups_of(int64_t k) {
    return k / IV_CHAIN16_GROUP + (k % IV_CHAIN16_GROUP != 0);
}

static int64_t rows_per_block(int64_t rows, int64_t groups) {
    int64_t fitting =
        groups == 0 ? MOST_ROWS : RECORD_BYTES / (int64_t)sizeof(iv_chain16_a) / groups;
    int64_t block = fitting < FEWEST_ROWS ? FEWEST_ROWS : fitting > MOST_ROWS ? MOST_ROWS : fitting;
    return rows < block ? rows : block;
}

/* The parts of the scratch memory. */
typedef struct workspace {
    iv_chain16_b *tile;
    float *acc;            /* [rows][columns of a tile] */
    iv_chain16_a *records; /* [groups][rows] */
    uint16_t *elements;    /* one row of A, padded with zeros to whole groups */
} workspace;

static iv_status add_bytes(size_t *total, int64_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4)
        return IV_ERROR_INVALID_ARGUMENT;
    bytes = (bytes + 63) / 64 * 64;
    return __builtin_add_overflow(*total, bytes, total) ? IV_ERROR_INVALID_ARGUMENT : IV_OK;
}

iv_status iv_chain16_packed_bytes(int64_t k, int64_t n, size_t *bytes, iv_error *error) {
    int64_t elements;
    *bytes = 0;
    if (k < 0 || n < 0 || k > INT64_MAX - IV_CHAIN16_GROUP || n > INT64_MAX - IV_CHAIN16_PANEL ||
        __builtin_mul_overflow(groups_of(k) * IV_CHAIN16_GROUP,
                               (n + IV_CHAIN16_PANEL - 1) / IV_CHAIN16_PANEL * IV_CHAIN16_PANEL,
                               &elements) ||
        add_bytes(bytes, elements, sizeof(uint16_t)) != IV_OK)
        return iv_fail(
            error, IV_ERROR_INVALID_ARGUMENT,
            "a 16-bit matrix of %lld by %lld cannot be packed: use extents from 0 on whose "
            "product fits the address space",
            (long long)k, (long long)n);
    return IV_OK;
}

iv_status iv_chain16_scratch_bytes(int64_t rows, int64_t k, size_t *bytes, iv_error *error) {
    *bytes = 0;
    if (rows >= 0 && k >= 0) {
        int64_t groups = groups_of(k);
        int64_t block = rows_per_block(rows, groups);
        int64_t records;
        if (!__builtin_mul_overflow(groups, block, &records) &&
            add_bytes(bytes, 1, sizeof(iv_chain16_b)) == IV_OK &&
            add_bytes(bytes, block, IV_CHAIN16_PANEL * sizeof(float)) == IV_OK &&
            add_bytes(bytes, records, sizeof(iv_chain16_a)) == IV_OK &&
            add_bytes(bytes, groups, IV_CHAIN16_GROUP * sizeof(uint16_t)) == IV_OK)
            return IV_OK;
    }
    return iv_fail(
        error, IV_ERROR_INVALID_ARGUMENT,
        "a 16-bit contraction over k = %lld with %lld rows does not fit the address space",
        (long long)k, (long long)rows);
}

/* The same order as in iv_chain16_scratch_bytes; every part is a multiple of 64 bytes long, except
 * the last. */
static workspace divide(void *scratch, int64_t block, int64_t groups) {
    workspace work;
    work.tile = scratch;
    work.acc = (float *)(void *)(work.tile + 1);
    work.records = (iv_chain16_a *)(void *)(work.acc + block * IV_CHAIN16_PANEL);
    work.elements = (uint16_t *)(void *)(work.records + block * groups);
    return work;
}

static const iv_chain16_kernels *kernels_of(iv_isa isa) {
#if IV_HAS_X86_KERNELS
    if (isa == IV_ISA_AVX512)
        return &iv_chain16_kernels_avx512;
    if (isa == IV_ISA_AVX2)
        return &iv_chain16_kernels_avx2;
#endif
    return &iv_chain16_kernels_scalar;
}

void iv_chain16_pack_b(int64_t k, int64_t n, const uint16_t *b, int64_t k_stride,
                       int64_t column_stride, int64_t column_begin, int64_t column_end,
                       uint16_t *packed) {
    int64_t padded = groups_of(k) * IV_CHAIN16_GROUP;
    for (int64_t first = column_begin; first < column_end; first += IV_CHAIN16_PANEL) {
        const uint16_t *from = b + first * column_stride;
        uint16_t *panel = packed + first * padded;
        int columns = n - first < IV_CHAIN16_PANEL ? (int)(n - first) : IV_CHAIN16_PANEL;
        for (int64_t row = 0; row < k; row++, panel += IV_CHAIN16_PANEL, from += k_stride) {
            uint16_t line[IV_CHAIN16_PANEL] = {0};
            for (int j = 0; j < columns; j++)
                line[j] = from[j * column_stride];
            for (int l = 0; l < IV_CHAIN16_PANEL / 4; l++) {
                panel[2 * l] = line[l];
                panel[2 * l + 1] = line[16 + l];
                panel[32 + 2 * l] = line[32 + l];
                panel[32 + 2 * l + 1] = line[48 + l];
            }
        }
        memset(panel, 0, (size_t)(padded - k) * IV_CHAIN16_PANEL * sizeof(uint16_t));
    }
}

/* Expands rows [first, first + rows) of A. */
static void prepare_rows(const iv_chain16_task *task, const iv_chain16_kernels *kernels,
                         int64_t first, int64_t rows, const workspace *work) {
    int64_t groups = groups_of(task->k);
    bool in_place = !task->gather && task->a_k_stride == 1 && task->k % IV_CHAIN16_GROUP == 0;
    for (int64_t row = 0; row < rows; row++) {
        const uint16_t *elements = work->elements;
        if (in_place) {
            elements = task->a + (first + row) * task->a_row_stride;
        } else if (task->gather) {
            task->gather(task->gather_context, first + row, 0, task->k, work->elements);
        } else {
            const uint16_t *from = task->a + (first + row) * task->a_row_stride;
            for (int64_t k = 0; k < task->k; k++)
                work->elements[k] = from[k * task->a_k_stride];
        }
        for (int64_t k = task->k; !in_place && k < groups * IV_CHAIN16_GROUP; k++)
            work->elements[k] = 0;
        kernels->expand_a(task->dtype, elements, groups, work->records + row, rows);
    }
}

/* Sets acc[rows][columns] to where the chains start. Columns outside [begin, end) belong to other
 * rectangles and start from zero. */
static void start(const iv_chain16_task *task, int64_t first_row, int64_t rows,
                  int64_t first_column, int64_t columns, int64_t begin, int64_t end, float *acc) {
    memset(acc, 0, (size_t)(rows * columns) * sizeof(float));
    for (int64_t row = 0; task->initial && row < rows; row++) {
        const float *from = task->initial + (first_row + row) * task->initial_row_stride;
        for (int64_t j = begin; j < end; j++)
            acc[row * columns + j - first_column] = from[j * task->initial_column_stride];
    }
}

/* Stores `count` sums that lie `acc_stride` apart, `stride` elements apart from element `at` of C.
 */
static void store(const iv_chain16_task *task, const iv_chain16_kernels *kernels, const float *acc,
                  int64_t acc_stride, int64_t count, int64_t at, int64_t stride) {
    _Static_assert(MOST_ROWS >= IV_CHAIN16_PANEL, "a line of a tile fits, whichever way it runs");
    float gathered[MOST_ROWS];
    uint16_t rounded[MOST_ROWS];
    if (acc_stride != 1) {
        for (int64_t i = 0; i < count; i++)
            gathered[i] = acc[i * acc_stride];
        acc = gathered;
    }
    if (task->c_dtype == IV_F32) {
        float *c = (float *)task->c + at;
        for (int64_t i = 0; i < count; i++)
            c[i * stride] = acc[i];
        return;
    }
    uint16_t *c = (uint16_t *)task->c + at;
    if (stride == 1) {
        kernels->round(task->c_dtype, acc, count, c);
        return;
    }
    kernels->round(task->c_dtype, acc, count, rounded);
    for (int64_t i = 0; i < count; i++)
        c[i * stride] = rounded[i];
}

/* Hands the columns [begin, end) of a finished tile to the epilogue and stores them, along
 * whichever direction of C is contiguous. */
static void finish(const iv_chain16_task *task, const iv_chain16_kernels *kernels,
                   int64_t first_row, int64_t rows, int64_t first_column, int64_t begin,
                   int64_t end, float *acc) {
    int64_t columns = kernels->columns;
    acc += begin - first_column;
    for (int64_t row = 0; task->epilogue && row < rows; row++)
        task->epilogue(task->epilogue_context, first_row + row, begin, end - begin,
                       acc + row * columns);
    int64_t at = first_row * task->c_row_stride + begin * task->c_column_stride;
    if (task->c_row_stride == 1 && task->c_column_stride != 1) {
        for (int64_t j = 0; j < end - begin; j++)
            store(task, kernels, acc + j, columns, rows, at + j * task->c_column_stride, 1);
    } else {
        for (int64_t row = 0; row < rows; row++)
            store(task, kernels, acc + row * columns, 1, end - begin, at + row * task->c_row_stride,
                  task->c_column_stride);
    }
}

/* Takes the tile from column `tile` on, for `rows` prepared rows, through all groups. */
static void advance(const iv_chain16_task *task, const iv_chain16_kernels *kernels, int64_t tile,
                    int64_t rows, const workspace *work) {
    int columns = kernels->columns;
    int64_t groups = groups_of(task->k);
    int64_t within = tile % IV_CHAIN16_PANEL;
    const uint16_t *packed = task->packed_b + (tile - within) * groups * IV_CHAIN16_GROUP + within;
    int valid = task->n - tile < columns ? (int)(task->n - tile) : columns;
    for (int64_t group = 0; group < groups; group++) {
        kernels->expand_b(task->dtype, packed, valid, work->tile);
        kernels->step(task->dtype, work->records + group * rows, rows, work->tile, work->acc);
        packed += IV_CHAIN16_GROUP * IV_CHAIN16_PANEL;
    }
}

void iv_chain16_run(const iv_chain16_task *task, int64_t row_begin, int64_t row_end,
                    int64_t column_begin, int64_t column_end, void *scratch) {
    if (row_begin >= row_end || column_begin >= column_end)
        return;
    const iv_chain16_kernels *kernels = kernels_of(task->isa);
    int columns = kernels->columns;
    int64_t groups = groups_of(task->k);
    int64_t block = rows_per_block(row_end - row_begin, groups);
    workspace work = divide(scratch, block, groups);
    for (int64_t row = row_begin; row < row_end; row += block) {
        int64_t rows = row_end - row < block ? row_end - row : block;
        prepare_rows(task, kernels, row, rows, &work);
        for (int64_t tile = column_begin / columns * columns; tile < column_end; tile += columns) {
            int64_t begin = tile > column_begin ? tile : column_begin;
            int64_t end = tile + columns < column_end ? tile + columns : column_end;
            start(task, row, rows, tile, columns, begin, end, work.acc);
            advance(task, kernels, tile, rows, &work);
            finish(task, kernels, row, rows, tile, begin, end, work.acc);
        }
    }
}
