/* Pooling over rows of channels, compiled once per instruction set. Channels never mix, so lanes
 * are channels and each follows the definition's order. */
#include "base/isa.h"
#include "cpu/simd.h"
#include "cpu/windows/pool_rows.h"
#include "numerics/reduce.h"

/* Channels that one pass of the mean takes: its 256 lanes of so many fit the first-level cache. */
#define MEAN_CHANNELS 16
/* Vectors of channels whose maxima are taken at once. */
#define MAX_VECTORS 4

/* `vectors` is a constant, so that the maxima stay in registers. */
SB_VF_INLINE void max_of(const int vectors, int64_t count, const float *x, const int64_t *offsets, float *y) {
    vf best[MAX_VECTORS];
    for (int v = 0; v < vectors; v++)
        best[v] = count > 0 ? vf_load(x + offsets[0] + v * SB_VF_LANES) : vf_set(-sb_infinity_f32());
    for (int64_t i = 1; i < count; i++) {
        for (int v = 0; v < vectors; v++)
            best[v] = vf_max(best[v], vf_load(x + offsets[i] + v * SB_VF_LANES));
    }
    for (int v = 0; v < vectors; v++)
        vf_store(y + v * SB_VF_LANES, best[v]);
}

static void max(int64_t channels, int64_t count, const float *x, const int64_t *offsets, float *y) {
    int64_t c = 0;
    for (; c + MAX_VECTORS * SB_VF_LANES <= channels; c += MAX_VECTORS * SB_VF_LANES)
        max_of(MAX_VECTORS, count, x + c, offsets, y + c);
    for (; c + 2 * SB_VF_LANES <= channels; c += 2 * SB_VF_LANES)
        max_of(2, count, x + c, offsets, y + c);
    for (; c + SB_VF_LANES <= channels; c += SB_VF_LANES)
        max_of(1, count, x + c, offsets, y + c);
    if (c < channels) {
        vf best = vf_set(-sb_infinity_f32());
        for (int64_t i = 0; i < count; i++)
            best = vf_max(best, vf_load_first(x + offsets[i] + c, channels - c));
        vf_store_first(y + c, best, channels - c);
    }
}

static void average(int64_t channels, int64_t count, const float *x, const int64_t *offsets, float divisor, float *y) {
    int64_t c = 0;
    for (; c + SB_VF_LANES <= channels; c += SB_VF_LANES) {
        vf sum = vf_zero();
        for (int64_t i = 0; i < count; i++)
            sum = vf_add(sum, vf_load(x + offsets[i] + c));
        vf_store(y + c, sum);
    }
    if (c < channels) {
        vf sum = vf_zero();
        for (int64_t i = 0; i < count; i++)
            sum = vf_add(sum, vf_load_first(x + offsets[i] + c, channels - c));
        vf_store_first(y + c, sum, channels - c);
    }
    for (c = 0; c < channels; c++)
        y[c] = y[c] / divisor;
}

/* The sum of one block for `width` channels; `width` is a constant wherever it matters. */
static inline __attribute__((always_inline)) void sum_block(int64_t size, int width, const float *x, int64_t stride,
                                                            float lanes[][MEAN_CHANNELS]) {
    int present = size < SB_REDUCE_LANES ? (int)size : SB_REDUCE_LANES;
    for (int lane = 0; lane < present; lane++) {
        for (int w = 0; w < width; w++)
            lanes[lane][w] = x[lane * stride + w];
    }
    for (int64_t i = SB_REDUCE_LANES; i < size; i++) {
        float *lane = lanes[i % SB_REDUCE_LANES];
        for (int w = 0; w < width; w++)
            lane[w] = lane[w] + x[i * stride + w];
    }
    for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {
        for (int lane = 0; lane + half < present && lane < half; lane++) {
            for (int w = 0; w < width; w++)
                lanes[lane][w] = lanes[lane][w] + lanes[lane + half][w];
        }
        present = present < half ? present : half;
    }
}

static inline __attribute__((always_inline)) void mean_of(int64_t count, int width, const float *x, int64_t stride,
                                                          float *y) {
    _Alignas(64) float lanes[SB_REDUCE_LANES][MEAN_CHANNELS];
    float total[MEAN_CHANNELS] = {0};
    for (int64_t start = 0; start < count; start += SB_REDUCE_BLOCK) {
        int64_t left = count - start;
        sum_block(left < SB_REDUCE_BLOCK ? left : SB_REDUCE_BLOCK, width, x + start * stride, stride, lanes);
        for (int w = 0; w < width; w++)
            total[w] = start == 0 ? lanes[0][w] : total[w] + lanes[0][w];
    }
    for (int w = 0; w < width; w++)
        y[w] = total[w] / (float)count;
}

static void mean(int64_t channels, int64_t count, const float *x, int64_t stride, float *y) {
    int64_t c = 0;
    for (; c + MEAN_CHANNELS <= channels; c += MEAN_CHANNELS)
        mean_of(count, MEAN_CHANNELS, x + c, stride, y + c);
    if (c < channels)
        mean_of(count, (int)(channels - c), x + c, stride, y + c);
}

extern const sb_pool_kernels SB_ISA_NAME(sb_pool_kernels);
const sb_pool_kernels SB_ISA_NAME(sb_pool_kernels) = {max, average, mean};
