/* Kernels of LpNormalization, MeanVarianceNormalization and ReduceLogSumExp in f32, f16 and bf16.
 *
 * Adjacent rows of f32 are computed where they lie, others packed, widened and rounded in a thread's workspace. Rows that lie side by
 * side are packed as many at once as a line of the cache holds, and are lanes. */
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/reduce_rows.h"
#include "cpu/rows/whole_rows.h"
#include "cpu/spread.h"
#include "cpu/supports.h"
#include "ops/convert_loops.h"
#include "ops/normalization.h"
#include "ops/reduce.h"

/* Elements that a thread takes at once, about. */
#define PIECE_ELEMENTS 8192

/* Rows side by side are packed if they have at most so many elements: 64 MiB for each thread. */
#define COLUMN_ELEMENTS ((int64_t)1 << 20)

typedef struct whole_rows {
    const sb_whole_row_kernels *kernels;
    sb_row_function function;
    sb_rows from, to;             /* `to` only where each element has a result */
    sb_walk_row *load, *store;    /* to f32 and back */
    bool read_there, write_there; /* adjacent rows of f32 */
    char *results;                /* one for each row; else NULL */
    int64_t size;                 /* bytes of an element */
    int64_t piece, strips;        /* rows of a piece; pieces of rows side by side */
} whole_rows;

static void keep_results(const whole_rows *work, int64_t row, int64_t count, float *results) {
    work->store(NULL, count, (char *const[]){work->results + row * work->size, (char *)results},
                (const int64_t[]){work->size, (int64_t)sizeof *results});
}

static void run_row(const whole_rows *work, int64_t row, float *workspace) {
    const int64_t length = work->from.length;
    const float *x = workspace;
    float *y = workspace;
    if (work->read_there)
        x = (const float *)(const void *)sb_rows_at(&work->from, row);
    else
        sb_rows_load_by(&work->from, row, 0, length, work->load, SB_F32, workspace);
    if (work->write_there)
        y = (float *)(void *)sb_rows_at(&work->to, row);
    float result = work->kernels->row(work->function, length, x, y);
    if (work->results != NULL)
        keep_results(work, row, 1, &result);
    else if (!work->write_there)
        sb_rows_store_by(&work->to, row, 0, length, work->store, SB_F32, y);
}

static void run_rows(void *context, int64_t index, void *workspace) {
    const whole_rows *work = context;
    const int64_t begin = index * work->piece, end = begin + work->piece;
    for (int64_t row = begin; row < end && row < work->from.count; row++)
        run_row(work, row, workspace);
}

static void run_columns(void *context, int64_t index, void *workspace) {
    const whole_rows *work = context;
    const sb_rows *from = &work->from, *to = &work->to;
    const int64_t beside = from->outer_dims[from->outer_rank - 1], wide = sizeof(float);
    const int64_t first = index % work->strips * SB_ROW_COLUMNS, row = index / work->strips * beside + first;
    const int64_t width = beside - first < SB_ROW_COLUMNS ? beside - first : SB_ROW_COLUMNS;
    float *values = workspace, results[SB_ROW_COLUMNS];
    char *x = sb_rows_at(from, row);
    for (int64_t i = 0; i < from->length; i++, x += from->inner_steps[0]) {
        char *const data[] = {(char *)(values + i * SB_ROW_COLUMNS), x};
        if (width < SB_ROW_COLUMNS)
            memset(data[0], 0, SB_ROW_COLUMNS * sizeof *values);
        work->load(NULL, width, data, (const int64_t[]){wide, work->size});
    }
    work->kernels->columns(work->function, from->length, (int)width, values, results);
    if (work->results != NULL) {
        keep_results(work, row, width, results);
        return;
    }
    char *y = sb_rows_at(to, row);
    for (int64_t i = 0; i < from->length; i++, y += to->inner_steps[0])
        work->store(NULL, width, (char *const[]){y, (char *)(values + i * SB_ROW_COLUMNS)},
                    (const int64_t[]){work->size, wide});
}

static bool lie_there(const sb_rows *rows) {
    return rows->tensor->dtype == SB_F32 && rows->inner_rank == 1 &&
           (rows->inner_steps[0] == (int64_t)sizeof(float) || rows->length == 1);
}

static sb_status run(sb_call *call, whole_rows *work) {
    const sb_rows *from = &work->from, *to = &work->to;
    const int64_t beside = sb_rows_side_by_side(from);
    const sb_dtype dtype = from->tensor->dtype;
    size_t workspace;
    work->kernels = sb_whole_row_kernels_for(call->isa);
    work->load = sb_convert_loop_for(call->isa, SB_F32, dtype);
    work->store = sb_convert_loop_for(call->isa, dtype, SB_F32);
    work->size = (int64_t)sb_dtype_size(dtype);
    bool columns = beside >= 4 && from->length > 1 && from->length <= COLUMN_ELEMENTS;
    if (columns && work->results == NULL)
        columns = to->outer_rank == from->outer_rank && sb_rows_side_by_side(to) == beside;
    if (columns) {
        work->strips = (beside + SB_ROW_COLUMNS - 1) / SB_ROW_COLUMNS;
        workspace = (size_t)from->length * SB_ROW_COLUMNS * sizeof(float);
        return sb_pieces_run(call, from->count / beside * work->strips, workspace, run_columns, work);
    }
    work->read_there = lie_there(from);
    work->write_there = work->results == NULL && lie_there(to);
    work->piece = from->length == 0               ? PIECE_ELEMENTS
                  : from->length < PIECE_ELEMENTS ? PIECE_ELEMENTS / from->length
                                                  : 1;
    const bool packed = !work->read_there || (work->results == NULL && !work->write_there);
    if (__builtin_mul_overflow((size_t)from->length, packed ? sizeof(float) : 0, &workspace))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "a row of %lld elements is too long",
                            (long long)from->length);
    return sb_pieces_run(call, (from->count - 1) / work->piece + 1, workspace, run_rows, work);
}

static sb_status launch_normalization(sb_call *call, sb_row_function function, uint32_t inner) {
    sb_tensor *input = sb_call_input(call, 0), *output;
    whole_rows work = {.function = function};
    SB_TRY(sb_spread_output(call, 1, &input, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    sb_rows_start(&work.from, input, inner);
    sb_rows_start(&work.to, output, inner);
    return run(call, &work);
}

static sb_status launch_lp(sb_call *call) {
    const sb_lp_params *params = call->node->params;
    const int64_t axis = params->axis < 0 ? params->axis + sb_call_input(call, 0)->rank : params->axis;
    return launch_normalization(call, params->p == 1 ? SB_ROW_BY_SUM : SB_ROW_BY_ROOT, UINT32_C(1) << axis);
}

static sb_status launch_mean_variance(sb_call *call) {
    uint32_t inner;
    SB_TRY(sb_axes_of_call(call, call->node->params, sb_call_input(call, 0)->rank, &inner));
    return launch_normalization(call, SB_ROW_MEAN_VARIANCE, inner);
}

static sb_status launch_log_sum_exp(sb_call *call) {
    whole_rows work = {.function = SB_ROW_LOG_SUM_EXP};
    int64_t dims[SB_MAX_RANK];
    sb_tensor *output;
    int rank;
    SB_TRY(sb_reduce_describe(call, &work.from, &rank, dims));
    SB_TRY(sb_call_output_shape(call, 0, sb_call_input(call, 0)->dtype, rank, dims, &output));
    work.results = output->data;
    return work.from.count == 0 ? SB_OK : run(call, &work);
}

#define WHOLE_ROWS(op_name, kernel, launcher)                                                                          \
    { .op = op_name, .name = kernel, .supports = sb_cpu_supports_small_floats, .launch = launcher }

const sb_kernel sb_cpu_kernels_whole_rows[] = {
    WHOLE_ROWS("LpNormalization", "lp-norm-rows", launch_lp),
    WHOLE_ROWS("MeanVarianceNormalization", "mean-variance-rows", launch_mean_variance),
    WHOLE_ROWS("ReduceLogSumExp", "reduce-log-sum-exp", launch_log_sum_exp),
    {0},
};
