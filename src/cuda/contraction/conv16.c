/* Convolutions of f16 and bf16: weights in the order of the chain, and tiles that any convolution fits (conv16_tile.cuh). */
#include <stdio.h>

#include "cuda/common/elements.h"
#include "cuda/contraction/conv16_internal.h"
#include "cuda/contraction/gemm16_conv.h"
#include "cuda/driver/device.h"

/* ---- packed weights ---- */

static int64_t round_up(int64_t value, int64_t step) {
    return (value + step - 1) / step * step;
}

/* How weights of these extents are packed; without addresses and strides. Channels that are a multiple of 16, so that no
 * group of the chain belongs to two taps, fill whole boxes of 64, in which the copy engine brings them. */
static sb_cuda_conv16_packing packing_of(const sb_tensor *w) {
    sb_cuda_conv16_packing packing = {.channels = w->dims[1], .taps = 1};
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++) {
        int i = d - (SB_CUDA_CONV_AXES - (w->rank - 2));
        packing.kernel[d] = i >= 0 ? w->dims[i + 2] : 1;
        packing.taps *= packing.kernel[d];
    }
    packing.tap = packing.taps > 1 && packing.channels % 16 == 0 ? round_up(packing.channels, 64) : packing.channels;
    packing.line = round_up(packing.taps * packing.tap, 8);
    return packing;
}

static bool bytes_of(const sb_cuda_conv16_packing *packing, int64_t outputs, size_t *bytes) {
    return !__builtin_mul_overflow(packing->line, outputs * (int64_t)sizeof(uint16_t), bytes);
}

bool sb_cuda_conv16_packed_bytes(const sb_tensor *w, size_t *bytes) {
    *bytes = 0;
    if ((w->dtype != SB_F16 && w->dtype != SB_BF16) || w->rank > SB_CUDA_CONV_AXES + 2 || sb_tensor_elements(w) == 0)
        return true;
    sb_cuda_conv16_packing packing = packing_of(w);
    /* Those of one tap are lines as they are. */
    if (packing.taps == 1 && packing.channels % 8 == 0)
        return true;
    return bytes_of(&packing, w->dims[0], bytes);
}

sb_status sb_cuda_conv16_pack(sb_call *call, const sb_tensor *w, void *packed) {
    sb_cuda_conv16_packing packing = packing_of(w);
    sb_cuda_work work = {.parameters = &packing, .parameter_bytes = sizeof packing};
    size_t bytes;
    if (!bytes_of(&packing, w->dims[0], &bytes))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    packing.elements = packing.line * w->dims[0];
    packing.w = (const uint16_t *)(const void *)w->data;
    packing.packed = packed;
    packing.w_output = w->strides[0];
    packing.w_channel = w->strides[1];
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++) {
        int i = d - (SB_CUDA_CONV_AXES - (w->rank - 2));
        packing.w_steps[d] = i >= 0 ? w->strides[i + 2] : 0;
    }
    sb_cuda_work_reads(&work, w);
    sb_cuda_work_touches(&work, packed, bytes, true);
    return sb_cuda_launch_each(call, &work, "conv16_pack", "sb_cuda_conv16_pack", NULL, packing.elements);
}

sb_status sb_cuda_conv16_find_weights(sb_call *call, const sb_cuda_conv *conv, sb_cuda_weights16 *weights,
                                      size_t *bytes) {
    const sb_tensor *w = conv->w;
    sb_cuda_conv16_packing packing = packing_of(w);
    *weights = (sb_cuda_weights16){call->derived, packing.line, packing.tap};
    if (!bytes_of(&packing, w->dims[0], bytes))
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    if (call->derived != NULL)
        return SB_OK;
    bool are_lines = packing.taps == 1 && packing.channels % 8 == 0 && (w->strides[1] == 1) && w->strides[0] % 8 == 0 &&
                     w->strides[0] >= packing.channels && (uintptr_t)w->data % 16 == 0;
    if (are_lines) {
        weights->data = (const uint16_t *)(const void *)w->data;
        weights->line = w->strides[0];
        *bytes = (size_t)((w->dims[0] - 1) * w->strides[0] + packing.channels) * sizeof(uint16_t);
        return SB_OK;
    }
    void *memory;
    SB_TRY(sb_call_workspace(call, *bytes, &memory));
    weights->data = memory;
    return sb_cuda_conv16_pack(call, w, memory);
}

/* ---- tiles ---- */

#define TILE_ROWS 128
#define THREADS 256

static sb_cuda_divisor divisor(int64_t value) {
    return sb_cuda_divisor_of(value > 0 ? (uint32_t)value : 1);
}

static const uint16_t *halves(const sb_tensor *tensor) {
    return (const uint16_t *)(const void *)tensor->data;
}

/* Whether eight channels of a position, of which the first is a multiple of 8, lie side by side and aligned. */
static bool has_eights(const sb_cuda_conv *conv) {
    const sb_tensor *x = conv->x;
    bool all = x->strides[1] == 1 && conv->extents.group_inputs % 8 == 0 && (uintptr_t)x->data % 16 == 0;
    for (int d = 0; d < x->rank && all; d++)
        all = d == 1 || x->dims[d] <= 1 || x->strides[d] % 8 == 0;
    return all;
}

static void fill_axes(const sb_cuda_conv *conv, sb_cuda_conv16 *to) {
    const sb_conv_extents *extents = &conv->extents;
    for (int d = 0; d < SB_CUDA_CONV_AXES; d++) {
        int i = d - (SB_CUDA_CONV_AXES - extents->axes);
        sb_window_axis none = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
        const sb_window_axis *axis = i >= 0 ? &extents->axis[i] : &none;
        to->in[d] = (int32_t)axis->in;
        to->stride[d] = (int32_t)axis->stride;
        to->dilation[d] = (int32_t)axis->dilation;
        to->begin[d] = (int32_t)axis->begin;
        to->out[d] = divisor(axis->out);
        to->kernel[d] = divisor(axis->kernel);
        to->x_steps[d] = i >= 0 ? conv->x->strides[i + 2] : 0;
    }
}

static void fill(const sb_cuda_conv *conv, int tile_columns, sb_cuda_conv16 *to) {
    const sb_conv_extents *extents = &conv->extents;
    const sb_tensor *x = conv->x, *bias = conv->bias;
    to->groups = extents->groups;
    to->rows = (int32_t)(extents->batch * extents->positions);
    to->columns = (int32_t)extents->group_outputs;
    to->k = (int32_t)conv->k;
    to->channels = extents->group_inputs > 0 ? (int32_t)extents->group_inputs : 1;
    to->chain = divisor(to->channels);
    to->row_tiles = (to->rows + TILE_ROWS - 1) / TILE_ROWS;
    to->column_tiles = (to->columns + tile_columns - 1) / tile_columns;
    to->tiles = to->groups * to->row_tiles * to->column_tiles;
    to->x = halves(x);
    to->x_sample = x->strides[0];
    to->x_channel = x->strides[1];
    to->x_group = extents->group_inputs * x->strides[1];
    to->bias = bias != NULL ? halves(bias) : NULL;
    to->bias_step = bias != NULL ? bias->strides[0] : 0;
    to->y = (uint16_t *)(void *)conv->y->data;
    to->y_sample = conv->y->strides[0];
    to->y_channel = conv->y->strides[1];
    to->y_position = conv->y->rank > 2 ? conv->y->strides[conv->y->rank - 1] : 1;
    to->positions = divisor(extents->positions);
    to->eights = has_eights(conv);
    fill_axes(conv, to);
}

/* Groups of few outputs leave most of a wide tile empty. */
#define NARROW 16

static sb_status launch_tiles(sb_call *call, const sb_cuda_conv *conv) {
    char module[32], kernel[48];
    bool is_narrow = conv->extents.group_outputs <= NARROW;
    const char *dtype = sb_dtype_name(conv->x->dtype), *name = is_narrow ? "conv16_narrow" : "conv16";
    snprintf(module, sizeof module, "%s_%s", name, dtype);
    snprintf(kernel, sizeof kernel, "sb_cuda_%s_%s", name, dtype);
    sb_cuda_conv16 to = {0};
    sb_cuda_work work = {
        .module = module, .kernel = kernel, .parameters = &to, .parameter_bytes = sizeof to, .threads = THREADS};
    fill(conv, is_narrow ? NARROW : 64, &to);
    if (conv->k > 0) {
        size_t bytes;
        SB_TRY(sb_cuda_conv16_find_weights(call, conv, &to.w, &bytes));
        sb_cuda_work_touches(&work, to.w.data, bytes, false);
        sb_cuda_work_reads(&work, conv->x);
    }
    sb_cuda_work_reads(&work, conv->bias);
    sb_cuda_work_writes(&work, conv->y);
    work.blocks = sb_cuda_call_blocks(call, to.tiles);
    return sb_cuda_call_launch(call, &work);
}

/* Of other groups, tiles read and write few channels of a position, so what is near has to be positions. */
bool sb_cuda_conv16_turns(const sb_call *call, const sb_cuda_conv *conv) {
    if (conv->extents.groups > 1)
        return sb_cuda_conv16_has_groups(call, conv);
    return conv->extents.group_outputs % 8 == 0 && conv->extents.axes > 0 &&
           sb_gemm16_has_hopper_code(sb_cuda_call_device(call));
}

sb_status sb_cuda_conv16_launch(sb_call *call, const sb_cuda_conv *conv) {
    bool given;
    SB_TRY(sb_cuda_conv16_on_hopper(call, conv, &given));
    if (!given)
        SB_TRY(sb_cuda_conv16_in_groups(call, conv, &given));
    if (given || conv->extents.groups == 1 || conv->x_input < 0 || !sb_cuda_has_channels_last(conv->x))
        return given ? SB_OK : launch_tiles(call, conv);
    sb_cuda_conv packed = *conv;
    sb_tensor *x;
    SB_TRY(sb_call_contiguous(call, conv->x_input, &x));
    packed.x = x;
    sb_status status = launch_tiles(call, &packed);
    sb_tensor_release(x);
    return status;
}
