/* Register tile of the depthwise convolution, compiled once per instruction set.
 *
 * Lanes are channels: every element is one chain over kernel positions in row-major order. A tile
 * keeps PIXELS × VECTORS accumulators; a kernel position loads VECTORS vectors of weights and, for
 * each pixel, one pointer and VECTORS vectors of input. One load per multiply-add is inherent
 * (nothing is shared between channels), so the tile only has to keep the weight and pointer loads
 * few and the chains many: 6 × 4 on 32 registers, 6 × 2 on 16. */
#include "cpu/contraction/gemm_kernels.h"

#include "base/isa.h"
#include "cpu/contraction/gemm_epilogue.h"
#include "cpu/simd.h"

#define PIXELS SB_DEPTHWISE_PIXELS
#if SB_VF_REGISTERS == 32
#define VECTORS 4
#else
#define VECTORS 2
#endif

#define UNROLL SB_UNROLL

/* The epilogue's steps in registers, and the store of those pixels that exist. */
SB_VF_INLINE void store_pixels(const sb_depthwise_tile *tile, vf (*acc)[VECTORS], int64_t channel, int64_t lanes,
                               const int pixels, const int vectors, const bool whole) {
    const sb_epilogue_block block = {.m = tile->m, .n = channel, .columns = lanes, .last_row = tile->pixels - 1};
    for (int s = 0; s < tile->steps; s++)
        sb_epilogue_apply(tile->step + s, &block, acc[0], VECTORS, pixels, vectors, whole);
    UNROLL for (int p = 0; p < pixels; p++) {
        if (p >= tile->pixels)
            return;
        float *to = tile->y[p] + (channel + tile->y_offset);
        UNROLL for (int v = 0; v < vectors; v++) {
            if (whole)
                vf_store(to + v * SB_VF_LANES, acc[p][v]);
            else
                vf_store_first(to, acc[p][v], lanes);
        }
    }
}

SB_VF_INLINE const float *weights_of(const sb_depthwise_tile *tile, int64_t channel, const bool whole) {
    return tile->w + channel / SB_VF_LANES * tile->taps * SB_VF_LANES + (whole ? 0 : channel % SB_VF_LANES);
}

/* `vectors` vectors of channels from `channel`; with `whole` false one vector, of `lanes` channels. */
SB_VF_INLINE void compute(const sb_depthwise_tile *tile, int64_t channel, int64_t lanes, const int vectors,
                          const bool whole) {
    vf acc[PIXELS][VECTORS];
    UNROLL for (int p = 0; p < PIXELS; p++) UNROLL for (int v = 0; v < vectors; v++) acc[p][v] = vf_zero();

    const int64_t block_step = tile->taps * SB_VF_LANES;
    const float *w = weights_of(tile, channel, whole);
    const float *const *x = tile->x;
    for (int64_t tap = 0; tap < tile->taps; tap++, x += tile->x_step, w += SB_VF_LANES) {
        vf weight[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) weight[v] = vf_load(w + v * block_step);
        UNROLL for (int p = 0; p < PIXELS; p++) {
            const float *from = x[p] + channel;
            UNROLL for (int v = 0; v < vectors; v++) acc[p][v] =
                vf_fma(sb_epilogue_load(from + v * SB_VF_LANES, lanes, whole), weight[v], acc[p][v]);
        }
    }
    store_pixels(tile, acc, channel, lanes, PIXELS, vectors, whole);
}

/* Calls BODY(channel, lanes, vectors, whole) over the tile's channels: `most` vectors at a time,
 * then one, then a part of one. */
#define OVER_CHANNELS(tile, most, BODY)                                                                                \
    for (int64_t channel = (tile)->channel0; channel < (tile)->channel1;) {                                            \
        const int64_t left = (tile)->channel1 - channel;                                                               \
        const int64_t within = SB_VF_LANES - channel % SB_VF_LANES;                                                    \
        if (within == SB_VF_LANES && left >= (most)*SB_VF_LANES) {                                                     \
            BODY(channel, SB_VF_LANES, most, true);                                                                    \
            channel += (most)*SB_VF_LANES;                                                                             \
        } else if (within == SB_VF_LANES && left >= SB_VF_LANES) {                                                     \
            BODY(channel, SB_VF_LANES, 1, true);                                                                       \
            channel += SB_VF_LANES;                                                                                    \
        } else {                                                                                                       \
            const int64_t lanes = left < within ? left : within;                                                       \
            BODY(channel, lanes, 1, false);                                                                            \
            channel += lanes;                                                                                          \
        }                                                                                                              \
    }

void SB_ISA_NAME(sb_depthwise_f32_tile)(const sb_depthwise_tile *tile) {
#define BODY(channel, lanes, vectors, whole) compute(tile, channel, lanes, vectors, whole)
    OVER_CHANNELS(tile, VECTORS, BODY)
#undef BODY
}
