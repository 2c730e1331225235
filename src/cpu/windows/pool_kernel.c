/* MaxPool and AveragePool in f32, with channels innermost in memory. f16 and bf16 are
 * widened first, and rounded once. */
#include <stdio.h>
#include <string.h>

#include "cpu/channels_last.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/spread.h"
#include "cpu/windows/pool_rows.h"
#include "ops/convert_loops.h"
#include "ops/pool.h"

/* Output positions that a thread takes at once. */
#define BLOCK 32

static bool supports_pool(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if (x->dtype != SB_F32 && x->dtype != SB_F16 && x->dtype != SB_BF16) {
        snprintf(why, SB_WHY_BYTES, "pools of %s have no kernel", sb_dtype_name(x->dtype));
        return false;
    }
    if (query->node->output_count > 1 && query->node->outputs[1] != SB_NO_VALUE) {
        snprintf(why, SB_WHY_BYTES, "pools that give indices have no kernel with channels innermost");
        return false;
    }
    if (x->rank < 3) {
        snprintf(why, SB_WHY_BYTES, "the pool has no spatial axis");
        return false;
    }
    return true;
}

typedef struct pooling {
    const sb_pool_kernels *kernels;
    const sb_pool_params *params;
    bool averages;
    sb_pool_shape shape;
    const float *x; /* channels innermost, adjacent */
    int64_t x_batch, x_strides[SB_WINDOW_AXES];
    sb_tensor *y;       /* [batch][positions][channels] in memory */
    sb_walk_row *round; /* from f32 to y's dtype; NULL where that is f32 */
} pooling;

/* Where `count` results from element `at` of y on are computed: in y itself, or in `wide`. */
static float *results_at(const pooling *pool, int64_t at, float *wide) {
    return pool->round != NULL ? wide : (float *)(void *)pool->y->data + at;
}

/* Puts results that are not in y there. */
static void keep_results(const pooling *pool, int64_t at, int64_t count, float *wide) {
    const int64_t size = sizeof(uint16_t);
    if (pool->round != NULL)
        pool->round(NULL, count, (char *const[]){pool->y->data + at * size, (char *)wide},
                    (const int64_t[]){size, (int64_t)sizeof *wide});
}

/* Where the channels of x are not adjacent, or not of f32, a copy in which they are. */
static sb_status find_channels_last(sb_call *call, sb_tensor *x, pooling *pool) {
    int axes = x->rank - 2;
    pool->x = (const float *)(const void *)x->data;
    pool->x_batch = x->strides[0];
    memcpy(pool->x_strides, x->strides + 2, (size_t)axes * sizeof *pool->x_strides);
    if (x->dtype == SB_F32 && (x->strides[1] == 1 || x->dims[1] == 1))
        return SB_OK;
    int64_t strides[SB_MAX_RANK];
    if (x->dtype == SB_F32) {
        SB_TRY(sb_channels_last_copy(call, x, &pool->x, strides));
    } else {
        pool->round = sb_convert_loop_for(call->isa, x->dtype, SB_F32);
        SB_TRY(sb_channels_last_widen(call, x, &pool->x, strides));
    }
    pool->x_batch = strides[0];
    memcpy(pool->x_strides, strides + 1, (size_t)axes * sizeof *pool->x_strides);
    return SB_OK;
}

/* How many windows from `position` on lie inside of the input, of the `most` next ones in that row; sets where the first
 * one's first element is. */
static int64_t count_inside(const pooling *pool, const int64_t *position, int64_t most, int64_t *first) {
    int64_t count = 0;
    *first = 0;
    for (int i = 0; i < pool->shape.axes; i++) {
        const sb_window_axis *axis = &pool->shape.axis[i];
        const int64_t start = position[i] * axis->stride - axis->begin;
        const int64_t behind = axis->in - 1 - (axis->kernel - 1) * axis->dilation - start;
        if (start < 0 || behind < 0)
            return 0;
        *first += start * pool->x_strides[i];
        const int64_t left = axis->out - position[i];
        count = behind / axis->stride + 1 < left ? behind / axis->stride + 1 : left;
    }
    return count < most ? count : most;
}

/* The offsets from its first element of all elements of a window that lies inside; gives their number, 0 where none can. */
static int64_t find_offsets(const pooling *pool, int64_t *offsets) {
    int64_t tap[SB_WINDOW_AXES] = {0}, kernel[SB_WINDOW_AXES], count = 0;
    for (int i = 0; i < pool->shape.axes; i++) {
        kernel[i] = pool->shape.axis[i].kernel;
        if ((kernel[i] - 1) * pool->shape.axis[i].dilation >= pool->shape.axis[i].in)
            return 0;
    }
    do {
        offsets[count] = 0;
        for (int i = 0; i < pool->shape.axes; i++)
            offsets[count] += tap[i] * pool->shape.axis[i].dilation * pool->x_strides[i];
        count++;
    } while (sb_window_next(pool->shape.axes, tap, kernel));
    return count;
}

static void pool_block(void *context, int64_t index, void *workspace) {
    const pooling *pool = context;
    const sb_pool_shape *shape = &pool->shape;
    int64_t begin = index * BLOCK, end = begin + BLOCK, all = shape->batch * shape->positions;
    int64_t position[SB_WINDOW_AXES], extents[SB_WINDOW_AXES], *offsets = workspace;
    int64_t *whole = offsets + shape->capacity, first;
    float *wide = (float *)(void *)(whole + shape->capacity);
    const sb_window_axis *last = &shape->axis[shape->axes - 1];
    const int64_t all_taps = find_offsets(pool, whole);
    int64_t rest = begin % shape->positions;
    for (int i = shape->axes - 1; i >= 0; i--) {
        extents[i] = shape->axis[i].out;
        position[i] = rest % extents[i];
        rest /= extents[i];
    }
    end = end < all ? end : all;
    for (int64_t at = begin, windows; at < end; at += windows) {
        sb_pool_run run = {.channels = shape->channels, .x = pool->x + at / shape->positions * pool->x_batch};
        run.step = last->stride * pool->x_strides[shape->axes - 1];
        run.windows = all_taps > 0 ? count_inside(pool, position, end - at, &first) : 0;
        windows = run.windows;
        if (windows > 0) {
            run.count = all_taps;
            run.offsets = whole;
            run.x += first;
            /* Windows that lie as closely as channels are more channels of one: lanes are full however few there are. */
            if (run.step == run.channels) {
                run.channels *= windows;
                run.windows = 1;
            }
        } else {
            run.windows = windows = 1;
            run.count = sb_pool_window(shape, pool->x_strides, position, offsets);
            run.offsets = offsets;
        }
        float *y = results_at(pool, at * shape->channels, wide);
        if (pool->averages) {
            int64_t taps = pool->params->count_include_pad ? sb_pool_padded_taps(shape, position) : run.count;
            pool->kernels->average(&run, (float)taps, y);
        } else {
            pool->kernels->max(&run, y);
        }
        keep_results(pool, at * shape->channels, windows * shape->channels, y);
        position[shape->axes - 1] += windows - 1;
        sb_window_next(shape->axes, position, extents); /* begins again with the next batch index */
    }
}

static sb_status run_pool(sb_call *call, pooling *pool) {
    int64_t all = pool->shape.batch * pool->shape.positions;
    size_t workspace = 2 * (size_t)pool->shape.capacity * sizeof(int64_t);
    if (pool->round != NULL)
        workspace += BLOCK * (size_t)pool->shape.channels * sizeof(float);
    return sb_pieces_run(call, (all + BLOCK - 1) / BLOCK, workspace, pool_block, pool);
}

/* The elements that the maxima of rows are, of which each element of a window's last axis is looked at once: all positions, but for those
 * of the input along the other axes. */
static int64_t count_row_maxima(const sb_pool_shape *shape) {
    int64_t count = shape->axis[shape->axes - 1].out;
    for (int i = 0; i < shape->axes - 1; i++)
        count *= shape->axis[i].in;
    return count;
}

/* Whether maxima of rows first, and of those then, take much less than all elements of each window: those of 5 x 5 do. */
static bool goes_by_rows(const pooling *pool) {
    const sb_pool_shape *shape = &pool->shape;
    const double last = (double)shape->axis[shape->axes - 1].kernel;
    double others = 1;
    for (int i = 0; i < shape->axes - 1; i++)
        others *= (double)shape->axis[i].kernel;
    const double rows = (double)count_row_maxima(shape), positions = (double)shape->positions;
    return !pool->averages && others > 1 && last > 1 &&
           1.5 * (rows * (last + 2) + positions * others) < positions * others * last;
}

/* An axis of which each position sees one element. */
static sb_window_axis still(int64_t extent) {
    return (sb_window_axis){.in = extent, .out = extent, .kernel = 1, .stride = 1, .dilation = 1};
}

/* Maxima along the last axis into memory of the call, and of these along the others: a maximum is the same in any order. */
static sb_status run_by_rows(sb_call *call, pooling *pool) {
    const int last = pool->shape.axes - 1;
    sb_pool_shape *shape = &pool->shape;
    pooling rows = *pool;
    sb_tensor maxima = {.dtype = SB_F32};
    void *memory;
    rows.shape.positions = count_row_maxima(shape);
    const int64_t each = rows.shape.positions * shape->channels;
    SB_TRY(sb_call_workspace(call, (size_t)(shape->batch * each) * sizeof(float), &memory));
    maxima.data = memory;
    rows.y = &maxima;
    rows.round = NULL;
    for (int i = 0; i < last; i++)
        rows.shape.axis[i] = still(shape->axis[i].in);
    SB_TRY(run_pool(call, &rows));
    shape->axis[last] = still(shape->axis[last].out);
    pool->x = memory;
    pool->x_batch = each;
    int64_t step = shape->channels;
    for (int i = last; i >= 0; step *= shape->axis[i--].in)
        pool->x_strides[i] = step;
    return run_pool(call, pool);
}

static sb_status launch_pool(sb_call *call) {
    sb_tensor *x = sb_call_input(call, 0);
    pooling pool = {.kernels = sb_pool_kernels_for(call->isa),
                    .params = call->node->params,
                    .averages = strcmp(call->node->op->name, "AveragePool") == 0};
    SB_TRY(sb_channels_last_output(call, x->rank, &pool.y));
    if (sb_tensor_elements(pool.y) == 0)
        return SB_OK;
    sb_pool_shape_of(&pool.params->window, x, pool.y->dims, &pool.shape);
    SB_TRY(find_channels_last(call, x, &pool));
    return goes_by_rows(&pool) ? run_by_rows(call, &pool) : run_pool(call, &pool);
}

#define POOL_KERNEL(op_name, launcher)                                                                                 \
    { .op = op_name, .name = "pool-channels-last", .supports = supports_pool, .launch = launcher }

const sb_kernel sb_cpu_kernels_pool[] = {
    POOL_KERNEL("MaxPool", launch_pool),
    POOL_KERNEL("AveragePool", launch_pool),
    {0},
};
