/* Where the positions of a resized axis look, and with which weights. For the host and for devices. */
#ifndef SB_OPS_RESIZE_VALUES_H
#define SB_OPS_RESIZE_VALUES_H

#include <stdbool.h>

#include "numerics/scalar.h"

typedef enum sb_resize_mode { SB_RESIZE_NEAREST, SB_RESIZE_LINEAR, SB_RESIZE_CUBIC } sb_resize_mode;

typedef enum sb_resize_transform {
    SB_RESIZE_HALF_PIXEL,
    SB_RESIZE_HALF_PIXEL_SYMMETRIC,
    SB_RESIZE_PYTORCH_HALF_PIXEL,
    SB_RESIZE_ALIGN_CORNERS,
    SB_RESIZE_ASYMMETRIC,
    SB_RESIZE_TF_HALF_PIXEL_FOR_NN,
    SB_RESIZE_TF_CROP_AND_RESIZE
} sb_resize_transform;

typedef enum sb_resize_nearest {
    SB_RESIZE_ROUND_PREFER_FLOOR,
    SB_RESIZE_ROUND_PREFER_CEIL,
    SB_RESIZE_FLOOR,
    SB_RESIZE_CEIL,
    SB_RESIZE_SIMPLE /* before opset 11: up when shrinking, else down */
} sb_resize_nearest;

typedef struct sb_resize_rule {
    sb_resize_mode mode;
    sb_resize_transform transform;
    sb_resize_nearest nearest;
    float cubic_a;
    bool exclude_outside, antialias;
} sb_resize_rule;

/* Position o looks at `taps` input elements from first[o] on; elements outside are the nearest ones inside. */
typedef struct sb_resize_axis {
    int64_t in, out;
    double scale;                /* output over input */
    double width;                /* scale * in, which need not be `out` */
    double crop_start, crop_end; /* the region of interest, for tf_crop_and_resize */
    int taps;
    int64_t *first;  /* [out] */
    double *weights; /* [out * taps] */
    bool *outside;   /* [out]: the result is the extrapolation value */
} sb_resize_axis;

static SB_HD double sb_resize_coordinate(const sb_resize_axis *axis, const sb_resize_rule *rule, double x) {
    double in = (double)axis->in;
    switch (rule->transform) {
    case SB_RESIZE_ALIGN_CORNERS:
        return axis->width == 1.0 ? 0.0 : x * (in - 1.0) / (axis->width - 1.0);
    case SB_RESIZE_ASYMMETRIC:
        return x / axis->scale;
    case SB_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5) / axis->scale;
    case SB_RESIZE_TF_CROP_AND_RESIZE: {
        double span = axis->crop_end - axis->crop_start;
        double inside = axis->width == 1.0 ? span * (in - 1.0) / 2.0 : x * span * (in - 1.0) / (axis->width - 1.0);
        return axis->crop_start * (in - 1.0) + inside;
    }
    case SB_RESIZE_PYTORCH_HALF_PIXEL:
        return axis->width == 1.0 ? -0.5 : (x + 0.5) / axis->scale - 0.5;
    case SB_RESIZE_HALF_PIXEL_SYMMETRIC: {
        double adjustment = (double)axis->out / axis->width;
        return in / 2.0 * (1.0 - adjustment) + (x + 0.5) / axis->scale - 0.5;
    }
    default:
        return (x + 0.5) / axis->scale - 0.5;
    }
}

/* An integral value as an index in [0, in): anything beyond, and NaN, is clamped. */
static SB_HD int64_t sb_resize_clamp_index(double value, int64_t in) {
    if (!(value > 0.0))
        return 0;
    return value >= (double)(in - 1) ? in - 1 : (int64_t)value;
}

static SB_HD int64_t sb_resize_nearest_index(const sb_resize_axis *axis, sb_resize_nearest how, double x) {
    switch (how) {
    case SB_RESIZE_ROUND_PREFER_FLOOR:
        return sb_resize_clamp_index(sb_ceil_f64(x - 0.5), axis->in);
    case SB_RESIZE_ROUND_PREFER_CEIL:
        return sb_resize_clamp_index(sb_floor_f64(x + 0.5), axis->in);
    case SB_RESIZE_FLOOR:
        return sb_resize_clamp_index(sb_floor_f64(x), axis->in);
    case SB_RESIZE_CEIL:
        return sb_resize_clamp_index(sb_ceil_f64(x), axis->in);
    default:
        return sb_resize_clamp_index(axis->scale < 1.0 ? sb_ceil_f64(x) : sb_floor_f64(x), axis->in);
    }
}

/* Keys' cubic convolution kernel at distance |x|, with the free parameter a. */
static SB_HD double sb_resize_cubic_kernel(double x, double a) {
    x = x < 0.0 ? -x : x;
    if (x <= 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0)
        return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    return 0.0;
}

static SB_HD double sb_resize_kernel(const sb_resize_rule *rule, double x) {
    if (rule->mode == SB_RESIZE_CUBIC)
        return sb_resize_cubic_kernel(x, rule->cubic_a);
    x = x < 0.0 ? -x : x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* The half width of the kernel in input elements: wider by 1/scale when an antialiased axis shrinks. */
static SB_HD int sb_resize_half_width(const sb_resize_axis *axis, const sb_resize_rule *rule) {
    double reach = rule->mode == SB_RESIZE_CUBIC ? 2.0 : 1.0;
    if (rule->antialias && axis->scale < 1.0)
        reach = sb_ceil_f64(reach / axis->scale);
    /* Elements further away than the axis is long are all the same one: more taps than that change
     * nothing that is meant. */
    return reach < 1048576.0 ? (int)reach : 1048576;
}

static SB_HD void sb_resize_weights(const sb_resize_axis *axis, const sb_resize_rule *rule, double x, int64_t *first,
                                    double *weights) {
    /* Far outside, only the element at the border counts; this also keeps the index in range. */
    double limit = (double)(axis->in + axis->taps), sum = 0.0;
    x = x > limit ? limit : x > -limit ? x : -limit;
    double base = sb_floor_f64(x);
    double ratio = x - base, shrink = rule->antialias && axis->scale < 1.0 ? axis->scale : 1.0;
    *first = (int64_t)base - axis->taps / 2 + 1;
    for (int t = 0; t < axis->taps; t++) {
        int64_t at = *first + t;
        weights[t] = sb_resize_kernel(rule, ((double)(t - axis->taps / 2 + 1) - ratio) * shrink);
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
static SB_HD int sb_resize_taps(const sb_resize_axis *axis, const sb_resize_rule *rule) {
    return rule->mode == SB_RESIZE_NEAREST ? 1 : 2 * sb_resize_half_width(axis, rule);
}

/** Fills what the axis says about output position `o`; `taps` is set. */
static SB_HD void sb_resize_position(const sb_resize_axis *axis, const sb_resize_rule *rule, int64_t o) {
    double x = sb_resize_coordinate(axis, rule, (double)o);
    axis->outside[o] = rule->transform == SB_RESIZE_TF_CROP_AND_RESIZE && !(x >= 0.0 && x <= (double)(axis->in - 1));
    if (rule->mode == SB_RESIZE_NEAREST)
        axis->first[o] = sb_resize_nearest_index(axis, rule->nearest, x);
    else
        sb_resize_weights(axis, rule, x, &axis->first[o], axis->weights + o * axis->taps);
}

/** The element inside the axis that is nearest to `index`. */
static SB_HD int64_t sb_resize_inside(int64_t index, int64_t extent) {
    return index < 0 ? 0 : index >= extent ? extent - 1 : index;
}

#endif
