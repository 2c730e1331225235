/* Kernels of Softmax and LogSoftmax of f32, f16 and bf16, which are computed in f32 and rounded once.
 *
 * The output has the input's order of dimensions in memory. Rows whose elements are adjacent are computed where they lie;
 * those that lie side by side (an axis that is not the innermost one in memory) as many at once as a line of the cache
 * holds; others, and few that lie side by side, are packed: four took 4.7 ns an element as columns and take 1.7. */
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/normalize.h"
#include "cpu/rows/reduce_rows.h"
#include "cpu/spread.h"
#include "cpu/supports.h"
#include "ops/convert_loops.h"
#include "ops/softmax.h"

typedef struct softmax {
    const sb_row_kernels *kernels;
    bool logarithm;
    sb_dtype dtype;
    sb_walk_row *load, *store; /* to f32 and back */
    const char *x;
    char *y;
    int64_t length, x_step, y_step; /* of a row; steps in bytes */
    /* Which row: the dimensions besides the axis. Along the last one, rows of a strip lie side by side. */
    int rank;
    int64_t dims[SB_MAX_RANK], x_steps[SB_MAX_RANK], y_steps[SB_MAX_RANK];
    int64_t strip, strips; /* rows of a piece of work, and pieces along the last dimension */
} softmax;

/* Where piece `index` begins, and how many rows it has. */
static int64_t find_piece(const softmax *work, int64_t index, const char **x, char **y) {
    int last = work->rank - 1;
    int64_t first = index % work->strips * work->strip, rest = index / work->strips;
    *x = work->x + first * work->x_steps[last];
    *y = work->y + first * work->y_steps[last];
    for (int d = last - 1; d >= 0; d--) {
        *x += rest % work->dims[d] * work->x_steps[d];
        *y += rest % work->dims[d] * work->y_steps[d];
        rest /= work->dims[d];
    }
    return work->dims[last] - first < work->strip ? work->dims[last] - first : work->strip;
}

static void run_row(const softmax *work, const float *x, float *y, float *workspace) {
    if (work->logarithm)
        work->kernels->log_softmax(x, y, work->length, workspace);
    else
        work->kernels->softmax(1, work->length, x, 0, y, 0);
}

static void run_adjacent(void *context, int64_t index, void *workspace) {
    const softmax *work = context;
    const int64_t size = (int64_t)sizeof(float), last = work->rank - 1;
    const char *from;
    char *to;
    int64_t rows = find_piece(work, index, &from, &to);
    const int64_t x_stride = work->x_steps[last] / size, y_stride = work->y_steps[last] / size;
    const float *x = (const float *)(const void *)from;
    float *y = (float *)(void *)to;
    if (!work->logarithm)
        work->kernels->softmax(rows, work->length, x, x_stride, y, y_stride);
    for (int64_t r = 0; r < rows && work->logarithm; r++)
        work->kernels->log_softmax(x + r * x_stride, y + r * y_stride, work->length, workspace);
}

static void run_columns(void *context, int64_t index, void *workspace) {
    const softmax *work = context;
    const int64_t size = (int64_t)sizeof(float);
    const char *x;
    char *y;
    int width = (int)find_piece(work, index, &x, &y);
    work->kernels->softmax_columns(work->logarithm, work->length, width, (const float *)(const void *)x,
                                   work->x_step / size, (float *)(void *)y, work->y_step / size, workspace);
}

/* Rows side by side of 16 bits: a strip is widened, computed in place SB_ROW_COLUMNS at a time, and rounded, line by line. The workspace
 * has room for a strip, and behind it what softmax_columns wants. */
static void run_widened_columns(void *context, int64_t index, void *workspace) {
    const softmax *work = context;
    const int64_t size = (int64_t)sb_dtype_size(work->dtype), wide = (int64_t)sizeof(float), strip = work->strip;
    const char *x;
    char *y;
    float *values = workspace, *rest = values + work->length * strip;
    const int64_t width = find_piece(work, index, &x, &y);
    for (int64_t i = 0; i < work->length; i++, x += work->x_step)
        work->load(NULL, width, (char *[]){(char *)(values + i * strip), (char *)(uintptr_t)x},
                   (const int64_t[]){wide, size});
    for (int64_t w = 0; w < width; w += SB_ROW_COLUMNS) {
        const int taken = width - w < SB_ROW_COLUMNS ? (int)(width - w) : SB_ROW_COLUMNS;
        work->kernels->softmax_columns(work->logarithm, work->length, taken, values + w, strip, values + w, strip,
                                       rest);
    }
    for (int64_t i = 0; i < work->length; i++, y += work->y_step)
        work->store(NULL, width, (char *[]){y, (char *)(values + i * strip)}, (const int64_t[]){size, wide});
}

/* Two rows of workspace: one packed, one for the logarithm's terms. */
static void run_packed(void *context, int64_t index, void *workspace) {
    const softmax *work = context;
    const int64_t size = (int64_t)sizeof(float);
    const char *x;
    char *y;
    float *values = workspace;
    int64_t rows = find_piece(work, index, &x, &y);
    for (int64_t r = 0; r < rows; r++, x += work->x_steps[work->rank - 1], y += work->y_steps[work->rank - 1]) {
        char *loaded[2] = {(char *)values, (char *)(uintptr_t)x}, *stored[2] = {y, (char *)values};
        work->load(NULL, work->length, loaded, (const int64_t[]){size, work->x_step});
        run_row(work, values, values, values + work->length);
        work->store(NULL, work->length, stored, (const int64_t[]){work->y_step, size});
    }
}

/* Puts the dimensions besides the row's into `work`, those of 1 left out, with the one along which rows of both sides lie
 * side by side last, where there is one: whether there is. */
static bool find_rows(softmax *work, const sb_tensor *x, const sb_tensor *y, uint32_t axes) {
    const int64_t size = (int64_t)sb_dtype_size(x->dtype);
    int side = -1;
    for (int d = 0; d < x->rank; d++) {
        if ((axes >> d & 1) != 0 || x->dims[d] == 1)
            continue;
        if (x->strides[d] == 1 && y->strides[d] == 1)
            side = work->rank;
        work->dims[work->rank] = x->dims[d];
        work->x_steps[work->rank] = x->strides[d] * size;
        work->y_steps[work->rank++] = y->strides[d] * size;
    }
    if (work->rank == 0)
        work->dims[work->rank++] = 1;
    int last = work->rank - 1;
    if (side >= 0 && side < last) {
        int64_t kept[3] = {work->dims[side], work->x_steps[side], work->y_steps[side]};
        work->dims[side] = work->dims[last];
        work->x_steps[side] = work->x_steps[last];
        work->y_steps[side] = work->y_steps[last];
        work->dims[last] = kept[0];
        work->x_steps[last] = kept[1];
        work->y_steps[last] = kept[2];
    }
    return side >= 0;
}

/* Floats of a strip that is widened: half of a second-level cache, and columns of it at most: a call for each of its lines is worth its
 * while. */
#define WIDENED_FLOATS 65536
#define WIDENED_COLUMNS 64

static int64_t widened_strip(int64_t length) {
    const int64_t columns = WIDENED_FLOATS / length / SB_ROW_COLUMNS * SB_ROW_COLUMNS;
    return columns < SB_ROW_COLUMNS ? SB_ROW_COLUMNS : columns < WIDENED_COLUMNS ? columns : WIDENED_COLUMNS;
}

/* How pieces are computed: the task, the rows of one, and the lines of as many floats as a row has that its workspace holds. */
typedef struct way {
    sb_piece_task *task;
    int64_t strip, lines;
} way;

static way choose_way(const softmax *work, bool beside) {
    const int64_t size = (int64_t)sb_dtype_size(work->dtype), last = work->dims[work->rank - 1];
    const bool adjacent = work->length == 1 || (work->x_step == size && work->y_step == size);
    const bool columns = !adjacent && beside && (last > SB_ROW_COLUMNS || last % 8 == 0);
    if (columns && work->dtype == SB_F32)
        return (way){run_columns, SB_ROW_COLUMNS, SB_ROW_COLUMNS};
    if (columns) {
        const int64_t strip = widened_strip(work->length);
        return (way){run_widened_columns, strip, strip + SB_ROW_COLUMNS};
    }
    /* Several short rows make a piece that is worth handing to a thread. */
    const int64_t rows = work->length < 4096 ? 4096 / work->length : 1;
    return (way){adjacent && work->dtype == SB_F32 ? run_adjacent : run_packed, rows, 2};
}

static sb_status run_softmax(sb_call *call, const sb_tensor *x, const sb_tensor *y, uint32_t axes, softmax *work) {
    const bool beside = find_rows(work, x, y, axes);
    const way way = choose_way(work, beside);
    const int64_t last = work->dims[work->rank - 1];
    work->strip = way.strip;
    work->strips = (last + work->strip - 1) / work->strip;
    int64_t pieces = work->strips;
    for (int d = 0; d < work->rank - 1; d++)
        pieces *= work->dims[d];
    size_t workspace;
    if (__builtin_mul_overflow((size_t)work->length, (size_t)way.lines * sizeof(float), &workspace))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "a row of %lld elements is too long",
                            (long long)work->length);
    return sb_pieces_run(call, pieces, workspace, way.task, work);
}

/* The dimension along which rows lie, if it is one; -1: they are of one element. False: of several dimensions. */
static bool find_axis(const sb_tensor *tensor, uint32_t axes, int *axis) {
    *axis = -1;
    for (int d = 0; d < tensor->rank; d++) {
        if ((axes >> d & 1) == 0 || tensor->dims[d] == 1)
            continue;
        if (*axis >= 0)
            return false;
        *axis = d;
    }
    return true;
}

static sb_status launch_softmax(sb_call *call) {
    sb_tensor *input = sb_call_input(call, 0), *output, *x;
    uint32_t axes = sb_softmax_axes(call->node->params, input->rank);
    int64_t size = (int64_t)sb_dtype_size(input->dtype);
    int axis;
    bool single = find_axis(input, axes, &axis);
    softmax work = {.kernels = sb_row_kernels_for(call->isa),
                    .logarithm = strcmp(call->node->op->name, "LogSoftmax") == 0,
                    .dtype = input->dtype,
                    .load = sb_convert_loop_for(call->isa, SB_F32, input->dtype),
                    .store = sb_convert_loop_for(call->isa, input->dtype, SB_F32),
                    .length = 1,
                    .x_step = size,
                    .y_step = size};
    for (int d = 0; d < input->rank; d++)
        work.length *= (axes >> d & 1) != 0 ? input->dims[d] : 1;
    /* Rows of several dimensions (before operator set 13) are adjacent on both sides in row-major order. */
    SB_TRY(single ? sb_spread_output(call, 1, &input, &output) : sb_call_output(call, 0, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    if (single)
        x = sb_tensor_retain(input);
    else
        SB_TRY(sb_call_contiguous(call, 0, &x));
    if (single && axis >= 0) {
        work.x_step = x->strides[axis] * size;
        work.y_step = output->strides[axis] * size;
    }
    work.x = x->data;
    work.y = output->data;
    sb_status status = run_softmax(call, x, output, axes, &work);
    sb_tensor_release(x);
    return status;
}

const sb_kernel sb_cpu_kernels_softmax[] = {
    {.op = "Softmax", .name = "softmax-rows", .supports = sb_cpu_supports_small_floats, .launch = launch_softmax},
    {.op = "LogSoftmax",
     .name = "log-softmax-rows",
     .supports = sb_cpu_supports_small_floats,
     .launch = launch_softmax},
    {0},
};
