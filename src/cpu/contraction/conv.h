/* f32 convolutions of any number of spatial dimensions, with groups, strides, dilations and any padding.
 *
 * Every output element is one chain: acc = +0, then acc = fmaf(x, w, acc) over kernel positions in row-major order and,
 * inside a position, over the group's input channels. A position in the padding holds +0 and takes part in the chain.
 * Results do not depend on the instruction set, on how the work is cut or on strides.
 *
 * The result is seen as a matrix: a row per output pixel (batch, then spatial dimensions, row-major), a column per
 * output channel. Work is cut into rectangles of that matrix and epilogues count rows and columns of it.
 *
 * A convolution is planned once (no memory is taken), its weights are packed once, and it is run any number of times
 * from any thread. Channels-last tensors (channel stride 1) are the fast ones. */
#ifndef SB_CPU_CONTRACTION_CONV_H
#define SB_CPU_CONTRACTION_CONV_H

#include "base/error.h"
#include "cpu/contraction/gemm.h"

/* Spatial dimensions, at most. */
#define SB_CONV_RANK 6

/* Extents and, in elements, strides. Strides may be anything, but y's elements must be distinct. y must overlap nothing
 * that is read, but for a matrix that the epilogue adds: it may be y itself where sb_conv_f32_in_one_pass. */
typedef struct sb_conv_shape {
    int rank; /* spatial dimensions, 1 to SB_CONV_RANK */
    int64_t batch, groups;
    int64_t input_channels, output_channels; /* of all groups */
    int64_t input[SB_CONV_RANK], output[SB_CONV_RANK], kernel[SB_CONV_RANK];
    int64_t stride[SB_CONV_RANK], dilation[SB_CONV_RANK];
    int64_t pad[SB_CONV_RANK]; /* before the input (may be negative); what lies behind it follows from `output` */
    int64_t x_batch_stride, x_channel_stride, x_stride[SB_CONV_RANK];
    int64_t y_batch_stride, y_channel_stride, y_stride[SB_CONV_RANK];
} sb_conv_shape;

typedef enum sb_conv_method {
    SB_CONV_MATRIX,          /* a 1×1 kernel on dense pixels: a matrix product */
    SB_CONV_INDIRECT,        /* tiles read the input through a pointer per pixel and kernel position */
    SB_CONV_STRIP,           /* a strip of input rows is first copied to channels-last order with its padding */
    SB_CONV_LINES,           /* few channels: output rows, from the input as it lies */
    SB_CONV_DEPTHWISE,       /* one input channel per group: lanes are channels; indirect */
    SB_CONV_DEPTHWISE_STRIP, /* the same from a copied strip, channels repeated as the multiplier asks */
} sb_conv_method;

/* Read-only for users, plain data: may be copied. */
typedef struct sb_conv_plan {
    const sb_gemm_kernels *kernels;
    sb_conv_shape shape;
    sb_conv_method method;
    int64_t m, n, k;      /* of the matrix view: pixels, output channels, chain length */
    int64_t taps;         /* kernel positions */
    int64_t runs, length; /* of a chain, as the tiles see it */
    int64_t pixels;       /* output pixels of one sample */
    int64_t row_pixels;   /* output pixels per index of the first spatial dimension */
    bool skips; /* kernel positions that lie in the padding for a whole block are left out where weights allow */
    bool lines; /* depthwise: output rows are so long that they are computed without a table */
    int64_t block_rows;          /* output pixels at a time */
    int64_t table_rows;          /* pixels whose pointers into the input are made at once */
    int64_t strip_outputs;       /* indices of the first output dimension per strip */
    int64_t strip[SB_CONV_RANK]; /* extents of a strip */
    sb_gemm_args matrix;         /* of SB_CONV_MATRIX, but for its pointers */
    size_t packed_bytes;         /* of the packed weights; align to 64 */
    size_t workspace_bytes;      /* of one call; align to 64 */
} sb_conv_plan;

/** Plans a convolution. Fails with INVALID_ARGUMENT on extents or attributes that no convolution
 * has, UNSUPPORTED when sizes overflow. */
sb_status sb_conv_f32_plan(const sb_gemm_kernels *kernels, const sb_conv_shape *shape, sb_conv_plan *plan,
                           sb_error *error);

/** Packs weights w[output channel][channel in the group][kernel…] with strides in elements.
 * `packed` has plan->packed_bytes; behind the weights of a single group stands whether they allow what plan->skips says. Depends only on kernels, groups, channels and kernel extents, so
 * plans that differ in batch or strides share packed weights. */
void sb_conv_f32_pack(const sb_conv_plan *plan, const float *w, int64_t w_output_stride, int64_t w_input_stride,
                      const int64_t *w_kernel_strides, float *packed);

/** Whether each element of y is written once only, after the epilogue has read its own element of
 * what it adds. */
bool sb_conv_f32_in_one_pass(const sb_conv_plan *plan);

/** Computes output pixels [m0, m1) of output channels [n0, n1): any rectangle, the same bits. `epilogue` may be NULL; a
 * bias is SB_EPILOGUE_ADD_COLUMNS. `workspace` is for this call alone, of plan->workspace_bytes bytes. */
void sb_conv_f32_run(const sb_conv_plan *plan, const float *x, const float *packed, float *y,
                     const sb_epilogue *epilogue, int64_t m0, int64_t m1, int64_t n0, int64_t n1, void *workspace);

/** A grid of rectangles for `threads` threads; see sb_gemm_split_rectangle. */
sb_gemm_split sb_conv_f32_split(const sb_conv_plan *plan, int threads);

/** The same by its definition, in plain loops, from unpacked weights. */
void sb_conv_f32_reference(const sb_conv_shape *shape, const float *x, const float *w, int64_t w_output_stride,
                           int64_t w_input_stride, const int64_t *w_kernel_strides, float *y,
                           const sb_epilogue *epilogue, int64_t m0, int64_t m1, int64_t n0, int64_t n1);

#endif
