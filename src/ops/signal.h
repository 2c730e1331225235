/* What the kernels of spectra and windows share with their definitions. */
#ifndef IV_OPS_SIGNAL_H
#define IV_OPS_SIGNAL_H

#include "graph/op.h"

typedef struct iv_signal_params {
    iv_dtype dtype;
    bool periodic, inverse, onesided;
    int64_t axis;
} iv_signal_params;

/* What a DFT does: along `axis`, `length` numbers to dims[axis]. */
typedef struct iv_dft_plan {
    int axis;
    bool to_real; /* the inverse of half a spectrum, of which the real part is kept */
    int64_t length, dims[IV_MAX_RANK];
} iv_dft_plan;

/** Reads inputs 1 and 2 of DFT, which lie on the host. SHAPE when they do not fit input 0. */
iv_status iv_dft_read(const iv_call *call, iv_dft_plan *plan);

/* What an STFT does: [batch, samples, parts] to [batch, frames, bins, 2]. */
typedef struct iv_stft_plan {
    int64_t step, length, frames, bins;
} iv_stft_plan;

/** Reads inputs 1 and 3 of STFT, which lie on the host. SHAPE when they do not fit the others. */
iv_status iv_stft_read(const iv_call *call, iv_stft_plan *plan);

/* The terms of a window's sum (iv_signal_window), and how many elements it has. */
typedef struct iv_window_plan {
    int64_t size, period;
    double a, b, c;
} iv_window_plan;

/** What a window operator asks for with input 0, which lies on the host. */
iv_status iv_window_read_plan(const iv_call *call, iv_window_plan *plan);

/* What MelWeightMatrix asks for: [length / 2 + 1, bins]. */
typedef struct iv_mel_plan {
    int64_t bins, length, rate;
    double low, high;
} iv_mel_plan;

/** Reads inputs 0 to 4 of MelWeightMatrix, which lie on the host. */
iv_status iv_mel_read(const iv_call *call, iv_mel_plan *plan);

#endif
