/* What the kernels of Gather, GatherElements and GatherND share with their definitions. */
#ifndef SB_OPS_GATHER_H
#define SB_OPS_GATHER_H

#include "graph/op.h"

typedef struct sb_gather_params {
    int64_t axis; /* GatherND: how many leading dimensions are shared */
} sb_gather_params;

#endif
