/* What the kernels of Gather, GatherElements and GatherND share with their definitions. */
#ifndef IV_OPS_GATHER_H
#define IV_OPS_GATHER_H

#include "graph/op.h"

typedef struct iv_gather_params {
    int64_t axis; /* GatherND: how many leading dimensions are shared */
} iv_gather_params;

#endif
