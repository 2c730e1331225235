/* The structs that the kernels of signal.cu take. Strides are in elements. */
#ifndef IV_CUDA_KERNELS_SIGNAL_PARAMETERS_H
#define IV_CUDA_KERNELS_SIGNAL_PARAMETERS_H

#include <invar/dtype.h>

#include "cuda/kernels/parameters.h"

typedef struct iv_cuda_window_fill {
    int64_t size, period;
    double a, b, c;
    iv_dtype dtype;
    void *out;
} iv_cuda_window_fill;

typedef struct iv_cuda_mel {
    int64_t elements, bins, length, rate;
    double low, high;
    iv_dtype dtype;
    void *out;
} iv_cuda_mel;

/* cos and sin of 2π·index/length. */
typedef struct iv_cuda_roots {
    int64_t length;
    double *cosines, *sines;
} iv_cuda_roots;

/* The output lies packed, its last extent holds real and imaginary parts (real parts alone with
 * `mirror`); `numbers` are elements without that extent. Dimensions are those of the output. */
typedef struct iv_cuda_dft {
    int64_t numbers, length, extent;                   /* extent: of the input along the axis */
    int32_t rank, axis;                                /* without the last dimension */
    int64_t dims[IV_CUDA_RANK], strides[IV_CUDA_RANK]; /* strides: of the input */
    int64_t part_stride;                               /* to the imaginary part */
    int32_t is_complex, inverse, mirror;
    iv_dtype dtype;
    const double *cosines, *sines; /* [length] */
    const void *in;
    void *out;
} iv_cuda_dft;

/* [batch, frames, bins]. */
typedef struct iv_cuda_stft {
    int64_t numbers, frames, bins, length, step;
    int64_t batch_stride, sample_stride, part_stride; /* part: to the imaginary part */
    int32_t is_complex;
    iv_dtype dtype;
    const void *window; /* of the signal's dtype; NULL: ones */
    int64_t window_length, window_stride;
    const double *cosines, *sines; /* [length] */
    const void *in;
    void *out;
} iv_cuda_stft;

#endif
