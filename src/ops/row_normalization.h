/* The attributes of LayerNormalization, RMSNormalization, InstanceNormalization and
 * GroupNormalization, for their definition and for kernels. */
#ifndef IV_OPS_ROW_NORMALIZATION_H
#define IV_OPS_ROW_NORMALIZATION_H

#include "graph/op.h"

typedef struct iv_norm_params {
    float epsilon;
    int64_t axis, groups;
    iv_dtype stash; /* of LayerNormalization's mean and inverse deviation */
} iv_norm_params;

#endif
