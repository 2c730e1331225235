/* The kernel of LRN in f32, f16 and bf16. Lanes are positions: of a strip of them, the channels are rows, whatever their order in
 * memory, and the output has the input's. Channels that are adjacent, as a convolution leaves them, and 16 bits are packed strip by
 * strip. */

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/rows/whole_rows.h"
#include "cpu/spread.h"
#include "cpu/supports.h"
#include "numerics/scalar.h"
#include "ops/convert_loops.h"
#include "ops/normalization.h"

/* Steps and sizes in bytes. */
typedef struct normalizing {
    const sb_whole_row_kernels *kernels;
    sb_lrn_strip strip; /* but for what differs from strip to strip */
    sb_walk_row *load, *store;
    bool plain; /* f32 */
    const char *x;
    char *y;
    int64_t positions, strips;
    int64_t x_batch, x_channel, x_step;
    int64_t y_batch, y_channel, y_step;
} normalizing;

static void load_strip(const normalizing *work, const char *x, sb_lrn_strip *strip, float *packed) {
    const int64_t wide = sizeof(float);
    if (work->plain && work->x_step == wide) {
        strip->x = (const float *)(const void *)x;
        strip->x_stride = work->x_channel / wide;
        return;
    }
    for (int64_t c = 0; c < strip->channels; c++)
        work->load(
            NULL, strip->positions,
            (char *const[]){(char *)(packed + c * SB_LRN_POSITIONS), (char *)(uintptr_t)(x + c * work->x_channel)},
            (const int64_t[]){wide, work->x_step});
    strip->x = packed;
    strip->x_stride = SB_LRN_POSITIONS;
}

static void run_strip(void *context, int64_t index, void *workspace) {
    const normalizing *work = context;
    const int64_t wide = sizeof(float), batch = index / work->strips, first = index % work->strips * SB_LRN_POSITIONS;
    const int64_t left = work->positions - first;
    sb_lrn_strip strip = work->strip;
    strip.positions = left < SB_LRN_POSITIONS ? left : SB_LRN_POSITIONS;
    load_strip(work, work->x + batch * work->x_batch + first * work->x_step, &strip, workspace);
    char *y = work->y + batch * work->y_batch + first * work->y_step;
    for (int64_t c = 0; c < strip.channels; c++, y += work->y_channel) {
        float results[SB_LRN_POSITIONS];
        if (work->plain && work->y_step == wide) {
            work->kernels->lrn(&strip, c, (float *)(void *)y);
            continue;
        }
        work->kernels->lrn(&strip, c, results);
        work->store(NULL, strip.positions, (char *const[]){y, (char *)results}, (const int64_t[]){work->y_step, wide});
    }
}

static void describe(const sb_call *call, const sb_tensor *x, const sb_tensor *y, normalizing *work) {
    const sb_lrn_params *params = call->node->params;
    const int64_t size = (int64_t)sb_dtype_size(x->dtype);
    work->strip = (sb_lrn_strip){.channels = x->dims[1],
                                 .before = (params->size - 1) / 2,
                                 .after = params->size - 1 - (params->size - 1) / 2,
                                 .weight = sb_div_f32(params->alpha, (float)params->size),
                                 .bias = params->bias,
                                 .beta = params->beta};
    work->kernels = sb_whole_row_kernels_for(call->isa);
    work->load = sb_convert_loop_for(call->isa, SB_F32, x->dtype);
    work->store = sb_convert_loop_for(call->isa, x->dtype, SB_F32);
    work->plain = x->dtype == SB_F32;
    work->x = x->data;
    work->y = y->data;
    work->x_batch = x->strides[0] * size;
    work->y_batch = y->strides[0] * size;
    work->x_channel = x->strides[1] * size;
    work->y_channel = y->strides[1] * size;
    work->x_step *= size;
    work->y_step *= size;
    work->positions = 1;
    for (int d = 2; d < x->rank; d++)
        work->positions *= x->dims[d];
    work->strips = (work->positions + SB_LRN_POSITIONS - 1) / SB_LRN_POSITIONS;
}

static sb_status launch_lrn(sb_call *call) {
    sb_tensor *input = sb_call_input(call, 0), *output, *x;
    normalizing work = {0};
    SB_TRY(sb_spread_output(call, 1, &input, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    if (!sb_even_step(output->rank - 2, output->dims + 2, output->strides + 2, &work.y_step))
        return call->node->op->eval(call);
    if (sb_even_step(input->rank - 2, input->dims + 2, input->strides + 2, &work.x_step)) {
        x = sb_tensor_retain(input);
    } else {
        SB_TRY(sb_call_contiguous(call, 0, &x));
        work.x_step = 1;
    }
    describe(call, x, output, &work);
    size_t workspace;
    sb_status status = SB_OK;
    if (__builtin_mul_overflow((size_t)x->dims[1], SB_LRN_POSITIONS * sizeof(float), &workspace))
        status = sb_fail_memory(call->error, SIZE_MAX);
    if (status == SB_OK)
        status = sb_pieces_run(call, x->dims[0] * work.strips, workspace, run_strip, &work);
    sb_tensor_release(x);
    return status;
}

const sb_kernel sb_cpu_kernels_normalization[] = {
    {.op = "LRN", .name = "lrn-strips", .supports = sb_cpu_supports_small_floats, .launch = launch_lrn},
    {0},
};
