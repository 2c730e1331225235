/* f32 transposed convolutions of any number of spatial dimensions, with groups, strides, dilations and any padding.
 *
 * Every output element is one chain: acc = +0, then acc = fmaf(x, w, acc) over the kernel positions that reach it from
 * inside the input, in row-major order and, inside a position, over the group's input channels. Nothing is scattered.
 *
 * Along an axis the outputs o with the same remainder of (o + begin) by the stride are reached by the same kernel
 * positions, and neighbours among them from neighbouring inputs: each such phase is a convolution of stride 1 by a part of
 * the kernel, and runs as one, in the register tiles of the products. At the ends of a line some positions reach nothing:
 * those pixels are blocks of their own, of shorter chains. Where kernel and stride of the last axis are equal, and nothing
 * is cut off, the phases may be taken together: an input pixel makes one run of `stride` output pixels.
 *
 * Planned once (no memory is taken), packed once, run any number of times from any thread. y is channels-last. */
#ifndef SB_CPU_CONTRACTION_CONV_TRANSPOSE_H
#define SB_CPU_CONTRACTION_CONV_TRANSPOSE_H

#include "base/error.h"
#include "cpu/contraction/conv.h"

/* Output o of kernel position t comes from input (o + begin - t * dilation) / stride. Strides in elements. */
typedef struct sb_conv_transpose_shape {
    int rank;
    int64_t batch, groups;
    int64_t input_channels, output_channels; /* of all groups */
    int64_t input[SB_CONV_RANK], output[SB_CONV_RANK], kernel[SB_CONV_RANK];
    int64_t stride[SB_CONV_RANK], dilation[SB_CONV_RANK], begin[SB_CONV_RANK];
    int64_t x_batch_stride, x_channel_stride, x_stride[SB_CONV_RANK];
    int64_t y_batch_stride, y_stride[SB_CONV_RANK]; /* of y's pixels; its channels lie behind each other */
    /* Take the phases of the last axis together: allowed where there is one group, the axis' kernel is its stride, its
     * dilation 1, its begin 0, its output input * stride, and its pixels in y lie output_channels apart. */
    bool folds;
} sb_conv_transpose_shape;

/* Read-only for users, plain data. */
typedef struct sb_conv_transpose_plan {
    const sb_gemm_kernels *kernels;
    sb_conv_transpose_shape shape;
    int64_t columns;        /* of a group's product */
    int64_t channels;       /* of a group's input */
    int64_t taps;           /* kernel positions, but for those that are columns */
    int64_t runs;           /* the most of them that reach one output */
    int64_t lines;          /* of output pixels along the last axis */
    int64_t line_pixels;    /* output pixels of a line; where it folds: input pixels */
    int64_t copied_lines;   /* input lines that are copied for one output line, 0 where channels are contiguous */
    size_t packed_bytes;    /* align to 64 */
    size_t workspace_bytes; /* of one call; align to 64 */
} sb_conv_transpose_plan;

/** Plans a transposed convolution whose extents are consistent. UNSUPPORTED when sizes overflow. */
sb_status sb_conv_transpose_f32_plan(const sb_gemm_kernels *kernels, const sb_conv_transpose_shape *shape,
                                     sb_conv_transpose_plan *plan, sb_error *error);

/** Packs weights w[input channel][output channel in the group][kernel…], strides in elements. Depends on kernels, groups,
 * channels, kernel extents, strides, dilations and whether the shape folds. */
void sb_conv_transpose_f32_pack(const sb_conv_transpose_plan *plan, const float *w, int64_t w_input_stride,
                                int64_t w_output_stride, const int64_t *w_kernel_strides, float *packed);

/** Computes pixels [first, end) (as plan->line_pixels counts them) of lines [line, line_end). `bias` is NULL or has a
 * number per output channel; where the shape folds, plan->shape.stride of the last axis copies of that, one behind the other. */
void sb_conv_transpose_f32_run(const sb_conv_transpose_plan *plan, const float *x, const float *packed,
                               const float *bias, float *y, int64_t line, int64_t line_end, int64_t first, int64_t end,
                               void *workspace);

#endif
