/* What the kernels of OneHot share with its definition. */
#ifndef SB_OPS_SELECTION_H
#define SB_OPS_SELECTION_H

#include "graph/op.h"

/* Compress, OneHot and Unique. */
typedef struct sb_selection_params {
    bool has_axis;
    int64_t axis;
    bool sorted;
} sb_selection_params;

#endif
