/* Where the positions of a resized axis look, and with which weights. For the host and for devices.
 */
#ifndef IV_OPS_RESIZE_VALUES_H
#define IV_OPS_RESIZE_VALUES_H

#include <stdbool.h>

#include "numerics/scalar.h"

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

static IV_HD double iv_resize_coordinate(const iv_resize_axis *axis, const iv_resize_rule *rule,
                                         double x) {
    double in = (double)axis->in;
    switch (rule->transform) {
    case IV_RESIZE_ALIGN_CORNERS:
        return axis->width == 1.0 ? 0.0 : x * (in - 1.0) / (axis->width - 1.0);
    case IV_RESIZE_ASYMMETRIC:
        return x / axis->scale;
    case IV_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / axis->scale;
    case IV_RESIZE_TF_CROP_AND_RESIZE: {
        double span = axis->crop_end - axis->crop_start;
        double inside = axis->width == 1.0 ? span * (in - 1.0) / 2.0
                                           : x * span * (in - 1.0) / (axis->width - 1.0);
        return axis->crop_start * (in - 1.0) + inside;
    }
    case IV_RESIZE_PYTORCH_HALF_PIXEL:
        return axis->width == 1.0 ? -0.5 : (x + 0.5) / axis->scale - 0.5;
    case IV_RESIZE_HALF_PIXEL_SYMMETRIC: {
        double adjustment = (double)axis->out / axis->width;
        return in / 2.0 * (1.0 - adjustment) + (x + 0.5) / axis->scale - 0.5;
    }
    default:
        return (x + 0.5) / axis->scale - 0.5;
    }
}

/* An integral value as an index in [0, in): anything beyond, and NaN, is clamped. */
static IV_HD int64_t iv_resize_clamp_index(double value, int64_t in) {
    if (!(value > 0.0))
        return 0;
    return value >= (double)(in - 1) ? in - 1 : (int64_t)value;
}

static IV_HD int64_t iv_resize_nearest_index(const iv_resize_axis *axis, iv_resize_nearest how,
                                             double x) {
    switch (how) {
    case IV_RESIZE_ROUND_PREFER_FLOOR:
        return iv_resize_clamp_index(iv_ceil_f64(x - 0.5), axis->in);
    case IV_RESIZE_ROUND_PREFER_CEIL:
        return iv_resize_clamp_index(iv_floor_f64(x + 0.5), axis->in);
    case IV_RESIZE_FLOOR:
        return iv_resize_clamp_index(iv_floor_f64(x), axis->in);
    case IV_RESIZE_CEIL:
        return iv_resize_clamp_index(iv_ceil_f64(x), axis->in);
    default:
        return iv_resize_clamp_index(axis->scale < 1.0 ? iv_ceil_f64(x) : iv_floor_f64(x),
                                     axis->in);
    }
}

/* Keys' cubic convolution kernel at distance |x|, with the free parameter a. */
static IV_HD double iv_resize_cubic_kernel(double x, double a) {
    x = x < 0.0 ? -x : x;
    if (x <= 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0)
        return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    return 0.0;
}

static IV_HD double iv_resize_kernel(const iv_resize_rule *rule, double x) {
    if (rule->mode == IV_RESIZE_CUBIC)
        return iv_resize_cubic_kernel(x, rule->cubic_a);
    x = x < 0.0 ? -x : x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* The half width of the kernel in input elements: wider by 1/scale when an antialiased axis
 * shrinks. */
static IV_HD int iv_resize_half_width(const iv_resize_axis *axis, const iv_resize_rule *rule) {
    double reach = rule->mode == IV_RESIZE_CUBIC ? 2.0 : 1.0;
    if (rule->antialias && axis->scale < 1.0)
        reach = iv_ceil_f64(reach / axis->scale);
    /* Elements further away than the axis is long are all the same one: more taps than that change
     * nothing that is meant. */
    return reach < 1048576.0 ? (int)reach : 1048576;
}

static IV_HD void iv_resize_weights(const iv_resize_axis *axis, const iv_resize_rule *rule,
                                    double x, int64_t *first, double *weights) {
    /* Far outside, only the element at the border counts; this also keeps the index in range. */
    double limit = (double)(axis->in + axis->taps), sum = 0.0;
    x = x > limit ? limit : x > -limit ? x : -limit;
    double base = iv_floor_f64(x);
    double ratio = x - base, shrink = rule->antialias && axis->scale < 1.0 ? axis->scale : 1.0;
    *first = (int64_t)base - axis->taps / 2 + 1;
    for (int t = 0; t < axis->taps; t++) {
        int64_t at = *first + t;
        weights[t] = iv_resize_kernel(rule, ((double)(t - axis->taps / 2 + 1) - ratio) * shrink);
        if (rule->exclude_outside && (at < 0 || at >= axis->in))
            weights[t] = 0.0;
        sum += weights[t];
    }
    if (!(rule->exclude_outside || rule->antialias) || sum == 0.0)
        return;
    for (int t = 0; t < axis->taps; t++)
        weights[t] /= sum;
}

/* The elements that each position looks at. */
static IV_HD int iv_resize_taps(const iv_resize_axis *axis, const iv_resize_rule *rule) {
    return rule->mode == IV_RESIZE_NEAREST ? 1 : 2 * iv_resize_half_width(axis, rule);
}

/** Fills what the axis says about output position `o`; `taps` is set. */
static IV_HD void iv_resize_position(const iv_resize_axis *axis, const iv_resize_rule *rule,
                                     int64_t o) {
    double x = iv_resize_coordinate(axis, rule, (double)o);
    axis->outside[o] = rule->transform == IV_RESIZE_TF_CROP_AND_RESIZE &&
                       !(x >= 0.0 && x <= (double)(axis->in - 1));
    if (rule->mode == IV_RESIZE_NEAREST)
        axis->first[o] = iv_resize_nearest_index(axis, rule->nearest, x);
    else
        iv_resize_weights(axis, rule, x, &axis->first[o], axis->weights + o * axis->taps);
}

/** The element inside the axis that is nearest to `index`. */
static IV_HD int64_t iv_resize_inside(int64_t index, int64_t extent) {
    return index < 0 ? 0 : index >= extent ? extent - 1 : index;
}

#endif
