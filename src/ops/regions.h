/* What the kernel of NonMaxSuppression shares with its definition. */
#ifndef SB_OPS_REGIONS_H
#define SB_OPS_REGIONS_H

#include "graph/op.h"

typedef struct sb_suppression {
    int64_t batches, classes, boxes, most; /* most: that are chosen of a batch element and class */
    float overlap, least_score;
    bool has_least, centred;
} sb_suppression;

/** Describes and checks a call. Reads the inputs from the third on, and of the others the extents. Errors: SHAPE; those of
 * sb_move_integers. */
sb_status sb_suppression_describe(const sb_call *call, sb_suppression *work);

#endif
