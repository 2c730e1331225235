/* The kernels of InstanceNormalization and GroupNormalization in f32, f16 and bf16.
 *
 * A group's row is adjacent in row-major order, and 16 bits are widened to f32 in the first-level cache, as for
 * LayerNormalization. Rows of one channel each that lie side by side, as a convolution leaves its channels, are computed as many
 * at once as a line of the cache holds, and stay in that order. */
#include <stdio.h>
#include <string.h>

#include "cpu/channels_last.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/factor.h"
#include "cpu/rows/normalize.h"
#include "cpu/rows/reduce_rows.h"
#include "cpu/spread.h"
#include "ops/convert_loops.h"
#include "ops/row_normalization.h"

/* Elements that a thread takes at once, about. */
#define PIECE_ELEMENTS 8192

static bool is_computed_in_f32(sb_dtype dtype) {
    return dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16;
}

static bool supports_groups(const sb_kernel_query *query, char *why) {
    for (int i = 0; i < 3; i++) {
        if (is_computed_in_f32(query->inputs[i]->dtype))
            continue;
        snprintf(why, SB_WHY_BYTES, "%s of %s has no kernel; those of f32, f16 and bf16 have", query->node->op->name,
                 sb_dtype_name(query->inputs[i]->dtype));
        return false;
    }
    return true;
}

typedef struct group_norm {
    const sb_row_kernels *kernels;
    sb_walk_row *widen, *round; /* to f32 and back; NULL for f32 */
    const char *x;
    char *y;
    int64_t size;                 /* bytes of an element of x and y */
    int64_t count, length, piece; /* rows, elements of one, rows that a thread takes at once */
    /* Row r has the `advance` factors from (r % period) * advance on, each for `repeat` elements. */
    int64_t period, advance, repeat;
    const float *scale, *bias;
    float epsilon;
    /* Of rows side by side, in elements: */
    int64_t x_batch, y_batch, x_step, y_step, strips;
} group_norm;

/* ---- adjacent rows ---- */

static void normalize_row(const group_norm *work, int64_t row, float *workspace) {
    const int64_t wide = sizeof(float), at = row * work->length * work->size;
    const int64_t factor = row % work->period * work->advance;
    const float *x = work->widen != NULL ? workspace : (const float *)(const void *)(work->x + at);
    float *y = work->widen != NULL ? workspace : (float *)(void *)(work->y + at);
    if (work->widen != NULL)
        work->widen(NULL, work->length, (char *const[]){(char *)workspace, (char *)(uintptr_t)(work->x + at)},
                    (const int64_t[]){wide, work->size});
    work->kernels->group_norm(x, y, work->length, work->repeat, work->scale + factor, work->bias + factor,
                              work->epsilon);
    if (work->round != NULL)
        work->round(NULL, work->length, (char *const[]){work->y + at, (char *)workspace},
                    (const int64_t[]){work->size, wide});
}

static void normalize_rows(void *context, int64_t index, void *workspace) {
    const group_norm *work = context;
    int64_t begin = index * work->piece, end = begin + work->piece;
    for (int64_t row = begin; row < end && row < work->count; row++)
        normalize_row(work, row, workspace);
}

static sb_status run_adjacent(sb_call *call, group_norm *work) {
    sb_tensor *x, *y;
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(sb_call_contiguous(call, 0, &x));
    if (x->dtype != SB_F32) {
        work->widen = sb_convert_loop_for(call->isa, SB_F32, x->dtype);
        work->round = sb_convert_loop_for(call->isa, x->dtype, SB_F32);
    }
    work->x = x->data;
    work->y = y->data;
    work->size = (int64_t)sb_dtype_size(x->dtype);
    work->piece = work->length < PIECE_ELEMENTS ? PIECE_ELEMENTS / work->length : 1;
    sb_status status =
        sb_pieces_run(call, (work->count - 1) / work->piece + 1,
                      work->widen != NULL ? (size_t)work->length * sizeof(float) : 0, normalize_rows, work);
    sb_tensor_release(x);
    return status;
}

/* ---- rows side by side ---- */

static void normalize_columns(void *context, int64_t index, void *workspace) {
    const group_norm *work = context;
    int64_t batch = index / work->strips, first = index % work->strips * SB_ROW_COLUMNS;
    int64_t left = work->period - first;
    const float *x = (const float *)(const void *)work->x + batch * work->x_batch + first;
    float *y = (float *)(void *)work->y + batch * work->y_batch + first;
    work->kernels->group_norm_columns(work->length, left < SB_ROW_COLUMNS ? (int)left : SB_ROW_COLUMNS, x, work->x_step,
                                      y, work->y_step, work->scale + first, work->bias + first, work->epsilon,
                                      workspace);
}

static sb_status run_columns(sb_call *call, group_norm *work) {
    const sb_tensor *x = sb_call_input(call, 0);
    sb_tensor *y;
    size_t workspace;
    SB_TRY(sb_channels_last_output(call, x->rank, &y));
    if (__builtin_mul_overflow((size_t)work->length, SB_ROW_COLUMNS * sizeof(float), &workspace))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "a row of %lld elements is too long",
                            (long long)work->length);
    work->x = x->data;
    work->y = y->data;
    work->x_batch = x->strides[0];
    work->y_batch = y->strides[0];
    work->y_step = work->period;
    work->strips = (work->period + SB_ROW_COLUMNS - 1) / SB_ROW_COLUMNS;
    return sb_pieces_run(call, x->dims[0] * work->strips, workspace, normalize_columns, work);
}

/* ---- both ---- */

/* Whether scale and bias are lists of `expected` values. */
static bool has_factors(const sb_call *call, int64_t expected) {
    for (int i = 1; i < 3; i++) {
        const sb_tensor *factor = sb_call_input(call, i);
        if (factor->rank != 1 || factor->dims[0] != expected)
            return false;
    }
    return true;
}

static sb_status launch_groups(sb_call *call) {
    const sb_norm_params *params = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0);
    bool instance = strcmp(call->node->op->name, "InstanceNormalization") == 0;
    int64_t elements = sb_tensor_elements(x), channels = x->dims[1], groups = instance ? channels : params->groups;
    /* Before operator set 21 a group has one scale and one bias. */
    bool by_group = !instance && call->node->version < 21;
    /* Nothing to do, or something to refuse, which the definition words. */
    if (elements == 0 || channels % groups != 0 || x->rank == SB_MAX_RANK ||
        !has_factors(call, by_group ? groups : channels))
        return call->node->op->eval(call);
    group_norm work = {.kernels = sb_row_kernels_for(call->isa), .epsilon = params->epsilon, .period = groups};
    work.count = x->dims[0] * groups;
    work.length = elements / work.count;
    work.advance = by_group ? 1 : channels / groups;
    work.repeat = work.length / work.advance;
    SB_TRY(sb_load_factor(call, 1, &work.scale));
    SB_TRY(sb_load_factor(call, 2, &work.bias));
    bool columns = x->dtype == SB_F32 && groups == channels && channels > 1 && x->strides[1] == 1 &&
                   sb_even_step(x->rank - 2, x->dims + 2, x->strides + 2, &work.x_step) && work.length > 1;
    return columns ? run_columns(call, &work) : run_adjacent(call, &work);
}

const sb_kernel sb_cpu_kernels_normalize_groups[] = {
    {.op = "InstanceNormalization", .name = "instance-norm-rows", .supports = supports_groups, .launch = launch_groups},
    {.op = "GroupNormalization", .name = "group-norm-rows", .supports = supports_groups, .launch = launch_groups},
    {0},
};
