/* Convolutions, as the reference and the kernels see them. */
#ifndef SB_OPS_CONVOLUTION_H
#define SB_OPS_CONVOLUTION_H

#include "ops/window.h"

typedef struct sb_conv_params {
    sb_window window;
    int64_t group;
} sb_conv_params;

/* A convolution with all extents known. */
typedef struct sb_conv_extents {
    int axes;
    int64_t batch, groups;
    int64_t group_inputs, group_outputs; /* channels of one group */
    int64_t positions;                   /* output positions: the product of axis[].out */
    int64_t taps; /* kernel positions: the product of axis[].kernel; 0 when the weights are empty */
    sb_window_axis axis[SB_WINDOW_AXES];
} sb_conv_extents;

/** Reads the attributes of Conv, ConvInteger, QLinearConv and ConvTranspose into an sb_conv_params. */
sb_status sb_conv_prepare(sb_node *node, sb_error *error);

/** Infers output 0 of a convolution of `x` with `w`, with `dtype`. */
sb_status sb_conv_infer(sb_infer *infer, const sb_fact *x, const sb_fact *w, sb_dtype dtype);

/** The extent of the kernel along a spatial axis: from the weights or, failing those, the
 * attribute; NULL when neither says. SHAPE when they differ. */
sb_status sb_conv_kernel_extent(sb_infer *infer, const sb_window *window, const sb_fact *w, int axis, sb_dim *extent);

/** Checks that input `index`, if it is there, has the dtype `dtype` and a number per extent
 * `channels` (NULL: not known). */
sb_status sb_conv_infer_bias(const sb_infer *infer, int index, sb_dtype dtype, sb_dim channels);

/** The extents for tensors whose shapes sb_conv_infer accepted; `y_dims` are the output's. */
void sb_conv_extents_of(const sb_conv_params *params, const sb_tensor *x, const sb_tensor *w, const int64_t *y_dims,
                        sb_conv_extents *shape);

/** The input positions, of one image, row-major, that output position `position` reads at each of shape->taps; -1 in the padding. */
void sb_conv_find_taps(const sb_conv_extents *shape, int64_t position, int64_t *taps);

/** Called for each batch index, group and output position with the group's sums, which it may
 * change: `channel` is the first of shape->group_outputs output channels. */
typedef void sb_conv_store(void *context, int64_t batch, int64_t channel, int64_t position, void *sums);

/* An operand: the address of its element 0 and its strides in elements. */
typedef struct sb_conv_operand {
    const void *data;
    const int64_t *strides;
} sb_conv_operand;

/** The definition of a convolution: per output element one chain (ops/contraction.h) from 0 over
 * kernel positions in row-major order, then input channels of the group; taps in the padding hold 0
 * and take part. `dtype` is that of both operands. */
sb_status sb_conv_reference(const sb_conv_extents *shape, sb_dtype dtype, sb_conv_operand x, sb_conv_operand w,
                            sb_conv_store *store, void *context, sb_error *error);

/** Writes the weights of each group as a gapless matrix [taps * group_inputs][group_outputs], in
 * chain order; elements are of `size` bytes. */
void sb_conv_pack_reference(const sb_conv_extents *shape, size_t size, sb_conv_operand w, char *packed);

/** Adds a bias of `dtype` (NULL: none) to `count` sums of its accumulator dtype: one rounding. */
void sb_conv_add_bias(sb_dtype dtype, int64_t count, void *sums, const void *bias, int64_t bias_stride);

#endif
