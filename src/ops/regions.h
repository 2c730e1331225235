/* What the kernels of NonMaxSuppression share with its definition. */
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

/* Room for so many boxes more than there are is in what a choice has for itself. */
#define SB_SUPPRESSION_MORE 64

/** Chooses boxes of one batch element and class, at most `most`, into `chosen` in their order; returns how many. `scratch` has
 * room for what is kept of each box, and of SB_SUPPRESSION_MORE. */
typedef int64_t sb_suppression_choose(const sb_suppression *work, const float *boxes, const float *scores,
                                      void *scratch, int64_t *chosen);

/** Computes the call by choosing so, with `box_bytes` of scratch for a box. */
sb_status sb_suppression_run(sb_call *call, size_t box_bytes, sb_suppression_choose *choose);

#endif
