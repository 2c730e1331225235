/* Depthwise convolution of many pixels of one output row, compiled once per instruction set.
 *
 * Like depthwise_isa.c, but without a table of pointers, which was most of the time where channels are few: of 16 channels
 * and a kernel of 5 × 5 each of its pointers served one multiply-add. Kernels 3, 5 or 7 wide of stride 1 or 2 have a row of
 * weights in registers, and load each column once for all pixels of the tile that read it; whether the column is inside the
 * input is looked at then. Measured (Zen 5, multiply-adds of 16 lanes a nanosecond, of 7.4): 144 channels of 58 × 50 by
 * 7 × 7 5.7, with a load for each multiply-add 3.7.
 *
 * Of other kernels, pixels whose columns all lie inside the input are steps from one address, and tiles at the ends of a row
 * look at each column of each pixel.
 *
 * What remains behind the last whole tile is a tile that ends with the last pixel and stores only what is new. */
#include "base/isa.h"
#include "cpu/contraction/gemm_epilogue.h"
#include "cpu/contraction/gemm_kernels.h"
#include "cpu/simd.h"

#define PIXELS SB_DEPTHWISE_PIXELS
/* Of one vector of channels: six chains alone would wait for each other. */
#define NARROW_PIXELS (2 * PIXELS)
#if SB_VF_REGISTERS == 32
#define VECTORS 4
#else
#define VECTORS 2
#endif

/* Of kernels whose rows are whole in registers. */
#if SB_VF_REGISTERS == 32
#define SHARED_VECTORS 2
#else
#define SHARED_VECTORS 1
#endif
#define SHARED_PIXELS(width) ((width) == 7 ? 6 : 8)
#define SHARED_TILE (8 * SHARED_VECTORS)

#define UNROLL SB_UNROLL

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Some pixels of a line, and some vectors of channels. */
typedef struct part {
    int64_t pixel, stored; /* the first one, and the first one that is not there yet */
    int64_t channel, last_lanes;
} part;

/* Pixels whose addresses are counted from one pointer: the processor adds no more than one or two steps by itself. */
#define NEAR 3
/* Hides where a pointer comes from: gcc would keep an offset for each pixel and vector instead, and most of them in memory. */
#define OPAQUE(pointer) __asm__("" : "+r"(pointer))

SB_VF_INLINE vf load(const float *from, const part *part, const int v, const int vectors, const bool whole) {
    return sb_epilogue_load(from + v * SB_VF_LANES, part->last_lanes, whole || v + 1 < vectors);
}

SB_VF_INLINE void store(const sb_depthwise_tile *tile, const part *part, vf *acc, const int pixels, const int vectors,
                        const bool whole) {
    const sb_epilogue_block block = {.m = tile->m + part->pixel,
                                     .n = part->channel,
                                     .columns = (vectors - 1) * SB_VF_LANES + part->last_lanes,
                                     .last_row = minimum(pixels, tile->pixels - part->pixel) - 1};
    for (int s = 0; s < tile->steps; s++)
        sb_epilogue_apply(tile->step + s, &block, acc, vectors, pixels, vectors, whole);
    const bool all = part->pixel == part->stored && part->pixel + pixels <= tile->pixels;
    UNROLL for (int p = 0; p < pixels; p++) {
        if (!all && (part->pixel + p < part->stored || part->pixel + p >= tile->pixels))
            continue;
        float *to = tile->y[part->pixel + p] + (part->channel + tile->y_offset);
        UNROLL for (int v = 0; v < vectors; v++) {
            if (whole || v + 1 < vectors)
                vf_store(to + v * SB_VF_LANES, acc[p * vectors + v]);
            else
                vf_store_first(to + v * SB_VF_LANES, acc[p * vectors + v], part->last_lanes);
        }
    }
}

SB_VF_INLINE void compute(const sb_depthwise_tile *tile, const sb_depthwise_line *line, const part *part,
                          const int pixels, const int vectors, const bool whole) {
    vf acc[NARROW_PIXELS * VECTORS];
    UNROLL for (int i = 0; i < pixels * vectors; i++) acc[i] = vf_zero();

    const int64_t block_step = tile->taps * SB_VF_LANES;
    const float *w = tile->w + part->channel / SB_VF_LANES * block_step + part->channel % SB_VF_LANES;
    for (int64_t row = 0; row < line->rows; row++) {
        const int64_t column = line->x[row] == line->zero ? 0 : line->step;
        const int64_t step = column * line->stride, tap_step = column * line->dilation;
        const float *from[NARROW_PIXELS / NEAR];
        UNROLL for (int p = 0; p < pixels / NEAR; p++) from[p] =
            line->x[row] + line->start * column + (part->pixel + NEAR * p) * step + part->channel;
        for (int64_t tap = 0; tap < line->width; tap++, w += SB_VF_LANES) {
            vf weight[VECTORS];
            UNROLL for (int v = 0; v < vectors; v++) weight[v] = vf_load(w + v * block_step);
            UNROLL for (int p = 0; p < pixels; p++) UNROLL for (int v = 0; v < vectors; v++) acc[p * vectors + v] =
                vf_fma(load(from[p / NEAR] + p % NEAR * step, part, v, vectors, whole), weight[v],
                       acc[p * vectors + v]);
            UNROLL for (int p = 0; p < pixels / NEAR; p++) {
                from[p] += tap_step;
                OPAQUE(from[p]);
            }
        }
    }
    store(tile, part, acc, pixels, vectors, whole);
}

/* The same for a width and a stride that are compiled in, and dilation 1: a kernel row's weights are in registers, and
 * pixels share the columns that are loaded, of each of which it is looked whether it is there. */
SB_VF_INLINE void compute_shared(const sb_depthwise_tile *tile, const sb_depthwise_line *line, const part *part,
                                 const int width, const int stride, const int pixels, const int vectors,
                                 const bool whole) {
    vf acc[SHARED_TILE];
    UNROLL for (int i = 0; i < pixels * vectors; i++) acc[i] = vf_zero();

    const int64_t block_step = tile->taps * SB_VF_LANES;
    const float *w = tile->w + part->channel / SB_VF_LANES * block_step + part->channel % SB_VF_LANES;
    const float *zero = line->zero + part->channel;
    for (int64_t row = 0; row < line->rows; row++, w += width * SB_VF_LANES) {
        const int64_t columns = line->x[row] == line->zero ? 0 : line->columns;
        int64_t at = line->start + part->pixel * stride;
        const float *next = line->x[row] + at * line->step + part->channel;
        vf weight[7 * SHARED_VECTORS];
        UNROLL for (int t = 0; t < width; t++) UNROLL for (int v = 0; v < vectors; v++) weight[t * vectors + v] =
            vf_load(w + t * SB_VF_LANES + v * block_step);
        UNROLL for (int column = 0; column < (pixels - 1) * stride + width; column++) {
            const float *from = (uint64_t)at < (uint64_t)columns ? next : zero;
            vf value[SHARED_VECTORS];
            UNROLL for (int v = 0; v < vectors; v++) value[v] = load(from, part, v, vectors, whole);
            at++;
            next += line->step;
            OPAQUE(next);
            /* Pixel p has its position t at column p * stride + t. */
            UNROLL for (int t = 0; t < width; t++) {
                const int p = (column - t) / stride;
                if (column >= t && (column - t) % stride == 0 && p < pixels)
                    UNROLL for (int v = 0; v < vectors; v++) acc[p * vectors + v] =
                        vf_fma(value[v], weight[t * vectors + v], acc[p * vectors + v]);
            }
        }
    }
    store(tile, part, acc, pixels, vectors, whole);
}

/* The same where some columns are outside, or there are fewer pixels than the tile has: the last one then again. */
SB_VF_INLINE void compute_edge(const sb_depthwise_tile *tile, const sb_depthwise_line *line, const part *part,
                               const int vectors, const bool whole) {
    vf acc[PIXELS * VECTORS];
    UNROLL for (int i = 0; i < PIXELS * vectors; i++) acc[i] = vf_zero();

    int64_t first[PIXELS];
    UNROLL for (int p = 0; p < PIXELS; p++) {
        const int64_t pixel = part->pixel + p < tile->pixels ? part->pixel + p : tile->pixels - 1;
        first[p] = line->start + pixel * line->stride;
    }
    const int64_t block_step = tile->taps * SB_VF_LANES;
    const float *w = tile->w + part->channel / SB_VF_LANES * block_step + part->channel % SB_VF_LANES;
    for (int64_t row = 0; row < line->rows; row++) {
        const int64_t step = line->x[row] == line->zero ? 0 : line->step;
        int64_t offset = 0;
        for (int64_t tap = 0; tap < line->width; tap++, offset += line->dilation, w += SB_VF_LANES) {
            vf weight[VECTORS];
            UNROLL for (int v = 0; v < vectors; v++) weight[v] = vf_load(w + v * block_step);
            UNROLL for (int p = 0; p < PIXELS; p++) {
                const int64_t column = first[p] + offset;
                const float *from =
                    (uint64_t)column < (uint64_t)line->columns ? line->x[row] + column * step : line->zero;
                UNROLL for (int v = 0; v < vectors; v++) acc[p * vectors + v] =
                    vf_fma(load(from + part->channel, part, v, vectors, whole), weight[v], acc[p * vectors + v]);
            }
        }
    }
    store(tile, part, acc, PIXELS, vectors, whole);
}

/* All pixels, for some vectors of channels. */
SB_VF_INLINE void compute_line(const sb_depthwise_tile *tile, const sb_depthwise_line *line, int64_t channel,
                               int64_t last_lanes, const int vectors, const bool whole) {
    const int most = vectors == 1 ? NARROW_PIXELS : PIXELS;
    const int64_t reach = (line->width - 1) * line->dilation;
    /* The pixels all of whose columns are inside: [before, inner). */
    const int64_t before = line->start < 0 ? (-line->start + line->stride - 1) / line->stride : 0;
    const int64_t end = line->columns - reach - line->start;
    const int64_t inner = minimum(end <= 0 ? 0 : (end - 1) / line->stride + 1, tile->pixels);
    part part = {.channel = channel, .last_lanes = last_lanes};
    while (part.stored < tile->pixels) {
        /* A tile may begin before what is there already, where it then ends with what is inside. */
        const int64_t begin = minimum(part.stored, inner - most);
        if (begin >= before && begin + most > part.stored) {
            part.pixel = begin;
            compute(tile, line, &part, most, vectors, whole);
            part.stored = begin + most;
        } else {
            part.pixel = part.stored;
            compute_edge(tile, line, &part, vectors, whole);
            part.stored += PIXELS;
        }
    }
}

SB_VF_INLINE void compute_shared_line(const sb_depthwise_tile *tile, const sb_depthwise_line *line, int64_t channel,
                                      int64_t last_lanes, const int width, const int stride, const int vectors,
                                      const bool whole) {
    const int most = SHARED_PIXELS(width);
    part part = {.channel = channel, .last_lanes = last_lanes};
    while (part.stored < tile->pixels) {
        part.pixel = minimum(part.stored, tile->pixels - most);
        if (part.pixel < 0)
            part.pixel = 0;
        compute_shared(tile, line, &part, width, stride, most, vectors, whole);
        part.stored = part.pixel + most;
    }
}

typedef void line_function(const sb_depthwise_tile *tile, const sb_depthwise_line *line, int64_t channel,
                           int64_t last_lanes);
#define LINE(name, compute, ...)                                                                                       \
    static void name(const sb_depthwise_tile *tile, const sb_depthwise_line *line, int64_t channel,                    \
                     int64_t last_lanes) {                                                                             \
        if (last_lanes == SB_VF_LANES)                                                                                 \
            compute(tile, line, channel, last_lanes, __VA_ARGS__, true);                                               \
        else                                                                                                           \
            compute(tile, line, channel, last_lanes, __VA_ARGS__, false);                                              \
    }

LINE(line_1, compute_line, 1)
LINE(line_2, compute_line, 2)
#if VECTORS == 4
LINE(line_3, compute_line, 3)
LINE(line_4, compute_line, 4)
#endif
static line_function *const lines[VECTORS] = {
    line_1,
    line_2,
#if VECTORS == 4
    line_3,
    line_4,
#endif
};

#define SHARED(width, stride, vectors)                                                                                 \
    LINE(shared_##width##_##stride##_##vectors, compute_shared_line, width, stride, vectors)
#if SHARED_VECTORS == 2
#define SHARED_LINES(width, stride) SHARED(width, stride, 1) SHARED(width, stride, 2)
#define SHARED_NAMES(width, stride)                                                                                    \
    { shared_##width##_##stride##_1, shared_##width##_##stride##_2 }
#else
#define SHARED_LINES(width, stride) SHARED(width, stride, 1)
#define SHARED_NAMES(width, stride)                                                                                    \
    { shared_##width##_##stride##_1 }
#endif
SHARED_LINES(3, 1)
SHARED_LINES(3, 2)
SHARED_LINES(5, 1)
SHARED_LINES(5, 2)
SHARED_LINES(7, 1)
SHARED_LINES(7, 2)
static line_function *const shared[3][2][SHARED_VECTORS] = {
    {SHARED_NAMES(3, 1), SHARED_NAMES(3, 2)},
    {SHARED_NAMES(5, 1), SHARED_NAMES(5, 2)},
    {SHARED_NAMES(7, 1), SHARED_NAMES(7, 2)},
};

void SB_ISA_NAME(sb_depthwise_f32_line)(const sb_depthwise_tile *tile, const sb_depthwise_line *line) {
    const bool shares = sb_depthwise_line_shares(line->width, line->stride, line->dilation);
    line_function *const *functions = shares ? shared[(line->width - 3) / 2][line->stride - 1] : lines;
    const int64_t most = shares ? SHARED_VECTORS : VECTORS;
    for (int64_t channel = tile->channel0; channel < tile->channel1;) {
        const int64_t left = tile->channel1 - channel, within = SB_VF_LANES - channel % SB_VF_LANES;
        /* Up to the next block of weights, or some whole ones and a part of the last. */
        int64_t count = within < SB_VF_LANES ? within : most * SB_VF_LANES;
        count = left < count ? left : count;
        const int64_t vectors = (count + SB_VF_LANES - 1) / SB_VF_LANES;
        functions[vectors - 1](tile, line, channel, count - (vectors - 1) * SB_VF_LANES);
        channel += count;
    }
}
