#include "base/allocation.h"
#include "ops/resize.h"

sb_status sb_resize_plan(sb_resize_axis *axis, const sb_resize_rule *rule, sb_error *error) {
    bool nearest = rule->mode == SB_RESIZE_NEAREST;
    axis->taps = sb_resize_taps(axis, rule);
    size_t out = (size_t)axis->out;
    axis->first = sb_allocate_array(out, sizeof *axis->first);
    axis->weights = nearest ? NULL : sb_allocate_array(out, (size_t)axis->taps * sizeof *axis->weights);
    axis->outside = sb_allocate_array(out, sizeof *axis->outside);
    if (axis->first == NULL || axis->outside == NULL || (axis->weights == NULL && !nearest))
        return sb_fail_memory(error, out * ((size_t)axis->taps + 2) * sizeof *axis->weights);
    for (int64_t o = 0; o < axis->out; o++)
        sb_resize_position(axis, rule, o);
    return SB_OK;
}

void sb_resize_clear(sb_resize_axis *axis) {
    sb_free(axis->first);
    sb_free(axis->weights);
    sb_free(axis->outside);
    axis->first = NULL;
    axis->weights = NULL;
    axis->outside = NULL;
}
