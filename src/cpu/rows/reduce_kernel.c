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

/* Rows of two that lie side by side and are reduced in one call. */
#define PAIRS_AT_ONCE 1024
/* Longer rows that are, and their room: four lines of the cache of floats. */
#define COLUMNS_AT_ONCE 64

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
    {"ReduceProd", SB_REDUCE_PRODUCT, AS_IT_IS},
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
    sb_walk_row *load, *store; /* elements to f32, and back */
    sb_dtype dtype;
    char *output;
    int side;                   /* the outer dimension along which rows lie side by side */
    int64_t width;              /* how much of it is reduced at once */
    int64_t strips;             /* pieces of that many */
    int64_t steps[SB_MAX_RANK]; /* of the outer dimensions in the output, in elements */
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
    const sb_rows *rows = &work->rows;
    const int last = rows->outer_rank - 1;
    for (int64_t row = begin;
         row < end;) { /* line by line of rows: finding a row takes as long as reducing a short one */
        int64_t line = last < 0 ? 1 : rows->outer_dims[last] - row % rows->outer_dims[last];
        const char *at = row_start(rows, row);
        for (line = line < end - row ? line : end - row; line > 0; line--, row++) {
            const float *x = (const float *)(const void *)at;
            ((float *)(void *)work->output)[row] =
                finished(work, work->kernels->row(work->meaning->kind, rows->length, x));
            at += last < 0 ? 0 : rows->outer_steps[last];
        }
    }
}

/* ---- rows side by side ---- */

static void finish_strip(const reducing *work, int64_t width, float *y, int64_t apart) {
    for (int64_t w = 0; w < width && work->meaning->finish != AS_IT_IS; w++)
        y[w * apart] = finished(work, y[w * apart]);
}

/* Rows of two, of f32. */
static void reduce_pairs_apart(const reducing *work, int64_t width, const char *at, char *to) {
    const float *x = (const float *)(const void *)at;
    const int64_t stride = work->rows.inner_steps[0] / (int64_t)sizeof(float), apart = work->steps[work->side];
    float *y = (float *)(void *)to;
    work->kernels->pairs_apart(work->meaning->kind, width, x, x + stride, y, apart);
    finish_strip(work, width, y, apart);
}

static void reduce_strip(const reducing *work, int64_t width, const char *at, char *to) {
    const sb_rows *rows = &work->rows;
    const int64_t size = (int64_t)sb_dtype_size(work->dtype), apart = work->steps[work->side];
    float results[COLUMNS_AT_ONCE];
    work->kernels->columns(work->meaning->kind, work->dtype, rows->length, width, at, rows->inner_steps[0] / size,
                           results);
    finish_strip(work, width, results, 1);
    work->store(NULL, width, (char *[]){to, (char *)results}, (const int64_t[]){apart * size, (int64_t)sizeof(float)});
}

static void reduce_strips(void *context, int64_t begin, int64_t end) {
    const reducing *work = context;
    const sb_rows *rows = &work->rows;
    for (int64_t index = begin; index < end; index++) {
        int64_t first = index % work->strips * work->width, rest = index / work->strips;
        int64_t left = rows->outer_dims[work->side] - first, to = first * work->steps[work->side];
        const char *at = (const char *)rows->tensor->data + first * rows->outer_steps[work->side];
        for (int d = rows->outer_rank - 1; d >= 0; d--) {
            if (d == work->side)
                continue;
            at += rest % rows->outer_dims[d] * rows->outer_steps[d];
            to += rest % rows->outer_dims[d] * work->steps[d];
            rest /= rows->outer_dims[d];
        }
        const int64_t width = left < work->width ? left : work->width;
        char *y = work->output + to * (int64_t)sb_dtype_size(work->dtype);
        if (work->width == PAIRS_AT_ONCE)
            reduce_pairs_apart(work, width, at, y);
        else
            reduce_strip(work, width, at, y);
    }
}

/* Fewer rows of 16 bits side by side are packed: half a vector of their elements is no load of AVX2. */
#define LEAST_COLUMNS_OF_16 8

/* The outer dimension whose elements are adjacent, or -1. */
static int side_of(const sb_rows *rows) {
    const int64_t size = (int64_t)sb_dtype_size(rows->tensor->dtype);
    for (int d = rows->outer_rank - 1; d >= 0; d--) {
        if (rows->outer_steps[d] == size)
            return size == 4 || rows->outer_dims[d] >= LEAST_COLUMNS_OF_16 ? d : -1;
    }
    return -1;
}

/* Steps of the outer dimensions in an output whose side is innermost, or (side -1) in row-major order. */
static void place_outer(reducing *work, int innermost) {
    const sb_rows *rows = &work->rows;
    int64_t step = 1;
    if (innermost >= 0) {
        work->steps[innermost] = 1;
        step = rows->outer_dims[innermost];
    }
    for (int d = rows->outer_rank - 1; d >= 0; d--) {
        if (d == innermost)
            continue;
        work->steps[d] = step;
        step *= rows->outer_dims[d];
    }
}

/* The output's dimensions with those of the side last: gives whether the side is whole dimensions of the output. */
static bool side_last(const reducing *work, int rank, const int64_t *dims, int *order) {
    const sb_rows *rows = &work->rows;
    int64_t before = 1, group = 1;
    int count = 0, first, end;
    for (int d = 0; d < work->side; d++)
        before *= rows->outer_dims[d];
    for (first = 0; first < rank && before > 1; first++) {
        if (before % dims[first] != 0)
            return false;
        before /= dims[first];
    }
    for (end = first; end < rank && group < rows->outer_dims[work->side]; end++)
        group *= dims[end];
    if (group != rows->outer_dims[work->side])
        return false;
    for (int d = 0; d < rank; d++) {
        if (d < first || d >= end)
            order[count++] = d;
    }
    for (int d = first; d < end; d++)
        order[count++] = d;
    return true;
}

/* Makes the output: as the input lies, where rows lie side by side along a dimension that is not the last one. In row-major
 * order a vector of results would be scattered over as many lines of the cache. */
static sb_status make_output(sb_call *call, reducing *work, int rank, const int64_t *dims) {
    int order[SB_MAX_RANK];
    int64_t known[SB_MAX_RANK];
    sb_tensor *output;
    const bool scattered = work->side >= 0 && work->side < work->rows.outer_rank - 1 && work->rows.count > 0;
    if (scattered && call->outputs[0].kind == SB_KIND_NONE && sb_fact_is_concrete(&call->facts[0], known) &&
        call->facts[0].rank == rank && side_last(work, rank, dims, order)) {
        place_outer(work, work->side);
        SB_TRY(sb_call_output_ordered(call, 0, order, &output));
    } else {
        place_outer(work, -1);
        SB_TRY(sb_call_output_shape(call, 0, work->dtype, rank, dims, &output));
    }
    work->output = output->data;
    return SB_OK;
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
                     .load = sb_convert_loop_for(call->isa, SB_F32, sb_call_input(call, 0)->dtype),
                     .store = sb_convert_loop_for(call->isa, sb_call_input(call, 0)->dtype, SB_F32)};
    const sb_rows *rows = &work.rows;
    int64_t dims[SB_MAX_RANK];
    int rank;
    SB_TRY(sb_reduce_describe(call, &work.rows, &rank, dims));
    const int64_t size = (int64_t)sb_dtype_size(work.dtype);
    const bool adjacent = rows->inner_rank == 1 && (rows->inner_steps[0] == size || rows->length <= 1);
    work.side = rows->inner_rank == 1 && !adjacent ? side_of(rows) : -1;
    SB_TRY(make_output(call, &work, rank, dims));
    if (rows->count == 0)
        return SB_OK;
    int64_t grain = GRAIN_ELEMENTS / (rows->length > 0 ? rows->length : 1) + 1;
    if (adjacent && work.dtype == SB_F32) {
        sb_workers_run(call->workers, rows->count, grain, reduce_adjacent, &work);
        return SB_OK;
    }
    if (work.side < 0)
        return sb_pieces_run(call, rows->count, SB_REDUCE_BLOCK * sizeof(float), reduce_packed, &work);
    work.width = rows->length == 2 && work.dtype == SB_F32 ? PAIRS_AT_ONCE : COLUMNS_AT_ONCE;
    work.strips = (rows->outer_dims[work.side] + work.width - 1) / work.width;
    sb_workers_run(call->workers, rows->count / rows->outer_dims[work.side] * work.strips, grain / work.width + 1,
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
    REDUCTION("ReduceProd", "reduce-prod"),
    {0},
};
