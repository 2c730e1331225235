/* The kernel of TopK of f32, f16, bf16 and integers of up to 32 bits: the keys of a line, and the best of them (topk_select.h). Lines that
 * lie side by side are read some at a time, as far as the second-level cache holds their keys: by itself, each of their elements is in
 * another line of the cache. */
#include <stdio.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/topk_select.h"
#include "ops/convert_loops.h"
#include "ops/moving.h"
#include "ops/ordering.h"
#include "ops/rows.h"

/* Elements that are widened at once, and those of a piece of several lines. */
#define CHUNK 1024
#define PIECE_ELEMENTS 8192
/* Lines side by side that are read together, of at most so many elements each. */
#define STRIP 16
#define STRIP_LENGTH 4096

static bool supports_topk(const sb_kernel_query *query, char *why) {
    if (sb_best_dtype(query->inputs[0]->dtype) != SB_DTYPE_NONE)
        return true;
    snprintf(why, SB_WHY_BYTES, "TopK of %s has no kernel; those of f32, f16, bf16 and integers of up to 32 bits have",
             sb_dtype_name(query->inputs[0]->dtype));
    return false;
}

typedef struct ordering {
    const sb_best_kernels *kernels;
    sb_rows lines, values, indices; /* indices.tensor: NULL where nobody wants them */
    sb_dtype computed;              /* f32 or s32 */
    sb_walk_row *load;              /* elements to that */
    bool plain, largest;
    int64_t k, size;               /* size: bytes of an element */
    int64_t piece, strips;         /* lines of a piece; strips of lines side by side */
    size_t keys_bytes, best_bytes; /* of a thread's workspace, before the memory of the selection */
} ordering;

/* The keys of `count` elements that lie `step` bytes apart, at most CHUNK where they are not read where they lie. */
static void find_keys(const ordering *work, int64_t count, char *x, int64_t step, int32_t *keys) {
    const int64_t size = sizeof(int32_t);
    union {
        float real[CHUNK];
        int32_t integer[CHUNK];
    } wide;
    const void *values = x;
    if (!work->plain || step != size) {
        work->load(NULL, count, (char *const[]){(char *)&wide, x}, (const int64_t[]){size, step});
        values = &wide;
    }
    if (work->computed == SB_F32)
        work->kernels->real_keys(count, values, !work->largest, keys);
    else
        work->kernels->integer_keys(count, values, !work->largest, keys);
}

static void find_line_keys(const ordering *work, char *x, int32_t *keys) {
    const int64_t length = work->lines.length, step = work->lines.inner_steps[0];
    for (int64_t begin = 0; begin < length; begin += CHUNK)
        find_keys(work, length - begin < CHUNK ? length - begin : CHUNK, x + begin * step, step, keys + begin);
}

/* Those of `count` lines side by side, line by line. */
static void find_strip_keys(const ordering *work, int64_t count, char *x, int32_t *keys) {
    const int64_t length = work->lines.length;
    for (int64_t i = 0; i < length; i++, x += work->lines.inner_steps[0]) {
        int32_t row[STRIP];
        find_keys(work, count, x, work->size, row);
        for (int64_t w = 0; w < count; w++)
            keys[w * length + i] = row[w];
    }
}

static void order_line(const ordering *work, int64_t line, const int32_t *keys, char *workspace) {
    int64_t *best = (int64_t *)(void *)(workspace + work->keys_bytes);
    const char *x = sb_rows_at(&work->lines, line);
    char *value = sb_rows_at(&work->values, line);
    sb_topk_select(work->kernels, work->lines.length, keys, work->k, best,
                   workspace + work->keys_bytes + work->best_bytes);
    for (int64_t i = 0; i < work->k; i++)
        sb_move_element(value + i * work->values.inner_steps[0], x + best[i] * work->lines.inner_steps[0],
                        (size_t)work->size);
    if (work->indices.tensor == NULL)
        return;
    char *index = sb_rows_at(&work->indices, line);
    for (int64_t i = 0; i < work->k; i++)
        *(int64_t *)(void *)(index + i * work->indices.inner_steps[0]) = best[i];
}

static void order_lines(void *context, int64_t piece, void *workspace) {
    const ordering *work = context;
    const int64_t begin = piece * work->piece, end = begin + work->piece;
    for (int64_t line = begin; line < end && line < work->lines.count; line++) {
        find_line_keys(work, sb_rows_at(&work->lines, line), workspace);
        order_line(work, line, workspace, workspace);
    }
}

static void order_strip(void *context, int64_t index, void *workspace) {
    const ordering *work = context;
    const int64_t beside = work->lines.outer_dims[work->lines.outer_rank - 1], first = index % work->strips * STRIP;
    const int64_t line = index / work->strips * beside + first;
    const int64_t count = beside - first < STRIP ? beside - first : STRIP;
    const int32_t *keys = workspace;
    find_strip_keys(work, count, sb_rows_at(&work->lines, line), workspace);
    for (int64_t w = 0; w < count; w++)
        order_line(work, line + w, keys + w * work->lines.length, workspace);
}

static sb_status run(sb_call *call, ordering *work) {
    const int64_t length = work->lines.length, count = work->lines.count;
    const int64_t beside = sb_rows_side_by_side(&work->lines);
    const bool strips = beside >= STRIP / 2 && length <= STRIP_LENGTH;
    const size_t memory = sb_topk_select_bytes(length, work->k);
    work->keys_bytes = (size_t)((strips ? STRIP : 1) * (length + length % 2)) * sizeof(int32_t);
    work->best_bytes = (size_t)work->k * sizeof(int64_t);
    size_t bytes;
    if (__builtin_add_overflow(work->keys_bytes + work->best_bytes, memory, &bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    if (strips) {
        work->strips = (beside + STRIP - 1) / STRIP;
        return sb_pieces_run(call, count / beside * work->strips, bytes, order_strip, work);
    }
    work->piece = length < PIECE_ELEMENTS ? PIECE_ELEMENTS / length : 1;
    return sb_pieces_run(call, (count - 1) / work->piece + 1, bytes, order_lines, work);
}

static sb_status launch_topk(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *values, *indices;
    ordering work = {.kernels = sb_best_kernels_for(call->isa),
                     .computed = sb_best_dtype(input->dtype),
                     .largest = ((const sb_topk_params *)call->node->params)->largest,
                     .size = (int64_t)sb_dtype_size(input->dtype)};
    int axis;
    SB_TRY(sb_topk_outputs(call, &axis, &work.k, &values, &indices));
    if (sb_tensor_elements(values) == 0)
        return SB_OK;
    if (input->dims[axis] > INT32_MAX)
        return call->node->op->eval(call);
    sb_rows_start(&work.lines, input, UINT32_C(1) << axis);
    sb_rows_start(&work.values, values, UINT32_C(1) << axis);
    if (indices != NULL)
        sb_rows_start(&work.indices, indices, UINT32_C(1) << axis);
    work.load = sb_convert_loop_for(call->isa, work.computed, input->dtype);
    work.plain = work.computed == input->dtype;
    return run(call, &work);
}

const sb_kernel sb_cpu_kernels_topk[] = {
    {.op = "TopK", .name = "topk-lines", .supports = supports_topk, .finds_extents = true, .launch = launch_topk},
    {0},
};
