/* NonZero, Compress and NonMaxSuppression. The host waits for the number of what is chosen, which the outputs' extents are made of. */
#include "ops/selection.h"

#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/moving/selection_parameters.h"
#include "ops/regions.h"

/* ---- items that are taken ---- */

/* A workspace of `count` elements, which a launch touches. */
static sb_status make_room(sb_call *call, int64_t count, size_t size, void **memory) {
    size_t bytes;
    if (__builtin_mul_overflow((size_t)count, size, &bytes))
        return sb_call_fail(call, SB_ERROR_SHAPE, "no device has room for %lld items", (long long)count);
    return sb_call_workspace(call, bytes != 0 ? bytes : 1, memory);
}

static void touch_items(const sb_cuda_selection *p, sb_cuda_work *work) {
    sb_cuda_work_touches(work, p->data, (size_t)p->items * (size_t)p->size, false);
    sb_cuda_work_touches(work, p->counts, (size_t)(p->chunks + 1) * sizeof *p->counts, true);
    sb_cuda_work_touches(work, p->list, (size_t)p->items * sizeof *p->list, true);
}

/* Sums up p->counts, and reads the number of all. */
static sb_status sum_counts(sb_call *call, const sb_cuda_selection *p, int64_t *taken) {
    sb_cuda_work work = {.module = "selection",
                         .kernel = "sb_cuda_selection_scan",
                         .parameters = p,
                         .parameter_bytes = sizeof *p,
                         .blocks = 1,
                         .threads = SB_CUDA_SELECTION_THREADS};
    int64_t *total;
    void *memory;
    SB_TRY(make_room(call, 1, sizeof *total, &memory));
    total = memory;
    sb_cuda_selection parameters = *p;
    parameters.total = total;
    work.parameters = &parameters;
    touch_items(p, &work);
    sb_cuda_work_touches(&work, total, sizeof *total, true);
    SB_TRY(sb_cuda_call_launch(call, &work));
    return sb_call_read(call, taken, total, sizeof *taken);
}

/* The items of `items` at `data`, packed and of `size` bytes, of which bits of the mask are set. */
static sb_status list_items(sb_call *call, const char *data, int64_t items, size_t size, uint64_t mask, int64_t **list,
                            int64_t *taken) {
    sb_cuda_selection p = {.items = items,
                           .chunks = (items + SB_CUDA_SELECTION_CHUNK - 1) / SB_CUDA_SELECTION_CHUNK,
                           .data = data,
                           .mask = mask,
                           .size = (int32_t)size};
    void *memory;
    SB_TRY(make_room(call, p.chunks + 1, sizeof *p.counts, &memory));
    p.counts = memory;
    SB_TRY(make_room(call, items, sizeof *p.list, &memory));
    p.list = *list = memory;
    sb_cuda_work work = {.parameters = &p, .parameter_bytes = sizeof p};
    touch_items(&p, &work);
    sb_cuda_work again = work;
    SB_TRY(sb_cuda_launch_each(call, &work, "selection", "sb_cuda_selection_count", NULL, p.chunks));
    SB_TRY(sum_counts(call, &p, taken));
    return sb_cuda_launch_each(call, &again, "selection", "sb_cuda_selection_list", NULL, p.chunks);
}

static uint64_t magnitude_mask(sb_dtype dtype) {
    const unsigned bits = 8 * (unsigned)sb_dtype_size(dtype);
    return sb_dtype_is_float(dtype) ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX;
}

static sb_status launch_non_zero(sb_call *call) {
    sb_tensor *input, *output;
    int64_t *list, taken;
    SB_TRY(sb_cuda_call_packed(call, 0, &input));
    sb_status status = list_items(call, input->data, sb_tensor_elements(input), sb_dtype_size(input->dtype),
                                  magnitude_mask(input->dtype), &list, &taken);
    if (status == SB_OK)
        status = sb_call_output_shape(call, 0, SB_S64, 2, (const int64_t[]){input->rank, taken}, &output);
    if (status == SB_OK) {
        sb_cuda_places p = {.list = list, .taken = taken, .rank = input->rank, .out = (int64_t *)(void *)output->data};
        memcpy(p.dims, input->dims, sizeof *p.dims * (size_t)input->rank);
        sb_cuda_work work = {.parameters = &p, .parameter_bytes = sizeof p};
        sb_cuda_work_touches(&work, list, (size_t)taken * sizeof *list, false);
        sb_cuda_work_writes(&work, output);
        status = sb_cuda_launch_each(call, &work, "selection", "sb_cuda_selection_places", NULL, taken);
    }
    sb_tensor_release(input);
    return status;
}

static sb_status keep(sb_call *call, const sb_tensor *input, const sb_tensor *condition, sb_compress_work *compress) {
    sb_tensor *output;
    int64_t *list, taken;
    SB_TRY(list_items(call, condition->data, compress->length, 1, UINT64_MAX, &list, &taken));
    compress->dims[compress->axis] = taken;
    SB_TRY(sb_call_output_shape(call, 0, input->dtype, compress->rank, compress->dims, &output));
    sb_cuda_kept p = {.list = list,
                      .elements = sb_tensor_elements(output),
                      .taken = taken,
                      .extent = compress->extent,
                      .inner = compress->inner,
                      .in = input->data,
                      .out = output->data};
    sb_cuda_work work = {.parameters = &p, .parameter_bytes = sizeof p};
    sb_cuda_work_touches(&work, list, (size_t)taken * sizeof *list, false);
    sb_cuda_work_reads(&work, input);
    sb_cuda_work_writes(&work, output);
    return sb_cuda_launch_each(call, &work, "selection", "sb_cuda_selection_keep", sb_cuda_size_suffix(input->dtype),
                               p.elements);
}

static sb_status launch_compress(sb_call *call) {
    sb_compress_work compress;
    sb_tensor *input, *condition;
    SB_TRY(sb_compress_describe(call, &compress));
    SB_TRY(sb_cuda_call_packed(call, 0, &input));
    sb_status status = sb_cuda_call_packed(call, 1, &condition);
    if (status == SB_OK) {
        status = keep(call, input, condition, &compress);
        sb_tensor_release(condition);
    }
    sb_tensor_release(input);
    return status;
}

/* ---- NonMaxSuppression ---- */

enum { BOXES, SCORES };

static bool supports_suppression(const sb_kernel_query *query, char *why) {
    int64_t boxes[SB_MAX_RANK];
    if (!sb_fact_is_concrete(query->inputs[BOXES], boxes) || query->inputs[BOXES]->rank != 3 || boxes[1] < INT32_MAX)
        return true;
    snprintf(why, SB_WHY_BYTES, "it has more than 2^31 boxes");
    return false;
}

static sb_status launch_plane(sb_call *call, const sb_cuda_suppression *p, sb_cuda_work work, const char *kernel) {
    work.module = "selection";
    work.kernel = kernel;
    work.parameters = p;
    work.parameter_bytes = sizeof *p;
    work.threads = SB_CUDA_SELECTION_THREADS;
    work.blocks = sb_cuda_call_blocks(call, p->planes);
    return sb_cuda_call_launch(call, &work);
}

static sb_status choose_boxes(sb_call *call, sb_cuda_suppression *p, sb_cuda_work *work) {
    void *memory;
    int64_t boxes, slots;
    if (__builtin_mul_overflow(p->planes, p->boxes, &boxes) || __builtin_mul_overflow(p->planes, p->most, &slots))
        return sb_call_fail(call, SB_ERROR_SHAPE, "no device has room for so many boxes");
    SB_TRY(make_room(call, boxes, 1, &memory));
    p->alive = memory;
    SB_TRY(make_room(call, slots, sizeof *p->chosen, &memory));
    p->chosen = memory;
    SB_TRY(make_room(call, p->planes + 1, sizeof *p->counts, &memory));
    p->counts = memory;
    sb_cuda_work_touches(work, p->alive, (size_t)boxes, true);
    sb_cuda_work_touches(work, p->chosen, (size_t)slots * sizeof *p->chosen, true);
    sb_cuda_work_touches(work, p->counts, (size_t)(p->planes + 1) * sizeof *p->counts, true);
    return launch_plane(call, p, *work, "sb_cuda_suppress");
}

static sb_status suppress(sb_call *call, const sb_tensor *corners, const sb_tensor *scores) {
    sb_suppression all;
    int64_t taken;
    sb_tensor *output;
    SB_TRY(sb_suppression_describe(call, &all));
    sb_cuda_suppression p = {.planes = all.batches * all.classes,
                             .classes = all.classes,
                             .boxes = all.boxes,
                             .most = all.most < 0           ? 0
                                     : all.most < all.boxes ? all.most
                                                            : all.boxes,
                             .corners = (const float *)(const void *)corners->data,
                             .scores = (const float *)(const void *)scores->data,
                             .overlap = all.overlap,
                             .least = all.least_score,
                             .has_least = all.has_least,
                             .centred = all.centred};
    sb_cuda_work work = {.range_count = 0};
    sb_cuda_work_reads(&work, corners);
    sb_cuda_work_reads(&work, scores);
    SB_TRY(choose_boxes(call, &p, &work));
    SB_TRY(sum_counts(call, &(sb_cuda_selection){.chunks = p.planes, .counts = p.counts}, &taken));
    SB_TRY(sb_call_output_shape(call, 0, SB_S64, 2, (const int64_t[]){taken, 3}, &output));
    p.out = (int64_t *)(void *)output->data;
    sb_cuda_work_writes(&work, output);
    work.parameters = &p;
    work.parameter_bytes = sizeof p;
    return sb_cuda_launch_each(call, &work, "selection", "sb_cuda_suppression_write", NULL,
                               taken != 0 ? p.planes * p.most : 0);
}

static sb_status launch_suppression(sb_call *call) {
    sb_tensor *corners, *scores;
    SB_TRY(sb_cuda_call_packed(call, BOXES, &corners));
    sb_status status = sb_cuda_call_packed(call, SCORES, &scores);
    if (status == SB_OK) {
        status = suppress(call, corners, scores);
        sb_tensor_release(scores);
    }
    sb_tensor_release(corners);
    return status;
}

const sb_kernel sb_cuda_kernels_selection[] = {
    {.op = "NonZero", .name = "non-zero", .supports = sb_cuda_supports_all, .launch = launch_non_zero},
    {.op = "Compress", .name = "compress", .supports = sb_cuda_supports_all, .launch = launch_compress},
    {.op = "NonMaxSuppression",
     .name = "suppression",
     .supports = supports_suppression,
     .host_inputs = 28,
     .launch = launch_suppression},
    {0},
};
