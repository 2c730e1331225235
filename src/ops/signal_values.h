/* Roots of unity, windows and mel filters. For the host and for devices. */
#ifndef SB_OPS_SIGNAL_VALUES_H
#define SB_OPS_SIGNAL_VALUES_H

#include "numerics/convert.h"
#include "numerics/elementary.h"

/* cos and sin of 2π·index/length, index in [0, length). The quadrant is split off exactly, so that
 * multiples of a quarter turn are. */
static SB_HD void sb_signal_root(int64_t index, int64_t length, double *cosine, double *sine) {
    int64_t quadrant = 4 * index / length, rest = 4 * index % length; /* sizes of tensors are far below 2^61 */
    double angle = (double)rest / (double)length * 1.5707963267948966;
    double c = sb_cos_f64(angle), s = sb_sin_f64(angle);
    *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
    *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
}

/** Element n of a window with that period: a + b·cos(2πn/period) + c·cos(4πn/period), added in that
 * order; 1 for a period of 0. */
static SB_HD double sb_signal_window(int64_t n, int64_t period, double a, double b, double c) {
    double once, twice, ignored;
    if (period <= 0)
        return 1.0;
    sb_signal_root(n % period, period, &once, &ignored);
    sb_signal_root(2 * n % period, period, &twice, &ignored);
    return a + b * once + c * twice;
}

/** Adds one number times a root of unity (c, -s) to a sum: four steps of fma. */
static SB_HD void sb_signal_accumulate(double real, double imaginary, double c, double s, double *sum_real,
                                       double *sum_imaginary) {
    *sum_real = sb_fma_f64(real, c, *sum_real);
    *sum_real = sb_fma_f64(imaginary, s, *sum_real);
    *sum_imaginary = sb_fma_f64(-real, s, *sum_imaginary);
    *sum_imaginary = sb_fma_f64(imaginary, c, *sum_imaginary);
}

/* The spectrogram bin of edge `index`: edges lie at equal steps on the mel scale m = 2595·log10(1 + f/700). */
static SB_HD int64_t sb_signal_mel_edge(double low, double high, int64_t index, int64_t bins, int64_t length,
                                        int64_t rate) {
    const double ln10 = 2.302585092994046;
    double low_mel = 2595.0 * sb_log1p_f64(low / 700.0) / ln10;
    double high_mel = 2595.0 * sb_log1p_f64(high / 700.0) / ln10;
    double mel = (double)index * ((high_mel - low_mel) / (double)(bins + 2)) + low_mel;
    double hertz = 700.0 * sb_expm1_f64(mel / 2595.0 * ln10);
    return sb_i64_from_f64(sb_floor_f64((double)(length + 1) * hertz / (double)rate));
}

/** Row `row` of a mel filter: it rises from its left edge to its centre and falls to its right edge. */
static SB_HD double sb_signal_mel_weight(int64_t row, int64_t left, int64_t centre, int64_t right) {
    if (row >= centre && row < right)
        return (double)(right - row) / (double)(right - centre);
    if (row == centre)
        return 1.0;
    if (row >= left && row < centre)
        return (double)(row - left) / (double)(centre - left);
    return 0.0;
}

#endif
