/* Regions of interest: MaxRoiPool, NonMaxSuppression, RoiAlign. */
#include "ops/regions.h"

#include <stdlib.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/order.h"
#include "ops/regions_values.h"

/* ---- RoiAlign ---- */

static sb_status prepare_align(sb_node *node, sb_error *error) {
    sb_region_params *params = node->params;
    const char *mode, *transform;
    SB_TRY(sb_node_string(node, "mode", "avg", &mode, error));
    SB_TRY(sb_node_string(node, "coordinate_transformation_mode",
                          node->version < 16 ? "output_half_pixel" : "half_pixel", &transform, error));
    SB_TRY(sb_node_int(node, "output_height", 1, &params->height, error));
    SB_TRY(sb_node_int(node, "output_width", 1, &params->width, error));
    SB_TRY(sb_node_int(node, "sampling_ratio", 0, &params->samples, error));
    SB_TRY(sb_node_float(node, "spatial_scale", 1.0f, &params->scale, error));
    params->maximum = strcmp(mode, "max") == 0;
    params->half_pixel = strcmp(transform, "half_pixel") == 0;
    if ((!params->maximum && strcmp(mode, "avg") != 0) ||
        (!params->half_pixel && strcmp(transform, "output_half_pixel") != 0) || params->height < 1 ||
        params->width < 1 || params->samples < 0 || params->samples > 4096)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: RoiAlign has mode %s, coordinate_transformation_mode %s, output %lld by "
                       "%lld and sampling_ratio %lld (at most 4096)",
                       node->name, mode, transform, (long long)params->height, (long long)params->width,
                       (long long)params->samples);
    return SB_OK;
}

static sb_status infer_regions(sb_infer *infer) {
    const sb_region_params *params = infer->node->params;
    const sb_fact *input, *regions, *batch;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(input->dtype), &regions));
    if (infer->input_count - infer->node->capture_count > 2)
        SB_TRY(sb_infer_require(infer, 2, SB_SET_INDEX, &batch));
    if ((input->rank != SB_RANK_UNKNOWN && input->rank != 4) ||
        (regions->rank != SB_RANK_UNKNOWN && regions->rank != 2))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 4, or the regions %d, not 2",
                             input->rank, regions->rank);
    sb_dim dims[4] = {regions->rank == 2 ? regions->dims[0] : sb_infer_fresh(infer, 0, 0),
                      input->rank == 4 ? input->dims[1] : sb_infer_fresh(infer, 0, 1),
                      sb_dim_constant(infer->scope, params->height), sb_dim_constant(infer->scope, params->width)};
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, 4, dims);
    return SB_OK;
}

static sb_region_image image_of(const sb_tensor *tensor) {
    sb_region_image image = {.dtype = tensor->dtype, .data = tensor->data};
    memcpy(image.dims, tensor->dims, sizeof image.dims);
    memcpy(image.strides, tensor->strides, sizeof image.strides);
    return image;
}

static sb_status check_batch(const sb_call *call, int64_t region, int64_t batch, int64_t extent) {
    if (batch < 0 || batch >= extent)
        return sb_call_fail(call, SB_ERROR_SHAPE, "region %lld is in batch element %lld of %lld", (long long)region,
                            (long long)batch, (long long)extent);
    return SB_OK;
}

static sb_status align_regions(sb_call *call, const sb_tensor *regions, const int64_t *batches, sb_tensor *output) {
    const sb_region_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_region_image image = image_of(input);
    int64_t element = 0;
    for (int64_t r = 0; r < output->dims[0]; r++) {
        sb_region_axis rows, columns;
        SB_TRY(check_batch(call, r, batches[r], input->dims[0]));
        sb_region_align(params, &image, regions->dtype, regions->data, r, &rows, &columns);
        for (int64_t c = 0; c < output->dims[1]; c++) {
            int64_t plane = batches[r] * input->strides[0] + c * input->strides[1];
            for (int64_t b = 0; b < params->height * params->width; b++)
                sb_number_store(output->dtype, output->data, element++,
                                rows.grid == 0 ? 0.0
                                               : sb_region_average(params, &image, plane, &rows, &columns,
                                                                   b / params->width, b % params->width));
        }
    }
    return SB_OK;
}

static sb_status eval_align(sb_call *call) {
    sb_tensor *regions, *output;
    int64_t *batches = NULL, count;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 1, &regions));
    sb_status status = sb_move_indices(call, sb_call_input(call, 2), &batches, &count);
    if (status == SB_OK && (regions->dims[1] != 4 || count != regions->dims[0]))
        status = sb_call_fail(call, SB_ERROR_SHAPE, "%lld regions of %lld numbers, and %lld batch indices",
                              (long long)regions->dims[0], (long long)regions->dims[1], (long long)count);
    if (status == SB_OK)
        status = align_regions(call, regions, batches, output);
    sb_free(batches);
    sb_tensor_release(regions);
    return status;
}

/* ---- MaxRoiPool ---- */

static sb_status prepare_pool(sb_node *node, sb_error *error) {
    sb_region_params *params = node->params;
    int64_t count;
    const int64_t *shape;
    SB_TRY(sb_node_float(node, "spatial_scale", 1.0f, &params->scale, error));
    SB_TRY(sb_node_ints(node, "pooled_shape", &count, &shape, error));
    if (count != 2 || shape[0] < 1 || shape[1] < 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: MaxRoiPool needs a pooled_shape of two positive numbers", node->name);
    params->height = shape[0];
    params->width = shape[1];
    return SB_OK;
}

static sb_status eval_pool(sb_call *call) {
    const sb_region_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *regions, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 1, &regions));
    sb_status status = SB_OK;
    if (regions->dims[1] != 5)
        status = sb_call_fail(call, SB_ERROR_SHAPE, "regions have %lld numbers, not 5", (long long)regions->dims[1]);
    sb_region_image image = image_of(input);
    int64_t element = 0;
    for (int64_t r = 0; r < output->dims[0] && status == SB_OK; r++) {
        int64_t box[4], batch = sb_i64_from_f64(sb_number_load(regions->dtype, regions->data, r * 5));
        status = check_batch(call, r, batch, input->dims[0]);
        for (int i = 0; i < 4; i++)
            box[i] = sb_region_pool_index(params, sb_number_load(regions->dtype, regions->data, r * 5 + 1 + i));
        for (int64_t c = 0; c < output->dims[1] && status == SB_OK; c++) {
            int64_t plane = batch * input->strides[0] + c * input->strides[1];
            for (int64_t b = 0; b < params->height * params->width; b++)
                sb_number_store(output->dtype, output->data, element++,
                                sb_region_maximum(params, &image, plane, box, b / params->width, b % params->width));
        }
    }
    sb_tensor_release(regions);
    return status;
}

/* ---- NonMaxSuppression ---- */

static sb_status prepare_suppression(sb_node *node, sb_error *error) {
    int64_t centred;
    SB_TRY(sb_node_int(node, "center_point_box", 0, &centred, error));
    ((sb_region_params *)node->params)->centred = centred != 0;
    return SB_OK;
}

static sb_status infer_suppression(sb_infer *infer) {
    const sb_fact *fact;
    for (int i = 0; i < 2; i++) {
        SB_TRY(sb_infer_require(infer, i, SB_SET(SB_F32), &fact));
        if (fact->rank != SB_RANK_UNKNOWN && fact->rank != 3)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d, not 3", i, fact->rank);
    }
    if (sb_infer_input(infer, 2) != NULL)
        SB_TRY(sb_infer_require(infer, 2, SB_SET(SB_S64), &fact));
    for (int i = 3; i < 5; i++) {
        if (sb_infer_input(infer, i) != NULL)
            SB_TRY(sb_infer_require(infer, i, SB_SET(SB_F32), &fact));
    }
    sb_infer_open(infer, 0, SB_S64, 2);
    infer->outputs[0].dims[1] = sb_dim_constant(infer->scope, 3);
    return SB_OK;
}

typedef struct scored {
    int32_t key;
    int64_t index;
} scored;

static int by_score(const void *left, const void *right) {
    const scored *first = left, *second = right;
    if (first->key != second->key)
        return first->key > second->key ? -1 : 1;
    return (first->index > second->index) - (first->index < second->index);
}

/* Takes boxes by falling score (NaN first, ties by index) unless they overlap one already taken. */
static int64_t choose_boxes(const sb_suppression *work, const float *boxes, const float *scores, void *scratch,
                            int64_t *chosen) {
    scored *candidates = scratch;
    int64_t count = 0, taken = 0;
    for (int64_t i = 0; i < work->boxes; i++) {
        if (!work->has_least || scores[i] > work->least_score)
            candidates[count++] = (scored){sb_bits_order_f32(scores[i]), i};
    }
    qsort(candidates, (size_t)count, sizeof *candidates, by_score);
    for (int64_t i = 0; i < count && taken < work->most; i++) {
        sb_region_corners box = sb_region_box_corners(boxes + candidates[i].index * 4, work->centred);
        bool keep = true;
        for (int64_t k = 0; k < taken && keep; k++)
            keep = !sb_region_overlaps(box, sb_region_box_corners(boxes + chosen[k] * 4, work->centred), work->overlap);
        if (keep)
            chosen[taken++] = candidates[i].index;
    }
    return taken;
}

typedef struct suppression {
    sb_suppression all;
    sb_suppression_choose *choose;
    void *scratch;
    int64_t *chosen; /* [boxes] */
} suppression;

typedef struct triples {
    int64_t *items; /* batch, class, box */
    size_t count, capacity;
} triples;

static sb_status choose_all(const sb_call *call, const sb_tensor *boxes, const sb_tensor *scores,
                            const suppression *work, triples *found) {
    int64_t batches = work->all.batches, classes = work->all.classes;
    for (int64_t b = 0; b < batches; b++) {
        for (int64_t c = 0; c < classes; c++) {
            int64_t chosen =
                work->choose(&work->all, (const float *)(const void *)boxes->data + b * work->all.boxes * 4,
                             (const float *)(const void *)scores->data + (b * classes + c) * work->all.boxes,
                             work->scratch, work->chosen);
            if (!sb_grow((void **)&found->items, &found->capacity, found->count + 3 * (size_t)chosen,
                         sizeof *found->items))
                return sb_fail_memory(call->error, (found->count + 3 * (size_t)chosen) * sizeof *found->items);
            for (int64_t i = 0; i < chosen; i++) {
                found->items[found->count++] = b;
                found->items[found->count++] = c;
                found->items[found->count++] = work->chosen[i];
            }
        }
    }
    return SB_OK;
}

static float scalar_or(const sb_call *call, int index, float otherwise) {
    const sb_tensor *tensor = sb_call_input(call, index);
    return tensor != NULL && sb_tensor_elements(tensor) > 0 ? *(const float *)(const void *)tensor->data : otherwise;
}

sb_status sb_suppression_describe(const sb_call *call, sb_suppression *work) {
    const sb_tensor *boxes = sb_call_input(call, 0), *scores = sb_call_input(call, 1);
    int count = 0;
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2])
        return sb_call_fail(call, SB_ERROR_SHAPE, "boxes must be [batch,boxes,4], scores [batch,classes,boxes]");
    *work = (sb_suppression){.batches = scores->dims[0],
                             .classes = scores->dims[1],
                             .boxes = boxes->dims[1],
                             .overlap = scalar_or(call, 3, 0.0f),
                             .least_score = scalar_or(call, 4, 0.0f),
                             .has_least = sb_call_input(call, 4) != NULL,
                             .centred = ((const sb_region_params *)call->node->params)->centred};
    return sb_call_input(call, 2) != NULL ? sb_move_integers(call, 2, 1, &work->most, &count) : SB_OK;
}

static sb_status suppress(sb_call *call, const sb_tensor *boxes, const sb_tensor *scores, size_t box_bytes,
                          sb_suppression_choose *choose, triples *found) {
    suppression work = {.choose = choose};
    SB_TRY(sb_suppression_describe(call, &work.all));
    work.scratch = sb_allocate_array((size_t)work.all.boxes + SB_SUPPRESSION_MORE, box_bytes);
    work.chosen = sb_allocate_array((size_t)work.all.boxes, sizeof *work.chosen);
    sb_status status = SB_OK;
    if (work.scratch == NULL || work.chosen == NULL)
        status = sb_fail_memory(call->error, (size_t)work.all.boxes * box_bytes);
    else
        status = choose_all(call, boxes, scores, &work, found);
    sb_free(work.scratch);
    sb_free(work.chosen);
    return status;
}

sb_status sb_suppression_run(sb_call *call, size_t box_bytes, sb_suppression_choose *choose) {
    sb_tensor *boxes, *scores, *output;
    triples found = {0};
    SB_TRY(sb_call_contiguous(call, 0, &boxes));
    sb_status status = sb_call_contiguous(call, 1, &scores);
    if (status == SB_OK) {
        status = suppress(call, boxes, scores, box_bytes, choose, &found);
        sb_tensor_release(scores);
    }
    if (status == SB_OK)
        status = sb_call_output_shape(call, 0, SB_S64, 2, (const int64_t[]){(int64_t)found.count / 3, 3}, &output);
    if (status == SB_OK && found.count != 0)
        memcpy(output->data, found.items, found.count * sizeof *found.items);
    sb_free(found.items);
    sb_tensor_release(boxes);
    return status;
}

static sb_status eval_suppression(sb_call *call) {
    return sb_suppression_run(call, sizeof(scored), choose_boxes);
}

#define REGION_OP(op_name, least, most, prepare_function, infer_function, eval_function)                               \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = least, .most_inputs = most, .least_outputs = 1,                 \
        .most_outputs = 1, .params_size = sizeof(sb_region_params), .prepare = prepare_function,                       \
        .infer = infer_function, .eval = eval_function                                                                 \
    }

const sb_op sb_ops_regions[] = {
    REGION_OP("MaxRoiPool", 2, 2, prepare_pool, infer_regions, eval_pool),
    REGION_OP("NonMaxSuppression", 2, 5, prepare_suppression, infer_suppression, eval_suppression),
    REGION_OP("RoiAlign", 3, 3, prepare_align, infer_regions, eval_align),
    {0},
};
