/* Along one axis of a resize: where each output position looks, and with which weights. */
#ifndef IV_OPS_RESIZE_H
#define IV_OPS_RESIZE_H

#include "graph/op.h"
#include "ops/axes.h"
#include "ops/resize_values.h"

typedef enum iv_resize_policy {
    IV_RESIZE_STRETCH,
    IV_RESIZE_NOT_LARGER,
    IV_RESIZE_NOT_SMALLER
} iv_resize_policy;

typedef struct iv_resize_params {
    iv_resize_rule rule;
    iv_resize_policy policy;
    float extrapolation;
    int roi_input, scales_input, sizes_input; /* -1: none */
    iv_axis_list axes;
    int64_t scale_count; /* of the attribute (Upsample before opset 9) */
    const float *scales;
} iv_resize_params;

/** What Resize or Upsample does with `input`: the inputs besides it, which lie on the host, are
 * read. Fills `axes` [rank], without their arrays, and the extents of the output; `*resized` has a
 * bit for each axis that is asked for. SHAPE or INVALID_MODEL when something does not fit. */
iv_status iv_resize_read(const iv_call *call, const iv_tensor *input, iv_resize_axis *axes,
                         uint32_t *resized, int64_t *dims);

/** Whether resizing the axis changes nothing. */
bool iv_resize_is_identity(const iv_resize_axis *axis, const iv_resize_rule *rule);

/** Fills `taps` and the arrays, all from `in` (at least 1), `out`, `scale`, `width` and the crop.
 * In f64: coordinates and weights as written in the ONNX standard, each operation rounded. The
 * caller clears the axis, also on failure. */
iv_status iv_resize_plan(iv_resize_axis *axis, const iv_resize_rule *rule, iv_error *error);
/** Frees the arrays. */
void iv_resize_clear(iv_resize_axis *axis);

#endif
