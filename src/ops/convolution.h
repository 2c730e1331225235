/* Convolutions, as the reference and the kernels see them. */
#ifndef IV_OPS_CONVOLUTION_H
#define IV_OPS_CONVOLUTION_H

#include "ops/window.h"

typedef struct iv_conv_params {
    iv_window window;
    int64_t group;
} iv_conv_params;

/* A convolution with all extents known. */
typedef struct iv_conv_extents {
    int axes;
    int64_t batch, groups;
    int64_t group_inputs, group_outputs; /* channels of one group */
    int64_t positions;                   /* output positions: the product of axis[].out */
    int64_t taps; /* kernel positions: the product of axis[].kernel; 0 when the weights are empty */
    iv_window_axis axis[IV_WINDOW_AXES];
} iv_conv_extents;

/** Reads the attributes of Conv, ConvInteger, QLinearConv and ConvTranspose into an iv_conv_params.
 */
iv_status iv_conv_prepare(iv_node *node, iv_error *error);

/** Infers output 0 of a convolution of `x` with `w`, with `dtype`. */
iv_status iv_conv_infer(iv_infer *infer, const iv_fact *x, const iv_fact *w, iv_dtype dtype);

/** The extent of the kernel along a spatial axis: from the weights or, failing those, the
 * attribute; NULL when neither says. SHAPE when they differ. */
iv_status iv_conv_kernel_extent(iv_infer *infer, const iv_window *window, const iv_fact *w,
                                int axis, iv_dim *extent);

/** Checks that input `index`, if it is there, has the dtype `dtype` and a number per extent
 * `channels` (NULL: not known). */
iv_status iv_conv_infer_bias(const iv_infer *infer, int index, iv_dtype dtype, iv_dim channels);

/** The extents for tensors whose shapes iv_conv_infer accepted; `y_dims` are the output's. */
void iv_conv_extents_of(const iv_conv_params *params, const iv_tensor *x, const iv_tensor *w,
                        const int64_t *y_dims, iv_conv_extents *shape);

/** Called for each batch index, group and output position with the group's sums, which it may
 * change: `channel` is the first of shape->group_outputs output channels. */
typedef void iv_conv_finish(void *context, int64_t batch, int64_t channel, int64_t position,
                            void *sums);

/* An operand: the address of its element 0 and its strides in elements. */
typedef struct iv_conv_operand {
    const void *data;
    const int64_t *strides;
} iv_conv_operand;

/** The definition of a convolution: per output element one chain (ops/contraction.h) from 0 over
 * kernel positions in row-major order, then input channels of the group; taps in the padding hold 0
 * and take part. `dtype` is that of both operands. */
iv_status iv_conv_reference(const iv_conv_extents *shape, iv_dtype dtype, iv_conv_operand x,
                            iv_conv_operand w, iv_conv_finish *finish, void *context,
                            iv_error *error);

/** Writes the weights of each group as a gapless matrix [taps * group_inputs][group_outputs], in
 * chain order; elements are of `size` bytes. */
void iv_conv_pack_reference(const iv_conv_extents *shape, size_t size, iv_conv_operand w,
                            char *packed);

/** Adds a bias of `dtype` (NULL: none) to `count` sums of its accumulator dtype: one rounding. */
void iv_conv_add_bias(iv_dtype dtype, int64_t count, void *sums, const void *bias,
                      int64_t bias_stride);

#endif
