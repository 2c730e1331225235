/* Where the positions of a padded axis look. For the host and for devices. */
#ifndef SB_OPS_PAD_VALUES_H
#define SB_OPS_PAD_VALUES_H

#include "numerics/scalar.h"

typedef enum sb_pad_mode { SB_PAD_CONSTANT, SB_PAD_REFLECT, SB_PAD_EDGE, SB_PAD_WRAP } sb_pad_mode;

/** The element of an axis of `extent` elements that position `at` looks at; -1 for the constant.
 * Reflection has the period 2(extent - 1). */
static SB_HD int64_t sb_pad_look(sb_pad_mode mode, int64_t at, int64_t extent) {
    if (at >= 0 && at < extent)
        return at;
    switch (mode) {
    case SB_PAD_EDGE:
        return at < 0 ? 0 : extent - 1;
    case SB_PAD_WRAP:
        at %= extent;
        return at < 0 ? at + extent : at;
    case SB_PAD_REFLECT: {
        int64_t period = 2 * (extent - 1);
        if (period == 0)
            return 0;
        at %= period;
        at = at < 0 ? at + period : at;
        return at < extent ? at : period - at;
    }
    default:
        return -1;
    }
}

#endif
