/* What the kernels of Compress, OneHot and Unique share with their definitions. */
#ifndef SB_OPS_SELECTION_H
#define SB_OPS_SELECTION_H

#include "graph/op.h"

/* Compress, OneHot and Unique. */
typedef struct sb_selection_params {
    bool has_axis;
    int64_t axis;
    bool sorted;
} sb_selection_params;

/* Compress as a copy: [outer, kept, inner] of [outer, extent, inner], packed, by the condition's first `length` elements. The
 * output has `rank` axes, those of `dims` but for `axis`, which has as many elements as are kept. */
typedef struct sb_compress_work {
    int64_t outer, extent, inner, length;
    int axis, rank;
    int64_t dims[SB_MAX_RANK];
} sb_compress_work;

/** Describes and checks a call; follows no address. Errors: SHAPE. */
sb_status sb_compress_describe(const sb_call *call, sb_compress_work *work);

#endif
