/* Kernels of reductions of floats over any axes.
 *
 * Where the elements of a row lie behind each other, the lanes of a vector are the lanes of the sum. Where those of one row
 * lie a constant step apart and rows lie side by side, such as the mean over space of channels that are innermost, the
 * lanes are rows. All others are packed block by block. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/reduce_rows.h"
#include "numerics/elementary.h"
#include "numerics/reduce.h"
#include "ops/convert_loops.h"
#include "ops/reduce.h"

/* Elements of all rows of a piece of work, below which a thread is not worth waking. */
#define GRAIN_ELEMENTS 8192

typedef enum finish { AS_IT_IS, DIVIDED, ROOT, LOGARITHM } finish;

/* What an operator's name means; NULL for one that has no kernel. */
static const struct meaning {
    const char *op;
    sb_reduce_kind kind;
    finish finish;
} meanings[] = {
    {"ReduceSum", SB_REDUCE_SUM, AS_IT_IS},           {"ReduceMean", SB_REDUCE_SUM, DIVIDED},
    {"ReduceMax", SB_REDUCE_MAXIMUM, AS_IT_IS},       {"ReduceMin", SB_REDUCE_MINIMUM, AS_IT_IS},
    {"ReduceL1", SB_REDUCE_ABSOLUTE, AS_IT_IS},       {"ReduceL2", SB_REDUCE_SQUARES, ROOT},
    {"ReduceSumSquare", SB_REDUCE_SQUARES, AS_IT_IS}, {"ReduceLogSum", SB_REDUCE_SUM, LOGARITHM},
};

static const struct meaning *meaning_of(const sb_node *node) {
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (strcmp(meanings[i].op, node->op->name) == 0)
            return &meanings[i];
    }
    return NULL;
}

static bool is_computed_in_f32(sb_dtype dtype) {
    return dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16;
}

static bool supports_reduction(const sb_kernel_query *query, char *why) {
    if (is_computed_in_f32(query->inputs[0]->dtype))
        return true;
    snprintf(why, SB_WHY_BYTES, "reductions of %s have no kernel; those of f32, f16 and bf16 have",
             sb_dtype_name(query->inputs[0]->dtype));
    return false;
}

typedef struct reducing {
    const sb_reduce_kernels *kernels;
    const struct meaning *meaning;
    sb_rows rows;
    sb_walk_row *load; /* elements to f32 */
    sb_dtype dtype;
    char *output;
    int side;       /* the outer dimension along which rows lie side by side */
    int64_t strips; /* pieces of SB_ROW_COLUMNS of it */
    int64_t apart;  /* its rows' distance among all rows */
} reducing;

static float finished(const reducing *work, float value) {
    switch (work->meaning->finish) {
    case DIVIDED:
        return sb_div_f32(value, (float)work->rows.length);
    case ROOT:
        return sb_sqrt_f32(value);
    case LOGARITHM:
        return sb_log_f32(value);
    default:
        return value;
    }
}

/* ---- adjacent rows ---- */

static const char *row_start(const sb_rows *rows, int64_t row) {
    const char *at = rows->tensor->data;
    for (int d = rows->outer_rank - 1; d >= 0; d--) {
        at += row % rows->outer_dims[d] * rows->outer_steps[d];
        row /= rows->outer_dims[d];
    }
    return at;
}

/* Rows of two elements from `begin` on, as many as lie behind each other; gives the first one that is left. */
static int64_t reduce_pairs(const reducing *work, int64_t begin, int64_t end) {
    const sb_rows *rows = &work->rows;
    const int last = rows->outer_rank - 1;
    int64_t count = 1;
    if (last >= 0 && rows->outer_steps[last] == 2 * (int64_t)sizeof(float)) {
        int64_t left = rows->outer_dims[last] - begin % rows->outer_dims[last];
        count = left < end - begin ? left : end - begin;
    }
    float *y = (float *)(void *)work->output + begin;
    work->kernels->pairs(work->meaning->kind, count, (const float *)(const void *)row_start(rows, begin), y);
    for (int64_t r = 0; r < count && work->meaning->finish != AS_IT_IS; r++)
        y[r] = finished(work, y[r]);
    return begin + count;
}

static void reduce_adjacent(void *context, int64_t begin, int64_t end) {
    const reducing *work = context;
    while (work->rows.length == 2 && begin < end)
        begin = reduce_pairs(work, begin, end);
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)(const void *)row_start(&work->rows, row);
        ((float *)(void *)work->output)[row] =
            finished(work, work->kernels->row(work->meaning->kind, work->rows.length, x));
    }
}

/* ---- rows side by side ---- */

static void reduce_strips(void *context, int64_t begin, int64_t end) {
    const reducing *work = context;
    const sb_rows *rows = &work->rows;
    for (int64_t index = begin; index < end; index++) {
        int64_t first = index % work->strips * SB_ROW_COLUMNS, rest = index / work->strips;
        int64_t left = rows->outer_dims[work->side] - first, row = first * work->apart, apart = 1;
        const char *at = (const char *)rows->tensor->data + first * rows->outer_steps[work->side];
        for (int d = rows->outer_rank - 1; d >= 0; d--) {
            if (d != work->side) {
                int64_t i = rest % rows->outer_dims[d];
                rest /= rows->outer_dims[d];
                at += i * rows->outer_steps[d];
                row += i * apart;
            }
            apart *= rows->outer_dims[d];
        }
        int width = left < SB_ROW_COLUMNS ? (int)left : SB_ROW_COLUMNS;
        float *y = (float *)(void *)work->output + row;
        work->kernels->columns(work->meaning->kind, rows->length, width, (const float *)(const void *)at,
                               rows->inner_steps[0] / (int64_t)sizeof(float), y, work->apart);
        for (int w = 0; w < width; w++)
            y[w * work->apart] = finished(work, y[w * work->apart]);
    }
}

/* The outer dimension whose elements are adjacent, or -1. */
static int side_of(const sb_rows *rows) {
    for (int d = rows->outer_rank - 1; d >= 0; d--) {
        if (rows->outer_steps[d] == (int64_t)sizeof(float))
            return d;
    }
    return -1;
}

/* ---- rows of any kind ---- */

static void reduce_packed(void *context, int64_t row, void *workspace) {
    const reducing *work = context;
    const sb_reduce_kind kind = work->meaning->kind;
    float *values = workspace, total = 0;
    for (int64_t begin = 0; begin == 0 || begin < work->rows.length; begin += SB_REDUCE_BLOCK) {
        int64_t left = work->rows.length - begin, count = left < SB_REDUCE_BLOCK ? left : SB_REDUCE_BLOCK;
        sb_rows_load_by(&work->rows, row, begin, count, work->load, SB_F32, values);
        float block = work->kernels->row(kind, count, values);
        total = begin == 0 ? block : work->kernels->join(kind, total, block);
    }
    float result = finished(work, total);
    sb_convert_row(work->dtype, work->output + row * (int64_t)sb_dtype_size(work->dtype), SB_F32, &result, 0, 1);
}

/* ---- which way ---- */

static sb_status launch_reduction(sb_call *call) {
    reducing work = {.kernels = sb_reduce_kernels_for(call->isa),
                     .meaning = meaning_of(call->node),
                     .dtype = sb_call_input(call, 0)->dtype,
                     .load = sb_convert_loop_for(call->isa, SB_F32, sb_call_input(call, 0)->dtype)};
    sb_tensor *output;
    SB_TRY(sb_reduce_start(call, &work.rows, &output));
    work.output = output->data;
    const sb_rows *rows = &work.rows;
    if (rows->count == 0)
        return SB_OK;
    const int64_t step = (int64_t)sizeof(float);
    int64_t grain = GRAIN_ELEMENTS / (rows->length > 0 ? rows->length : 1) + 1;
    bool plain = work.dtype == SB_F32 && rows->inner_rank == 1;
    if (plain && (rows->inner_steps[0] == step || rows->length <= 1)) {
        sb_workers_run(call->workers, rows->count, grain, reduce_adjacent, &work);
        return SB_OK;
    }
    work.side = plain ? side_of(rows) : -1;
    if (work.side < 0)
        return sb_pieces_run(call, rows->count, SB_REDUCE_BLOCK * sizeof(float), reduce_packed, &work);
    work.apart = 1;
    for (int d = rows->outer_rank - 1; d > work.side; d--)
        work.apart *= rows->outer_dims[d];
    work.strips = (rows->outer_dims[work.side] + SB_ROW_COLUMNS - 1) / SB_ROW_COLUMNS;
    sb_workers_run(call->workers, rows->count / rows->outer_dims[work.side] * work.strips, grain / SB_ROW_COLUMNS + 1,
                   reduce_strips, &work);
    return SB_OK;
}

#define REDUCTION(op_name, kernel)                                                                                     \
    { .op = op_name, .name = kernel, .supports = supports_reduction, .launch = launch_reduction }

const sb_kernel sb_cpu_kernels_reduce[] = {
    REDUCTION("ReduceSum", "reduce-sum"),
    REDUCTION("ReduceMean", "reduce-mean"),
    REDUCTION("ReduceMax", "reduce-max"),
    REDUCTION("ReduceMin", "reduce-min"),
    REDUCTION("ReduceL1", "reduce-l1"),
    REDUCTION("ReduceL2", "reduce-l2"),
    REDUCTION("ReduceSumSquare", "reduce-sum-square"),
    REDUCTION("ReduceLogSum", "reduce-log-sum"),
    {0},
};
