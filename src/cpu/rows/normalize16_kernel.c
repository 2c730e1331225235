/* Kernels for Softmax, LogSoftmax and LayerNormalization over trailing dimensions in f16 and bf16: a row at a time is
 * widened to f32, goes through the row kernels of f32 in the first-level cache, and is rounded once, as the definition
 * says. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/normalize.h"
#include "ops/convert_loops.h"
#include "ops/row_normalization.h"
#include "ops/softmax.h"

/* Elements that a thread takes at once, about. */
#define PIECE_ELEMENTS 8192

/* Of other dtypes the kernels of f32 say why not. */
static bool is_of_16_bits(const sb_fact *fact) {
    return fact->dtype == SB_F16 || fact->dtype == SB_BF16;
}

/* Gapless rows of 16 bits, on their way through f32. */
typedef struct rows_16 {
    const sb_row_kernels *kernels;
    sb_walk_row *widen, *round;
    const uint16_t *x;
    uint16_t *y;
    int64_t count, length, piece; /* rows, elements of one, rows that a thread takes at once */
    bool logarithmic;             /* LogSoftmax */
    const float *scale, *bias;    /* LayerNormalization; bias may be NULL */
    float epsilon;
    float *mean, *inverse; /* one for each row, or NULL */
} rows_16;

static void convert(sb_walk_row *loop, int64_t count, void *to, size_t to_size, const void *from, size_t from_size) {
    loop(NULL, count, (char *const[]){to, (char *)(uintptr_t)from},
         (const int64_t[]){(int64_t)to_size, (int64_t)from_size});
}

static void softmax_row(const rows_16 *rows, float *values, float *spare) {
    if (rows->logarithmic) {
        rows->kernels->log_softmax(values, spare, rows->length, spare + rows->length);
        memcpy(values, spare, (size_t)rows->length * sizeof *values);
    } else {
        rows->kernels->softmax(values, values, rows->length);
    }
}

static void layer_row(const rows_16 *rows, int64_t row, float *values) {
    float mean, inverse;
    rows->kernels->layer_norm(values, values, rows->length, rows->scale, rows->bias, rows->epsilon, &mean, &inverse);
    if (rows->mean != NULL)
        rows->mean[row] = mean;
    if (rows->inverse != NULL)
        rows->inverse[row] = inverse;
}

static void run_rows(void *context, int64_t index, void *workspace) {
    const rows_16 *rows = context;
    float *values = workspace;
    int64_t begin = index * rows->piece, end = begin + rows->piece;
    for (int64_t row = begin; row < end && row < rows->count; row++) {
        convert(rows->widen, rows->length, values, sizeof *values, rows->x + row * rows->length, sizeof *rows->x);
        if (rows->scale != NULL)
            layer_row(rows, row, values);
        else
            softmax_row(rows, values, values + rows->length);
        convert(rows->round, rows->length, rows->y + row * rows->length, sizeof *rows->y, values, sizeof *values);
    }
}

/* `floats` of workspace for each element of a row. */
static sb_status run(sb_call *call, rows_16 *rows, const sb_tensor *x, sb_tensor *y, int64_t length, size_t floats) {
    int64_t elements = sb_tensor_elements(x);
    if (elements == 0)
        return SB_OK;
    rows->kernels = sb_row_kernels_for(call->isa);
    rows->widen = sb_convert_loop_for(call->isa, SB_F32, x->dtype);
    rows->round = sb_convert_loop_for(call->isa, x->dtype, SB_F32);
    rows->x = (const uint16_t *)(const void *)x->data;
    rows->y = (uint16_t *)(void *)y->data;
    rows->length = length;
    rows->count = elements / length;
    rows->piece = length < PIECE_ELEMENTS ? PIECE_ELEMENTS / length : 1;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)length, floats * sizeof(float), &bytes))
        return sb_fail_memory(call->error, SIZE_MAX);
    return sb_pieces_run(call, (rows->count - 1) / rows->piece + 1, bytes, run_rows, rows);
}

/* The product of extents from `start` on. */
static int64_t row_length(const sb_tensor *tensor, int start) {
    int64_t length = 1;
    for (int d = start; d < tensor->rank; d++)
        length *= tensor->dims[d];
    return length;
}

/* ---- softmax ---- */

/* The first of the trailing dimensions that make a row, or -1 where they do not trail. */
static int softmax_start(const sb_node *node, int rank) {
    const sb_softmax_params *params = node->params;
    int start = (int)(params->axis < 0 ? params->axis + rank : params->axis);
    return params->flatten || start == rank - 1 ? start : -1;
}

static bool supports_softmax(const sb_kernel_query *query, char *why) {
    const sb_fact *input = query->inputs[0];
    if (!is_of_16_bits(input))
        return false;
    if (input->rank < 1 || softmax_start(query->node, input->rank) < 0) {
        snprintf(why, SB_WHY_BYTES, "the axis is not the last one of %d, the only one with a row kernel", input->rank);
        return false;
    }
    return true;
}

static sb_status launch_softmax(sb_call *call) {
    sb_tensor *input, *output;
    rows_16 rows = {.logarithmic = strcmp(call->node->op->name, "LogSoftmax") == 0};
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t length = row_length(input, softmax_start(call->node, input->rank));
    sb_status status = run(call, &rows, input, output, length, rows.logarithmic ? 3 : 1);
    sb_tensor_release(input);
    return status;
}

/* ---- layer normalisation ---- */

static int layer_start(const sb_node *node, int rank) {
    const sb_norm_params *params = node->params;
    return (int)(params->axis < 0 ? params->axis + rank : params->axis);
}

static bool is_row_vector(const sb_fact *fact, const sb_fact *input, int start) {
    if ((fact->dtype != SB_F32 && fact->dtype != SB_F16 && fact->dtype != SB_BF16) || fact->rank != input->rank - start)
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

static bool supports_layer(const sb_kernel_query *query, char *why) {
    const sb_fact *input = query->inputs[0];
    const sb_fact *bias = query->node->input_count > 2 ? query->inputs[2] : NULL;
    const sb_norm_params *params = query->node->params;
    if (!is_of_16_bits(input))
        return false;
    int start = layer_start(query->node, input->rank);
    if (!is_row_vector(query->inputs[1], input, start) || (bias != NULL && !is_row_vector(bias, input, start))) {
        snprintf(why, SB_WHY_BYTES, "only scale and bias of the normalised shape have a row kernel");
        return false;
    }
    if (params->stash != SB_F32 && wants_moments(query->node)) {
        snprintf(why, SB_WHY_BYTES, "mean and deviation in %s have no row kernel", sb_dtype_name(params->stash));
        return false;
    }
    return true;
}

/* Input `index`, scale or bias, as gapless f32; NULL where it is left out. */
static sb_status load_factor(sb_call *call, int index, const float **factor) {
    sb_tensor *tensor;
    void *values;
    *factor = NULL;
    if (sb_call_input(call, index) == NULL)
        return SB_OK;
    SB_TRY(sb_call_contiguous(call, index, &tensor));
    int64_t count = sb_tensor_elements(tensor);
    sb_status status = sb_call_workspace(call, (size_t)count * sizeof(float), &values);
    if (status == SB_OK)
        convert(sb_convert_loop_for(call->isa, SB_F32, tensor->dtype), count, values, sizeof(float), tensor->data,
                sb_dtype_size(tensor->dtype));
    *factor = values;
    sb_tensor_release(tensor);
    return status;
}

static sb_status find_moments(sb_call *call, int index, float **moments) {
    sb_tensor *tensor;
    if (!sb_call_wants(call, index))
        return SB_OK;
    SB_TRY(sb_call_output(call, index, &tensor));
    *moments = (float *)(void *)tensor->data;
    return SB_OK;
}

static sb_status launch_layer(sb_call *call) {
    const sb_norm_params *params = call->node->params;
    sb_tensor *input, *output;
    rows_16 rows = {.epsilon = params->epsilon};
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(find_moments(call, 1, &rows.mean));
    SB_TRY(find_moments(call, 2, &rows.inverse));
    SB_TRY(load_factor(call, 1, &rows.scale));
    SB_TRY(load_factor(call, 2, &rows.bias));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t length = row_length(input, layer_start(call->node, input->rank));
    sb_status status = run(call, &rows, input, output, length, 1);
    for (int o = 1; o < 3 && length == 0; o++)
        sb_norm_note_nothing(sb_call_wants(call, o) ? call->outputs[o].tensor : NULL);
    sb_tensor_release(input);
    return status;
}

const sb_kernel sb_cpu_kernels_normalize16[] = {
    {.op = "Softmax", .name = "softmax-16-rows", .supports = supports_softmax, .launch = launch_softmax},
    {.op = "LogSoftmax", .name = "log-softmax-16-rows", .supports = supports_softmax, .launch = launch_softmax},
    {.op = "LayerNormalization", .name = "layer-norm-16-rows", .supports = supports_layer, .launch = launch_layer},
    {0},
};
