/* The bounds of Slice. For the host and for devices. */
#ifndef SB_OPS_SLICE_VALUES_H
#define SB_OPS_SLICE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "numerics/scalar.h"

/** A start or end is counted from the end of the axis when negative, then clamped: to [0, extent] for steps forward, to
 * [-1, extent - 1] for steps back. INT32_MAX and above, and INT32_MIN and below, mean "to the end" (the standard
 * recommends them for that), whatever the extent. */
static SB_HD int64_t sb_slice_clamp(int64_t bound, int64_t extent, bool back) {
    int64_t least = back ? -1 : 0, most = back ? extent - 1 : extent;
    if (bound >= INT32_MAX)
        return most;
    if (bound <= INT32_MIN)
        return least;
    bound = bound < 0 ? bound + extent : bound;
    return bound < least ? least : bound > most ? most : bound;
}

#endif
