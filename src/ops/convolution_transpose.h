/* What the kernels of ConvTranspose share with its definition. */
#ifndef SB_OPS_CONVOLUTION_TRANSPOSE_H
#define SB_OPS_CONVOLUTION_TRANSPOSE_H

#include "ops/window.h"

typedef struct sb_conv_transpose_params {
    sb_window window;
    int64_t group;
    bool has_output_shape;
    int64_t output_padding[SB_WINDOW_AXES], output_shape[SB_WINDOW_AXES];
} sb_conv_transpose_params;

/** The spatial axes, all but `end`: output o of tap t comes from input (o + begin - t * dilation) / stride. */
void sb_conv_transpose_axes(const sb_conv_transpose_params *params, const sb_tensor *x, const sb_tensor *w,
                            const int64_t *y_dims, sb_window_axis *axes);

#endif
