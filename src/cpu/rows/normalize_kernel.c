/* The kernels for LayerNormalization and RMSNormalization over trailing dimensions in f32, f16 and bf16. A row of 16 bits is widened to f32, goes
 * through the row kernel of f32 in the first-level cache, and is rounded once, as the definition says. */
#include <stdio.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/factor.h"
#include "cpu/rows/normalize.h"
#include "ops/convert_loops.h"
#include "ops/row_normalization.h"

/* Elements that a thread takes at once, about. */
#define PIECE_ELEMENTS 8192

/* The dimension with which a row begins. */
static int row_start(const sb_node *node, int rank) {
    const sb_norm_params *params = node->params;
    return (int)(params->axis < 0 ? params->axis + rank : params->axis);
}

/* The product of extents from `start` on. */
static int64_t row_length(const sb_tensor *tensor, int start) {
    int64_t length = 1;
    for (int d = start; d < tensor->rank; d++)
        length *= tensor->dims[d];
    return length;
}

static bool is_computed_in_f32(sb_dtype dtype) {
    return dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16;
}

static bool is_row_vector(const sb_fact *fact, const sb_fact *input, int start) {
    if (!is_computed_in_f32(fact->dtype) || fact->rank != input->rank - start)
        return false;
    for (int d = 0; d < fact->rank; d++) {
        if (!sb_dim_equal(fact->dims[d], input->dims[start + d]))
            return false;
    }
    return true;
}

static bool wants_moments(const sb_node *node) {
    for (int o = 1; o < node->output_count; o++) {
        if (node->outputs[o] != SB_NO_VALUE)
            return true;
    }
    return false;
}

static bool is_rms(const sb_node *node) {
    return sb_node_is(node, "RMSNormalization");
}

static bool supports_layer_norm(const sb_kernel_query *query, char *why) {
    const sb_fact *input = query->inputs[0];
    const sb_fact *bias = query->node->input_count > 2 ? query->inputs[2] : NULL;
    const sb_norm_params *params = query->node->params;
    if (!is_computed_in_f32(input->dtype)) {
        snprintf(why, SB_WHY_BYTES, "%s of %s has no row kernel", query->node->op->name, sb_dtype_name(input->dtype));
        return false;
    }
    int start = row_start(query->node, input->rank);
    if (!is_row_vector(query->inputs[1], input, start) || (bias != NULL && !is_row_vector(bias, input, start))) {
        snprintf(why, SB_WHY_BYTES,
                 "only scale and bias of f32, f16 or bf16 and the normalised shape have a row kernel");
        return false;
    }
    if (params->stash != SB_F32 && wants_moments(query->node)) {
        snprintf(why, SB_WHY_BYTES, "mean and deviation in %s have no row kernel", sb_dtype_name(params->stash));
        return false;
    }
    return true;
}

/* Gapless rows. */
typedef struct layer_norm {
    const sb_row_kernels *kernels;
    bool by_rms;
    sb_walk_row *widen, *round; /* of x to f32, and to what y is; NULL for f32 */
    const char *x;
    char *y;
    int64_t x_size, y_size;       /* bytes of an element */
    int64_t count, length, piece; /* rows, elements of one, rows that a thread takes at once */
    const float *scale, *bias;    /* bias may be NULL */
    float epsilon;
    float *mean, *inverse; /* one for each row, or NULL */
} layer_norm;

static void normalize_f32(const layer_norm *work, int64_t row, const float *x, float *y) {
    float mean, inverse;
    if (work->by_rms) {
        work->kernels->rms_norm(x, y, work->length, work->scale, work->epsilon);
        return;
    }
    work->kernels->layer_norm(x, y, work->length, work->scale, work->bias, work->epsilon, &mean, &inverse);
    if (work->mean != NULL)
        work->mean[row] = mean;
    if (work->inverse != NULL)
        work->inverse[row] = inverse;
}

static void normalize_row(const layer_norm *work, int64_t row, float *workspace) {
    const int64_t wide = sizeof(float);
    char *x = (char *)(uintptr_t)(work->x + row * work->length * work->x_size);
    char *y = work->y + row * work->length * work->y_size, *room = (char *)workspace;
    if (work->widen != NULL)
        work->widen(NULL, work->length, (char *const[]){room, x}, (const int64_t[]){wide, work->x_size});
    normalize_f32(work, row, work->widen != NULL ? workspace : (const float *)(const void *)x,
                  work->round != NULL ? workspace : (float *)(void *)y);
    if (work->round != NULL)
        work->round(NULL, work->length, (char *const[]){y, room}, (const int64_t[]){work->y_size, wide});
}

static void normalize_rows(void *context, int64_t index, void *workspace) {
    const layer_norm *work = context;
    int64_t begin = index * work->piece, end = begin + work->piece;
    for (int64_t row = begin; row < end && row < work->count; row++)
        normalize_row(work, row, workspace);
}

static sb_status run(sb_call *call, layer_norm *work, const sb_tensor *x, sb_tensor *y) {
    int64_t elements = sb_tensor_elements(x);
    if (elements == 0)
        return SB_OK;
    if (x->dtype != SB_F32)
        work->widen = sb_convert_loop_for(call->isa, SB_F32, x->dtype);
    if (y->dtype != SB_F32)
        work->round = sb_convert_loop_for(call->isa, y->dtype, SB_F32);
    work->x = x->data;
    work->y = y->data;
    work->x_size = (int64_t)sb_dtype_size(x->dtype);
    work->y_size = (int64_t)sb_dtype_size(y->dtype);
    work->count = elements / work->length;
    work->piece = work->length < PIECE_ELEMENTS ? PIECE_ELEMENTS / work->length : 1;
    return sb_pieces_run(call, (work->count - 1) / work->piece + 1,
                         work->widen != NULL || work->round != NULL ? (size_t)work->length * sizeof(float) : 0,
                         normalize_rows, work);
}

static sb_status find_moments(sb_call *call, int index, float **moments) {
    sb_tensor *tensor;
    if (!sb_call_wants(call, index))
        return SB_OK;
    SB_TRY(sb_call_output(call, index, &tensor));
    *moments = (float *)(void *)tensor->data;
    return SB_OK;
}

static sb_status launch_layer_norm(sb_call *call) {
    const sb_norm_params *params = call->node->params;
    sb_tensor *input, *output;
    layer_norm work = {
        .kernels = sb_row_kernels_for(call->isa), .by_rms = is_rms(call->node), .epsilon = params->epsilon};
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(find_moments(call, 1, &work.mean));
    SB_TRY(find_moments(call, 2, &work.inverse));
    SB_TRY(sb_load_factor(call, 1, &work.scale));
    SB_TRY(sb_load_factor(call, 2, &work.bias));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    work.length = row_length(input, row_start(call->node, input->rank));
    sb_status status = run(call, &work, input, output);
    for (int o = 1; o < 3 && work.length == 0; o++)
        sb_norm_note_nothing(sb_call_wants(call, o) ? call->outputs[o].tensor : NULL);
    sb_tensor_release(input);
    return status;
}

const sb_kernel sb_cpu_kernels_normalize[] = {
    {.op = "LayerNormalization",
     .name = "layer-norm-rows",
     .supports = supports_layer_norm,
     .launch = launch_layer_norm},
    {.op = "RMSNormalization", .name = "rms-norm-rows", .supports = supports_layer_norm, .launch = launch_layer_norm},
    {0},
};
