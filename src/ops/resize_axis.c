#include "base/allocation.h"
#include "ops/resize.h"

iv_status iv_resize_plan(iv_resize_axis *axis, const iv_resize_rule *rule, iv_error *error) {
    bool nearest = rule->mode == IV_RESIZE_NEAREST;
    axis->taps = iv_resize_taps(axis, rule);
    size_t out = (size_t)axis->out;
    axis->first = iv_allocate_array(out, sizeof *axis->first);
    axis->weights =
        nearest ? NULL : iv_allocate_array(out, (size_t)axis->taps * sizeof *axis->weights);
    axis->outside = iv_allocate_array(out, sizeof *axis->outside);
    if (axis->first == NULL || axis->outside == NULL || (axis->weights == NULL && !nearest))
        return iv_fail_memory(error, out * ((size_t)axis->taps + 2) * sizeof *axis->weights);
    for (int64_t o = 0; o < axis->out; o++)
        iv_resize_position(axis, rule, o);
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
