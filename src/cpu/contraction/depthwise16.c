/* Running depthwise convolutions of 16 bits: the input is taken apart once, channels innermost, and threads take pixels. */
#include "cpu/contraction/depthwise16.h"

#include <string.h>

#include "cpu/contraction/chain16.h"
#include "cpu/pieces.h"
#include "numerics/chain.h"
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
    sb_depthwise16_near *near; /* NULL: elements are not moderate */
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

float sb_depthwise16_step(const sb_depthwise16_pixel *pixel, int64_t first, int64_t count, int64_t channel,
                          float before) {
    uint16_t left[SB_CHAIN16_GROUP] = {0}, right[SB_CHAIN16_GROUP] = {0};
    for (int64_t t = 0; t < count; t++) {
        left[t] = pixel->x.raw[pixel->offsets[first + t] + channel];
        right[t] = pixel->w.raw[(first + t) * pixel->channels + channel];
    }
    return pixel->dtype == SB_BF16 ? sb_chain16_step_bf16(left, right, before)
                                   : sb_chain16_step_f16(left, right, before);
}

/* With the bias, and rounded. */
static void finish(const sb_conv16 *conv, int64_t first, int64_t count, float *sums, uint16_t *y) {
    for (int64_t c = 0; c < count && conv->bias != NULL; c++)
        sums[c] += conv->bias[first + c];
    conv->fused->round(NULL, count, (char *const[]){(char *)y, (char *)sums},
                       (const int64_t[]){(int64_t)sizeof *y, (int64_t)sizeof *sums});
}

static void finish_channel(const sb_conv16 *conv, const sb_depthwise16_pixel *pixel, int64_t channel, uint16_t *y) {
    float sum = 0;
    for (int64_t t = 0; t < pixel->taps; t += SB_CHAIN16_GROUP) {
        const int64_t left = pixel->taps - t;
        sum = sb_depthwise16_step(pixel, t, left < SB_CHAIN16_GROUP ? left : SB_CHAIN16_GROUP, channel, sum);
    }
    finish(conv, channel, 1, &sum, y);
}

/* Channels that are compared at once: nearly all are certain. */
#define LOOKED_AT 32

/* Where both ends round alike that is what the chain does; the others one by one. `highest` is room. */
static void convolve_near(const convolution *work, const sb_depthwise16_pixel *pixel, uint16_t *highest, uint16_t *y) {
    const sb_conv16 *conv = work->conv;
    const int64_t channels = pixel->channels;
    work->near(pixel);
    finish(conv, 0, channels, pixel->sums, y);
    finish(conv, 0, channels, pixel->highest, highest);
    for (int64_t first = 0; first < channels; first += LOOKED_AT) {
        const int64_t end = first + LOOKED_AT < channels ? first + LOOKED_AT : channels;
        if (memcmp(y + first, highest + first, (size_t)(end - first) * sizeof *y) == 0)
            continue;
        for (int64_t c = first; c < end; c++) {
            if (y[c] != highest[c])
                finish_channel(conv, pixel, c, &y[c]);
        }
    }
}

/* Taps' offsets, sums, their highest, and those rounded. */
static size_t piece_bytes(const sb_conv_extents *shape) {
    return (size_t)shape->taps * sizeof(int64_t) + (size_t)shape->groups * (2 * sizeof(float) + sizeof(uint16_t));
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
                                        .sums = sums,
                                        .highest = sums + channels};
    for (int64_t p = first; p < first + PIECE_PIXELS && p < shape->positions; p++) {
        uint16_t *y = (uint16_t *)(void *)conv->y->data + (batch * shape->positions + p) * channels;
        find_taps(work, batch, p, offsets);
        if (work->near != NULL) {
            convolve_near(work, &pixel, (uint16_t *)(void *)(sums + 2 * channels), y);
            continue;
        }
        work->chains(&pixel);
        finish(conv, 0, channels, sums, y);
    }
}

/* x, channels innermost, and behind it zeros. */
static sb_status gather_input(sb_call *call, const sb_tensor *x, convolution *work, uint16_t **gathered) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK], elements = sb_tensor_elements(x), channels = x->dims[1];
    void *raw;
    for (int d = 0; d < x->rank; d++) {
        int from = d == 0 ? 0 : d == x->rank - 1 ? 1 : d + 1;
        dims[d] = x->dims[from];
        strides[d] = x->strides[from];
    }
    SB_TRY(sb_call_workspace(call, (size_t)(elements + channels) * sizeof **gathered, &raw));
    *gathered = raw;
    sb_gather_dense(sizeof **gathered, x->rank, dims, strides, x->data, *gathered);
    memset(*gathered + elements, 0, (size_t)channels * sizeof **gathered);
    work->nothing = elements;
    work->image_elements = elements / x->dims[0];
    return SB_OK;
}

/* Takes `count` elements apart. */
static sb_status widen(sb_call *call, sb_depthwise16_widen *function, sb_dtype dtype, int64_t count,
                       const uint16_t *raw, sb_depthwise16_parts *parts) {
    void *values, *fields;
    SB_TRY(sb_call_workspace(call, (size_t)count * sizeof *parts->values, &values));
    SB_TRY(sb_call_workspace(call, (size_t)count * sizeof *parts->fields, &fields));
    function(dtype, count, raw, values, fields);
    *parts = (sb_depthwise16_parts){raw, values, fields};
    return SB_OK;
}

static sb_status gather_weights(sb_call *call, const sb_conv16 *conv, uint16_t **gathered) {
    const int64_t channels = conv->extents->groups, taps = conv->extents->taps;
    const uint16_t *packed = conv->packed;
    const int64_t group = (int64_t)(conv->packed_bytes / (size_t)channels / sizeof *packed);
    void *raw;
    SB_TRY(sb_call_workspace(call, (size_t)(taps * channels) * sizeof **gathered, &raw));
    *gathered = raw;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t place = sb_chain16_packed_place(taps, t, 0);
        for (int64_t c = 0; c < channels; c++)
            (*gathered)[t * channels + c] = packed[c * group + place];
    }
    return SB_OK;
}

/* What an instruction set has. */
typedef struct functions {
    sb_depthwise16_widen *widen;
    sb_depthwise16_chains *chains;
    sb_depthwise16_near *near;
    sb_depthwise16_moderate *moderate;
} functions;

static functions functions_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return (functions){sb_depthwise16_widen_avx512, sb_depthwise16_chains_avx512, sb_depthwise16_near_avx512,
                           sb_depthwise16_moderate_avx512};
    if (isa == SB_ISA_AVX2)
        return (functions){sb_depthwise16_widen_avx2, sb_depthwise16_chains_avx2, sb_depthwise16_near_avx2,
                           sb_depthwise16_moderate_avx2};
#endif
    (void)isa;
    return (functions){sb_depthwise16_widen_scalar, sb_depthwise16_chains_scalar, sb_depthwise16_near_scalar,
                       sb_depthwise16_moderate_scalar};
}

sb_status sb_depthwise16_run(sb_call *call, const sb_conv16 *conv) {
    const sb_conv_extents *shape = conv->extents;
    convolution work = {.conv = conv, .pieces = (shape->positions + PIECE_PIXELS - 1) / PIECE_PIXELS};
    const functions own = functions_of(call->isa);
    const sb_dtype dtype = conv->x->dtype;
    const int64_t weights = shape->taps * shape->groups;
    uint16_t *x, *w;
    work.chains = own.chains;
    SB_TRY(gather_input(call, conv->x, &work, &x));
    SB_TRY(gather_weights(call, conv, &w));
    SB_TRY(widen(call, own.widen, dtype, weights, w, &work.w));
    work.x.raw = x;
    if (shape->taps <= SB_DEPTHWISE16_TAPS && own.moderate(dtype, w, weights) && own.moderate(dtype, x, work.nothing))
        work.near = own.near;
    else
        SB_TRY(widen(call, own.widen, dtype, work.nothing + shape->groups, x, &work.x));
    return sb_pieces_run(call, shape->batch * work.pieces, piece_bytes(shape), convolve_piece, &work);
}
