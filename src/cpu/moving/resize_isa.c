/* Interpolation along one axis, compiled once per instruction set: lanes are the elements of a line, or where lines are
 * single elements, lines, which the compiler gathers. */
#include "cpu/moving/resize_rows.h"
#include "cpu/simd.h"
#include "numerics/scalar.h"

static const float *tap_line(const sb_resize_axis *axis, int64_t x, int tap, int64_t inner, const float *from) {
    return from + sb_resize_inside(axis->first[x] + tap, axis->in) * inner;
}

/* Linear: nearly always two taps, which then stay in registers. */
static void two_taps(int64_t inner, float low, float high, const float *left, const float *right, float *out) {
    int64_t i = 0;
    for (; i + SB_VF_LANES <= inner; i += SB_VF_LANES)
        vf_store(out + i, vf_fma(vf_set(high), vf_load(right + i), vf_fma(vf_set(low), vf_load(left + i), vf_zero())));
    if (i < inner) {
        vf sum = vf_fma(vf_set(low), vf_load_first(left + i, inner - i), vf_zero());
        vf_store_first(out + i, vf_fma(vf_set(high), vf_load_first(right + i, inner - i), sum), inner - i);
    }
}

void SB_ISA_NAME(sb_resize_lines)(const sb_resize_axis *axis, int64_t inner, const float *from, float *out) {
    for (int64_t x = 0; x < axis->out; x++, out += inner) {
        const double *weights = axis->weights + x * axis->taps;
        if (axis->taps == 2) {
            two_taps(inner, (float)weights[0], (float)weights[1], tap_line(axis, x, 0, inner, from),
                     tap_line(axis, x, 1, inner, from), out);
            continue;
        }
        for (int64_t i = 0; i < inner; i += SB_VF_LANES) {
            int64_t taken = inner - i < SB_VF_LANES ? inner - i : SB_VF_LANES;
            vf sum = vf_zero();
            for (int t = 0; t < axis->taps; t++)
                sum =
                    vf_fma(vf_set((float)weights[t]), vf_load_first(tap_line(axis, x, t, inner, from) + i, taken), sum);
            vf_store_first(out + i, sum, taken);
        }
    }
}

void SB_ISA_NAME(sb_resize_elements)(int taps, int64_t count, int64_t stride, const int32_t *restrict places,
                                     const float *restrict weights, const float *restrict from, float *restrict out) {
    for (int64_t x = 0; x < count && taps == 2; x++)
        out[x] =
            sb_fma_f32(weights[stride + x], from[places[stride + x]], sb_fma_f32(weights[x], from[places[x]], 0.0f));
    for (int t = 0; t < taps && taps != 2; t++, places += stride, weights += stride) {
        for (int64_t x = 0; x < count; x++)
            out[x] = sb_fma_f32(weights[x], from[places[x]], t == 0 ? 0.0f : out[x]);
    }
}
