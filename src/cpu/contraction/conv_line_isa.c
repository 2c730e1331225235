/* Convolution of few input channels, many pixels of one output row at a time, compiled once per instruction set.
 *
 * Lanes are output channels. The tiles of the products read runs of contiguous values through pointers; an image of three
 * channels has no such runs, and making them (a copy in another order) and the pointers took longer than what is computed.
 * Here values are read where they lie, whatever their strides: pixels of a tile are steps from one address, kernel
 * positions and channels are loops. Tiles at the ends of a row look at each column whether it is there.
 *
 * What remains behind the last whole tile is a tile that ends with the last pixel and stores only what is new. */
#include "base/isa.h"
#include "cpu/contraction/gemm_epilogue.h"
#include "cpu/contraction/gemm_kernels.h"
#include "cpu/simd.h"

#define VECTORS 2
#define PANEL (VECTORS * SB_VF_LANES)
#if SB_VF_REGISTERS == 32
#define PIXELS 12
#define NARROW_PIXELS 15
#else
#define PIXELS 6
#define NARROW_PIXELS 12
#endif
/* Of a tile at the end of a row. */
#define EDGE_PIXELS 4

/* Pixels whose addresses are counted from one pointer: the processor adds no more than one or two steps by itself. */
#define NEAR 3
#define GROUPS(pixels) (((pixels) + NEAR - 1) / NEAR)
/* Hides where a pointer comes from: gcc would keep an offset for each pixel instead, and most of them in memory. */
#define OPAQUE(pointer) __asm__("" : "+r"(pointer))
#define UNROLL SB_UNROLL

/* Some pixels of a line, and columns [n, n + columns), at most a panel. */
typedef struct part {
    int64_t pixel, stored; /* the first one, and the first one that is not there yet */
    int64_t n, columns;
    const float *w;
} part;

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

SB_VF_INLINE int64_t lanes_within(int64_t columns, int v) {
    const int64_t lanes = columns - (int64_t)v * SB_VF_LANES;
    return lanes < 0 ? 0 : lanes > SB_VF_LANES ? SB_VF_LANES : lanes;
}

SB_VF_INLINE void store(const sb_conv_line *line, const part *part, vf *acc, const int pixels, const int vectors,
                        const bool whole) {
    const sb_epilogue_block block = {.m = line->m + part->pixel,
                                     .n = part->n,
                                     .columns = part->columns,
                                     .last_row = minimum(pixels, line->pixels - part->pixel) - 1};
    for (int s = 0; s < line->steps; s++)
        sb_epilogue_apply(line->epilogue + s, &block, acc, vectors, pixels, vectors, whole);
    const bool all = part->pixel == part->stored && part->pixel + pixels <= line->pixels;
    UNROLL for (int p = 0; p < pixels; p++) {
        if (!all && (part->pixel + p < part->stored || part->pixel + p >= line->pixels))
            continue;
        float *to = line->y[part->pixel + p] + (part->n - line->n0);
        UNROLL for (int v = 0; v < vectors; v++) {
            if (whole)
                vf_store(to + v * SB_VF_LANES, acc[p * vectors + v]);
            else
                vf_store_first(to + v * SB_VF_LANES, acc[p * vectors + v], lanes_within(part->columns, v));
        }
    }
}

/* Brings the lines of the cache nearer that the next tile writes: stores alone would wait for them. A first layer's output
 * is large, and little is computed for it. */
SB_VF_INLINE void fetch_next(const sb_conv_line *line, const part *part, const int pixels, const int vectors) {
    for (int p = 0; p < pixels; p++) {
        const float *to = line->y[minimum(part->pixel + pixels + p, line->pixels - 1)] + (part->n - line->n0);
        for (int v = 0; v < vectors; v++)
            __builtin_prefetch(to + v * SB_VF_LANES, 1);
    }
}

SB_VF_INLINE void compute(const sb_conv_line *line, const part *part, const int pixels, const int vectors,
                          const bool whole) {
    vf acc[NARROW_PIXELS * VECTORS];
    UNROLL for (int i = 0; i < pixels * vectors; i++) acc[i] = vf_zero();

    if (line->far)
        fetch_next(line, part, pixels, vectors);
    const float *w = part->w;
    for (int64_t row = 0; row < line->rows; row++) {
        const bool outside = line->x[row] == line->zero;
        const int64_t column = outside ? 0 : line->step, channel = outside ? 0 : line->channel_step;
        const int64_t step = column * line->stride;
        /* From a position's last channel to the next position's first. */
        const int64_t next = column * line->dilation - channel * line->channels;
        const float *from[GROUPS(NARROW_PIXELS)];
        UNROLL for (int p = 0; p < GROUPS(pixels); p++) from[p] =
            line->x[row] + line->start * column + (part->pixel + NEAR * p) * step;
        for (int64_t tap = 0; tap < line->width; tap++) {
            for (int64_t c = 0; c < line->channels; c++, w += PANEL) {
                vf weight[VECTORS];
                UNROLL for (int v = 0; v < vectors; v++) weight[v] = vf_load(w + v * SB_VF_LANES);
                UNROLL for (int p = 0; p < pixels; p++) {
                    const vf value = vf_set(from[p / NEAR][p % NEAR * step]);
                    UNROLL for (int v = 0; v < vectors; v++) acc[p * vectors + v] =
                        vf_fma(value, weight[v], acc[p * vectors + v]);
                }
                UNROLL for (int p = 0; p < GROUPS(pixels); p++) {
                    from[p] += channel;
                    OPAQUE(from[p]);
                }
            }
            UNROLL for (int p = 0; p < GROUPS(pixels); p++) from[p] += next;
        }
    }
    store(line, part, acc, pixels, vectors, whole);
}

/* The same where some columns are outside, or there are fewer pixels than the tile has: the last one then again. */
SB_VF_INLINE void compute_edge(const sb_conv_line *line, const part *part, const int vectors, const bool whole) {
    vf acc[EDGE_PIXELS * VECTORS];
    UNROLL for (int i = 0; i < EDGE_PIXELS * vectors; i++) acc[i] = vf_zero();

    const float *w = part->w;
    for (int64_t row = 0; row < line->rows; row++) {
        for (int64_t tap = 0; tap < line->width; tap++) {
            const float *from[EDGE_PIXELS];
            int64_t channel[EDGE_PIXELS];
            for (int p = 0; p < EDGE_PIXELS; p++) {
                const int64_t column =
                    line->start + minimum(part->pixel + p, line->pixels - 1) * line->stride + tap * line->dilation;
                const bool inside = line->x[row] != line->zero && column >= 0 && column < line->columns;
                from[p] = inside ? line->x[row] + column * line->step : line->zero;
                channel[p] = inside ? line->channel_step : 0;
            }
            for (int64_t c = 0; c < line->channels; c++, w += PANEL) {
                vf weight[VECTORS];
                UNROLL for (int v = 0; v < vectors; v++) weight[v] = vf_load(w + v * SB_VF_LANES);
                UNROLL for (int p = 0; p < EDGE_PIXELS; p++) {
                    const vf value = vf_set(from[p][c * channel[p]]);
                    UNROLL for (int v = 0; v < vectors; v++) acc[p * vectors + v] =
                        vf_fma(value, weight[v], acc[p * vectors + v]);
                }
            }
        }
    }
    store(line, part, acc, EDGE_PIXELS, vectors, whole);
}

/* All pixels, for some columns. */
SB_VF_INLINE void compute_line(const sb_conv_line *line, part part, const int pixels, const int vectors,
                               const bool whole) {
    const int64_t reach = (line->width - 1) * line->dilation;
    /* The pixels all of whose columns are inside: [before, inner). */
    const int64_t before = line->start < 0 ? (-line->start + line->stride - 1) / line->stride : 0;
    const int64_t end = line->columns - reach - line->start;
    const int64_t inner = minimum(end <= 0 ? 0 : (end - 1) / line->stride + 1, line->pixels);
    while (part.stored < line->pixels) {
        /* A tile may begin before what is there already, where it then ends with what is inside. */
        const int64_t begin = minimum(part.stored, inner - pixels);
        if (begin >= before && begin + pixels > part.stored) {
            part.pixel = begin;
            compute(line, &part, pixels, vectors, whole);
            part.stored = begin + pixels;
        } else {
            part.pixel = part.stored;
            compute_edge(line, &part, vectors, whole);
            part.stored += EDGE_PIXELS;
        }
    }
}

#define LINE(name, pixels, vectors)                                                                                    \
    static void name(const sb_conv_line *line, const part *part) {                                                     \
        if (part->columns == (vectors)*SB_VF_LANES)                                                                    \
            compute_line(line, *part, pixels, vectors, true);                                                          \
        else                                                                                                           \
            compute_line(line, *part, pixels, vectors, false);                                                         \
    }
LINE(narrow_line, NARROW_PIXELS, 1)
LINE(wide_line, PIXELS, VECTORS)

void SB_ISA_NAME(sb_conv_f32_line)(const sb_conv_line *line) {
    const int64_t panel_step = line->rows * line->width * line->channels * PANEL;
    const float *w = line->w;
    for (int64_t n = line->n0, within = line->panel_offset; n < line->n1; within = 0, w += panel_step) {
        part part = {.n = n, .columns = minimum(PANEL - within, line->n1 - n), .w = w + within};
        if (part.columns <= SB_VF_LANES)
            narrow_line(line, &part);
        else
            wide_line(line, &part);
        n += part.columns;
    }
}
