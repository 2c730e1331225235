/* What the kernels of ConvTranspose share with its definition. */
#ifndef IV_OPS_CONVOLUTION_TRANSPOSE_H
#define IV_OPS_CONVOLUTION_TRANSPOSE_H

#include "ops/window.h"

typedef struct iv_conv_transpose_params {
    iv_window window;
    int64_t group;
    bool has_output_shape;
    int64_t output_padding[IV_WINDOW_AXES], output_shape[IV_WINDOW_AXES];
} iv_conv_transpose_params;

/** The spatial axes, all but `end`: output o of tap t comes from input (o + begin - t * dilation) /
 * stride. */
void iv_conv_transpose_axes(const iv_conv_transpose_params *params, const iv_tensor *x,
                            const iv_tensor *w, const int64_t *y_dims, iv_window_axis *axes);

#endif
