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

/* OneHot as [outer, extent, inner] of indices [outer, inner]; `dims` has `rank` extents. */
typedef struct sb_one_hot_work {
    int64_t outer, extent, inner;
    int rank;
    int64_t dims[SB_MAX_RANK];
} sb_one_hot_work;

/** Describes and checks a call; the depth is read on the host. Errors: SHAPE. */
sb_status sb_one_hot_describe(sb_call *call, sb_one_hot_work *work);

/** Which element of the extent index number `i` says, of packed `indices`; negative, or not below the extent: none. Indices that are no
 * integers are cut toward zero, negative ones count from the end. */
int64_t sb_one_hot_place(const sb_tensor *indices, int64_t i, int64_t extent);

#endif
