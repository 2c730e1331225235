/* MaxPool with indices, and of bytes. Lanes are the output positions along the last axis: elements of an input row are keys
 * (cpu/rows/best.h), and each tap of the window in turn is offered to all positions that see it, in row-major order of the window, so
 * that the first of equal elements stays. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/best.h"
#include "ops/convert_loops.h"
#include "ops/pool.h"

/* Output positions that a thread takes at once, about. */
#define PIECE_POSITIONS 2048

static bool supports_indices(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if (sb_best_dtype(x->dtype) == SB_DTYPE_NONE) {
        snprintf(why, SB_WHY_BYTES, "pools of %s have no kernel", sb_dtype_name(x->dtype));
        return false;
    }
    if (x->rank < 3) {
        snprintf(why, SB_WHY_BYTES, "the pool has no spatial axis");
        return false;
    }
    return true;
}

typedef struct pooling {
    const sb_best_kernels *kernels;
    sb_pool_shape shape;
    sb_dtype dtype, computed; /* the latter f32 or s32 */
    sb_walk_row *load;        /* elements to that; NULL where they are of that type */
    const char *x;
    char *y;
    int64_t *indices;              /* NULL: nobody wants them */
    int64_t steps[SB_WINDOW_AXES]; /* of an axis in a plane, in elements */
    int64_t flat[SB_WINDOW_AXES];  /* the same in the indices, which may count in another order */
    bool same_order;               /* they do not */
    int64_t plane, rows;           /* elements of a plane of x; rows of output positions in one of y */
    int64_t piece, pieces;         /* rows of a piece; pieces of a plane */
} pooling;

/* What a thread computes in: one row of the input as f32 or s32, as keys, and as those that a tap meets at one position after the other;
 * one of the best. */
typedef struct row_state {
    void *values;
    int32_t *keys, *parts, *best, *places;
} row_state;

static int64_t part_length(const sb_window_axis *last) {
    return (last->in + last->stride - 1) / last->stride;
}

/* A stride may be longer than the input: parts without an element need no room. */
static int64_t part_elements(const sb_window_axis *last) {
    return part_length(last) * (last->stride < last->in ? last->stride : last->in);
}

static row_state state_of(const pooling *pool, void *workspace) {
    const sb_window_axis *last = &pool->shape.axis[pool->shape.axes - 1];
    int32_t *at = workspace, *parts = at + 2 * last->in, *best = parts + part_elements(last);
    return (row_state){at, at + last->in, last->stride == 1 ? at + last->in : parts, best, best + last->out};
}

/* Offers the elements of one input row, which begins at `place` of the plane, to all positions. */
static void offer_row(const pooling *pool, const char *plane, int64_t place, const row_state *state) {
    const sb_window_axis *last = &pool->shape.axis[pool->shape.axes - 1];
    const int64_t size = (int64_t)sb_dtype_size(pool->dtype), wide = sizeof(int32_t);
    const void *values = plane + place * size;
    if (pool->load != NULL) {
        pool->load(NULL, last->in, (char *const[]){state->values, (char *)(uintptr_t)values},
                   (const int64_t[]){wide, size});
        values = state->values;
    }
    if (pool->computed == SB_F32)
        pool->kernels->real_keys(last->in, values, false, state->keys);
    else
        pool->kernels->integer_keys(last->in, values, false, state->keys);
    const int64_t stride = last->stride, length = part_length(last);
    if (stride != 1)
        pool->kernels->split(last->in, state->keys, stride, state->parts, length);
    for (int64_t tap = 0; tap < last->kernel; tap++) {
        /* Position p sees element p * stride + shift. */
        const int64_t shift = tap * last->dilation - last->begin;
        if (shift >= last->in)
            break;
        const int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0, at = first * stride + shift;
        const int64_t behind = (last->in - 1 - shift) / stride + 1, end = behind < last->out ? behind : last->out;
        if (first < end)
            pool->kernels->beat_apart(end - first, state->parts + at % stride * length + at / stride,
                                      (int32_t)(place + at), (int32_t)stride, state->best + first,
                                      state->places + first);
    }
}

/* How the output counts the element at `place` of a plane. */
static int64_t index_in_plane(const pooling *pool, int64_t place) {
    int64_t index = 0;
    for (int d = 0; d < pool->shape.axes; d++) {
        index += place / pool->steps[d] * pool->flat[d];
        place %= pool->steps[d];
    }
    return index;
}

/* `size` is a constant wherever it matters. */
static inline __attribute__((always_inline)) void keep_elements(const pooling *pool, int64_t count, const char *x,
                                                                char *y, const int32_t *places, size_t size) {
    for (int64_t p = 0; p < count; p++) {
        if (places[p] < 0)
            sb_pool_store_least(pool->dtype, y + (size_t)p * size);
        else
            memcpy(y + (size_t)p * size, x + (size_t)places[p] * size, size);
    }
}

static void keep_row(const pooling *pool, int64_t plane, int64_t row, const row_state *state) {
    const int64_t out = pool->shape.axis[pool->shape.axes - 1].out, at = (plane * pool->rows + row) * out;
    const size_t size = sb_dtype_size(pool->dtype);
    const char *x = pool->x + (size_t)(plane * pool->plane) * size;
    char *y = pool->y + (size_t)at * size;
    if (size == sizeof(uint32_t))
        keep_elements(pool, out, x, y, state->places, sizeof(uint32_t));
    else if (size == sizeof(uint16_t))
        keep_elements(pool, out, x, y, state->places, sizeof(uint16_t));
    else
        keep_elements(pool, out, x, y, state->places, size);
    if (pool->indices == NULL)
        return;
    int64_t *indices = pool->indices + at;
    const int64_t first = plane * pool->plane;
    for (int64_t p = 0; p < out && pool->same_order; p++)
        indices[p] = state->places[p] < 0 ? -1 : first + state->places[p];
    for (int64_t p = 0; p < out && !pool->same_order; p++)
        indices[p] = state->places[p] < 0 ? -1 : first + index_in_plane(pool, state->places[p]);
}

/* One row of output positions: all taps along the other axes, in row-major order. */
static void pool_row(const pooling *pool, int64_t plane, int64_t row, const row_state *state) {
    const sb_pool_shape *shape = &pool->shape;
    const int outer = shape->axes - 1;
    const char *x = pool->x + (size_t)(plane * pool->plane) * sb_dtype_size(pool->dtype);
    int64_t start[SB_WINDOW_AXES], taps[SB_WINDOW_AXES], tap[SB_WINDOW_AXES] = {0}, rest = row;
    bool any = true;
    for (int64_t p = 0; p < shape->axis[outer].out; p++) {
        state->best[p] = INT32_MIN;
        state->places[p] = -1;
    }
    for (int d = outer - 1; d >= 0; d--) {
        const sb_window_axis *axis = &shape->axis[d];
        const int64_t at = rest % axis->out;
        int64_t first, last;
        rest /= axis->out;
        sb_pool_taps(axis, at, &first, &last);
        start[d] = at * axis->stride - axis->begin + first * axis->dilation;
        taps[d] = last - first;
        any = any && taps[d] > 0;
    }
    do {
        int64_t place = 0;
        for (int d = 0; d < outer && any; d++)
            place += (start[d] + tap[d] * shape->axis[d].dilation) * pool->steps[d];
        if (any)
            offer_row(pool, x, place, state);
    } while (any && sb_window_next(outer, tap, taps));
    keep_row(pool, plane, row, state);
}

static void pool_rows(void *context, int64_t index, void *workspace) {
    const pooling *pool = context;
    const row_state state = state_of(pool, workspace);
    const int64_t plane = index / pool->pieces, begin = index % pool->pieces * pool->piece;
    for (int64_t row = begin; row < begin + pool->piece && row < pool->rows; row++)
        pool_row(pool, plane, row, &state);
}

/* How elements of a plane are numbered: in memory, and in the indices. */
static void number_elements(pooling *pool, bool column_major) {
    const int axes = pool->shape.axes;
    int64_t flat = 1;
    pool->plane = 1;
    for (int d = axes - 1; d >= 0; d--) {
        pool->steps[d] = pool->plane;
        pool->plane *= pool->shape.axis[d].in;
    }
    for (int i = 0; i < axes; i++) {
        const int d = column_major ? i : axes - 1 - i;
        pool->flat[d] = flat;
        flat *= pool->shape.axis[d].in;
    }
    pool->same_order = !column_major;
}

static sb_status run(sb_call *call, pooling *pool, sb_tensor *x) {
    const sb_window_axis *last = &pool->shape.axis[pool->shape.axes - 1];
    const size_t workspace = (size_t)(2 * last->in + part_elements(last) + 2 * last->out) * sizeof(int32_t);
    pool->x = x->data;
    pool->dtype = x->dtype;
    pool->computed = sb_best_dtype(x->dtype);
    if (pool->computed != x->dtype)
        pool->load = sb_convert_loop_for(call->isa, pool->computed, x->dtype);
    pool->kernels = sb_best_kernels_for(call->isa);
    pool->rows = pool->shape.positions / last->out;
    pool->piece = last->out < PIECE_POSITIONS ? PIECE_POSITIONS / last->out : 1;
    pool->pieces = (pool->rows + pool->piece - 1) / pool->piece;
    return sb_pieces_run(call, x->dims[0] * x->dims[1] * pool->pieces, workspace, pool_rows, pool);
}

static sb_status launch_indices(sb_call *call) {
    const sb_pool_params *params = call->node->params;
    sb_tensor *y, *indices = NULL, *x;
    pooling pool = {NULL};
    SB_TRY(sb_call_output(call, 0, &y));
    if (sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &indices));
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    sb_pool_shape_of(&params->window, sb_call_input(call, 0), y->dims, &pool.shape);
    number_elements(&pool, params->column_major);
    if (pool.plane > INT32_MAX)
        return call->node->op->eval(call);
    pool.y = y->data;
    pool.indices = indices != NULL ? (int64_t *)(void *)indices->data : NULL;
    SB_TRY(sb_call_contiguous(call, 0, &x));
    sb_status status = run(call, &pool, x);
    sb_tensor_release(x);
    return status;
}

const sb_kernel sb_cpu_kernels_pool_max[] = {
    {.op = "MaxPool", .name = "max-pool-indices", .supports = supports_indices, .launch = launch_indices},
    {0},
};
