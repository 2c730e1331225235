/* The structs that the kernels of signal.cu take. Strides are in elements. */
#ifndef SB_CUDA_SIGNAL_SIGNAL_PARAMETERS_H
#define SB_CUDA_SIGNAL_SIGNAL_PARAMETERS_H

#include <samebit/dtype.h>

#include "cuda/common/parameters.h"

/* Threads of a block of transforms: each takes its time, so few numbers are for many multiprocessors. */
#define SB_CUDA_TRANSFORM_THREADS 64

typedef struct sb_cuda_window_fill {
    int64_t size, period;
    double a, b, c;
    sb_dtype dtype;
    void *out;
} sb_cuda_window_fill;

typedef struct sb_cuda_mel {
    int64_t elements, bins, length, rate;
    double low, high;
    sb_dtype dtype;
    void *out;
} sb_cuda_mel;

/* cos and sin of 2π·index/length. */
typedef struct sb_cuda_roots {
    int64_t length;
    double *cosines, *sines;
} sb_cuda_roots;

/* The output lies packed, its last extent holds real and imaginary parts (real parts alone with
 * `mirror`); `numbers` are elements without that extent. Dimensions are those of the output. */
typedef struct sb_cuda_dft {
    int64_t numbers, length, extent;                   /* extent: of the input along the axis */
    int32_t rank, axis;                                /* without the last dimension */
    int64_t dims[SB_CUDA_RANK], strides[SB_CUDA_RANK]; /* strides: of the input */
    int64_t part_stride;                               /* to the imaginary part */
    int32_t is_complex, inverse, mirror;
    sb_dtype dtype;
    const double *cosines, *sines; /* [length] */
    const void *in;
    void *out;
} sb_cuda_dft;

/* [batch, frames, bins]. */
typedef struct sb_cuda_stft {
    int64_t numbers, frames, bins, length, step;
    int64_t batch_stride, sample_stride, part_stride; /* part: to the imaginary part */
    int32_t is_complex;
    sb_dtype dtype;
    const void *window; /* of the signal's dtype; NULL: ones */
    int64_t window_length, window_stride;
    const double *cosines, *sines; /* [length] */
    const void *in;
    void *out;
} sb_cuda_stft;

#endif
