/* TensorScatter and PagedScatter: onto the cache itself where nobody else needs it any more, so that what a step costs does not grow with
 * the cache. Everything is checked before the first row is written. */
#include "ops/tensor_scatter.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/moving/tensor_scatter.h"

static bool supports_tensor_scatter(const sb_kernel_query *query, char *why) {
    if (query->inputs[0]->dtype != SB_STRING)
        return true;
    snprintf(why, SB_WHY_BYTES, "text is placed by reference evaluation");
    return false;
}

static int in_place_tensor_scatter(const sb_kernel_query *query) {
    return 0;
}

static bool same_layout(const sb_tensor *left, const sb_tensor *right) {
    for (int d = 0; d < left->rank; d++) {
        if (left->dims[d] > 1 && left->strides[d] != right->strides[d])
            return false;
    }
    return true;
}

/* The cache's elements, which lie there already where the output has taken over its place; in another order, they go by
 * way of a copy. */
static sb_status fill(sb_call *call, const sb_tensor *cache, sb_tensor *output) {
    if (output->data == cache->data && same_layout(output, cache))
        return SB_OK;
    if (output->data != cache->data) {
        sb_tensor_copy_elements(output, cache);
        return SB_OK;
    }
    sb_tensor packed;
    void *memory;
    memcpy(&packed, cache, sizeof packed);
    sb_row_major_strides(packed.rank, packed.dims, packed.strides);
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(cache) * sb_dtype_size(cache->dtype), &memory));
    packed.data = memory;
    sb_tensor_copy_elements(&packed, cache);
    sb_tensor_copy_elements(output, &packed);
    return SB_OK;
}

static sb_status launch_tensor_scatter(sb_call *call) {
    int64_t *starts;
    int axis;
    sb_tensor *output;
    call->untouched = true;
    SB_TRY(sb_tensor_scatter_check(call, &axis, &starts));
    call->untouched = false;
    sb_status status = sb_call_output(call, 0, &output);
    if (status == SB_OK)
        status = fill(call, sb_call_input(call, 0), output);
    if (status == SB_OK)
        sb_tensor_scatter_write(call, axis, starts, output);
    sb_free(starts);
    return status;
}

sb_status sb_cpu_paged_scatter_run(sb_call *call, const sb_pages *pages, sb_tensor *output) {
    SB_TRY(fill(call, sb_call_input(call, 0), output));
    sb_paged_scatter_write(call, pages, output);
    return SB_OK;
}

static sb_status launch_paged_scatter(sb_call *call) {
    sb_tensor *output;
    sb_pages pages;
    call->untouched = true;
    SB_TRY(sb_paged_scatter_describe(call, &pages));
    SB_TRY(sb_paged_scatter_check(call, &pages));
    call->untouched = false;
    SB_TRY(sb_call_output(call, 0, &output));
    return sb_cpu_paged_scatter_run(call, &pages, output);
}

const sb_kernel sb_cpu_kernels_tensor_scatter[] = {
    {.op = "TensorScatter",
     .name = "tensor-scatter",
     .supports = supports_tensor_scatter,
     .in_place = in_place_tensor_scatter,
     .launch = launch_tensor_scatter},
    {.op = "PagedScatter",
     .domain = "samebit",
     .name = "paged-scatter",
     .supports = supports_tensor_scatter,
     .in_place = in_place_tensor_scatter,
     .launch = launch_paged_scatter},
    {0},
};
