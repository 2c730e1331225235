/* Kernels that learn types of elements when they run, for the host and for the device. */
#ifndef IV_CUDA_KERNELS_CONVERT_PARAMETERS_H
#define IV_CUDA_KERNELS_CONVERT_PARAMETERS_H

#include "cuda/kernels/parameters.h"
#include "ops/convert_values.h"

/* By the names of convert_values.h. */
#define IV_CUDA_TYPE(name, type, kind, load, unused) IV_CUDA_TYPE_##name,
typedef enum iv_cuda_type { IV_CONVERT_SOURCES(IV_CUDA_TYPE, ) IV_CUDA_TYPES } iv_cuda_type;
#undef IV_CUDA_TYPE

/* An operand's elements. */
typedef struct iv_cuda_typed {
    int32_t type; /* iv_cuda_type */
    int32_t size; /* in bytes */
} iv_cuda_typed;

/* Cast: operand 0 from operand 1. */
typedef struct iv_cuda_cast {
    iv_cuda_box box;
    iv_cuda_typed from;
} iv_cuda_cast;

/* Clip: operand 0 from operand 1. Bounds that are not given are numbers of the computing type. */
typedef struct iv_cuda_clip {
    iv_cuda_box box;
    const char *least, *most; /* an element each, or NULL */
    char otherwise_least[8], otherwise_most[8];
} iv_cuda_clip;

/* Pow: operand 0 from operand 1, the base, and operand 2, the exponent. */
typedef struct iv_cuda_power {
    iv_cuda_box box;
    iv_cuda_typed base, exponent; /* the result has the base's type */
    uint32_t *fault;
} iv_cuda_power;

/* Quantizing and dequantizing: operand 0 from operands 1 (x), 2 (scale) and 3 (zero point, unless
 * there is none). */
typedef struct iv_cuda_quantization {
    iv_cuda_box box;
    iv_cuda_typed output, input, scale, zero;
    int32_t has_zero, unused;
    int64_t least, most; /* of the quantized type */
} iv_cuda_quantization;

/* The range of f32 elements: operand 0 of the box, which is only read. Each block leaves its least
 * and greatest element, 0 among them, at `partial`; a second kernel makes of them scale and zero
 * point. */
typedef struct iv_cuda_range_search {
    iv_cuda_box box;
    float *partial; /* two for each of `blocks` blocks */
    int32_t blocks, unused;
    float *scale;
    uint8_t *zero;
} iv_cuda_range_search;

/* Dropout in training: operand 0 from operand 1, and operand 2 the mask, where they are wanted. The
 * box is in row-major order. */
typedef struct iv_cuda_drop {
    iv_cuda_box box;
    double ratio;
    uint64_t seed;
    uint64_t kept; /* what the mask has where elements stay */
    iv_cuda_typed type, mask;
    int32_t wants_output, wants_mask;
} iv_cuda_drop;

#endif
