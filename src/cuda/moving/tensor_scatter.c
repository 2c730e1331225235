/* TensorScatter: onto the cache itself where nobody else needs it any more. So PagedScatter. */
#include "cuda/moving/tensor_scatter.h"

#include <string.h>

#include "cuda/list.h"
#include "ops/tensor_scatter.h"

static int in_place_tensor_scatter(const sb_kernel_query *query) {
    return 0;
}

/* The rows of the cache and of the update, and starts, which are checked. */
static bool bounded_tensor_scatter(const sb_kernel_query *query, int input, int axis) {
    return true;
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
sb_status sb_cuda_scatter_start(sb_call *call, const sb_tensor *cache, sb_tensor *output) {
    if (output->data == cache->data && same_layout(output, cache))
        return SB_OK;
    if (output->data != cache->data)
        return sb_call_copy(call, output, cache);
    sb_tensor packed;
    void *memory;
    memcpy(&packed, cache, sizeof packed);
    sb_row_major_strides(packed.rank, packed.dims, packed.strides);
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(cache) * sb_dtype_size(cache->dtype), &memory));
    packed.data = memory;
    SB_TRY(sb_call_copy(call, &packed, cache));
    return sb_call_copy(call, output, &packed);
}

static sb_status write_rows(sb_call *call, int axis, sb_tensor *output) {
    const sb_tensor *update = sb_call_input(call, 1), *starts = sb_call_input(call, 2);
    int64_t size = (int64_t)sb_dtype_size(update->dtype);
    sb_cuda_work work = {0};
    sb_cuda_tensor_scatter parameters = {
        .elements = sb_tensor_elements(update),
        .rows = output->dims[axis],
        .rank = update->rank,
        .axis = axis,
        .circular = ((const sb_tensor_scatter_params *)call->node->params)->circular,
        .start_step = starts != NULL ? starts->strides[0] * (int64_t)sizeof(int64_t) : 0,
        .starts = starts != NULL ? starts->data : NULL,
        .used_batch = starts != NULL ? sb_cuda_work_used(&work, call, 2, 0) : NULL,
        .used_rows = sb_cuda_work_used(&work, call, 0, axis),
        .used_count = sb_cuda_work_used(&work, call, 1, axis),
        .fault = sb_cuda_work_fault(&work, call),
        .from = update->data,
        .out = output->data,
    };
    for (int d = 0; d < update->rank; d++) {
        parameters.dims[d] = update->dims[d];
        parameters.from_steps[d] = update->strides[d] * size;
        parameters.to_steps[d] = output->strides[d] * size;
    }
    work.parameters = &parameters;
    work.parameter_bytes = sizeof parameters;
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, update);
    sb_cuda_work_reads(&work, starts);
    return sb_cuda_launch_each(call, &work, "tensor_scatter", "sb_cuda_tensor_scatter",
                               sb_cuda_size_suffix(update->dtype), parameters.elements);
}

static sb_status launch_tensor_scatter(sb_call *call) {
    int axis;
    sb_tensor *output;
    SB_TRY(sb_tensor_scatter_fits(call, &axis));
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_cuda_scatter_start(call, sb_call_input(call, 0), output));
    return write_rows(call, axis, output);
}

/* ---- PagedScatter ---- */

void sb_cuda_paged_scatter_fill(sb_call *call, const sb_pages *pages, sb_tensor *output, sb_cuda_work *work,
                                sb_cuda_paged_scatter *parameters) {
    const sb_tensor *rows = sb_call_input(call, 1), *starts = sb_call_input(call, 2);
    int64_t size = (int64_t)sb_dtype_size(rows->dtype);
    *parameters = (sb_cuda_paged_scatter){
        .pages = *pages,
        .elements = sb_tensor_elements(rows),
        .width = rows->dims[2],
        .start_step = starts->strides[0] * (int64_t)sizeof(int64_t),
        .from_row = rows->strides[1] * size,
        .from_column = rows->strides[2] * size,
        .to_page = output->strides[0] * size,
        .to_row = output->strides[1] * size,
        .to_column = output->strides[2] * size,
        .starts = starts->data,
        .fault = sb_cuda_work_fault(work, call),
        .from = rows->data,
        .out = output->data,
    };
    sb_cuda_work_writes(work, output);
    for (int i = 1; i < 5; i++)
        sb_cuda_work_reads(work, sb_call_input(call, i));
}

static sb_status launch_paged_scatter(sb_call *call) {
    sb_pages pages;
    sb_tensor *output;
    sb_cuda_paged_scatter parameters;
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    SB_TRY(sb_paged_scatter_describe(call, &pages));
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_cuda_scatter_start(call, sb_call_input(call, 0), output));
    sb_cuda_paged_scatter_fill(call, &pages, output, &work, &parameters);
    return sb_cuda_launch_each(call, &work, "tensor_scatter", "sb_cuda_paged_scatter",
                               sb_cuda_size_suffix(output->dtype), parameters.elements);
}

const sb_kernel sb_cuda_kernels_tensor_scatter[] = {
    {.op = "TensorScatter",
     .name = "tensor_scatter",
     .supports = sb_cuda_supports_all,
     .in_place = in_place_tensor_scatter,
     .bounded = bounded_tensor_scatter,
     .launch = launch_tensor_scatter},
    {.op = "PagedScatter",
     .domain = "samebit",
     .name = "paged_scatter",
     .supports = sb_cuda_supports_all,
     .in_place = in_place_tensor_scatter,
     .launch = launch_paged_scatter},
    {0},
};
