/* Convolutions of f16 and bf16 by TMA and wgmma: those of one kernel position, or of windows that do not overlap, as matrix products;
 * others as products whose rows the copy engine brings from an input with its channels last. */
#include "cuda/common/compute.h"
#include "cuda/contraction/conv16_internal.h"
#include "cuda/contraction/gemm16_conv.h"

#define MOST_ROWS (INT32_MAX / 2)

static sb_gemm_range range_of(const sb_tensor *tensor) {
    sb_cuda_range range = sb_cuda_tensor_range(tensor, false);
    return (sb_gemm_range){(uintptr_t)range.address, range.bytes};
}

/* ---- inputs with channels last ---- */

typedef sb_cuda_conv16_input input;

static bool has_channels_last(const sb_cuda_conv *conv) {
    const sb_tensor *x = conv->x;
    bool has = (uintptr_t)x->data % 16 == 0 && (x->dims[1] == 1 || x->strides[1] == 1);
    for (int d = 0; d < x->rank && has; d++)
        has = d == 1 || x->dims[d] == 1 || sb_gemm16_is_step(x->strides[d]);
    return has;
}

#define SQUARE 64
#define THREADS 256

/* Whether positions lie side by side, in eights that are aligned. */
static bool has_eight_positions(const sb_cuda_conv *conv, int64_t positions) {
    const sb_tensor *x = conv->x;
    int64_t behind = 1;
    bool has = positions % 8 == 0 && (uintptr_t)x->data % 16 == 0 && x->strides[1] % 8 == 0 &&
               (x->dims[0] == 1 || x->strides[0] % 8 == 0);
    for (int d = x->rank - 1; d >= 2 && has; d--) {
        has = x->dims[d] == 1 || x->strides[d] == behind;
        behind *= x->dims[d];
    }
    return has;
}

/* The input turned to channels last, in a workspace. */
static sb_status turn(sb_call *call, const sb_cuda_conv *conv, int64_t positions, input *turned) {
    const sb_tensor *x = conv->x;
    size_t bytes = (size_t)sb_tensor_elements(x) * sizeof(uint16_t);
    sb_cuda_conv16_turning to = {.channels = (int32_t)x->dims[1],
                                 .positions = (int32_t)positions,
                                 .x = (const uint16_t *)(const void *)x->data,
                                 .x_sample = x->strides[0],
                                 .x_channel = x->strides[1],
                                 .eights = has_eight_positions(conv, positions)};
    sb_cuda_work work = {.module = "conv16_turn",
                         .kernel = "sb_cuda_conv16_turn",
                         .parameters = &to,
                         .parameter_bytes = sizeof to,
                         .threads = THREADS};
    void *memory;
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    to.to = memory;
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++) {
        int i = d - (SB_CUDA_CONV_AXES - (x->rank - 2));
        to.in[d] = sb_cuda_divisor_of(i >= 0 ? (uint32_t)x->dims[i + 2] : 1);
        to.x_steps[d] = i >= 0 ? x->strides[i + 2] : 0;
    }
    to.channel_tiles = (to.channels + SQUARE - 1) / SQUARE;
    to.position_tiles = (to.positions + SQUARE - 1) / SQUARE;
    to.tiles = x->dims[0] * to.channel_tiles * to.position_tiles;
    *turned = (input){.data = memory, .sample = positions * x->dims[1], .range = {(uintptr_t)memory, bytes}};
    for (int64_t step = x->dims[1], i = x->rank - 3; i >= 0; step *= x->dims[i + 2], i--)
        turned->steps[i] = step;
    sb_cuda_work_reads(&work, x);
    sb_cuda_work_touches(&work, memory, bytes, true);
    work.blocks = sb_cuda_call_blocks(call, to.tiles);
    return sb_cuda_call_launch(call, &work);
}

sb_status sb_cuda_conv16_find_input(sb_call *call, const sb_cuda_conv *conv, input *found) {
    const sb_tensor *x = conv->x;
    int64_t positions = 1;
    for (int d = 2; d < x->rank; d++)
        positions *= x->dims[d];
    if (!has_channels_last(conv))
        return turn(call, conv, positions, found);
    *found = (input){.data = (const uint16_t *)(const void *)x->data, .sample = x->strides[0], .range = range_of(x)};
    for (int d = 2; d < x->rank; d++)
        found->steps[d - 2] = x->strides[d];
    return SB_OK;
}

bool sb_cuda_conv16_is_turned(const sb_cuda_conv *conv) {
    return conv->extents.positions == 1 || sb_cuda_has_channels_last(conv->y);
}

/* ---- one kernel position: a matrix product ---- */

/* Whether output positions are input positions. */
static bool is_product(const sb_conv_extents *extents) {
    bool is = extents->taps == 1;
    for (int i = 0; i < extents->axes && is; i++) {
        const sb_window_axis *axis = &extents->axis[i];
        is = axis->stride == 1 && axis->begin == 0 && axis->in == axis->out;
    }
    return is;
}

/* The step from one position to the next, of several axes as one; false where they are not evenly spaced. */
static bool find_position_step(const sb_conv_extents *extents, const int64_t *steps, int64_t *step) {
    int64_t inside = 1;
    *step = 1;
    for (int i = extents->axes - 1; i >= 0; i--) {
        if (extents->axis[i].in == 1)
            continue;
        if (inside == 1)
            *step = steps[i];
        else if (steps[i] != *step * inside)
            return false;
        inside *= extents->axis[i].in;
    }
    return true;
}

typedef sb_cuda_conv16_columns columns;

/* The input as the copy engine takes it; turned to channels last where it does not lie so, which 8 channels at least
 * need: else *found becomes false. */
static sb_status find_columns(sb_call *call, const sb_cuda_conv *conv, columns *to, bool *found) {
    const sb_tensor *x = conv->x;
    *to = (columns){.data = x->data, .channel = x->strides[1], .sample = x->strides[0]};
    *found = find_position_step(&conv->extents, x->strides + 2, &to->position) &&
             (has_eight_positions(conv, conv->extents.positions) || has_channels_last(conv));
    if (conv->extents.positions == 1)
        to->position = to->sample;
    if (*found || conv->k % 8 != 0)
        return SB_OK;
    input turned;
    SB_TRY(turn(call, conv, conv->extents.positions, &turned));
    *to = (columns){.data = turned.data, .channel = 1, .position = conv->k, .sample = turned.sample};
    *found = true;
    return SB_OK;
}

/* The outputs of a sample are the weights times its input. */
static void multiply_weights(const sb_cuda_conv *conv, const sb_cuda_weights16 *weights, const columns *x,
                             sb_gemm *gemm) {
    const sb_tensor *y = conv->y, *bias = conv->bias;
    int64_t outputs = conv->extents.group_outputs, positions = conv->extents.positions;
    gemm->batches = conv->extents.batch;
    gemm->a = sb_gemm16_matrix(y->dtype, weights->data, outputs, conv->k, weights->line, 1, 0);
    gemm->b = sb_gemm16_matrix(y->dtype, x->data, conv->k, positions, x->channel, x->position, x->sample);
    gemm->c = sb_gemm16_matrix(y->dtype, y->data, outputs, positions, positions, 1, outputs * positions);
    if (bias != NULL) /* of rows */
        gemm->residual = sb_gemm16_matrix(y->dtype, bias->data, outputs, positions, bias->strides[0], 0, 0);
}

/* With channels last, the positions of a sample times the weights; of all samples, where they go on evenly. */
static void multiply_positions(const sb_cuda_conv *conv, const sb_cuda_weights16 *weights, const columns *x,
                               sb_gemm *gemm) {
    const sb_tensor *y = conv->y, *bias = conv->bias;
    int64_t outputs = conv->extents.group_outputs, positions = conv->extents.positions;
    if (x->sample == positions * x->position)
        positions *= conv->extents.batch;
    else
        gemm->batches = conv->extents.batch;
    gemm->a = sb_gemm16_matrix(y->dtype, x->data, positions, conv->k, x->position, x->channel, x->sample);
    gemm->b = sb_gemm16_matrix(y->dtype, weights->data, conv->k, outputs, 1, weights->line, 0);
    gemm->c = sb_gemm16_matrix(y->dtype, y->data, positions, outputs, outputs, 1, positions * outputs);
    if (bias != NULL)
        gemm->bias = sb_gemm16_matrix(y->dtype, bias->data, 1, outputs, 0, bias->strides[0], 0);
}

static sb_status give_product(sb_call *call, const sb_cuda_conv *conv, bool *given) {
    sb_gemm gemm = SB_GEMM_DEFAULT;
    sb_gemm_plan plan;
    sb_cuda_weights16 weights;
    columns x;
    size_t bytes;
    *given = sb_cuda_conv16_are_patches(conv);
    SB_TRY(*given ? sb_cuda_conv16_cut(call, conv, &x) : find_columns(call, conv, &x, given));
    if (!*given)
        return SB_OK;
    SB_TRY(sb_cuda_conv16_find_weights(call, conv, &weights, &bytes));
    if (sb_cuda_conv16_is_turned(conv))
        multiply_positions(conv, &weights, &x, &gemm);
    else
        multiply_weights(conv, &weights, &x, &gemm);
    const sb_gemm_model model = SB_GEMM_MODEL_DEFAULT;
    SB_TRY(sb_gemm_plan_fill(&gemm, &model, &plan, call->error));
    return sb_gemm_launch(sb_cuda_call_queue(call), call->target->step, &plan, &call->way, call->error);
}

/* ---- several: rows by maps of pixels ---- */

/* Width and height; what is not there has one position. */
static sb_window_axis axis_of(const sb_conv_extents *extents, int d) {
    sb_window_axis none = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    return d < extents->axes ? extents->axis[extents->axes - 1 - d] : none;
}

/* The corner of the last output position, from the last input position on. */
static int64_t upper_corner(const sb_window_axis *axis) {
    return (axis->out - 1) * axis->stride - axis->begin - (axis->in - 1);
}

static bool fits_corner(int64_t corner) {
    return corner >= -128 && corner <= 127;
}

/* Whether the copy engine can: no group of 16 of the chain belongs to two kernel positions, and its numbers of 8 bits hold
 * corners and kernel positions. */
static bool has_pixels(const sb_cuda_conv *conv) {
    const sb_conv_extents *extents = &conv->extents;
    bool has = extents->axes >= 1 && extents->axes <= 2 && extents->groups == 1 && extents->group_inputs % 16 == 0 &&
               extents->batch * extents->positions <= MOST_ROWS && extents->group_outputs <= MOST_ROWS / 2 &&
               extents->taps * (extents->group_inputs + 63) <= MOST_ROWS;
    for (int d = 0; d < 2 && has; d++) {
        sb_window_axis axis = axis_of(extents, d);
        has = axis.stride <= 8 && fits_corner(-axis.begin) && fits_corner(upper_corner(&axis)) &&
              (axis.kernel - 1) * axis.dilation <= 255;
    }
    return has;
}

/* The product: rows are the positions of a sample, or with channels last of all, columns the outputs. */
static void fill_plan(const sb_cuda_conv *conv, const input *x, const sb_cuda_weights16 *weights, size_t weight_bytes,
                      sb_gemm *gemm, sb_gemm_plan *plan) {
    const sb_conv_extents *extents = &conv->extents;
    const sb_tensor *y = conv->y, *bias = conv->bias;
    bool channels_last = sb_cuda_conv16_is_turned(conv);
    int64_t rows = extents->positions * (channels_last ? extents->batch : 1), columns = extents->group_outputs;
    int64_t k = extents->taps * weights->tap;
    *gemm = (sb_gemm)SB_GEMM_DEFAULT;
    gemm->batches = channels_last ? 1 : extents->batch;
    gemm->a = sb_gemm16_matrix(y->dtype, x->data, rows, k, 8, 1, 8);
    gemm->b = sb_gemm16_matrix(y->dtype, weights->data, k, columns, 1, weights->line, 0);
    gemm->c = channels_last ? sb_gemm16_matrix(y->dtype, y->data, rows, columns, columns, 1, rows * columns)
                            : sb_gemm16_matrix(y->dtype, y->data, rows, columns, 1, rows, rows * columns);
    *plan = (sb_gemm_plan){.gemm = gemm,
                           .m = rows,
                           .n = columns,
                           .k = k,
                           .batches = gemm->batches,
                           .steps = {.rank = gemm->batches > 1, .dims = {gemm->batches}, .a_steps = {8}},
                           .columns = columns,
                           .dtype = y->dtype,
                           .epilogue = {.scale = 1.0f, .dtype = (int32_t)y->dtype, .columns = columns},
                           .group_count = (k + 15) / 16,
                           .a = x->range,
                           .b = {(uintptr_t)weights->data, weight_bytes},
                           .c = range_of(y)};
    if (bias == NULL)
        return;
    plan->epilogue.bias = (sb_gemm_addend){bias->data, 0, bias->strides[0], 0, (int32_t)bias->dtype, 1.0f};
    plan->bias = range_of(bias);
}

static sb_status encode_pixels(sb_cuda_device *device, const sb_cuda_conv *conv, const input *x, sb_gemm16_conv *p,
                               sb_error *error) {
    const sb_conv_extents *extents = &conv->extents;
    cuuint64_t dims[4] = {(cuuint64_t)extents->group_inputs, 1, 1, (cuuint64_t)extents->batch}, strides[3];
    cuuint32_t element_strides[4] = {1, 1, 1, 1};
    int lower[2], upper[2];
    for (int d = 0; d < 2; d++) {
        sb_window_axis axis = axis_of(extents, d);
        dims[d + 1] = (cuuint64_t)axis.in;
        /* Where there is no next one, any step will do. */
        strides[d] = (cuuint64_t)(axis.in > 1 ? x->steps[extents->axes - 1 - d] : 8) * sizeof(uint16_t);
        element_strides[d + 1] = (cuuint32_t)axis.stride;
        lower[d] = (int)-axis.begin;
        upper[d] = (int)upper_corner(&axis);
    }
    strides[2] = (cuuint64_t)(extents->batch > 1 ? x->sample : 8) * sizeof(uint16_t);
    return SB_CUDA_DO(device, error, cuTensorMapEncodeIm2col, (CUtensorMap *)(void *)&p->product.a,
                      conv->y->dtype == SB_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
                      (void *)(uintptr_t)x->data, dims, strides, lower, upper, 64,
                      (cuuint32_t)(p->product.a_box_bytes / 128), element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static sb_status give_pixels(sb_call *call, const sb_cuda_conv *conv) {
    const sb_conv_extents *extents = &conv->extents;
    sb_cuda_device *device = sb_cuda_call_device(call);
    input x;
    sb_cuda_weights16 weights;
    size_t bytes;
    sb_gemm gemm;
    sb_gemm_plan plan;
    sb_gemm16_conv p = {.channels = (int32_t)extents->group_inputs};
    int chosen;
    SB_TRY(sb_cuda_conv16_find_input(call, conv, &x));
    SB_TRY(sb_cuda_conv16_find_weights(call, conv, &weights, &bytes));
    fill_plan(conv, &x, &weights, bytes, &gemm, &plan);
    SB_TRY(sb_gemm16_conv_fill(device, &plan, &p, &chosen, call->error));
    for (int d = 0; d < 2; d++) {
        sb_window_axis axis = axis_of(extents, d);
        p.kernel[d] = (int32_t)axis.kernel;
        p.stride[d] = (int32_t)axis.stride;
        p.begin[d] = (int32_t)axis.begin;
        p.dilation[d] = (int32_t)axis.dilation;
        *(d == 0 ? &p.width : &p.height) = sb_cuda_divisor_of((uint32_t)axis.out);
    }
    SB_TRY(encode_pixels(device, conv, &x, &p, call->error));
    return sb_gemm16_conv_give(sb_cuda_call_queue(call), call->target->step, &plan, &p, chosen, call->error);
}

sb_status sb_cuda_conv16_on_hopper(sb_call *call, const sb_cuda_conv *conv, bool *given) {
    *given = false;
    if (conv->k == 0 || conv->extents.groups > 1 || !sb_gemm16_has_hopper_code(sb_cuda_call_device(call)))
        return SB_OK;
    if (is_product(&conv->extents))
        return give_product(call, conv, given);
    *given = has_pixels(conv);
    if (*given)
        return give_pixels(call, conv);
    return sb_cuda_conv16_are_patches(conv) ? give_product(call, conv, given) : SB_OK;
}
