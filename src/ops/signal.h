/* What the kernels of spectra and windows share with their definitions. */
#ifndef SB_OPS_SIGNAL_H
#define SB_OPS_SIGNAL_H

#include "graph/op.h"

typedef struct sb_signal_params {
    sb_dtype dtype;
    bool periodic, inverse, onesided;
    int64_t axis;
} sb_signal_params;

/* What a DFT does: along `axis`, `length` numbers to dims[axis]. */
typedef struct sb_dft_plan {
    int axis;
    bool to_real; /* the inverse of half a spectrum, of which the real part is kept */
    int64_t length, dims[SB_MAX_RANK];
} sb_dft_plan;

/** Reads inputs 1 and 2 of DFT, which lie on the host. SHAPE when they do not fit input 0. */
sb_status sb_dft_read(const sb_call *call, sb_dft_plan *plan);

/* What an STFT does: [batch, samples, parts] to [batch, frames, bins, 2]. */
typedef struct sb_stft_plan {
    int64_t step, length, frames, bins;
} sb_stft_plan;

/** Reads inputs 1 and 3 of STFT, which lie on the host. SHAPE when they do not fit the others. */
sb_status sb_stft_read(const sb_call *call, sb_stft_plan *plan);

/* The terms of a window's sum (sb_signal_window), and how many elements it has. */
typedef struct sb_window_plan {
    int64_t size, period;
    double a, b, c;
} sb_window_plan;

/** What a window operator asks for with input 0, which lies on the host. */
sb_status sb_window_read_plan(const sb_call *call, sb_window_plan *plan);

/* What MelWeightMatrix asks for: [length / 2 + 1, bins]. */
typedef struct sb_mel_plan {
    int64_t bins, length, rate;
    double low, high;
} sb_mel_plan;

/** Reads inputs 0 to 4 of MelWeightMatrix, which lie on the host. */
sb_status sb_mel_read(const sb_call *call, sb_mel_plan *plan);

#endif
