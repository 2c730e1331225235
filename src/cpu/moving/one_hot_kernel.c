/* The kernel of OneHot: each worker fills its part of the output with "off", a page at a time, and puts "on" where indices say. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "ops/moving.h"
#include "ops/selection.h"

/* Bytes that are filled at once, and below which waking a thread costs more than it saves. */
#define PAGE_BYTES 4096
#define GRAIN_BYTES 131072

static bool supports_one_hot(const sb_kernel_query *query, char *why) {
    if (query->inputs[2]->dtype != SB_STRING)
        return true;
    snprintf(why, SB_WHY_BYTES, "text has no kernel of OneHot");
    return false;
}

typedef struct filling {
    sb_one_hot_work one_hot;
    const sb_tensor *indices, *values; /* gapless */
    char *to;
    size_t size;
    char off[PAGE_BYTES]; /* as many as fit */
} filling;

static void fill_off(const filling *work, char *to, size_t bytes) {
    const size_t page = PAGE_BYTES / work->size * work->size;
    for (size_t at = 0; at < bytes; at += page)
        memcpy(to + at, work->off, bytes - at < page ? bytes - at : page);
}

/* Blocks [begin, end) of [extent, inner] elements. */
static void fill_blocks(void *context, int64_t begin, int64_t end) {
    const filling *work = context;
    const int64_t extent = work->one_hot.extent, inner = work->one_hot.inner;
    const size_t block = (size_t)(extent * inner) * work->size;
    for (int64_t outer = begin; outer < end; outer++) {
        char *to = work->to + (size_t)outer * block;
        fill_off(work, to, block);
        for (int64_t i = 0; i < inner; i++) {
            const int64_t hot = sb_one_hot_place(work->indices, outer * inner + i, extent);
            if (hot >= 0 && hot < extent)
                sb_move_element(to + (size_t)(hot * inner + i) * work->size, work->values->data + work->size,
                                work->size);
        }
    }
}

static void run(const sb_call *call, filling *work, sb_tensor *output) {
    work->to = output->data;
    work->size = sb_dtype_size(work->values->dtype);
    for (size_t at = 0; at + work->size <= PAGE_BYTES; at += work->size)
        memcpy(work->off + at, work->values->data, work->size);
    const int64_t block = work->one_hot.extent * work->one_hot.inner * (int64_t)work->size;
    sb_workers_run(call->workers, work->one_hot.outer, 1 + GRAIN_BYTES / block, fill_blocks, work);
}

static sb_status launch_one_hot(sb_call *call) {
    filling work;
    sb_tensor *indices, *values, *output;
    SB_TRY(sb_one_hot_describe(call, &work.one_hot));
    SB_TRY(sb_call_output_shape(call, 0, sb_call_input(call, 2)->dtype, work.one_hot.rank, work.one_hot.dims, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    if (!sb_tensor_is_contiguous(output))
        return call->node->op->eval(call);
    SB_TRY(sb_call_contiguous(call, 0, &indices));
    sb_status status = sb_call_contiguous(call, 2, &values);
    if (status == SB_OK) {
        work.indices = indices;
        work.values = values;
        run(call, &work, output);
        sb_tensor_release(values);
    }
    sb_tensor_release(indices);
    return status;
}

const sb_kernel sb_cpu_kernels_selection[] = {
    {.op = "OneHot", .name = "one-hot", .supports = supports_one_hot, .finds_extents = true, .launch = launch_one_hot},
    {0},
};
