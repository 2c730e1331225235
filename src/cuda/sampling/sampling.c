/* Sampling of images: AffineGrid, GridSample, MaxRoiPool, RoiAlign. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/sampling/sampling_parameters.h"
#include "ops/moving.h"

static sb_status launch_grid_sample(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    int axes = input->rank - 2;
    sb_tensor *grid, *output;
    if (sb_call_input(call, 1)->dims[0] != input->dims[0])
        return sb_call_fail(call, SB_ERROR_SHAPE, "input and grid have batches of %lld and %lld",
                            (long long)input->dims[0], (long long)sb_call_input(call, 1)->dims[0]);
    SB_TRY(sb_call_output(call, 0, &output));
    sb_cuda_grid_sample parameters = {
        .elements = sb_tensor_elements(output),
        .points = sb_move_product(output->dims, 2, output->rank),
        .channels = input->dims[1],
        .params = *(const sb_sample_params *)call->node->params,
        .source = {.dtype = input->dtype, .axes = axes, .data = input->data},
        .batch_stride = input->strides[0],
        .channel_stride = input->strides[1],
        .out = output->data,
    };
    for (int d = 0; d < axes; d++) {
        parameters.source.strides[d] = input->strides[d + 2];
        parameters.extents[d] = input->dims[d + 2];
        if (input->dims[d + 2] == 0 && parameters.elements != 0)
            return sb_call_fail(call, SB_ERROR_SHAPE, "axis %d is empty: there is nothing to sample", d + 2);
    }
    SB_TRY(sb_call_contiguous(call, 1, &grid));
    parameters.grid = grid->data;
    parameters.grid_dtype = grid->dtype;
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, input);
    sb_cuda_work_reads(&work, grid);
    sb_status status = sb_cuda_launch_each(call, &work, "sampling", "sb_cuda_sample_grid", NULL, parameters.elements);
    sb_tensor_release(grid);
    return status;
}

static sb_status launch_affine_grid(sb_call *call) {
    const sb_sample_params *params = call->node->params;
    const sb_tensor *given = sb_call_input(call, 0);
    sb_tensor *theta, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    int axes = output->rank - 2;
    if (given->rank != 3 || given->dims[0] != output->dims[0] || given->dims[1] != axes || given->dims[2] != axes + 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "theta must be [%lld,%d,%d]", (long long)output->dims[0], axes,
                            axes + 1);
    SB_TRY(sb_call_contiguous(call, 0, &theta));
    sb_cuda_affine_grid parameters = {.elements = sb_tensor_elements(output),
                                      .axes = axes,
                                      .align_corners = params->align_corners,
                                      .dtype = theta->dtype,
                                      .theta = theta->data,
                                      .out = output->data};
    memcpy(parameters.extents, output->dims + 1, (size_t)axes * sizeof *output->dims);
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, theta);
    sb_status status =
        sb_cuda_launch_each(call, &work, "sampling", "sb_cuda_make_affine_grid", NULL, parameters.elements);
    sb_tensor_release(theta);
    return status;
}

/* `numbers` a region; with `batches` their batch elements are input 2. */
static sb_status launch_regions(sb_call *call, const char *kernel, int64_t numbers, bool batches) {
    const sb_tensor *input = sb_call_input(call, 0), *given = sb_call_input(call, 1);
    sb_tensor *output, *regions = NULL, *list = NULL;
    SB_TRY(sb_call_output(call, 0, &output));
    if (given->dims[1] != numbers || (batches && sb_tensor_elements(sb_call_input(call, 2)) != given->dims[0]))
        return sb_call_fail(call, SB_ERROR_SHAPE, "regions have %lld numbers, not %lld, or not one batch index each",
                            (long long)given->dims[1], (long long)numbers);
    SB_TRY(sb_call_contiguous(call, 1, &regions));
    sb_status status = batches ? sb_call_contiguous(call, 2, &list) : SB_OK;
    if (status == SB_OK) {
        sb_cuda_work work = {0};
        sb_cuda_regions parameters = {
            .elements = sb_tensor_elements(output),
            .channels = output->dims[1],
            .params = *(const sb_region_params *)call->node->params,
            .image = {.dtype = input->dtype, .data = input->data},
            .dtype = regions->dtype,
            .wide = batches && list->dtype == SB_S64,
            .regions = regions->data,
            .batches = batches ? list->data : NULL,
            .fault = sb_cuda_work_fault(&work, call),
            .out = output->data,
        };
        memcpy(parameters.image.dims, input->dims, sizeof parameters.image.dims);
        memcpy(parameters.image.strides, input->strides, sizeof parameters.image.strides);
        work.parameters = &parameters;
        work.parameter_bytes = sizeof parameters;
        sb_cuda_work_writes(&work, output);
        sb_cuda_work_reads(&work, input);
        sb_cuda_work_reads(&work, regions);
        sb_cuda_work_reads(&work, list);
        status = sb_cuda_launch_each(call, &work, "sampling", kernel, NULL, parameters.elements);
    }
    sb_tensor_release(regions);
    sb_tensor_release(list);
    return status;
}

static sb_status launch_roi_align(sb_call *call) {
    return launch_regions(call, "sb_cuda_roi_align", 4, true);
}

static sb_status launch_max_roi_pool(sb_call *call) {
    return launch_regions(call, "sb_cuda_max_roi_pool", 5, false);
}

#define SAMPLING(op_name, kernel_name, host, launch_function)                                                          \
    {                                                                                                                  \
        .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .host_inputs = host,                     \
        .launch = launch_function                                                                                      \
    }

const sb_kernel sb_cuda_kernels_sampling[] = {
    SAMPLING("AffineGrid", "affine_grid", 2, launch_affine_grid),
    SAMPLING("GridSample", "grid_sample", 0, launch_grid_sample),
    SAMPLING("MaxRoiPool", "max_roi_pool", 0, launch_max_roi_pool),
    SAMPLING("RoiAlign", "roi_align", 0, launch_roi_align),
    {0},
};
