/* The kernels of Gather and, in files of their own, GatherElements and GatherND: blocks of data picked by index, cut for threads. Indices are looked at once, before any is used, and read
 * where they lie: 24,576 single floats took 51 us with a call for each and a copy of the indices. */
#include <stdio.h>

#include "cpu/list.h"
#include "cpu/moving/gather_elements.h"
#include "cpu/moving/indices.h"
#include "ops/gather.h"

/* What one thread may do at least, in bytes; an index counts as eight. */
#define GRAIN_BYTES 131072

static bool supports_gather(const sb_kernel_query *query, char *why) {
    if (query->outputs[0].dtype != SB_STRING)
        return true;
    snprintf(why, SB_WHY_BYTES, "text has no kernel of %s", query->node->op->name);
    return false;
}

static bool supports_gather_nd(const sb_kernel_query *query, char *why) {
    if (query->outputs[0].rank != SB_RANK_UNKNOWN)
        return supports_gather(query, why);
    snprintf(why, SB_WHY_BYTES, "GatherND whose tuples are of unknown length has no kernel");
    return false;
}

typedef struct gathering {
    const char *from;
    char *to;
    const int64_t *indices;
    int64_t count, extent; /* indices, and what they choose from */
    size_t block;          /* bytes of what one chooses */
} gathering;

/* `size` is a constant where it is small. */
static inline void copy_blocks(const gathering *work, int64_t count, const int64_t *indices, const char *from, char *to,
                               size_t size) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t position = indices[i] + (indices[i] < 0 ? work->extent : 0);
        memcpy(to + (size_t)i * size, from + (size_t)position * size, size);
    }
}

/* Blocks number begin to end of the output, of which each index has one for every block of data. */
static void gather_blocks(void *context, int64_t begin, int64_t end) {
    const gathering *work = context;
    while (begin < end) {
        const int64_t outer = begin / work->count, first = begin % work->count;
        const int64_t count = end - begin < work->count - first ? end - begin : work->count - first;
        const int64_t *indices = work->indices + first;
        const char *from = work->from + (size_t)(outer * work->extent) * work->block;
        char *to = work->to + (size_t)begin * work->block;
        switch (work->block) {
        case 1:
            copy_blocks(work, count, indices, from, to, 1);
            break;
        case 2:
            copy_blocks(work, count, indices, from, to, 2);
            break;
        case 4:
            copy_blocks(work, count, indices, from, to, 4);
            break;
        case 8:
            copy_blocks(work, count, indices, from, to, 8);
            break;
        default:
            copy_blocks(work, count, indices, from, to, work->block);
            break;
        }
        begin += count;
    }
}

static sb_status check_indices(const sb_call *call, int axis, int64_t extent, const sb_indices *indices) {
    int64_t position;
    for (int64_t i = 0; i < indices->count; i++) {
        if (!sb_index_place(indices->values[i], extent, &position))
            return sb_move_check(call, axis, indices->values[i], extent, &position);
    }
    return SB_OK;
}

static sb_status gather(sb_call *call, const sb_tensor *data, int axis, const sb_indices *indices) {
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    SB_TRY(check_indices(call, axis, data->dims[axis], indices));
    gathering work = {.from = data->data,
                      .to = output->data,
                      .indices = indices->values,
                      .count = indices->count,
                      .extent = data->dims[axis],
                      .block = (size_t)sb_move_product(data->dims, axis + 1, data->rank) * sb_dtype_size(data->dtype)};
    int64_t blocks = sb_move_product(data->dims, 0, axis) * work.count;
    sb_workers_run(call->workers, blocks, 1 + GRAIN_BYTES / (int64_t)(work.block + sizeof *work.indices), gather_blocks,
                   &work);
    return SB_OK;
}

typedef sb_status gather_task(sb_call *call, const sb_tensor *data, int axis, const sb_indices *indices);

static sb_status launch_by(sb_call *call, gather_task *gather) {
    sb_tensor *data;
    sb_indices indices = {NULL};
    int axis;
    SB_TRY(
        sb_move_axis(call, ((const sb_gather_params *)call->node->params)->axis, sb_call_input(call, 0)->rank, &axis));
    SB_TRY(sb_call_contiguous(call, 0, &data));
    sb_status status = sb_indices_read(call, sb_call_input(call, 1), &indices);
    if (status == SB_OK)
        status = gather(call, data, axis, &indices);
    sb_indices_release(&indices);
    sb_tensor_release(data);
    return status;
}

static sb_status launch_gather(sb_call *call) {
    return launch_by(call, gather);
}

static sb_status launch_elements(sb_call *call) {
    return launch_by(call, sb_cpu_gather_elements);
}

const sb_kernel sb_cpu_kernels_gather[] = {
    {.op = "Gather", .name = "gather", .supports = supports_gather, .launch = launch_gather},
    {.op = "GatherElements", .name = "gather-elements", .supports = supports_gather, .launch = launch_elements},
    {.op = "GatherND", .name = "gather-nd", .supports = supports_gather_nd, .launch = sb_cpu_gather_nd},
    {0},
};
