/* The structs that the kernels of resize.cu take. Arrays of axes lie on the device. */
#ifndef SB_CUDA_SAMPLING_RESIZE_PARAMETERS_H
#define SB_CUDA_SAMPLING_RESIZE_PARAMETERS_H

#include <samebit/dtype.h>

#include "cuda/common/parameters.h"
#include "ops/resize_values.h"

/* What the axis looks at, for each position of the output. */
typedef struct sb_cuda_resize_plan {
    sb_resize_axis axis;
    sb_resize_rule rule;
} sb_cuda_resize_plan;

/* Elements of the output are those of the input that the axes look at; an axis without `first` is
 * not resized. The output is packed, the input has steps in bytes. */
typedef struct sb_cuda_resize_nearest {
    int64_t elements;
    int32_t rank;
    int64_t dims[SB_CUDA_RANK], steps[SB_CUDA_RANK];
    const int64_t *first[SB_CUDA_RANK];
    const char *in;
    char *out;
} sb_cuda_resize_nearest;

/* [outer, in, inner] to [outer, out, inner], packed. */
typedef struct sb_cuda_resize_pass {
    int64_t elements, inner;
    sb_resize_axis axis;
    const void *in;
    void *out;
} sb_cuda_resize_pass;

/* Between elements of `dtype` and f32. */
typedef struct sb_cuda_resize_convert {
    int64_t elements;
    sb_dtype dtype;
    const void *in;
    void *out;
} sb_cuda_resize_convert;

/* The extrapolation value where an axis looks outside. */
typedef struct sb_cuda_resize_outside {
    int64_t elements;
    int32_t rank;
    int64_t dims[SB_CUDA_RANK];
    const bool *outside[SB_CUDA_RANK]; /* NULL: nowhere */
    uint64_t value;
    char *out;
} sb_cuda_resize_outside;

#endif
