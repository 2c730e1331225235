/* The kernel of RoiAlign in f32, by averages. A thread takes a region. An image whose channels are not innermost is copied where more
 * elements are taken from it than it has. */
#include "cpu/regions/align.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/channels_last.h"
#include "cpu/pieces.h"
#include "ops/moving.h"

bool sb_align_supports(const sb_kernel_query *query, char *why) {
    if (query->inputs[0]->dtype == SB_F32 && !((const sb_region_params *)query->node->params)->maximum)
        return true;
    snprintf(why, SB_WHY_BYTES, "RoiAlign has a kernel for averages in f32");
    return false;
}

typedef struct aligning {
    sb_align_average *average;
    sb_align_region region;         /* of the first image */
    sb_region_image image;          /* extents and dtype */
    int64_t batch_stride, elements; /* of the output: elements of a region */
    const int64_t *batches;
    const void *regions;
    float *y;
} aligning;

static sb_align_average *average_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_align_average_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_align_average_avx2;
#endif
    (void)isa;
    return sb_align_average_scalar;
}

static void align_region(void *context, int64_t index, void *workspace) {
    const aligning *work = context;
    sb_region_axis rows, columns;
    sb_align_region region = work->region;
    float *y = work->y + index * work->elements;
    sb_region_align(region.params, &work->image, SB_F32, work->regions, index, &rows, &columns);
    if (rows.grid == 0) {
        memset(y, 0, (size_t)work->elements * sizeof *y);
        return;
    }
    region.rows = &rows;
    region.columns = &columns;
    region.image += work->batches[index] * work->batch_stride;
    region.sums = workspace;
    work->average(&region, y);
}

static sb_status find_image(sb_call *call, const sb_tensor *x, int64_t taken, aligning *work) {
    sb_align_region *region = &work->region;
    int64_t strides[SB_MAX_RANK];
    memcpy(work->image.dims, x->dims, sizeof work->image.dims);
    region->channels = x->dims[1];
    region->channel_stride = x->dims[1] == 1 ? 1 : x->strides[1];
    region->image = (const float *)(const void *)x->data;
    work->batch_stride = x->strides[0];
    memcpy(region->strides, x->strides + 2, sizeof region->strides);
    if (region->channel_stride == 1 || taken < sb_tensor_elements(x))
        return SB_OK;
    SB_TRY(sb_channels_last_copy(call, x, &region->image, strides));
    region->channel_stride = 1;
    work->batch_stride = strides[0];
    memcpy(region->strides, strides + 1, sizeof region->strides);
    return SB_OK;
}

static sb_status align_all(sb_call *call, const sb_tensor *regions, const int64_t *batches, sb_tensor *y) {
    const sb_region_params *params = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0);
    int64_t samples = params->samples > 0 ? params->samples * params->samples : 1;
    aligning work = {.average = average_for(call->isa),
                     .region.params = params,
                     .image.dtype = SB_F32,
                     .elements = sb_move_product(y->dims, 1, y->rank),
                     .batches = batches,
                     .regions = regions->data,
                     .y = (float *)(void *)y->data};
    SB_TRY(find_image(call, x, sb_tensor_elements(y) * 4 * samples, &work));
    return sb_pieces_run(call, regions->dims[0], (size_t)x->dims[1] * sizeof(double), align_region, &work);
}

/* What the definition words a refusal of, or has nothing to do for. */
static bool is_for_the_definition(const sb_call *call) {
    const sb_tensor *x = sb_call_input(call, 0), *regions = sb_call_input(call, 1), *batches = sb_call_input(call, 2);
    return x->rank != 4 || regions->rank != 2 || regions->dims[1] != 4 ||
           sb_tensor_elements(batches) != regions->dims[0] || sb_tensor_elements(x) == 0 || regions->dims[0] == 0;
}

static bool are_inside(const int64_t *batches, int64_t count, int64_t extent) {
    for (int64_t i = 0; i < count; i++) {
        if (batches[i] < 0 || batches[i] >= extent)
            return false;
    }
    return true;
}

sb_status sb_align_launch(sb_call *call) {
    sb_tensor *regions, *y;
    int64_t *batches = NULL, count;
    if (is_for_the_definition(call))
        return call->node->op->eval(call);
    SB_TRY(sb_move_indices(call, sb_call_input(call, 2), &batches, &count));
    if (!are_inside(batches, count, sb_call_input(call, 0)->dims[0])) {
        sb_free(batches);
        return call->node->op->eval(call);
    }
    sb_status status = sb_call_contiguous(call, 1, &regions);
    if (status == SB_OK) {
        status = sb_call_output(call, 0, &y);
        if (status == SB_OK)
            status = align_all(call, regions, batches, y);
        sb_tensor_release(regions);
    }
    sb_free(batches);
    return status;
}
