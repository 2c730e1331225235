/* What the kernel of Slice shares with its definition. */
#ifndef SB_OPS_SLICES_H
#define SB_OPS_SLICES_H

#include "graph/op.h"
#include "ops/slice_values.h"

/* As they are given, but for the axes, which are those of the input; a step is not 0. */
typedef struct sb_slice_bounds {
    int count;
    int axes[SB_MAX_RANK];
    int64_t starts[SB_MAX_RANK], ends[SB_MAX_RANK], steps[SB_MAX_RANK];
} sb_slice_bounds;

/** What the attributes of a Slice, or its inputs 1 to 4, which lie on the host, ask for. Errors: SHAPE. */
sb_status sb_slice_read(const sb_call *call, sb_slice_bounds *bounds);

#endif
