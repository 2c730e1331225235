/* The structs that the kernels of windows that slide over spatial axes take: convolutions other
 * than Conv, and Col2Im. Outputs lie packed; strides are in elements. */
#ifndef SB_CUDA_WINDOWS_WINDOW_PARAMETERS_H
#define SB_CUDA_WINDOWS_WINDOW_PARAMETERS_H

#include <samebit/dtype.h>

#include "cuda/common/parameters.h"
#include "ops/rescale_operands.h"

/* As many as a tensor can have behind batch and channels. */
#define SB_CUDA_WINDOW_AXES (SB_CUDA_RANK - 2)

typedef struct sb_cuda_window_axis {
    int64_t in, out, kernel, stride, dilation, begin;
    int64_t x_stride, w_stride; /* of input and weights */
} sb_cuda_window_axis;

/* What all convolutions have: [batch, groups, group_outputs, positions] of the output. */
typedef struct sb_cuda_window {
    int64_t elements, positions, groups, group_outputs, group_inputs;
    int64_t taps; /* the product of the kernel's extents; 0 without input channels */
    int32_t axes;
    sb_cuda_window_axis axis[SB_CUDA_WINDOW_AXES];
    int64_t x_batch, x_channel; /* strides of the input [batch, channels, …] */
    int64_t w_output, w_input;  /* strides of the weights: output and input channels of a group */
    int64_t w_group;            /* from the weights of a group to those of the next */
    const void *x, *w, *bias;   /* bias: NULL for none */
    int64_t bias_stride;
    void *y;
} sb_cuda_window;

/* DeformConv: offsets [batch, 2 * taps * offset groups, positions], mask [batch, taps * offset groups, positions]. */
typedef struct sb_cuda_deform {
    sb_cuda_window window;
    sb_dtype dtype;
    int64_t channels_per_offset;
    int64_t offset_strides[4], mask_strides[4];
    const void *offset, *mask; /* mask: NULL for none */
} sb_cuda_deform;

/* ConvInteger and QLinearConv. Lists of one element have a stride of 0. */
typedef struct sb_cuda_integer_conv {
    sb_cuda_window window;
    sb_dtype x_dtype, w_dtype, y_dtype; /* y: QLinearConv */
    const void *x_zero, *w_zero;        /* NULL: 0 */
    int64_t w_zero_stride, w_scale_stride;
    const float *x_scale, *w_scale, *y_scale;
    const void *y_zero;
} sb_cuda_integer_conv;

/* Col2Im: [channels, pixels] of columns [channels, area, count]. */
typedef struct sb_cuda_fold {
    int64_t elements, pixels, area, count;
    int32_t rank;
    sb_dtype dtype;
    int64_t image[SB_CUDA_WINDOW_AXES], block[SB_CUDA_WINDOW_AXES], places[SB_CUDA_WINDOW_AXES];
    int64_t strides[SB_CUDA_WINDOW_AXES], dilations[SB_CUDA_WINDOW_AXES];
    int64_t pads[SB_CUDA_WINDOW_AXES]; /* at the beginning */
    const void *columns;
    void *out;
} sb_cuda_fold;

/* Products of integer matrices: [batches, m, n]. The strides of the zero points are those of
 * tensors that were broadcast to the operands. */
typedef struct sb_cuda_integer_operand {
    sb_dtype dtype;
    const void *data, *zero;                                      /* zero: NULL for 0 */
    int64_t row_stride, k_stride, zero_row_stride, zero_k_stride; /* row: column, of the right one */
    int64_t batch_strides[SB_CUDA_RANK], zero_batch_strides[SB_CUDA_RANK];
} sb_cuda_integer_operand;

typedef struct sb_cuda_integer_matmul {
    int64_t elements, m, n, k;
    int32_t batch_rank, rank; /* rank: of the output */
    int64_t batch_dims[SB_CUDA_RANK], dims[SB_CUDA_RANK];
    sb_cuda_integer_operand a, b;
    void *y;
    /* QLinearMatMul: broadcast to the output. */
    sb_dtype y_dtype, scale_dtypes[3];
    const void *rescale[SB_RESCALE_OPERANDS];
    int64_t rescale_strides[SB_RESCALE_OPERANDS][SB_CUDA_RANK];
} sb_cuda_integer_matmul;

#endif
