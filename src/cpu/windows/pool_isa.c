/* Pooling over rows of channels, compiled once per instruction set. Channels never mix, so lanes
 * are channels and each follows the definition's order. */
#include "base/isa.h"
#include "cpu/simd.h"
#include "cpu/windows/pool_rows.h"

/* Vectors of channels whose maxima are taken at once. */
#define MAX_VECTORS 4

/* Channels [c, c + vectors * SB_VF_LANES) of all windows; `vectors` is a constant, so that the maxima stay in registers.
 * NaN is looked for in pairs of elements and put in at the end: a maximum that lets it win costs three instructions. */
SB_VF_INLINE void max_of(const int vectors, const sb_pool_run *run, int64_t c, float *y) {
    const int64_t count = run->count, *offsets = run->offsets;
    for (int64_t p = 0; p < run->windows; p++) {
        const float *x = run->x + p * run->step + c;
        vf best[MAX_VECTORS];
        vf_lanes nans[MAX_VECTORS];
        for (int v = 0; v < vectors; v++) {
            best[v] = vf_load(x + offsets[0] + v * SB_VF_LANES);
            nans[v] = vf_nans_of(best[v], best[v]);
        }
        int64_t i = 1;
        for (; i + 2 <= count; i += 2) {
            for (int v = 0; v < vectors; v++) {
                const vf one = vf_load(x + offsets[i] + v * SB_VF_LANES);
                const vf other = vf_load(x + offsets[i + 1] + v * SB_VF_LANES);
                nans[v] = vf_lanes_or(nans[v], vf_nans_of(one, other));
                best[v] = vf_larger(best[v], vf_larger(one, other));
            }
        }
        for (int v = 0; v < vectors && i < count; v++) {
            const vf one = vf_load(x + offsets[i] + v * SB_VF_LANES);
            nans[v] = vf_lanes_or(nans[v], vf_nans_of(one, one));
            best[v] = vf_larger(best[v], one);
        }
        for (int v = 0; v < vectors; v++)
            vf_store(y + p * run->channels + c + v * SB_VF_LANES, vf_with_nans(best[v], nans[v]));
    }
}

/* Fewer channels than a vector has lanes. */
static void max_of_few(const sb_pool_run *run, int64_t c, float *y) {
    const int64_t lanes = run->channels - c;
    for (int64_t p = 0; p < run->windows; p++) {
        const float *x = run->x + p * run->step + c;
        vf best = vf_load_first(x + run->offsets[0], lanes);
        vf_lanes nans = vf_nans_of(best, best);
        for (int64_t i = 1; i < run->count; i++) {
            const vf one = vf_load_first(x + run->offsets[i], lanes);
            nans = vf_lanes_or(nans, vf_nans_of(one, one));
            best = vf_larger(best, one);
        }
        vf_store_first(y + p * run->channels + c, vf_with_nans(best, nans), lanes);
    }
}

static void max(const sb_pool_run *run, float *y) {
    const int64_t channels = run->channels;
    int64_t c = 0;
    if (run->count == 0) {
        for (int64_t i = 0; i < run->windows * channels; i++)
            y[i] = -sb_infinity_f32();
        return;
    }
    for (; c + MAX_VECTORS * SB_VF_LANES <= channels; c += MAX_VECTORS * SB_VF_LANES)
        max_of(MAX_VECTORS, run, c, y);
    for (; c + 2 * SB_VF_LANES <= channels; c += 2 * SB_VF_LANES)
        max_of(2, run, c, y);
    for (; c + SB_VF_LANES <= channels; c += SB_VF_LANES)
        max_of(1, run, c, y);
    if (c < channels)
        max_of_few(run, c, y);
}

static void average_window(const sb_pool_run *run, const float *x, vf divisor, float *y) {
    int64_t c = 0;
    for (; c + SB_VF_LANES <= run->channels; c += SB_VF_LANES) {
        vf sum = vf_zero();
        for (int64_t i = 0; i < run->count; i++)
            sum = vf_add(sum, vf_load(x + run->offsets[i] + c));
        vf_store(y + c, vf_div(sum, divisor));
    }
    if (c < run->channels) {
        vf sum = vf_zero();
        for (int64_t i = 0; i < run->count; i++)
            sum = vf_add(sum, vf_load_first(x + run->offsets[i] + c, run->channels - c));
        vf_store_first(y + c, vf_div(sum, divisor), run->channels - c);
    }
}

static void average(const sb_pool_run *run, float divisor, float *y) {
    for (int64_t p = 0; p < run->windows; p++)
        average_window(run, run->x + p * run->step, vf_set(divisor), y + p * run->channels);
}

extern const sb_pool_kernels SB_ISA_NAME(sb_pool_kernels);
const sb_pool_kernels SB_ISA_NAME(sb_pool_kernels) = {max, average};
