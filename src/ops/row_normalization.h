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

#endif
