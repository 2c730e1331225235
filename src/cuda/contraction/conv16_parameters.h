/* What the kernels of convolutions of f16 and bf16 take, for the host and for the device. */
#ifndef SB_CUDA_CONTRACTION_CONV16_PARAMETERS_H
#define SB_CUDA_CONTRACTION_CONV16_PARAMETERS_H

#include <stdint.h>

#include "cuda/common/divisor.h"
#include "cuda/contraction/contraction_parameters.h"

/* Weights in the order of the chain: a line for each output of each group, and in it all channels of the first tap, then
 * of the next. Steps are in elements; what lies between the channels of a tap and the next tap, and behind the last, is
 * zeros. */
typedef struct sb_cuda_weights16 {
    const uint16_t *data;
    int64_t line; /* from output to output: a multiple of 8 */
    int64_t tap;  /* from tap to tap: the channels, or more where the channels are a multiple of 16 */
} sb_cuda_weights16;

/* A convolution as products: rows are the output positions of all samples, columns the outputs of a group. */
typedef struct sb_cuda_conv16 {
    int64_t groups;
    int32_t rows, columns;
    int32_t k, channels; /* of a group */
    int32_t row_tiles, column_tiles;
    int64_t tiles;
    const uint16_t *x, *bias; /* bias may be NULL */
    uint16_t *y;
    int64_t x_sample, x_group, x_channel, x_steps[SB_CUDA_CONV_AXES]; /* in elements */
    int64_t y_sample, y_channel, y_position, bias_step;
    sb_cuda_weights16 w;
    int32_t in[SB_CUDA_CONV_AXES], stride[SB_CUDA_CONV_AXES], dilation[SB_CUDA_CONV_AXES], begin[SB_CUDA_CONV_AXES];
    sb_cuda_divisor positions, out[SB_CUDA_CONV_AXES], kernel[SB_CUDA_CONV_AXES];
    sb_cuda_divisor chain; /* the channels again; 1 where there are none */
    int32_t eights;        /* eight channels of x from a multiple of 8 on may be read at once */
    int32_t unused;
} sb_cuda_conv16;

/* Weights w[output][channel][tap...] become lines. */
typedef struct sb_cuda_conv16_packing {
    int64_t elements, channels, taps;
    int64_t line, tap;
    const uint16_t *w;
    uint16_t *packed;
    int64_t w_output, w_channel, w_steps[SB_CUDA_CONV_AXES];
    int64_t kernel[SB_CUDA_CONV_AXES];
} sb_cuda_conv16_packing;

/* Elements [sample][channel][position…] of any strides become [sample][position…][channel], packed, in squares of 64
 * positions by 64 channels. */
typedef struct sb_cuda_conv16_turning {
    int64_t tiles;
    int32_t channels, positions; /* the channels are a multiple of 8 */
    int32_t channel_tiles, position_tiles;
    const uint16_t *x;
    uint16_t *to;
    int64_t x_sample, x_channel, x_steps[SB_CUDA_CONV_AXES];
    sb_cuda_divisor in[SB_CUDA_CONV_AXES];
    int32_t eights; /* eight positions from a multiple of 8 on lie side by side and aligned */
    int32_t unused;
} sb_cuda_conv16_turning;

#endif
