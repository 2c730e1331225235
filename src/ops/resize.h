/* Along one axis of a resize: where each output position looks, and with which weights. */
#ifndef SB_OPS_RESIZE_H
#define SB_OPS_RESIZE_H

#include "graph/op.h"
#include "ops/axes.h"
#include "ops/resize_values.h"

typedef enum sb_resize_policy { SB_RESIZE_STRETCH, SB_RESIZE_NOT_LARGER, SB_RESIZE_NOT_SMALLER } sb_resize_policy;

typedef struct sb_resize_params {
    sb_resize_rule rule;
    sb_resize_policy policy;
    float extrapolation;
    int roi_input, scales_input, sizes_input; /* -1: none */
    sb_axis_list axes;
    int64_t scale_count; /* of the attribute (Upsample before opset 9) */
    const float *scales;
} sb_resize_params;

/** What Resize or Upsample does with `input`: the inputs besides it, which lie on the host, are
 * read. Fills `axes` [rank], without their arrays, and the extents of the output; `*resized` has a
 * bit for each axis that is asked for. SHAPE or INVALID_MODEL when something does not fit. */
sb_status sb_resize_read(const sb_call *call, const sb_tensor *input, sb_resize_axis *axes, uint32_t *resized,
                         int64_t *dims);

/** Whether resizing the axis changes nothing. */
bool sb_resize_is_identity(const sb_resize_axis *axis, const sb_resize_rule *rule);

/** Fills `taps` and the arrays, all from `in` (at least 1), `out`, `scale`, `width` and the crop.
 * In f64: coordinates and weights as written in the ONNX standard, each operation rounded. The
 * caller clears the axis, also on failure. */
sb_status sb_resize_plan(sb_resize_axis *axis, const sb_resize_rule *rule, sb_error *error);
/** Frees the arrays. */
void sb_resize_clear(sb_resize_axis *axis);

#endif
