/* The kernels of ConvInteger and QLinearConv: the input is laid out with its channels innermost, what a piece of pixels reads is gathered into rows,
 * and those are multiplied with packed weights. Where a group has one channel in and out, lanes are channels and nothing is gathered:
 * the input is widened to 16 bits.
 * The output has its channels innermost in memory. QLinearConv rescales a piece's sums while they are near. */
#include "cpu/contraction/integer_conv.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/channels_last.h"
#include "cpu/contraction/integer.h"
#include "cpu/pieces.h"
#include "ops/contraction.h"
#include "ops/convolution.h"
#include "ops/moving.h"

/* Pixels whose rows are gathered at once. */
#define PIECE_PIXELS 48

bool sb_integer_conv_supports(const sb_kernel_query *query, char *why) {
    (void)query;
    (void)why;
    return true;
}

/* Where an operator has its operands. */
typedef struct operands {
    int x_zero, w, w_zero;
    int x_scale, w_scale, y_scale, y_zero, bias; /* -1: the sums are the output */
} operands;

static bool rescales(const sb_node *node) {
    return strcmp(node->op->name, "QLinearConv") == 0;
}

static operands operands_of(const sb_node *node) {
    if (rescales(node))
        return (operands){
            .x_scale = 1, .x_zero = 2, .w = 3, .w_scale = 4, .w_zero = 5, .y_scale = 6, .y_zero = 7, .bias = 8};
    return (operands){
        .w = 1, .x_zero = 2, .w_zero = 3, .x_scale = -1, .w_scale = -1, .y_scale = -1, .y_zero = -1, .bias = -1};
}

/* ---- weights ---- */

static sb_conv_extents weight_extents(const sb_conv_params *params, int rank, const int64_t *dims) {
    sb_conv_extents shape = {.axes = rank - 2,
                             .groups = params->group,
                             .group_inputs = dims[1],
                             .group_outputs = dims[0] / params->group,
                             .taps = 1};
    for (int i = 0; i < shape.axes; i++) {
        shape.axis[i].kernel = dims[i + 2];
        shape.taps *= dims[i + 2];
    }
    return shape;
}

static bool is_depthwise(const sb_conv_extents *shape) {
    return shape->group_inputs == 1 && shape->group_outputs == 1;
}

/* Bytes of the packed weights of all groups; 0 when the size overflows. */
static size_t packed_bytes(const sb_integer_form *form, const sb_conv_extents *shape) {
    size_t group = sb_integer_packed_bytes(form, shape->taps * shape->group_inputs, shape->group_outputs), all;
    return __builtin_mul_overflow(group, (size_t)shape->groups, &all) ? 0 : all;
}

static sb_status pack_weights(const sb_integer_form *form, const sb_conv_params *params, const sb_tensor *w,
                              uint8_t *packed, sb_error *error) {
    const sb_conv_extents shape = weight_extents(params, w->rank, w->dims);
    const int64_t k = shape.taps * shape.group_inputs, n = shape.group_outputs;
    const size_t bytes = packed_bytes(form, &shape) / (size_t)shape.groups;
    char *plain = sb_allocate_array((size_t)sb_tensor_elements(w), 1);
    if (plain == NULL)
        return sb_fail_memory(error, (size_t)sb_tensor_elements(w));
    sb_conv_pack_reference(&shape, 1, (sb_conv_operand){w->data, w->strides}, plain);
    for (int64_t g = 0; g < shape.groups; g++) {
        sb_integer_right right = {
            .dtype = w->dtype, .b = plain + g * k * n, .k_stride = n, .column_stride = 1, .k = k, .n = n};
        sb_integer_pack(form, &right, 0, sb_integer_panels(form, n), packed + (size_t)g * bytes);
    }
    sb_free(plain);
    return SB_OK;
}

sb_status sb_integer_conv_derives(const sb_kernel_query *query, sb_derived_form *form, sb_error *error) {
    const sb_conv_params *params = query->node->params;
    const operands at = operands_of(query->node);
    const sb_fact *fact = query->inputs[at.w];
    int64_t dims[SB_MAX_RANK], elements = 1;
    if (!sb_fact_is_concrete(fact, dims))
        return SB_OK;
    for (int d = 0; d < fact->rank; d++)
        elements *= dims[d];
    const sb_conv_extents shape = weight_extents(params, fact->rank, dims);
    if (elements == 0 || is_depthwise(&shape))
        return SB_OK;
    const sb_integer_form *integers = sb_integer_form_of(query->isa);
    form->input = at.w;
    form->layout = (uint64_t)params->group << 10 | sb_integer_layout(integers);
    form->bytes = packed_bytes(integers, &shape);
    return form->bytes != 0 ? SB_OK : sb_fail_memory(error, SIZE_MAX);
}

sb_status sb_integer_conv_derive(sb_call *call, const sb_tensor *from, void *derived) {
    return pack_weights(sb_integer_form_of(call->isa), call->node->params, from, derived, call->error);
}

/* ---- pixels ---- */

typedef struct convolution {
    sb_conv_extents shape;
    const sb_integer_form *form;
    sb_integer_depthwise *depthwise;
    int64_t pieces;        /* of an image */
    int64_t image_bytes;   /* of the input, [batch][position][channel] of the bytes an element has … */
    int64_t element_bytes; /* … 1, or 2 where it is widened and less its zero point */
    const char *x;
    const char *nothing;    /* zero points for all channels */
    const int64_t *offsets; /* [taps], in positions from the first tap's, where all of them lie inside */
    sb_dtype x_dtype;
    int32_t x_zero;        /* shifted */
    const uint8_t *packed; /* weights … */
    sb_dtype packed_dtype;
    const int16_t *w; /* … or of depthwise ones, less their zero points, [tap][channel] */
    const sb_tensor *w_zero;
    /* [batch][position][channel]: sums, or, where there are multipliers, elements of y_dtype. */
    void *y;
    sb_integer_rescale *rescale;
    const float *multipliers; /* [channel]; NULL: the sums are the output */
    const int32_t *bias;      /* [channel] */
    sb_dtype y_dtype;
    int32_t y_zero;
} convolution;

static int64_t channels_in(const sb_conv_extents *shape) {
    return shape->groups * shape->group_inputs;
}

static void find_offsets(const sb_conv_extents *shape, int64_t *offsets) {
    int64_t tap[SB_WINDOW_AXES] = {0}, kernel[SB_WINDOW_AXES];
    for (int d = 0; d < shape->axes; d++)
        kernel[d] = shape->axis[d].kernel;
    do {
        int64_t number = 0;
        for (int d = 0; d < shape->axes; d++)
            number = number * shape->axis[d].in + tap[d] * shape->axis[d].dilation;
        *offsets++ = number;
    } while (sb_window_next(shape->axes, tap, kernel));
}

/* Whether all taps of the output pixel at `place` are inside the input; its first tap's position. */
static bool find_first(const sb_conv_extents *shape, const int64_t *place, int64_t *first) {
    *first = 0;
    for (int d = 0; d < shape->axes; d++) {
        const sb_window_axis *axis = &shape->axis[d];
        const int64_t at = place[d] * axis->stride - axis->begin;
        if (at < 0 || at + (axis->kernel - 1) * axis->dilation >= axis->in)
            return false;
        *first = *first * axis->in + at;
    }
    return true;
}

/* Where the channels of the positions lie that the output pixel at `place` reads at each tap, or zero points where that is outside;
 * `numbers` is room for as many. */
static void find_taps(const convolution *work, int64_t batch, const int64_t *place, int64_t *numbers,
                      const void **taps) {
    const sb_conv_extents *shape = &work->shape;
    const char *image = work->x + batch * work->image_bytes;
    const int64_t bytes = channels_in(shape) * work->element_bytes;
    int64_t first, pixel = 0;
    if (find_first(shape, place, &first)) {
        for (int64_t t = 0; t < shape->taps; t++)
            taps[t] = image + (first + work->offsets[t]) * bytes;
        return;
    }
    for (int d = 0; d < shape->axes; d++)
        pixel = pixel * shape->axis[d].out + place[d];
    sb_conv_find_taps(shape, pixel, numbers);
    for (int64_t t = 0; t < shape->taps; t++)
        taps[t] = numbers[t] >= 0 ? image + numbers[t] * bytes : work->nothing;
}

/* The same of all pixels of a piece. */
static void find_piece(const convolution *work, int64_t batch, int64_t first, int64_t pixels, int64_t *numbers,
                       const void **taps) {
    const sb_conv_extents *shape = &work->shape;
    int64_t place[SB_WINDOW_AXES], out[SB_WINDOW_AXES];
    for (int d = shape->axes - 1; d >= 0; d--) {
        out[d] = shape->axis[d].out;
        place[d] = first % out[d];
        first /= out[d];
    }
    for (int64_t p = 0; p < pixels; p++) {
        find_taps(work, batch, place, numbers, taps + p * shape->taps);
        sb_window_next(shape->axes, place, out);
    }
}

static int32_t weight_zero(const sb_tensor *zero, int64_t channel) {
    if (zero == NULL)
        return 0;
    return sb_quantized_load(zero->dtype, zero->data, sb_tensor_elements(zero) == 1 ? 0 : channel * zero->strides[0]);
}

/* One pixel's elements of a group, side by side: in `room`, unless they are so already. Taps that are neighbours go in one copy. */
static const char *gather(const sb_conv_extents *shape, int64_t group, const void *const *taps, char *room) {
    const int64_t count = shape->group_inputs;
    if (shape->taps == 1)
        return (const char *)taps[0] + group * count;
    for (int64_t t = 0, next; t < shape->taps; t = next) {
        for (next = t + 1; next < shape->taps && taps[next] == (const char *)taps[t] + (next - t) * count;)
            next++;
        memcpy(room + t * count, (const char *)taps[t] + group * count, (size_t)((next - t) * count));
    }
    return room;
}

/* A piece's workspace. */
typedef struct room {
    int64_t *numbers;  /* [taps] */
    const void **taps; /* [PIECE_PIXELS][taps] */
    int32_t *sums;     /* [PIECE_PIXELS][channels], where they are rescaled */
    uint8_t *rows;     /* [PIECE_PIXELS][words][4] */
    char *elements;    /* of a row */
    size_t bytes;
} room;

static room cut_room(const convolution *work, void *memory) {
    const sb_conv_extents *shape = &work->shape;
    const int64_t k = shape->taps * shape->group_inputs;
    const size_t numbers = (size_t)shape->taps * sizeof(int64_t);
    const size_t taps = (size_t)PIECE_PIXELS * (size_t)shape->taps * sizeof(void *);
    const size_t sums = work->multipliers == NULL ? 0
                                                  : (size_t)PIECE_PIXELS * (size_t)shape->groups *
                                                        (size_t)shape->group_outputs * sizeof(int32_t);
    const size_t rows = (size_t)PIECE_PIXELS * (size_t)sb_integer_words(work->form, k) * 4;
    char *bytes = memory;
    if (memory == NULL)
        return (room){.bytes = numbers + taps + sums + (is_depthwise(shape) ? 0 : rows + (size_t)k)};
    return (room){.numbers = memory,
                  .taps = (const void **)(void *)(bytes + numbers),
                  .sums = (int32_t *)(void *)(bytes + numbers + taps),
                  .rows = (uint8_t *)bytes + numbers + taps + sums,
                  .elements = bytes + numbers + taps + sums + rows};
}

static void multiply_group(const convolution *work, const room *room, int64_t group, int64_t pixels, int32_t *y) {
    const sb_conv_extents *shape = &work->shape;
    const sb_integer_form *form = work->form;
    const int64_t n = shape->group_outputs, k = shape->taps * shape->group_inputs, words = sb_integer_words(form, k);
    const uint8_t *panel = work->packed + (size_t)group * (packed_bytes(form, shape) / (size_t)shape->groups);
    int32_t zeros[PIECE_PIXELS];
    uint32_t sums[PIECE_PIXELS];
    for (int64_t p = 0; p < pixels; p++) {
        const char *elements = gather(shape, group, room->taps + p * shape->taps, room->elements);
        zeros[p] = work->x_zero;
        sums[p] =
            form->row(work->x_dtype, elements, 1, k, room->rows + 4 * p * words) - (uint32_t)k * (uint32_t)work->x_zero;
    }
    for (int64_t column = 0; column < n; column += form->panel, panel += sb_integer_panel_bytes(form, k)) {
        int32_t column_zeros[SB_INTEGER_PANEL] = {0};
        sb_integer_tile tile = {.rows = pixels,
                                .words = words,
                                .columns = n - column < form->panel ? n - column : form->panel,
                                .a = room->rows,
                                .zeros = zeros,
                                .sums = sums,
                                .panel = panel,
                                .column_zeros = column_zeros,
                                .c = y + group * n + column,
                                .c_stride = n * shape->groups};
        for (int64_t j = 0; j < tile.columns; j++)
            column_zeros[j] =
                weight_zero(work->w_zero, group * n + column + j) + sb_integer_right_shift(work->packed_dtype);
        form->multiply(&tile);
    }
}

static void convolve_piece(void *context, int64_t index, void *workspace) {
    const convolution *work = context;
    const sb_conv_extents *shape = &work->shape;
    const room room = cut_room(work, workspace);
    const int64_t batch = index / work->pieces, first = index % work->pieces * PIECE_PIXELS;
    const int64_t left = shape->positions - first, pixels = left < PIECE_PIXELS ? left : PIECE_PIXELS;
    const int64_t channels = shape->groups * shape->group_outputs;
    const int64_t place = (batch * shape->positions + first) * channels;
    int32_t *sums = work->multipliers != NULL ? room.sums : (int32_t *)work->y + place;
    find_piece(work, batch, first, pixels, room.numbers, room.taps);
    if (is_depthwise(shape)) {
        for (int64_t p = 0; p < pixels; p++)
            work->depthwise(channels, shape->taps, (const int16_t *const *)(room.taps + p * shape->taps), work->w,
                            sums + p * channels);
    } else {
        for (int64_t group = 0; group < shape->groups; group++)
            multiply_group(work, &room, group, pixels, sums);
    }
    for (int64_t p = 0; p < pixels && work->multipliers != NULL; p++)
        work->rescale(work->y_dtype, channels, sums + p * channels, work->bias, work->multipliers, work->y_zero,
                      (uint8_t *)work->y + place + p * channels);
}

/* ---- operands ---- */

/* The input, channels innermost. */
static sb_status take_input(sb_call *call, const sb_tensor *x, const sb_tensor *zero, convolution *work) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK], elements = sb_tensor_elements(x);
    void *plain, *nothing, *offsets;
    for (int d = 0; d < x->rank; d++) {
        int from = d == 0 ? 0 : d == x->rank - 1 ? 1 : d + 1;
        dims[d] = x->dims[from];
        strides[d] = x->strides[from];
    }
    SB_TRY(sb_call_workspace(call, (size_t)elements, &plain));
    SB_TRY(sb_call_workspace(call, (size_t)x->dims[1], &nothing));
    SB_TRY(sb_call_workspace(call, (size_t)work->shape.taps * sizeof *work->offsets, &offsets));
    find_offsets(&work->shape, offsets);
    sb_gather_dense(1, x->rank, dims, strides, x->data, plain);
    memset(nothing, weight_zero(zero, 0), (size_t)x->dims[1]);
    work->offsets = offsets;
    work->x = plain;
    work->x_dtype = x->dtype;
    work->x_zero = weight_zero(zero, 0) + sb_integer_left_shift(x->dtype);
    work->nothing = nothing;
    work->element_bytes = 1;
    work->image_bytes = elements / x->dims[0];
    return SB_OK;
}

/* The same less its zero point, for depthwise weights. */
static sb_status widen_input(sb_call *call, const sb_tensor *x, const sb_tensor *zero, sb_integer_widen *widen,
                             convolution *work) {
    void *wide, *nothing;
    SB_TRY(take_input(call, x, zero, work));
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(x) * sizeof(int16_t), &wide));
    SB_TRY(sb_call_workspace(call, (size_t)x->dims[1] * sizeof(int16_t), &nothing));
    widen(x->dtype, work->x, sb_tensor_elements(x), weight_zero(zero, 0), wide);
    memset(nothing, 0, (size_t)x->dims[1] * sizeof(int16_t));
    work->x = wide;
    work->nothing = nothing;
    work->element_bytes = sizeof(int16_t);
    work->image_bytes *= work->element_bytes;
    return SB_OK;
}

/* Of depthwise ones: [tap][channel], less the zero points. */
static sb_status widen_weights(sb_call *call, const sb_tensor *w, convolution *work) {
    const sb_conv_extents *shape = &work->shape;
    void *plain, *wide;
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(w), &plain));
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(w) * sizeof(int16_t), &wide));
    sb_conv_pack_reference(shape, 1, (sb_conv_operand){w->data, w->strides}, plain); /* [channel][tap] */
    for (int64_t channel = 0; channel < shape->groups; channel++) {
        int32_t zero = weight_zero(work->w_zero, channel);
        for (int64_t t = 0; t < shape->taps; t++)
            ((int16_t *)wide)[t * shape->groups + channel] =
                (int16_t)(sb_quantized_load(w->dtype, plain, channel * shape->taps + t) - zero);
    }
    work->w = wide;
    return SB_OK;
}

static sb_status find_weights(sb_call *call, const sb_tensor *w, convolution *work) {
    void *memory;
    if (is_depthwise(&work->shape))
        return widen_weights(call, w, work);
    work->packed_dtype = w->dtype;
    work->packed = call->derived;
    if (work->packed != NULL)
        return SB_OK;
    size_t bytes = packed_bytes(work->form, &work->shape);
    if (bytes == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the packed weights' size overflows");
    SB_TRY(sb_call_workspace(call, bytes, &memory));
    work->packed = memory;
    return pack_weights(work->form, call->node->params, w, memory, call->error);
}

static float scale_at(const sb_tensor *scale, int64_t channel) {
    int64_t step = sb_tensor_elements(scale) == 1 ? 0 : scale->strides[0];
    return ((const float *)(const void *)scale->data)[channel * step];
}

/* What QLinearConv does with the sums of each channel. */
static sb_status find_rescaling(sb_call *call, const operands *at, convolution *work) {
    const int64_t channels = work->shape.groups * work->shape.group_outputs;
    const sb_tensor *bias = sb_call_input(call, at->bias), *zero = sb_call_input(call, at->y_zero);
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)channels * sizeof(float), &memory));
    float *multipliers = memory;
    SB_TRY(sb_call_workspace(call, (size_t)channels * sizeof(int32_t), &memory));
    int32_t *biases = memory;
    const float x_scale = scale_at(sb_call_input(call, at->x_scale), 0);
    const float y_scale = scale_at(sb_call_input(call, at->y_scale), 0);
    for (int64_t c = 0; c < channels; c++) {
        multipliers[c] = (x_scale * scale_at(sb_call_input(call, at->w_scale), c)) / y_scale;
        biases[c] = bias == NULL ? 0 : ((const int32_t *)(const void *)bias->data)[c * bias->strides[0]];
    }
    work->multipliers = multipliers;
    work->bias = biases;
    work->y_dtype = zero->dtype;
    work->y_zero = sb_quantized_load(zero->dtype, zero->data, 0);
    return SB_OK;
}

static void choose_functions(sb_isa isa, convolution *work, sb_integer_widen **widen) {
    *widen = sb_integer_widen_scalar;
    work->rescale = sb_integer_rescale_scalar;
    work->form = sb_integer_form_of(isa);
    work->depthwise = sb_integer_depthwise_scalar;
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512) {
        *widen = sb_integer_widen_avx512;
        work->rescale = sb_integer_rescale_avx512;
        work->depthwise = sb_integer_depthwise_avx512;
    } else if (isa == SB_ISA_AVX2) {
        *widen = sb_integer_widen_avx2;
        work->rescale = sb_integer_rescale_avx2;
        work->depthwise = sb_integer_depthwise_avx2;
    }
#endif
    (void)isa;
}

sb_status sb_integer_conv_launch(sb_call *call) {
    const operands at = operands_of(call->node);
    const sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, at.w);
    convolution work = {.w_zero = sb_call_input(call, at.w_zero)};
    sb_integer_widen *widen;
    sb_tensor *y;
    if (sb_tensor_elements(x) == 0 || sb_tensor_elements(w) == 0)
        return call->node->op->eval(call);
    SB_TRY(sb_channels_last_output(call, x->rank, &y));
    sb_conv_extents_of(call->node->params, x, w, y->dims, &work.shape);
    if (work.shape.positions == 0)
        return SB_OK;
    choose_functions(call->isa, &work, &widen);
    const sb_tensor *x_zero = sb_call_input(call, at.x_zero);
    SB_TRY(is_depthwise(&work.shape) ? widen_input(call, x, x_zero, widen, &work) : take_input(call, x, x_zero, &work));
    SB_TRY(find_weights(call, w, &work));
    if (rescales(call->node))
        SB_TRY(find_rescaling(call, &at, &work));
    work.y = y->data;
    work.pieces = (work.shape.positions + PIECE_PIXELS - 1) / PIECE_PIXELS;
    return sb_pieces_run(call, x->dims[0] * work.pieces, cut_room(&work, NULL).bytes, convolve_piece, &work);
}
