/* Register tile of the depthwise convolution, compiled once per instruction set.
 *
 * Lanes are channels: every element is one chain over kernel positions in row-major order. A tile
 * keeps PIXELS × VECTORS accumulators; a kernel position loads VECTORS vectors of weights and, for
 * each pixel, one pointer and VECTORS vectors of input. One load per multiply-add is inherent
 * (nothing is shared between channels), so the tile only has to keep the weight and pointer loads
 * few and the chains many: 6 × 4 on 32 registers, 6 × 2 on 16. */
#include "cpu/gemm_kernels.h"

#include "base/isa.h"
#include "cpu/gemm_epilogue.h"
#include "cpu/simd.h"

#define PIXELS IV_DEPTHWISE_PIXELS
#if IV_VF_REGISTERS == 32
#define VECTORS 4
#else
#define VECTORS 2
#endif

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* `vectors` vectors of channels from `channel`; with `whole` false one vector, of `lanes` channels.
 */
IV_VF_INLINE void compute(const iv_depthwise_tile *tile, int64_t channel, int64_t lanes,
                          const int vectors, const bool whole) {
    vf acc[PIXELS][VECTORS];
    UNROLL for (int p = 0; p < PIXELS; p++) UNROLL for (int v = 0; v < vectors; v++) acc[p][v] =
        vf_zero();

    const int64_t block_step = tile->taps * IV_VF_LANES;
    const float *w =
        tile->w + channel / IV_VF_LANES * block_step + (whole ? 0 : channel % IV_VF_LANES);
    const float *const *x = tile->x;
    for (int64_t tap = 0; tap < tile->taps; tap++, x += tile->x_tap_step, w += IV_VF_LANES) {
        vf weight[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) weight[v] = vf_load(w + v * block_step);
        UNROLL for (int p = 0; p < PIXELS; p++) {
            const float *from = x[p] + channel;
            UNROLL for (int v = 0; v < vectors; v++) acc[p][v] = vf_fma(
                iv_epilogue_load(from + v * IV_VF_LANES, lanes, whole), weight[v], acc[p][v]);
        }
    }

    for (int s = 0; s < tile->steps; s++)
        UNROLL for (int p = 0; p < PIXELS; p++) {
            /* Pixels past the last are copies of it. */
            int64_t m = tile->m + (p < tile->pixels ? p : tile->pixels - 1);
            UNROLL for (int v = 0; v < vectors; v++) acc[p][v] = iv_epilogue_apply(
                tile->step + s, acc[p][v], m, channel + v * IV_VF_LANES, lanes, whole);
        }
    UNROLL for (int p = 0; p < PIXELS; p++) {
        if (p >= tile->pixels)
            return;
        float *to = tile->y[p] + (channel + tile->y_offset);
        UNROLL for (int v = 0; v < vectors; v++) {
            if (whole)
                vf_store(to + v * IV_VF_LANES, acc[p][v]);
            else
                vf_store_first(to, acc[p][v], lanes);
        }
    }
}

void IV_ISA_NAME(iv_depthwise_f32_tile)(const iv_depthwise_tile *tile) {
    int64_t channel = tile->channel0;
    while (channel < tile->channel1) {
        int64_t left = tile->channel1 - channel;
        int64_t within = IV_VF_LANES - channel % IV_VF_LANES;
        if (within == IV_VF_LANES && left >= VECTORS * IV_VF_LANES) {
            compute(tile, channel, IV_VF_LANES, VECTORS, true);
            channel += VECTORS * IV_VF_LANES;
        } else if (within == IV_VF_LANES && left >= IV_VF_LANES) {
            compute(tile, channel, IV_VF_LANES, 1, true);
            channel += IV_VF_LANES;
        } else {
            int64_t lanes = left < within ? left : within;
            compute(tile, channel, lanes, 1, false);
            channel += lanes;
        }
    }
}
