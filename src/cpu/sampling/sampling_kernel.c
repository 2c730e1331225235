/* The kernel of GridSample in f32. The output has its channels innermost in memory, so that a point's values are adjacent; an image
 * whose channels are not is copied where more elements are taken from it than it has. */
#include <stdio.h>
#include <string.h>

#include "cpu/channels_last.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/sampling/sample_points.h"
#include "cpu/spread.h"
#include "ops/moving.h"

/* Elements of the output that a thread takes at once, about. */
#define PIECE_ELEMENTS 4096

static bool supports_sample(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if (x->dtype != SB_F32) {
        snprintf(why, SB_WHY_BYTES, "GridSample of %s has no kernel; f32 has", sb_dtype_name(x->dtype));
        return false;
    }
    if (x->rank > 2 + SB_SAMPLE_MOST_AXES) {
        snprintf(why, SB_WHY_BYTES, "GridSample has a kernel for up to %d spatial axes", SB_SAMPLE_MOST_AXES);
        return false;
    }
    return true;
}

typedef struct sampling {
    sb_sample_points *sample;
    sb_sample_image image; /* the first of the batch */
    int64_t batch_stride;  /* from one image to the next */
    sb_dtype grid_dtype;
    const void *grid;
    int64_t points, pieces, piece; /* of one image: points, how many pieces they are cut into, and of how many points */
    float *y;                      /* [batch][points][channels] in memory */
} sampling;

static void sample_piece(void *context, int64_t index, void *workspace) {
    (void)workspace;
    const sampling *work = context;
    int64_t batch = index / work->pieces, first = index % work->pieces * work->piece;
    int64_t left = work->points - first, at = batch * work->points + first;
    sb_sample_image image = work->image;
    image.data += batch * work->batch_stride;
    work->sample(&image, work->grid_dtype, work->grid, at, left < work->piece ? left : work->piece,
                 work->y + at * image.channels);
}

static sb_sample_points *points_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_sample_points_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_sample_points_avx2;
#endif
    (void)isa;
    return sb_sample_points_scalar;
}

static sb_status put_channels_last(sb_call *call, const sb_tensor *x, sampling *work) {
    int64_t strides[SB_MAX_RANK];
    SB_TRY(sb_channels_last_copy(call, x, &work->image.data, strides));
    work->image.channel_stride = 1;
    work->batch_stride = strides[0];
    memcpy(work->image.strides, strides + 1, (size_t)work->image.axes * sizeof *strides);
    return SB_OK;
}

static sb_status find_image(sb_call *call, const sb_tensor *x, sampling *work) {
    sb_sample_image *image = &work->image;
    int64_t elements = 1;
    void *zeros;
    image->params = call->node->params;
    image->axes = x->rank - 2;
    image->channels = x->dims[1];
    image->channel_stride = x->dims[1] == 1 ? 1 : x->strides[1];
    image->data = (const float *)(const void *)x->data;
    work->batch_stride = x->strides[0];
    for (int d = 0; d < image->axes; d++) {
        image->extents[d] = x->dims[d + 2];
        image->strides[d] = x->strides[d + 2];
        elements *= x->dims[d + 2];
    }
    SB_TRY(sb_call_workspace(call, (size_t)image->channels * sizeof(float), &zeros));
    memset(zeros, 0, (size_t)image->channels * sizeof(float));
    image->zeros = zeros;
    int64_t taps = 1, most = image->params->mode == SB_SAMPLE_NEAREST  ? 1
                             : image->params->mode == SB_SAMPLE_LINEAR ? 2
                                                                       : 4;
    for (int d = 0; d < image->axes; d++)
        taps *= most;
    if (image->channel_stride != 1 && work->points * taps >= elements)
        return put_channels_last(call, x, work);
    return SB_OK;
}

/* Nothing to do, or something to refuse, which the definition words. */
static bool is_for_the_definition(const sb_tensor *x, const sb_tensor *grid) {
    return x->dims[0] != grid->dims[0] || sb_tensor_elements(x) == 0 || sb_tensor_elements(grid) == 0;
}

static sb_status launch_sample(sb_call *call) {
    const sb_tensor *x = sb_call_input(call, 0);
    sb_tensor *y, *grid;
    sampling work = {.sample = points_for(call->isa)};
    if (is_for_the_definition(x, sb_call_input(call, 1)))
        return call->node->op->eval(call);
    SB_TRY(sb_channels_last_output(call, x->rank, &y));
    work.y = (float *)(void *)y->data;
    work.points = sb_move_product(y->dims, 2, y->rank);
    SB_TRY(find_image(call, x, &work));
    SB_TRY(sb_call_contiguous(call, 1, &grid));
    work.grid = grid->data;
    work.grid_dtype = grid->dtype;
    work.piece = PIECE_ELEMENTS / work.image.channels + 1;
    work.pieces = (work.points + work.piece - 1) / work.piece;
    sb_status status = sb_pieces_run(call, x->dims[0] * work.pieces, 0, sample_piece, &work);
    sb_tensor_release(grid);
    return status;
}

const sb_kernel sb_cpu_kernels_sampling[] = {
    {.op = "GridSample", .name = "sample-points", .supports = supports_sample, .launch = launch_sample},
    {0},
};
