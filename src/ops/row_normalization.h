/* The attributes of LayerNormalization, RMSNormalization, InstanceNormalization and
 * GroupNormalization, for their definition and for kernels. */
#ifndef SB_OPS_ROW_NORMALIZATION_H
#define SB_OPS_ROW_NORMALIZATION_H

#include "graph/op.h"

typedef struct sb_norm_params {
    float epsilon;
    int64_t axis, groups;
    sb_dtype stash; /* of LayerNormalization's mean and inverse deviation */
} sb_norm_params;

/** Rows without elements have moments of 0 / 0: fills outputs 1 and 2 of LayerNormalization, which lie on the host, with
 * NaN. NULL is allowed. */
void sb_norm_note_nothing(sb_tensor *tensor);

/** The same elements with dimension 1 split into `groups`, which divide it, and the rest: `split` is a view without a reference of its
 * own. */
void sb_norm_split_channels(const sb_tensor *tensor, int64_t groups, sb_tensor *split);

#endif
