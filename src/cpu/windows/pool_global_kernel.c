/* The kernel of GlobalAveragePool and GlobalMaxPool of f32, f16 and bf16, which are reductions of images: of adjacent elements they are
 * rows, and of adjacent channels columns (cpu/rows/reduce_rows.h). Others are copied. */
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/reduce_rows.h"
#include "cpu/spread.h"
#include "cpu/supports.h"
#include "numerics/scalar.h"
#include "ops/convert_loops.h"

/* Elements of a piece of images, about; channels of one where these are adjacent. */
#define PIECE_ELEMENTS 8192
#define PIECE_CHANNELS 64

typedef struct global_pooling {
    const sb_reduce_kernels *reduce;
    sb_reduce_kind kind;
    const sb_tensor *x;
    sb_tensor *y; /* row-major */
    int64_t size; /* bytes of an element */
    sb_walk_row *load, *store;
    int64_t images, elements;
    int64_t step;          /* between elements of an image whose neighbours are channels */
    int64_t piece, pieces; /* images or channels of a piece; pieces of the channels of one sample */
} global_pooling;

static const char *image_at(const global_pooling *work, int64_t image) {
    const sb_tensor *x = work->x;
    const int64_t sample = image / x->dims[1], channel = image % x->dims[1];
    return x->data + (sample * x->strides[0] + channel * x->strides[1]) * work->size;
}

/* Stores what `count` images from `first` on came to; sums become means. */
static void keep(const global_pooling *work, int64_t first, int64_t count, float *results) {
    for (int64_t i = 0; i < count && work->kind == SB_REDUCE_SUM; i++)
        results[i] = sb_div_f32(results[i], (float)work->elements);
    work->store(NULL, count, (char *const[]){work->y->data + first * work->size, (char *)results},
                (const int64_t[]){work->size, (int64_t)sizeof *results});
}

static void pool_images(void *context, int64_t index, void *workspace) {
    const global_pooling *work = context;
    const int64_t begin = index * work->piece, end = begin + work->piece;
    for (int64_t image = begin; image < end && image < work->images; image++) {
        const char *at = image_at(work, image);
        const float *x = (const float *)(const void *)at;
        if (work->x->dtype != SB_F32) {
            work->load(NULL, work->elements, (char *const[]){workspace, (char *)(uintptr_t)at},
                       (const int64_t[]){(int64_t)sizeof(float), work->size});
            x = workspace;
        }
        float result = work->reduce->row(work->kind, work->elements, x);
        keep(work, image, 1, &result);
    }
}

static void pool_channels(void *context, int64_t index, void *workspace) {
    (void)workspace;
    const global_pooling *work = context;
    const int64_t channels = work->x->dims[1], first = index % work->pieces * PIECE_CHANNELS;
    const int64_t image = index / work->pieces * channels + first;
    const int64_t count = channels - first < PIECE_CHANNELS ? channels - first : PIECE_CHANNELS;
    float results[PIECE_CHANNELS];
    work->reduce->columns(work->kind, work->x->dtype, work->elements, count, image_at(work, image), work->step,
                          results);
    keep(work, image, count, results);
}

static sb_status run(sb_call *call, global_pooling *work) {
    const sb_tensor *x = work->x;
    const int64_t channels = x->dims[1];
    size_t workspace;
    const bool even = sb_even_step(x->rank - 2, x->dims + 2, x->strides + 2, &work->step);
    if (even && work->step != 1 && x->strides[1] == 1 && channels > 1) {
        work->pieces = (channels + PIECE_CHANNELS - 1) / PIECE_CHANNELS;
        return sb_pieces_run(call, x->dims[0] * work->pieces, 0, pool_channels, work);
    }
    work->piece = work->elements < PIECE_ELEMENTS ? PIECE_ELEMENTS / (work->elements + 1) + 1 : 1;
    if (__builtin_mul_overflow((size_t)work->elements, x->dtype == SB_F32 ? 0 : sizeof(float), &workspace))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "an image of %lld elements is too large",
                            (long long)work->elements);
    return sb_pieces_run(call, (work->images - 1) / work->piece + 1, workspace, pool_images, work);
}

/* Whether images are rows or columns as they lie. */
static bool lie_well(const sb_tensor *x) {
    int64_t step;
    return sb_even_step(x->rank - 2, x->dims + 2, x->strides + 2, &step) &&
           (step == 1 || (x->strides[1] == 1 && x->dims[1] > 1));
}

static sb_status launch_global_pool(sb_call *call) {
    sb_tensor *x = sb_call_input(call, 0), *copy = NULL;
    const bool averages = strcmp(call->node->op->name, "GlobalAveragePool") == 0;
    global_pooling work = {.reduce = sb_reduce_kernels_for(call->isa),
                           .kind = averages ? SB_REDUCE_SUM : SB_REDUCE_MAXIMUM,
                           .x = x,
                           .size = (int64_t)sb_dtype_size(x->dtype),
                           .load = sb_convert_loop_for(call->isa, SB_F32, x->dtype),
                           .store = sb_convert_loop_for(call->isa, x->dtype, SB_F32),
                           .images = x->dims[0] * x->dims[1],
                           .elements = 1};
    SB_TRY(sb_call_output(call, 0, &work.y));
    if (work.images == 0)
        return SB_OK;
    for (int d = 2; d < x->rank; d++)
        work.elements *= x->dims[d];
    if (!lie_well(x)) {
        SB_TRY(sb_call_contiguous(call, 0, &copy));
        work.x = copy;
    }
    sb_status status = run(call, &work);
    sb_tensor_release(copy);
    return status;
}

const sb_kernel sb_cpu_kernels_pool_global[] = {
    {.op = "GlobalAveragePool",
     .name = "reduce-images",
     .supports = sb_cpu_supports_small_floats,
     .launch = launch_global_pool},
    {.op = "GlobalMaxPool",
     .name = "reduce-images",
     .supports = sb_cpu_supports_small_floats,
     .launch = launch_global_pool},
    {0},
};
