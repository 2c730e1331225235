/* Col2Im in f32, f16 and bf16: channels on all workers, and of each block element the places of a line of the image at once. Additions are those of
 * the definition, in its order; 16 bits are added up in f32 and rounded once. */
#include <stdio.h>
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "ops/convert_loops.h"
#include "ops/fold.h"
#include "ops/moving.h"

static bool supports_fold(const sb_kernel_query *query, char *why) {
    const sb_dtype dtype = query->inputs[0]->dtype;
    if (query->outputs[0].rank != SB_RANK_UNKNOWN && (dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16))
        return true;
    snprintf(why, SB_WHY_BYTES, "Col2Im of %s has no kernel, nor has one whose image's rank is not known",
             sb_dtype_name(dtype));
    return false;
}

/* Gapless. */
typedef struct folding {
    const sb_fold_params *params;
    const sb_fold *plan;
    sb_walk_row *widen, *round; /* NULL for f32 */
    const char *x;
    char *y;
    int64_t size, columns; /* bytes of an element; elements of a channel of x */
} folding;

/* Places [*begin, *end) of an axis whose pixels lie within the image, for a block element. */
static void find_places(const folding *work, int d, int64_t element, int64_t *begin, int64_t *end) {
    const sb_fold_params *params = work->params;
    const int64_t stride = params->strides[d], shift = element * params->dilations[d] - params->pads[d];
    const int64_t places = work->plan->places[d], room = work->plan->image[d] - shift; /* places below room / stride */
    *begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    *end = room <= 0 ? 0 : (room + stride - 1) / stride;
    *end = *end < places ? *end : places;
}

static void add_line(const float *values, int64_t count, int64_t stride, float *image) {
    if (stride == 1) {
        for (int64_t i = 0; i < count; i++)
            image[i] += values[i];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        image[i * stride] += values[i];
}

/* What block element `element` puts into the image; `values` are its places. */
static void add_element(const folding *work, const int64_t *element, const float *values, float *image) {
    const sb_fold *plan = work->plan;
    const sb_fold_params *params = work->params;
    const int last = plan->rank - 1;
    int64_t place[SB_MAX_RANK] = {0}, begin, end;
    find_places(work, last, element[last], &begin, &end);
    if (begin >= end)
        return;
    do {
        int64_t pixel = 0;
        bool inside = true;
        for (int d = 0; d < last; d++) {
            const int64_t at = place[d] * params->strides[d] + element[d] * params->dilations[d] - params->pads[d];
            inside = inside && at >= 0 && at < plan->image[d];
            pixel = pixel * plan->image[d] + at;
        }
        const int64_t first =
            begin * params->strides[last] + element[last] * params->dilations[last] - params->pads[last];
        if (inside)
            add_line(values + begin, end - begin, params->strides[last], image + pixel * plan->image[last] + first);
        values += plan->places[last];
    } while (sb_move_next(last, plan->places, place));
}

static void fold_channel(void *context, int64_t channel, void *workspace) {
    const folding *work = context;
    const sb_fold *plan = work->plan;
    char *x = (char *)(uintptr_t)(work->x + channel * work->columns * work->size);
    char *y = work->y + channel * plan->pixels * work->size;
    float *image = (float *)(void *)y, *values = (float *)(void *)x;
    if (work->widen != NULL) {
        values = workspace;
        image = values + work->columns;
        work->widen(NULL, work->columns, (char *const[]){(char *)values, x},
                    (const int64_t[]){(int64_t)sizeof *values, work->size});
    }
    memset(image, 0, (size_t)plan->pixels * sizeof *image);
    int64_t element[SB_MAX_RANK] = {0};
    do {
        add_element(work, element, values, image);
        values += plan->count;
    } while (sb_move_next(plan->rank, plan->block, element));
    if (work->round != NULL)
        work->round(NULL, plan->pixels, (char *const[]){y, (char *)image},
                    (const int64_t[]){work->size, (int64_t)sizeof *image});
}

static sb_status fold(sb_call *call, const sb_tensor *x, const sb_fold *plan) {
    sb_tensor *y;
    SB_TRY(sb_call_output(call, 0, &y));
    folding work = {.params = call->node->params,
                    .plan = plan,
                    .x = x->data,
                    .y = y->data,
                    .size = (int64_t)sb_dtype_size(x->dtype),
                    .columns = plan->area * plan->count};
    if (sb_tensor_elements(y) == 0)
        return SB_OK;
    if (work.columns == 0) {
        memset(y->data, 0, (size_t)(sb_tensor_elements(y) * work.size));
        return SB_OK;
    }
    if (x->dtype != SB_F32) {
        work.widen = sb_convert_loop_for(call->isa, SB_F32, x->dtype);
        work.round = sb_convert_loop_for(call->isa, x->dtype, SB_F32);
    }
    return sb_pieces_run(call, x->dims[0] * (x->dims[1] / plan->area),
                         work.widen != NULL ? (size_t)(work.columns + plan->pixels) * sizeof(float) : 0, fold_channel,
                         &work);
}

static sb_status launch_fold(sb_call *call) {
    sb_tensor *x;
    sb_fold plan;
    const sb_tensor *input = sb_call_input(call, 0);
    if (input->rank != 3)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the input has rank %d, not 3", input->rank);
    SB_TRY(sb_fold_plan(call, input, &plan));
    if (plan.rank == 0) /* an image without lines */
        return call->node->op->eval(call);
    SB_TRY(sb_call_contiguous(call, 0, &x));
    sb_status status = fold(call, x, &plan);
    sb_tensor_release(x);
    return status;
}

const sb_kernel sb_cpu_kernels_windows[] = {
    {.op = "Col2Im", .name = "fold-lines", .supports = supports_fold, .launch = launch_fold},
    {0},
};
