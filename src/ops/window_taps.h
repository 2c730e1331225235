/* Which taps of a window lie inside, along one axis; for the host and for devices. */
#ifndef SB_OPS_WINDOW_TAPS_H
#define SB_OPS_WINDOW_TAPS_H

#include "numerics/scalar.h"

/* The taps [*first, *last) inside [0, in) of a window of `kernel` taps, `dilation` apart, whose
 * first one lies at `start`. */
static SB_HD void sb_window_taps(int64_t in, int64_t kernel, int64_t dilation, int64_t start, int64_t *first,
                                 int64_t *last) {
    int64_t room = in - start, end = room <= 0 ? 0 : (room - 1) / dilation + 1;
    *first = start >= 0 ? 0 : (-start - 1) / dilation + 1;
    *last = end < kernel ? end : kernel;
    if (*first > *last)
        *first = *last;
}

/* How many taps lie before `end`, padding included. */
static SB_HD int64_t sb_window_padded_taps(int64_t end, int64_t kernel, int64_t dilation, int64_t start) {
    int64_t room = end - start, inside = room <= 0 ? 0 : (room - 1) / dilation + 1;
    return inside < kernel ? inside : kernel;
}

#endif
