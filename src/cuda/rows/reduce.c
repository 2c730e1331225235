/* Reductions. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cuda/list.h"
#include "cuda/rows/reduce.h"
#include "cuda/rows/reduce_columns_parameters.h"
#include "ops/reduce.h"

#define BLOCK 4096

/* A row longer than this is cut into blocks of 4096 for many multiprocessors, where there are few rows. */
#define CUT_LENGTH (8 * BLOCK)

static const struct {
    const char *op, *kernel;
    sb_cuda_finish finish;
    sb_cuda_integer_reduction integer;
    bool wide; /* integers are computed in f64 */
} traits[] = {
    {"ReduceSum", "sum", SB_CUDA_FINISH_TOTAL, SB_CUDA_INTEGER_SUM, false},
    {"ReduceMean", "sum", SB_CUDA_FINISH_MEAN, SB_CUDA_INTEGER_MEAN, false},
    {"ReduceMax", "max", SB_CUDA_FINISH_TOTAL, SB_CUDA_INTEGER_MAX, false},
    {"ReduceMin", "min", SB_CUDA_FINISH_TOTAL, SB_CUDA_INTEGER_MIN, false},
    {"ReduceProd", "product", SB_CUDA_FINISH_TOTAL, SB_CUDA_INTEGER_PROD, false},
    {"ReduceL1", "magnitudes", SB_CUDA_FINISH_TOTAL, SB_CUDA_INTEGER_L1, false},
    {"ReduceL2", "squares", SB_CUDA_FINISH_ROOT, 0, true},
    {"ReduceSumSquare", "squares", SB_CUDA_FINISH_TOTAL, SB_CUDA_INTEGER_SQUARES, false},
    {"ReduceLogSum", "sum", SB_CUDA_FINISH_LOG, 0, true},
    {"ReduceLogSumExp", "exponentials", SB_CUDA_FINISH_LOG_SHIFTED, 0, true},
};

static int trait_of(const sb_node *node) {
    int found = 0;
    while (strcmp(traits[found].op, node->op->name) != 0)
        found++;
    return found;
}

/* Whether reduce_vectors.cu has the reduction. */
static bool has_vectors(const sb_cuda_reduce *how, const sb_cuda_rows *rows, sb_dtype dtype) {
    static const char *const kernels[] = {"sum", "magnitudes", "squares", "max", "min"};
    bool known = false;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        known = known || strcmp(how->kernel, kernels[i]) == 0;
    return known && rows->length > 0 && rows->length <= BLOCK && sb_cuda_rows_are_vectors(rows, dtype);
}

static sb_status launch_vectors(sb_call *call, sb_cuda_row_reduction *parameters, const sb_cuda_reduce *how,
                                const sb_tensor *out, const sb_tensor *in, uint32_t axes) {
    sb_cuda_row_vector vector = {.team = 4, .groups = 1};
    while (vector.team < 32 && 8 * vector.team < parameters->rows.length)
        vector.team *= 2;
    char name[64];
    snprintf(name, sizeof name, "sb_cuda_reduce_%d_%s_%s", vector.team, how->kernel, sb_dtype_name(in->dtype));
    sb_cuda_work work = {
        .module = "reduce_vectors", .kernel = name, .parameters = parameters, .parameter_bytes = sizeof *parameters};
    if (how->bounded)
        sb_cuda_rows_bound(&parameters->rows, &work, call, 0, axes);
    sb_cuda_rows_grid_vector(call, &parameters->rows, vector, &work);
    sb_cuda_work_reads(&work, in);
    sb_cuda_work_writes(&work, out);
    return sb_cuda_call_launch(call, &work);
}

/* Sums of rows that lie side by side, their elements below each other, as reduce_columns.cu takes them. A block does all of a
 * row, so long ones have to be many. */
static bool find_columns(sb_call *call, const sb_cuda_reduce *how, const sb_cuda_row_reduction *reduction,
                         sb_dtype dtype, sb_cuda_column_reduction *columns) {
    const sb_cuda_rows *rows = &reduction->rows;
    int last = rows->outer_rank - 1;
    const int64_t *x = rows->outer_steps[SB_CUDA_ROW_IN], *y = rows->outer_steps[SB_CUDA_ROW_OUT];
    bool is_sum =
        strcmp(how->kernel, "sum") == 0 && (how->finish == SB_CUDA_FINISH_TOTAL || how->finish == SB_CUDA_FINISH_MEAN);
    if (!is_sum || (dtype != SB_F16 && dtype != SB_BF16) || rows->length == 0 || rows->inner_rank != 1 || last > 1 ||
        x[last] != 2 || y[last] != 2 || rows->outer_dims[last] % 8 != 0 ||
        rows->inner_steps[SB_CUDA_ROW_IN][0] % 16 != 0 || (last == 1 && (x[0] % 16 != 0 || y[0] % 16 != 0)) ||
        (intptr_t)rows->data[SB_CUDA_ROW_IN] % 16 != 0 || (intptr_t)rows->data[SB_CUDA_ROW_OUT] % 16 != 0)
        return false;
    /* Where a part is used, other kernels end there. */
    for (int d = 0; d < sb_call_input(call, 0)->rank && how->bounded; d++) {
        if (sb_call_used(call, 0, d) != NULL)
            return false;
    }
    *columns = (sb_cuda_column_reduction){.batches = last == 1 ? rows->outer_dims[0] : 1,
                                          .length = rows->length,
                                          .groups = rows->outer_dims[last] / 8,
                                          .step = rows->inner_steps[SB_CUDA_ROW_IN][0],
                                          .x_batch = last == 1 ? x[0] : 0,
                                          .y_batch = last == 1 ? y[0] : 0,
                                          .lanes = 32,
                                          .mean = how->finish == SB_CUDA_FINISH_MEAN,
                                          .x = rows->data[SB_CUDA_ROW_IN],
                                          .y = rows->data[SB_CUDA_ROW_OUT]};
    while (columns->lanes < SB_CUDA_WAVE && columns->lanes < rows->length)
        columns->lanes *= 2;
    columns->eights = columns->lanes == SB_CUDA_WAVE ? 2 : 4;
    return rows->length <= CUT_LENGTH || columns->batches * columns->groups >= 256;
}

static sb_status launch_columns(sb_call *call, const sb_cuda_column_reduction *columns, const sb_tensor *out,
                                const sb_tensor *in) {
    char name[64];
    snprintf(name, sizeof name, "sb_cuda_reduce_columns_%s", sb_dtype_name(in->dtype));
    sb_cuda_work work = {.module = "reduce_columns",
                         .kernel = name,
                         .parameters = columns,
                         .parameter_bytes = sizeof *columns,
                         .threads = (unsigned)(columns->eights * columns->lanes)};
    int64_t tiles = (columns->groups + columns->eights - 1) / columns->eights;
    work.blocks = sb_cuda_call_blocks(call, columns->batches * tiles);
    sb_cuda_work_reads(&work, in);
    sb_cuda_work_writes(&work, out);
    return sb_cuda_call_launch(call, &work);
}

static sb_status launch_stage(sb_call *call, sb_cuda_row_reduction *parameters, const char *stage,
                              const sb_cuda_reduce *how, const sb_tensor *out, const sb_tensor *in, uint32_t axes,
                              size_t total_bytes) {
    char name[64];
    const char *suffix = sb_dtype_is_float(in->dtype) ? sb_dtype_name(in->dtype) : how->wide ? "number" : "integer";
    snprintf(name, sizeof name, "sb_cuda_reduce_%s_%s_%s", stage, how->kernel, suffix);
    sb_cuda_work work = {
        .module = how->module, .kernel = name, .parameters = parameters, .parameter_bytes = sizeof *parameters};
    if (how->bounded)
        sb_cuda_rows_bound(&parameters->rows, &work, call, 0, axes);
    if (strcmp(stage, "team") == 0) {
        sb_cuda_rows_grid_short(call, &parameters->rows, &work);
    } else if (strcmp(stage, "block") == 0) {
        sb_cuda_rows_grid_long(call, &parameters->rows, parameters->rows.count * parameters->parts, &work);
    } else {
        work.threads = SB_CUDA_WAVE;
        work.blocks = sb_cuda_call_blocks(call, parameters->rows.count);
    }
    bool last = parameters->parts == 1 || strcmp(stage, "parts") == 0;
    sb_cuda_work_reads(&work, in);
    if (last)
        sb_cuda_work_writes(&work, out);
    if (parameters->parts > 1)
        sb_cuda_work_touches(&work, parameters->totals, total_bytes, !last);
    if (parameters->highest != NULL)
        sb_cuda_work_touches(&work, parameters->highest, (size_t)parameters->rows.count * sb_dtype_size(in->dtype),
                             false);
    return sb_cuda_call_launch(call, &work);
}

sb_status sb_cuda_reduce_rows(sb_call *call, const sb_cuda_reduce *how, const sb_tensor *out, const sb_tensor *in,
                              uint32_t axes) {
    sb_tensor view;
    sb_cuda_row_reduction parameters = {.parts = 1,
                                        .highest = how->highest,
                                        .exponent = how->exponent,
                                        .finish = (int32_t)how->finish,
                                        .kind = (int32_t)how->integer,
                                        .dtype = (int32_t)in->dtype};
    sb_cuda_rows_reduced(out, in->rank, in->dims, axes, &view);
    sb_cuda_rows_fill(&parameters.rows, in->rank, in->dims, axes, (const sb_tensor *[]){&view, in, NULL, NULL});
    sb_cuda_rows *rows = &parameters.rows;
    if (rows->count == 0)
        return SB_OK;
    if (has_vectors(how, rows, in->dtype))
        return launch_vectors(call, &parameters, how, out, in, axes);
    sb_cuda_column_reduction columns;
    if (find_columns(call, how, &parameters, in->dtype, &columns))
        return launch_columns(call, &columns, out, in);
    if (sb_cuda_rows_are_short(rows) && rows->inner_rank == 1 && !how->long_only)
        return launch_stage(call, &parameters, "team", how, out, in, axes, 0);
    int64_t multiprocessors = sb_cuda_call_device(call)->multiprocessors;
    size_t bytes = 0;
    if (rows->length > CUT_LENGTH && rows->count < 2 * multiprocessors) {
        void *totals;
        int64_t parts = (rows->length + BLOCK - 1) / BLOCK;
        bytes = (size_t)(rows->count * parts) * sizeof(double);
        SB_TRY(sb_call_workspace(call, bytes, &totals));
        parameters.totals = totals;
        parameters.parts = parts;
    }
    SB_TRY(launch_stage(call, &parameters, "block", how, out, in, axes, bytes));
    if (parameters.parts == 1)
        return SB_OK;
    return launch_stage(call, &parameters, "parts", how, out, in, axes, bytes);
}

/* Each row's largest element, in workspace, for LogSumExp. */
static sb_status find_highest(sb_call *call, const sb_tensor *out, const sb_tensor *in, uint32_t axes,
                              const char **highest) {
    sb_tensor view;
    void *memory;
    size_t rows = (size_t)sb_tensor_elements(out);
    bool real = sb_dtype_is_float(in->dtype);
    SB_TRY(sb_call_workspace(call, rows * sb_dtype_size(in->dtype), &memory));
    memcpy(&view, out, sizeof view);
    view.data = memory;
    *highest = memory;
    sb_cuda_reduce how = {.module = real ? "reduce_float" : "reduce_integer",
                          .kernel = real ? "max" : "exact",
                          .integer = SB_CUDA_INTEGER_MAX,
                          .bounded = true};
    return sb_cuda_reduce_rows(call, &how, &view, in, axes);
}

static sb_status launch_reduce(sb_call *call) {
    const sb_reduce_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int trait = trait_of(call->node), rank = 0;
    uint32_t axes;
    int64_t dims[SB_MAX_RANK], rows = 1, length = 1;
    SB_TRY(sb_axes_of_call(call, &params->axes, input->rank, &axes));
    for (int d = 0; d < input->rank; d++) {
        bool gone = (axes >> d & 1) != 0;
        *(gone ? &length : &rows) *= input->dims[d];
        if (!gone || params->keep)
            dims[rank++] = gone ? 1 : input->dims[d];
    }
    bool real = sb_dtype_is_float(input->dtype), wide = traits[trait].wide;
    if (traits[trait].finish == SB_CUDA_FINISH_MEAN && length == 0 && rows != 0 && !real)
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "the mean of no integers is undefined");
    sb_tensor *output;
    SB_TRY(sb_call_output_shape(call, 0, input->dtype, rank, dims, &output));
    sb_cuda_reduce how = {.module = real ? "reduce_float" : "reduce_integer",
                          .kernel = real || wide ? traits[trait].kernel : "exact",
                          .finish = traits[trait].finish,
                          .integer = traits[trait].integer,
                          .wide = wide,
                          .bounded = true};
    if (how.finish == SB_CUDA_FINISH_LOG_SHIFTED && sb_tensor_elements(output) != 0)
        SB_TRY(find_highest(call, output, input, axes, &how.highest));
    return sb_cuda_reduce_rows(call, &how, output, input, axes);
}

static bool supports_reduce(const sb_kernel_query *query, char *why) {
    return sb_cuda_takes(query, query->inputs[0], SB_SET_PLAIN, why);
}

/* The mean of no integers is an error, which only the plan's extents can show. */
static bool bounded_reduce(const sb_kernel_query *query, int input, int axis) {
    bool mean = traits[trait_of(query->node)].finish == SB_CUDA_FINISH_MEAN;
    return (!mean || sb_dtype_is_float(query->inputs[0]->dtype)) && sb_cuda_rows_bounded(query, input, axis);
}

#define REDUCE(op_name)                                                                                                \
    {                                                                                                                  \
        .op = op_name, .name = "reduce", .supports = supports_reduce, .host_inputs = 2, .bounded = bounded_reduce,     \
        .launch = launch_reduce                                                                                        \
    }

const sb_kernel sb_cuda_kernels_reduce[] = {
    REDUCE("ReduceSum"),
    REDUCE("ReduceMean"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceSumSquare"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    {0},
};
