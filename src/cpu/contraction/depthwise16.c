/* Running depthwise convolutions of 16 bits: the input is taken apart once, channels innermost, and threads take pixels. */
#include "cpu/contraction/depthwise16.h"

#include <string.h>

#include "cpu/contraction/chain16.h"
#include "cpu/pieces.h"
#include "ops/contraction.h"
#include "ops/moving.h"

#define PIECE_PIXELS 16

bool sb_depthwise16_fits(const sb_conv16 *conv) {
    return conv->extents->group_inputs == 1 && conv->extents->group_outputs == 1 && conv->extents->groups > 1 &&
           conv->fused->program == NULL;
}

typedef struct convolution {
    const sb_conv16 *conv;
    sb_depthwise16_chains *chains;
    sb_depthwise16_parts x, w;
    int64_t image_elements; /* of x; behind the last image stand zeros for all channels */
    int64_t nothing;        /* where these begin */
    int64_t pieces;         /* of an image */
} convolution;

static void find_taps(const convolution *work, int64_t batch, int64_t pixel, int64_t *offsets) {
    const sb_conv_extents *shape = work->conv->extents;
    sb_conv_find_taps(shape, pixel, offsets);
    for (int64_t t = 0; t < shape->taps; t++)
        offsets[t] = offsets[t] >= 0 ? batch * work->image_elements + offsets[t] * shape->groups : work->nothing;
}

static void convolve_piece(void *context, int64_t index, void *workspace) {
    const convolution *work = context;
    const sb_conv16 *conv = work->conv;
    const sb_conv_extents *shape = conv->extents;
    const int64_t batch = index / work->pieces, first = index % work->pieces * PIECE_PIXELS, channels = shape->groups;
    int64_t *offsets = workspace;
    float *sums = (float *)(void *)(offsets + shape->taps);
    const sb_depthwise16_pixel pixel = {.dtype = conv->x->dtype,
                                        .channels = channels,
                                        .taps = shape->taps,
                                        .x = work->x,
                                        .w = work->w,
                                        .offsets = offsets,
                                        .sums = sums};
    for (int64_t p = first; p < first + PIECE_PIXELS && p < shape->positions; p++) {
        uint16_t *y = (uint16_t *)(void *)conv->y->data + (batch * shape->positions + p) * channels;
        find_taps(work, batch, p, offsets);
        work->chains(&pixel);
        for (int64_t c = 0; c < channels && conv->bias != NULL; c++)
            sums[c] += conv->bias[c];
        conv->fused->round(NULL, channels, (char *const[]){(char *)y, (char *)sums},
                           (const int64_t[]){(int64_t)sizeof *y, (int64_t)sizeof *sums});
    }
}

/* Room for `count` elements, apart. */
typedef struct room {
    uint16_t *raw;
    float *values;
    int16_t *fields;
} room;

static sb_status take_room(sb_call *call, int64_t count, room *room, sb_depthwise16_parts *parts) {
    void *raw, *values, *fields;
    SB_TRY(sb_call_workspace(call, (size_t)count * sizeof *room->raw, &raw));
    SB_TRY(sb_call_workspace(call, (size_t)count * sizeof *room->values, &values));
    SB_TRY(sb_call_workspace(call, (size_t)count * sizeof *room->fields, &fields));
    room->raw = raw;
    room->values = values;
    room->fields = fields;
    *parts = (sb_depthwise16_parts){raw, values, fields};
    return SB_OK;
}

static sb_status widen_input(sb_call *call, const sb_tensor *x, sb_depthwise16_widen *widen, convolution *work) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK], elements = sb_tensor_elements(x), channels = x->dims[1];
    room room;
    for (int d = 0; d < x->rank; d++) {
        int from = d == 0 ? 0 : d == x->rank - 1 ? 1 : d + 1;
        dims[d] = x->dims[from];
        strides[d] = x->strides[from];
    }
    SB_TRY(take_room(call, elements + channels, &room, &work->x));
    sb_gather_dense(sizeof *room.raw, x->rank, dims, strides, x->data, room.raw);
    memset(room.raw + elements, 0, (size_t)channels * sizeof *room.raw);
    widen(x->dtype, elements + channels, room.raw, room.values, room.fields);
    work->nothing = elements;
    work->image_elements = elements / x->dims[0];
    return SB_OK;
}

static sb_status widen_weights(sb_call *call, sb_depthwise16_widen *widen, convolution *work) {
    const sb_conv16 *conv = work->conv;
    const int64_t channels = conv->extents->groups, taps = conv->extents->taps;
    const uint16_t *packed = conv->packed;
    const int64_t group = (int64_t)(conv->packed_bytes / (size_t)channels / sizeof *packed);
    room room;
    SB_TRY(take_room(call, taps * channels, &room, &work->w));
    for (int64_t t = 0; t < taps; t++) {
        const int64_t place = sb_chain16_packed_place(taps, t, 0);
        for (int64_t c = 0; c < channels; c++)
            room.raw[t * channels + c] = packed[c * group + place];
    }
    widen(conv->x->dtype, taps * channels, room.raw, room.values, room.fields);
    return SB_OK;
}

static void choose_functions(sb_isa isa, convolution *work, sb_depthwise16_widen **widen) {
    *widen = sb_depthwise16_widen_scalar;
    work->chains = sb_depthwise16_chains_scalar;
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512) {
        *widen = sb_depthwise16_widen_avx512;
        work->chains = sb_depthwise16_chains_avx512;
    } else if (isa == SB_ISA_AVX2) {
        *widen = sb_depthwise16_widen_avx2;
        work->chains = sb_depthwise16_chains_avx2;
    }
#endif
    (void)isa;
}

sb_status sb_depthwise16_run(sb_call *call, const sb_conv16 *conv) {
    const sb_conv_extents *shape = conv->extents;
    convolution work = {.conv = conv, .pieces = (shape->positions + PIECE_PIXELS - 1) / PIECE_PIXELS};
    sb_depthwise16_widen *widen;
    choose_functions(call->isa, &work, &widen);
    SB_TRY(widen_input(call, conv->x, widen, &work));
    SB_TRY(widen_weights(call, widen, &work));
    return sb_pieces_run(call, shape->batch * work.pieces,
                         (size_t)shape->taps * sizeof(int64_t) + (size_t)shape->groups * sizeof(float), convolve_piece,
                         &work);
}
