/* Kernels of ArgMax and ArgMin of f32, f16, bf16 and integers of up to 32 bits, and of Hardmax of those floats.
 *
 * Rows go by chunks that the first-level cache holds: the keys of a chunk, their maximum, and where it lies, if it is better than
 * those before. Rows that lie side by side (an axis that is not the last one) are lanes, a strip of them at a time. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/best.h"
#include "ops/convert_loops.h"
#include "ops/ordering.h"
#include "ops/rows.h"
#include "ops/softmax.h"

/* Elements of a chunk, and of a piece of several rows. */
#define CHUNK 1024
#define PIECE_ELEMENTS 8192
/* Rows side by side of a piece. */
#define STRIP 256

static bool supports_arg(const sb_kernel_query *query, char *why) {
    if (sb_best_dtype(query->inputs[0]->dtype) != SB_DTYPE_NONE)
        return true;
    snprintf(why, SB_WHY_BYTES, "%s of %s has no kernel; those of f32, f16, bf16 and integers of up to 32 bits have",
             query->node->op->name, sb_dtype_name(query->inputs[0]->dtype));
    return false;
}

static bool supports_hardmax(const sb_kernel_query *query, char *why) {
    if (sb_best_dtype(query->inputs[0]->dtype) == SB_F32)
        return true;
    snprintf(why, SB_WHY_BYTES, "Hardmax of %s has no kernel; those of f32, f16 and bf16 have",
             sb_dtype_name(query->inputs[0]->dtype));
    return false;
}

typedef struct choosing {
    const sb_best_kernels *kernels;
    sb_rows rows;
    sb_dtype computed; /* f32 or s32 */
    sb_walk_row *load; /* elements to that */
    bool plain;        /* they are of that type */
    bool least, last;
    int64_t *y;            /* places of the best; NULL for Hardmax: */
    sb_rows marks;         /* its output */
    int64_t piece, strips; /* rows of a piece; pieces of rows side by side */
} choosing;

/* Four bytes for each element of a chunk or strip, and for its key. */
typedef struct chunk {
    union {
        float real[CHUNK];
        int32_t integer[CHUNK];
    } values;
    int32_t keys[CHUNK];
} chunk;

/* The keys of `count` elements that lie `step` bytes apart. */
static void find_keys(const choosing *work, int64_t count, const char *x, int64_t step, chunk *chunk) {
    const int64_t size = sizeof(int32_t);
    const void *values = x;
    if (!work->plain || step != size) {
        work->load(NULL, count, (char *const[]){(char *)&chunk->values, (char *)(uintptr_t)x},
                   (const int64_t[]){size, step});
        values = &chunk->values;
    }
    if (work->computed == SB_F32)
        work->kernels->real_keys(count, values, work->least, chunk->keys);
    else
        work->kernels->integer_keys(count, values, work->least, chunk->keys);
}

static int64_t choose_in_row(const choosing *work, const char *x, chunk *chunk) {
    const int64_t length = work->rows.length, step = work->rows.inner_steps[0];
    int64_t best = 0;
    int32_t best_key = 0;
    for (int64_t begin = 0; begin < length; begin += CHUNK) {
        const int64_t count = length - begin < CHUNK ? length - begin : CHUNK;
        int32_t key;
        find_keys(work, count, x + begin * step, step, chunk);
        const int64_t place = work->kernels->find(count, chunk->keys, work->last, &key);
        if (begin == 0 || key > best_key || (work->last && key == best_key)) {
            best = begin + place;
            best_key = key;
        }
    }
    return best;
}

static char *mark_at(const sb_rows *marks, int64_t row, int64_t place) {
    return sb_rows_at(marks, row) + place * marks->inner_steps[0];
}

/* Zeros in `count` rows of Hardmax's output from `row` on; those that lie side by side go together. */
static void clear(const sb_rows *marks, int64_t row, int64_t count) {
    const int last = marks->outer_rank - 1;
    const int64_t size = (int64_t)sb_dtype_size(marks->tensor->dtype), step = marks->inner_steps[0];
    if (step == size || marks->length == 1) {
        for (int64_t r = 0; r < count; r++)
            memset(mark_at(marks, row + r, 0), 0, (size_t)(marks->length * size));
        return;
    }
    const bool together = last >= 0 && marks->outer_steps[last] == size &&
                          row % marks->outer_dims[last] + count <= marks->outer_dims[last];
    for (int64_t r = 0; r < count; r += together ? count : 1) {
        char *at = mark_at(marks, row + r, 0);
        for (int64_t i = 0; i < marks->length; i++)
            memset(at + i * step, 0, (size_t)((together ? count : 1) * size));
    }
}

/* Rows [row, row + count) of Hardmax: places[r] is where row `row + r` has its 1. */
static void mark(const sb_rows *marks, int64_t row, int64_t count, const int64_t *places) {
    static const float one = 1;
    static const uint16_t half = 0x3c00, brain = 0x3f80;
    const sb_dtype dtype = marks->tensor->dtype;
    const void *mark = dtype == SB_F32 ? (const void *)&one : dtype == SB_F16 ? &half : &brain;
    clear(marks, row, count);
    for (int64_t r = 0; r < count; r++)
        memcpy(mark_at(marks, row + r, places[r]), mark, sb_dtype_size(dtype));
}

static void choose_rows(void *context, int64_t index, void *workspace) {
    const choosing *work = context;
    const int64_t begin = index * work->piece, end = begin + work->piece;
    for (int64_t row = begin; row < end && row < work->rows.count; row++) {
        const int64_t place = choose_in_row(work, sb_rows_at(&work->rows, row), workspace);
        if (work->y != NULL)
            work->y[row] = place;
        else
            mark(&work->marks, row, 1, &place);
    }
}

static void choose_columns(void *context, int64_t index, void *workspace) {
    const choosing *work = context;
    const sb_rows *rows = &work->rows;
    const int64_t beside = rows->outer_dims[rows->outer_rank - 1], step = rows->outer_steps[rows->outer_rank - 1];
    const int64_t first = index % work->strips * STRIP, row = index / work->strips * beside + first;
    const int64_t width = beside - first < STRIP ? beside - first : STRIP;
    const char *x = sb_rows_at(rows, row);
    int32_t best[STRIP], places[STRIP] = {0};
    for (int64_t i = 0; i < rows->length; i++, x += rows->inner_steps[0]) {
        chunk *chunk = workspace;
        find_keys(work, width, x, step, chunk);
        if (i == 0)
            memcpy(best, chunk->keys, (size_t)width * sizeof *best);
        else
            work->kernels->beat(width, chunk->keys, (int32_t)i, work->last, best, places);
    }
    int64_t wide[STRIP], *to = work->y != NULL ? work->y + row : wide;
    for (int64_t w = 0; w < width; w++)
        to[w] = places[w];
    if (work->y == NULL)
        mark(&work->marks, row, width, wide);
}

static sb_status run(sb_call *call, choosing *work) {
    const sb_rows *rows = &work->rows;
    const sb_dtype dtype = rows->tensor->dtype;
    work->kernels = sb_best_kernels_for(call->isa);
    work->computed = sb_best_dtype(dtype);
    work->load = sb_convert_loop_for(call->isa, work->computed, dtype);
    work->plain = work->computed == dtype;
    const int64_t beside = sb_rows_side_by_side(rows);
    if (beside >= 8 && rows->length <= INT32_MAX) {
        work->strips = (beside + STRIP - 1) / STRIP;
        return sb_pieces_run(call, rows->count / beside * work->strips, sizeof(chunk), choose_columns, work);
    }
    work->piece = rows->length < PIECE_ELEMENTS ? PIECE_ELEMENTS / rows->length : 1;
    return sb_pieces_run(call, (rows->count - 1) / work->piece + 1, sizeof(chunk), choose_rows, work);
}

static sb_status launch_arg(sb_call *call) {
    const sb_arg_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    const int64_t axis = params->axis < 0 ? params->axis + input->rank : params->axis;
    choosing work = {.least = strcmp(call->node->op->name, "ArgMin") == 0, .last = params->last};
    sb_tensor *output;
    sb_rows_start(&work.rows, input, UINT32_C(1) << axis);
    /* Nothing to do, or something to refuse, which the definition words. */
    if (work.rows.length == 0 || work.rows.count == 0)
        return call->node->op->eval(call);
    SB_TRY(sb_call_output(call, 0, &output));
    work.y = (int64_t *)(void *)output->data;
    return run(call, &work);
}

/* Rows of several dimensions (before operator set 13) are adjacent on both sides in row-major order. */
static sb_status launch_hardmax(sb_call *call) {
    const uint32_t axes = sb_softmax_axes(call->node->params, sb_call_input(call, 0)->rank);
    choosing work = {0};
    sb_tensor *output, *input;
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    sb_rows_start(&work.rows, sb_call_input(call, 0), axes);
    sb_rows_start(&work.marks, output, axes);
    if (work.rows.inner_rank == 1)
        return run(call, &work);
    SB_TRY(sb_call_contiguous(call, 0, &input));
    sb_rows_start(&work.rows, input, axes);
    sb_status status = run(call, &work);
    sb_tensor_release(input);
    return status;
}

const sb_kernel sb_cpu_kernels_arg_reduce[] = {
    {.op = "ArgMax", .name = "argmax-rows", .supports = supports_arg, .launch = launch_arg},
    {.op = "ArgMin", .name = "argmin-rows", .supports = supports_arg, .launch = launch_arg},
    {.op = "Hardmax", .name = "hardmax-rows", .supports = supports_hardmax, .launch = launch_hardmax},
    {0},
};
