/* What the kernels of OneHot share with its definition. */
#ifndef IV_OPS_SELECTION_H
#define IV_OPS_SELECTION_H

#include "graph/op.h"

/* Compress, OneHot and Unique. */
typedef struct iv_selection_params {
    bool has_axis;
    int64_t axis;
    bool sorted;
} iv_selection_params;

#endif
