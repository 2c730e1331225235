/* Depthwise convolution of many pixels of one output row, compiled once per instruction set.
 *
 * Like depthwise_isa.c, but without a table of pointers, which was most of the time where channels are few: of 16 channels
 * and a kernel of 5 × 5 each of its pointers served one multiply-add. Pixels whose columns all lie inside the input are
 * steps from one address. Tiles at the ends of a row look at each column whether it is there.
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
    /* The pixels all of whose columns are inside. */
    const int64_t before = line->start < 0 ? (-line->start + line->stride - 1) / line->stride : 0;
    const int64_t end = line->columns - reach - line->start;
    const int64_t inner_end = end <= 0                                      ? 0
                              : (end - 1) / line->stride + 1 < tile->pixels ? (end - 1) / line->stride + 1
                                                                            : tile->pixels;
    part part = {.channel = channel, .last_lanes = last_lanes};
    while (part.stored < tile->pixels) {
        /* A tile may begin before what is there already, where it then ends with what is inside. */
        int64_t inner = part.stored + most <= inner_end ? part.stored : inner_end - most;
        if (part.stored >= before && inner >= before && inner + most > part.stored) {
            part.pixel = inner;
            compute(tile, line, &part, most, vectors, whole);
            part.stored = inner + most;
        } else {
            part.pixel = part.stored;
            compute_edge(tile, line, &part, vectors, whole);
            part.stored += PIXELS;
        }
    }
}

#define LINE(vectors)                                                                                                  \
    static void line_##vectors(const sb_depthwise_tile *tile, const sb_depthwise_line *line, int64_t channel,          \
                               int64_t last_lanes) {                                                                   \
        if (last_lanes == SB_VF_LANES)                                                                                 \
            compute_line(tile, line, channel, last_lanes, vectors, true);                                              \
        else                                                                                                           \
            compute_line(tile, line, channel, last_lanes, vectors, false);                                             \
    }

LINE(1)
LINE(2)
#if VECTORS == 4
LINE(3)
LINE(4)
#endif

typedef void line_function(const sb_depthwise_tile *tile, const sb_depthwise_line *line, int64_t channel,
                           int64_t last_lanes);
static line_function *const lines[VECTORS] = {
    line_1,
    line_2,
#if VECTORS == 4
    line_3,
    line_4,
#endif
};

void SB_ISA_NAME(sb_depthwise_f32_line)(const sb_depthwise_tile *tile, const sb_depthwise_line *line) {
    for (int64_t channel = tile->channel0; channel < tile->channel1;) {
        const int64_t left = tile->channel1 - channel, within = SB_VF_LANES - channel % SB_VF_LANES;
        /* Up to the next block of weights, or some whole ones and a part of the last. */
        int64_t count = within < SB_VF_LANES ? within : VECTORS * SB_VF_LANES;
        count = left < count ? left : count;
        const int64_t vectors = (count + SB_VF_LANES - 1) / SB_VF_LANES;
        lines[vectors - 1](tile, line, channel, count - (vectors - 1) * SB_VF_LANES);
        channel += count;
    }
}
