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

/** Reads one line along the plan's axis, which begins at element `offset` of the input: cut or filled with zeros to the
 * plan's length; half a spectrum is completed by its mirror image. Number m goes to real[m * step] and
 * imaginary[m * step]; `imaginary` may be NULL for an input of one part that is not to be mirrored. */
void sb_dft_read_line(const sb_tensor *input, const sb_dft_plan *plan, int64_t offset, int64_t step, double *real,
                      double *imaginary);

/* What an STFT does: [batch, samples, parts], or [batch, samples] of one part, to [batch, frames, bins, 2]. */
typedef struct sb_stft_plan {
    int64_t step, length, frames, bins;
    bool complex;
    int64_t part_stride; /* from a real part to its imaginary one */
} sb_stft_plan;

/** Reads inputs 1 and 3 of STFT, which lie on the host. SHAPE when they do not fit the others. */
sb_status sb_stft_read(const sb_call *call, sb_stft_plan *plan);

/** Reads the frame that begins at sample `start` of the signal of `batch`, times the window, which may be NULL: number m
 * to real[m * step] and imaginary[m * step]. `imaginary` may be NULL for a signal of one part. */
void sb_stft_read_frame(const sb_tensor *signal, const sb_tensor *window, const sb_stft_plan *plan, int64_t batch,
                        int64_t start, int64_t step, double *real, double *imaginary);

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
