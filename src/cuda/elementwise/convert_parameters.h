/* Kernels that learn types of elements when they run, for the host and for the device. */
#ifndef SB_CUDA_ELEMENTWISE_CONVERT_PARAMETERS_H
#define SB_CUDA_ELEMENTWISE_CONVERT_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/convert_values.h"

/* By the names of convert_values.h. */
#define SB_CUDA_TYPE(name, type, kind, load, unused) SB_CUDA_TYPE_##name,
typedef enum sb_cuda_type {
    SB_CONVERT_SOURCES(SB_CUDA_TYPE, ) SB_CONVERT_SMALL(SB_CUDA_TYPE, ) SB_CUDA_TYPES
} sb_cuda_type;
#undef SB_CUDA_TYPE

/* An operand's elements. */
typedef struct sb_cuda_typed {
    int32_t type; /* sb_cuda_type */
    int32_t size; /* in bytes */
} sb_cuda_typed;

/* Cast: operand 0 from operand 1. What `to` is, and how it is converted to, kernels of small types ask. */
typedef struct sb_cuda_cast {
    sb_cuda_box box;
    sb_cuda_typed from, to;
    int32_t saturate, round;
} sb_cuda_cast;

/* Clip: operand 0 from operand 1. Bounds that are not given are numbers of the computing type. */
typedef struct sb_cuda_clip {
    sb_cuda_box box;
    const char *least, *most; /* an element each, or NULL */
    char otherwise_least[8], otherwise_most[8];
} sb_cuda_clip;

/* Pow: operand 0 from operand 1, the base, and operand 2, the exponent. */
typedef struct sb_cuda_power {
    sb_cuda_box box;
    sb_cuda_typed base, exponent; /* the result has the base's type */
    uint32_t *fault;
} sb_cuda_power;

/* Quantizing and dequantizing: operand 0 from operands 1 (x), 2 (scale) and 3 (zero point, unless
 * there is none). */
typedef struct sb_cuda_quantization {
    sb_cuda_box box;
    sb_cuda_typed output, input, scale, zero;
    int32_t has_zero, saturate;
    int32_t precision;   /* sb_dtype, of the quotient */
    uint32_t mask;       /* what an element of a quantized integer keeps of its bits */
    int64_t least, most; /* of the quantized type, if that is an integer */
} sb_cuda_quantization;

/* The range of f32 elements: operand 0 of the box, which is only read. Each block leaves its least and greatest
 * element, 0 among them, at `partial`; a second kernel makes of them scale and zero point. */
typedef struct sb_cuda_range_search {
    sb_cuda_box box;
    float *partial; /* two for each of `blocks` blocks */
    int32_t blocks, unused;
    float *scale;
    uint8_t *zero;
} sb_cuda_range_search;

/* Dropout in training: operand 0 from operand 1, and operand 2 the mask, where they are wanted. The
 * box is in row-major order. */
typedef struct sb_cuda_drop {
    sb_cuda_box box;
    double ratio;
    uint64_t seed;
    uint64_t kept; /* what the mask has where elements stay */
    sb_cuda_typed type, mask;
    int32_t wants_output, wants_mask;
} sb_cuda_drop;

#endif
