/* Along one axis of a resize: where each output position looks, and with which weights. */
#ifndef IV_OPS_RESIZE_H
#define IV_OPS_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum iv_resize_mode { IV_RESIZE_NEAREST, IV_RESIZE_LINEAR, IV_RESIZE_CUBIC } iv_resize_mode;

typedef enum iv_resize_transform {
    IV_RESIZE_HALF_PIXEL,
    IV_RESIZE_HALF_PIXEL_SYMMETRIC,
    IV_RESIZE_PYTORCH_HALF_PIXEL,
    IV_RESIZE_ALIGN_CORNERS,
    IV_RESIZE_ASYMMETRIC,
    IV_RESIZE_TF_HALF_PIXEL_FOR_NN,
    IV_RESIZE_TF_CROP_AND_RESIZE
} iv_resize_transform;

typedef enum iv_resize_nearest {
    IV_RESIZE_ROUND_PREFER_FLOOR,
    IV_RESIZE_ROUND_PREFER_CEIL,
    IV_RESIZE_FLOOR,
    IV_RESIZE_CEIL,
    IV_RESIZE_SIMPLE /* before opset 11: up when shrinking, else down */
} iv_resize_nearest;

typedef struct iv_resize_rule {
    iv_resize_mode mode;
    iv_resize_transform transform;
    iv_resize_nearest nearest;
    float cubic_a;
    bool exclude_outside, antialias;
} iv_resize_rule;

/* Position o looks at `taps` input elements from first[o] on; elements outside are the nearest ones
 * inside. */
typedef struct iv_resize_axis {
    int64_t in, out;
    double scale;                /* output over input */
    double width;                /* scale * in, which need not be `out` */
    double crop_start, crop_end; /* the region of interest, for tf_crop_and_resize */
    int taps;
    int64_t *first;  /* [out] */
    double *weights; /* [out * taps] */
    bool *outside;   /* [out]: the result is the extrapolation value */
} iv_resize_axis;

/** Fills `taps` and the arrays, all from `in` (at least 1), `out`, `scale`, `width` and the crop.
 * In f64: coordinates and weights as written in the ONNX standard, each operation rounded. The
 * caller clears the axis, also on failure. */
iv_status iv_resize_plan(iv_resize_axis *axis, const iv_resize_rule *rule, iv_error *error);
/** Frees the arrays. */
void iv_resize_clear(iv_resize_axis *axis);

#endif
