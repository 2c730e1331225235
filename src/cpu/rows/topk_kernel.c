/* The kernel of TopK of f32, f16, bf16 and integers of up to 32 bits.
 *
 * A line's best k are a heap whose root is the worst of them, as in the definition. Its elements are one number each, key and index,
 * and keys of a chunk that are not above the root are passed over by vectors: of k out of many, few are. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/best.h"
#include "ops/convert_loops.h"
#include "ops/ordering.h"
#include "ops/rows.h"

/* Elements of a chunk, and of a piece of several lines. */
#define CHUNK 1024
#define PIECE_ELEMENTS 8192

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
    int64_t k, size, piece; /* bytes of an element; lines of a piece */
} ordering;

/* Four bytes for each element of a chunk, and for its key; the heap follows. */
typedef struct chunk {
    union {
        float real[CHUNK];
        int32_t integer[CHUNK];
    } values;
    int32_t keys[CHUNK];
} chunk;

static char *row_start(const sb_rows *rows, int64_t row) {
    char *at = rows->tensor->data;
    for (int d = rows->outer_rank - 1; d >= 0; d--) {
        at += row % rows->outer_dims[d] * rows->outer_steps[d];
        row /= rows->outer_dims[d];
    }
    return at;
}

static void find_keys(const ordering *work, int64_t count, char *x, chunk *chunk) {
    const int64_t size = sizeof(int32_t), step = work->lines.inner_steps[0];
    const void *values = x;
    if (!work->plain || step != size) {
        work->load(NULL, count, (char *const[]){(char *)&chunk->values, x}, (const int64_t[]){size, step});
        values = &chunk->values;
    }
    if (work->computed == SB_F32)
        work->kernels->real_keys(count, values, !work->largest, chunk->keys);
    else
        work->kernels->integer_keys(count, values, !work->largest, chunk->keys);
}

/* Larger for what comes first: of larger keys, and of equal ones of the lower index. */
static int64_t rank_of(int32_t key, int64_t index) {
    return (int64_t)((uint64_t)(uint32_t)key << 32 | (uint64_t)(~(uint32_t)index));
}

static int64_t index_of(int64_t rank) {
    return (int64_t)(~(uint32_t)((uint64_t)rank & UINT32_MAX));
}

static void sift(int64_t *heap, int64_t count, int64_t at) {
    const int64_t sifted = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= sifted)
            break;
        heap[at] = heap[child];
    }
    heap[at] = sifted;
}

/* Offers a chunk to a heap that is full. */
static void offer(const ordering *work, int64_t begin, int64_t first, int64_t count, const int32_t *keys,
                  int64_t *heap) {
    for (int64_t i = first; i < count; i++) {
        i += work->kernels->above(count - i, keys + i, (int32_t)(heap[0] >> 32));
        if (i == count)
            return;
        heap[0] = rank_of(keys[i], begin + i);
        sift(heap, work->k, 0);
    }
}

static void select_line(const ordering *work, char *x, chunk *chunk, int64_t *heap) {
    const int64_t length = work->lines.length, k = work->k;
    for (int64_t begin = 0; begin < length; begin += CHUNK) {
        const int64_t count = length - begin < CHUNK ? length - begin : CHUNK;
        int64_t i = 0;
        find_keys(work, count, x + begin * work->lines.inner_steps[0], chunk);
        for (; i < count && begin + i < k; i++)
            heap[begin + i] = rank_of(chunk->keys[i], begin + i);
        for (int64_t at = k / 2 - 1; i > 0 && begin + i == k && at >= 0; at--)
            sift(heap, k, at);
        offer(work, begin, i, count, chunk->keys, heap);
    }
    /* The worst one goes last, again and again. */
    for (int64_t last = k - 1; last > 0; last--) {
        const int64_t worst = heap[0];
        heap[0] = heap[last];
        heap[last] = worst;
        sift(heap, last, 0);
    }
}

static void order_lines(void *context, int64_t piece, void *workspace) {
    const ordering *work = context;
    const int64_t begin = piece * work->piece, end = begin + work->piece;
    chunk *chunk = workspace;
    int64_t *heap = (int64_t *)(void *)(chunk + 1);
    for (int64_t line = begin; line < end && line < work->lines.count; line++) {
        char *x = row_start(&work->lines, line), *value = row_start(&work->values, line);
        select_line(work, x, chunk, heap);
        for (int64_t i = 0; i < work->k; i++)
            memcpy(value + i * work->values.inner_steps[0], x + index_of(heap[i]) * work->lines.inner_steps[0],
                   (size_t)work->size);
        if (work->indices.tensor == NULL)
            continue;
        char *index = row_start(&work->indices, line);
        for (int64_t i = 0; i < work->k; i++)
            *(int64_t *)(void *)(index + i * work->indices.inner_steps[0]) = index_of(heap[i]);
    }
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
    work.piece = work.lines.length < PIECE_ELEMENTS ? PIECE_ELEMENTS / work.lines.length : 1;
    return sb_pieces_run(call, (work.lines.count - 1) / work.piece + 1,
                         sizeof(chunk) + (size_t)work.k * sizeof(int64_t), order_lines, &work);
}

const sb_kernel sb_cpu_kernels_topk[] = {
    {.op = "TopK", .name = "topk-lines", .supports = supports_topk, .finds_extents = true, .launch = launch_topk},
    {0},
};
