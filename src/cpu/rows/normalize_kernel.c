/* The kernel for LayerNormalization over trailing dimensions in f32. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/rows/normalize.h"
#include "ops/row_normalization.h"

/* Elements of all rows together below which one thread is enough. */
#define GRAIN_ELEMENTS 8192

/* The dimension with which a row begins: the attribute `axis`, from the end when negative. */
static int row_start(const sb_node *node, int64_t otherwise, int rank) {
    const sb_attribute *attribute = sb_attributes_find(&node->attributes, "axis");
    int64_t axis = attribute != NULL ? attribute->ints[0] : otherwise;
    return (int)(axis < 0 ? axis + rank : axis);
}

/* The product of extents from `start` on. */
static int64_t row_length(const sb_tensor *tensor, int start) {
    int64_t length = 1;
    for (int d = start; d < tensor->rank; d++)
        length *= tensor->dims[d];
    return length;
}

static int64_t row_grain(int64_t length) {
    return length >= GRAIN_ELEMENTS ? 1 : GRAIN_ELEMENTS / (length > 0 ? length : 1);
}

/* ---- layer normalisation ---- */

static bool is_row_vector(const sb_fact *fact, const sb_fact *input, int start) {
    if (fact->dtype != SB_F32 || fact->rank != input->rank - start)
        return false;
    for (int d = 0; d < fact->rank; d++) {
        if (!sb_dim_equal(fact->dims[d], input->dims[start + d]))
            return false;
    }
    return true;
}

static bool supports_layer_norm(const sb_kernel_query *query, char *why) {
    const sb_fact *input = query->inputs[0];
    const sb_fact *bias = query->node->input_count > 2 ? query->inputs[2] : NULL;
    int start = row_start(query->node, -1, input->rank);
    if (input->dtype == SB_F32 && is_row_vector(query->inputs[1], input, start) &&
        (bias == NULL || is_row_vector(bias, input, start)))
        return true;
    snprintf(why, SB_WHY_BYTES, "only f32 with scale and bias of the normalised shape has a row kernel");
    return false;
}

typedef struct layer_norm_task {
    const sb_row_kernels *kernels;
    const float *x, *scale, *bias;
    float *y, *mean, *inverse; /* mean and inverse may be NULL */
    int64_t length;
    float epsilon;
} layer_norm_task;

static void layer_norm_rows(void *context, int64_t begin, int64_t end) {
    const layer_norm_task *task = context;
    for (int64_t row = begin; row < end; row++) {
        float mean, inverse;
        task->kernels->layer_norm(task->x + row * task->length, task->y + row * task->length, task->length, task->scale,
                                  task->bias, task->epsilon, &mean, &inverse);
        if (task->mean != NULL)
            task->mean[row] = mean;
        if (task->inverse != NULL)
            task->inverse[row] = inverse;
    }
}

static sb_status optional_output(sb_call *call, int index, float **data) {
    sb_tensor *tensor;
    *data = NULL;
    if (!sb_call_wants(call, index))
        return SB_OK;
    SB_TRY(sb_call_output(call, index, &tensor));
    *data = (float *)(void *)tensor->data;
    return SB_OK;
}

static sb_status launch_layer_norm(sb_call *call) {
    const sb_attribute *epsilon = sb_attributes_find(&call->node->attributes, "epsilon");
    sb_tensor *output, *inputs[3] = {NULL, NULL, NULL};
    layer_norm_task task = {.kernels = sb_row_kernels_for(call->isa),
                            .epsilon = epsilon != NULL ? epsilon->floats[0] : 1e-5f};
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(optional_output(call, 1, &task.mean));
    SB_TRY(optional_output(call, 2, &task.inverse));
    sb_status status = SB_OK;
    for (int i = 0; i < 3 && status == SB_OK; i++) {
        if (sb_call_input(call, i) != NULL)
            status = sb_call_contiguous(call, i, &inputs[i]);
    }
    if (status == SB_OK) {
        task.x = (const float *)(const void *)inputs[0]->data;
        task.scale = (const float *)(const void *)inputs[1]->data;
        task.bias = inputs[2] != NULL ? (const float *)(const void *)inputs[2]->data : NULL;
        task.y = (float *)(void *)output->data;
        task.length = row_length(inputs[0], row_start(call->node, -1, inputs[0]->rank));
        int64_t elements = sb_tensor_elements(inputs[0]);
        if (elements != 0)
            sb_workers_run(call->workers, elements / task.length, row_grain(task.length), layer_norm_rows, &task);
        for (int o = 1; o < 3 && task.length == 0; o++)
            sb_norm_note_nothing(sb_call_wants(call, o) ? call->outputs[o].tensor : NULL);
    }
    for (int i = 0; i < 3; i++)
        sb_tensor_release(inputs[i]);
    return status;
}

const sb_kernel sb_cpu_kernels_normalize[] = {
    {.op = "LayerNormalization",
     .name = "layer-norm-f32-rows",
     .supports = supports_layer_norm,
     .launch = launch_layer_norm},
    {0},
};
