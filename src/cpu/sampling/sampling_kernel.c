/* The kernel of GridSample of f32, f16 and bf16. An image of 16 bits is widened first, and its values are rounded from f64 once. The output has its channels innermost in memory, so that a point's values are adjacent; an image
 * whose channels are not is copied where more elements are taken from it than it has. */
#include <stdio.h>
#include <string.h>

#include "cpu/channels_last.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/sampling/sample_points.h"
#include "cpu/spread.h"
#include "cpu/supports.h"
#include "cpu/widen.h"
#include "ops/convert_loops.h"
#include "ops/moving.h"

/* Elements of the output that a thread takes at once, about. */
#define PIECE_ELEMENTS 4096

static bool supports_sample(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if (!sb_cpu_supports_small_floats(query, why))
        return false;
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
    char *y;                       /* [batch][points][channels] in memory */
    int64_t size;                  /* of an element of y */
    sb_walk_row *round;            /* from f32 to y's 16 bits; NULL: it is of f32 */
} sampling;

static void sample_piece(void *context, int64_t index, void *workspace) {
    const sampling *work = context;
    int64_t batch = index / work->pieces, first = index % work->pieces * work->piece;
    int64_t left = work->points - first, at = batch * work->points + first;
    int64_t count = left < work->piece ? left : work->piece;
    sb_sample_image image = work->image;
    image.data += batch * work->batch_stride;
    char *y = work->y + at * image.channels * work->size;
    float *values = work->round == NULL ? (float *)(void *)y : workspace;
    work->sample(&image, work->grid_dtype, work->grid, at, count, values);
    if (work->round != NULL)
        work->round(NULL, count * image.channels, (char *[]){y, (char *)values},
                    (const int64_t[]){work->size, (int64_t)sizeof(float)});
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

/* `x` is of f32. */
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
    sb_tensor *y, *grid, wide = {.rank = 0};
    sampling work = {.sample = points_for(call->isa), .size = (int64_t)sb_dtype_size(x->dtype)};
    if (is_for_the_definition(x, sb_call_input(call, 1)))
        return call->node->op->eval(call);
    SB_TRY(sb_channels_last_output(call, x->rank, &y));
    work.y = y->data;
    work.points = sb_move_product(y->dims, 2, y->rank);
    SB_TRY(sb_widen(call, x, &wide));
    SB_TRY(find_image(call, &wide, &work));
    work.image.to_odd = x->dtype != SB_F32;
    work.round = x->dtype != SB_F32 ? sb_convert_loop_for(call->isa, x->dtype, SB_F32) : NULL;
    SB_TRY(sb_call_contiguous(call, 1, &grid));
    work.grid = grid->data;
    work.grid_dtype = grid->dtype;
    work.piece = PIECE_ELEMENTS / work.image.channels + 1;
    work.pieces = (work.points + work.piece - 1) / work.piece;
    const size_t workspace = work.round != NULL ? (size_t)(work.piece * work.image.channels) * sizeof(float) : 0;
    sb_status status = sb_pieces_run(call, x->dims[0] * work.pieces, workspace, sample_piece, &work);
    sb_tensor_release(grid);
    return status;
}

const sb_kernel sb_cpu_kernels_sampling[] = {
    {.op = "GridSample", .name = "sample-points", .supports = supports_sample, .launch = launch_sample},
    {0},
};
