/* What pooling kernels take, for the host and for devices. */
#ifndef SB_CUDA_WINDOWS_POOL_PARAMETERS_H
#define SB_CUDA_WINDOWS_POOL_PARAMETERS_H

#include "cuda/common/divisor.h"
#include "cuda/common/parameters.h"

#define SB_CUDA_POOL_AXES 3

/* One spatial axis; fewer than 3 are filled up in front with axes of one element and one tap. */
typedef struct sb_cuda_pool_axis {
    int64_t in, out, kernel, stride, dilation, begin, end;
    int64_t step; /* of the input, in bytes */
    int64_t flat; /* of MaxPool's indices, in elements */
} sb_cuda_pool_axis;

typedef struct sb_cuda_pool {
    int64_t elements, channels, plane; /* of the output; of the batch; spatial ones of the input */
    int64_t batch_step, channel_step;  /* of the input, in bytes */
    sb_cuda_pool_axis axis[SB_CUDA_POOL_AXES];
    float p;                   /* LpPool */
    int32_t count_include_pad; /* AveragePool */
    int32_t channels_last;     /* the output's elements lie so; else row-major */
    int32_t unused;
    const char *x;
    char *y;
    int64_t *indices; /* MaxPool; may be NULL */
} sb_cuda_pool;

/* The same of f16 and bf16 with channels last, eight of them at once: all numbers are below 2^31. */
typedef struct sb_cuda_pool16_axis {
    int32_t in, stride, dilation, begin, end, kernel;
    sb_cuda_divisor out;
    int32_t unused;
    int64_t step; /* of the input, in bytes */
} sb_cuda_pool16_axis;

typedef struct sb_cuda_pool16 {
    int64_t groups;           /* eights of the output */
    sb_cuda_divisor channels; /* eights of a position */
    int32_t count_include_pad;
    int64_t batch_step; /* of the input, in bytes */
    sb_cuda_pool16_axis axis[SB_CUDA_POOL_AXES];
    const char *x;
    char *y;
} sb_cuda_pool16;

/* MaxUnpool: each place of the output learns the number of the element that it gets, plus 1. */
typedef struct sb_cuda_unpool {
    int64_t elements, places;
    int32_t rank;
    int64_t limit;                                      /* of indices, which count in the extents `least` */
    int64_t least[SB_CUDA_RANK], strides[SB_CUDA_RANK]; /* strides of the output, in elements */
    const int64_t *indices;
    uint64_t *winners; /* [places], 0 at first */
    uint32_t *fault;
    const char *x;
    char *y;
} sb_cuda_unpool;

#endif
