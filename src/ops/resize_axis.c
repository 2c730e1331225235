#include "base/allocation.h"
#include "ops/resize.h"

static double source_coordinate(const iv_resize_axis *axis, const iv_resize_rule *rule, double x) {
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
static int64_t clamp_index(double value, int64_t in) {
    if (!(value > 0.0))
        return 0;
    return value >= (double)(in - 1) ? in - 1 : (int64_t)value;
}

static int64_t nearest_index(const iv_resize_axis *axis, iv_resize_nearest how, double x) {
    switch (how) {
    case IV_RESIZE_ROUND_PREFER_FLOOR:
        return clamp_index(__builtin_ceil(x - 0.5), axis->in);
    case IV_RESIZE_ROUND_PREFER_CEIL:
        return clamp_index(__builtin_floor(x + 0.5), axis->in);
    case IV_RESIZE_FLOOR:
        return clamp_index(__builtin_floor(x), axis->in);
    case IV_RESIZE_CEIL:
        return clamp_index(__builtin_ceil(x), axis->in);
    default:
        return clamp_index(axis->scale < 1.0 ? __builtin_ceil(x) : __builtin_floor(x), axis->in);
    }
}

/* Keys' cubic convolution kernel at distance |x|, with the free parameter a. */
static double cubic_kernel(double x, double a) {
    x = x < 0.0 ? -x : x;
    if (x <= 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0)
        return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    return 0.0;
}

static double kernel(const iv_resize_rule *rule, double x) {
    if (rule->mode == IV_RESIZE_CUBIC)
        return cubic_kernel(x, rule->cubic_a);
    x = x < 0.0 ? -x : x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* The half width of the kernel in input elements: wider by 1/scale when an antialiased axis
 * shrinks. */
static int half_width(const iv_resize_axis *axis, const iv_resize_rule *rule) {
    double reach = rule->mode == IV_RESIZE_CUBIC ? 2.0 : 1.0;
    if (rule->antialias && axis->scale < 1.0)
        reach = __builtin_ceil(reach / axis->scale);
    /* Elements further away than the axis is long are all the same one: more taps than that change
     * nothing that is meant. */
    return reach < 1048576.0 ? (int)reach : 1048576;
}

static void fill_weights(const iv_resize_axis *axis, const iv_resize_rule *rule, double x,
                         int64_t *first, double *weights) {
    /* Far outside, only the element at the border counts; this also keeps the index in range. */
    double limit = (double)(axis->in + axis->taps), sum = 0.0;
    x = x > limit ? limit : x > -limit ? x : -limit;
    double base = __builtin_floor(x);
    double ratio = x - base, shrink = rule->antialias && axis->scale < 1.0 ? axis->scale : 1.0;
    *first = (int64_t)base - axis->taps / 2 + 1;
    for (int t = 0; t < axis->taps; t++) {
        int64_t at = *first + t;
        weights[t] = kernel(rule, ((double)(t - axis->taps / 2 + 1) - ratio) * shrink);
        if (rule->exclude_outside && (at < 0 || at >= axis->in))
            weights[t] = 0.0;
        sum += weights[t];
    }
    if (!(rule->exclude_outside || rule->antialias) || sum == 0.0)
        return;
    for (int t = 0; t < axis->taps; t++)
        weights[t] /= sum;
}

iv_status iv_resize_plan(iv_resize_axis *axis, const iv_resize_rule *rule, iv_error *error) {
    bool nearest = rule->mode == IV_RESIZE_NEAREST;
    axis->taps = nearest ? 1 : 2 * half_width(axis, rule);
    size_t out = (size_t)axis->out;
    axis->first = iv_allocate_array(out, sizeof *axis->first);
    axis->weights =
        nearest ? NULL : iv_allocate_array(out, (size_t)axis->taps * sizeof *axis->weights);
    axis->outside = iv_allocate_array(out, sizeof *axis->outside);
    if (axis->first == NULL || axis->outside == NULL || (axis->weights == NULL && !nearest))
        return iv_fail_memory(error, out * ((size_t)axis->taps + 2) * sizeof *axis->weights);
    for (int64_t o = 0; o < axis->out; o++) {
        double x = source_coordinate(axis, rule, (double)o);
        axis->outside[o] = rule->transform == IV_RESIZE_TF_CROP_AND_RESIZE &&
                           !(x >= 0.0 && x <= (double)(axis->in - 1));
        if (nearest)
            axis->first[o] = nearest_index(axis, rule->nearest, x);
        else
            fill_weights(axis, rule, x, &axis->first[o], axis->weights + o * axis->taps);
    }
    return IV_OK;
}

void iv_resize_clear(iv_resize_axis *axis) {
    iv_free(axis->first);
    iv_free(axis->weights);
    iv_free(axis->outside);
    axis->first = NULL;
    axis->weights = NULL;
    axis->outside = NULL;
}
