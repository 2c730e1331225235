/* MaxPool and AveragePool of f16 and bf16 with channels last: a thread for eight channels of an output position, by the
 * formulas of ops/pool_max.c and ops/pool_average.c. Neighbouring threads have neighbouring channels, and what several windows
 * see comes from the first-level cache. */
#include "cuda/common/half_arithmetic.cuh"
#include "cuda/windows/pool_parameters.h"

/* Where a window begins in the input, and the address of its first tap, which may lie outside. */
typedef struct window {
    int start[SB_CUDA_POOL_AXES];
    const char *x;
} window;

SB_CUDA_FUNCTION window find_window(const sb_cuda_pool16 *p, uint32_t group) {
    window found;
    uint32_t rest = sb_cuda_divide(group, &p->channels);
    found.x = p->x + (group - rest * p->channels.divisor) * 16;
    SB_CUDA_UNROLL
    for (int d = SB_CUDA_POOL_AXES - 1; d >= 0; d--) {
        const sb_cuda_pool16_axis *axis = &p->axis[d];
        const uint32_t quotient = sb_cuda_divide(rest, &axis->out);
        found.start[d] = (int)(rest - quotient * axis->out.divisor) * axis->stride - axis->begin;
        found.x += found.start[d] * axis->step;
        rest = quotient;
    }
    found.x += rest * p->batch_step;
    return found;
}

SB_CUDA_FUNCTION bool is_inside(const sb_cuda_pool16 *p, const window *w, int d, int tap) {
    return (unsigned)(w->start[d] + tap * p->axis[d].dilation) < (unsigned)p->axis[d].in;
}

/* Taps of the innermost axis that are asked for before one is waited for. */
#define AHEAD 4

/* Asks for taps k to k + AHEAD - 1 of a row; `absent` eight times for those that are not inside. */
SB_CUDA_FUNCTION void fetch_row(const sb_cuda_pool16 *p, const window *w, const char *row, int k, uint16_t absent,
                                sb_cuda_eight *values) {
    const sb_cuda_pool16_axis *axis = &p->axis[2];
    SB_CUDA_UNROLL
    for (int i = 0; i < AHEAD; i++) {
        const bool inside = (k + i < axis->kernel) & is_inside(p, w, 2, k + i);
        values[i] = inside ? sb_cuda_load_eight(row + (int64_t)((k + i) * axis->dilation) * axis->step)
                           : sb_cuda_eight_times(absent);
    }
}

/* The taps inside of the input in row-major order, AHEAD at a time, with what changes nothing between them. */
#define EACH_TAPS(p, w, absent, values)                                                                                \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int i = 0; i < (p)->axis[0].kernel; i++)                                                                      \
        SB_CUDA_KEEP_LOOP                                                                                              \
    for (int j = 0; j < (p)->axis[1].kernel; j++)                                                                      \
        if (is_inside(p, w, 0, i) && is_inside(p, w, 1, j))                                                            \
            for (int k = 0; k < (p)->axis[2].kernel; k += AHEAD)                                                       \
                if (fetch_row(p, w,                                                                                    \
                              (w)->x + (int64_t)(i * (p)->axis[0].dilation) * (p)->axis[0].step +                      \
                                  (int64_t)(j * (p)->axis[1].dilation) * (p)->axis[1].step,                            \
                              k, absent, values),                                                                      \
                    true)

template <int HALF> SB_CUDA_FUNCTION void find_largest(const sb_cuda_pool16 *p) {
    SB_CUDA_EACH(group, p->groups) {
        const window w = find_window(p, (uint32_t)group);
        const uint16_t least = HALF == SB_CUDA_F16 ? 0xfc00 : 0xff80;
        sb_cuda_eight best = sb_cuda_eight_times(least), values[AHEAD];
        EACH_TAPS(p, &w, least, values) {
            SB_CUDA_UNROLL
            for (int at = 0; at < AHEAD * SB_CUDA_EIGHT / 2; at++)
                best.pairs[at % 4] = sb_cuda_larger_pair<HALF>(best.pairs[at % 4], values[at / 4].pairs[at % 4]);
        }
        SB_CUDA_UNROLL
        for (int pair = 0; pair < SB_CUDA_EIGHT / 2; pair++)
            best.pairs[pair] = sb_cuda_canonical_pair<HALF>(best.pairs[pair]);
        sb_cuda_store_eight(p->y + 16 * group, best);
    }
}

/* Taps of axis d that an average counts: those inside, or those before the padding's end. */
SB_CUDA_FUNCTION int count_taps(const sb_cuda_pool16 *p, const window *w, int d) {
    const sb_cuda_pool16_axis *axis = &p->axis[d];
    int count = 0;
    SB_CUDA_KEEP_LOOP
    for (int tap = 0; tap < axis->kernel; tap++)
        count +=
            p->count_include_pad ? w->start[d] + tap * axis->dilation < axis->in + axis->end : is_inside(p, w, d, tap);
    return count;
}

template <int HALF> SB_CUDA_FUNCTION void find_average(const sb_cuda_pool16 *p) {
    SB_CUDA_EACH(group, p->groups) {
        const window w = find_window(p, (uint32_t)group);
        float sums[SB_CUDA_EIGHT];
        SB_CUDA_UNROLL
        for (int j = 0; j < SB_CUDA_EIGHT; j++)
            sums[j] = 0;
        sb_cuda_eight values[AHEAD];
        /* -0 leaves every sum as it is. */
        EACH_TAPS(p, &w, 0x8000, values) {
            SB_CUDA_UNROLL
            for (int at = 0; at < AHEAD; at++) {
                float taps[SB_CUDA_EIGHT];
                sb_cuda_widen_eight<HALF>(values[at], taps);
                SB_CUDA_UNROLL
                for (int channel = 0; channel < SB_CUDA_EIGHT; channel++)
                    sums[channel] = sums[channel] + taps[channel];
            }
        }
        const float taps = (float)((int64_t)count_taps(p, &w, 0) * count_taps(p, &w, 1) * count_taps(p, &w, 2));
        SB_CUDA_UNROLL
        for (int j = 0; j < SB_CUDA_EIGHT; j++)
            sums[j] = sb_div_f32(sums[j], taps);
        sb_cuda_store_eight(p->y + 16 * group, sb_cuda_round_eight<HALF>(sums));
    }
}

#define KERNELS(suffix, half)                                                                                          \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_pool16_max_##suffix, sb_cuda_pool16, p, 256, 4) {                                   \
        find_largest<half>(p);                                                                                         \
    }                                                                                                                  \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_pool16_average_##suffix, sb_cuda_pool16, p, 256, 4) {                               \
        find_average<half>(p);                                                                                         \
    }
KERNELS(f16, SB_CUDA_F16)
KERNELS(bf16, SB_CUDA_BF16)
