/* The reductions' attributes, for their definition and for kernels. */
#ifndef SB_OPS_REDUCE_H
#define SB_OPS_REDUCE_H

#include "ops/axes.h"

typedef struct sb_reduce_params {
    bool keep;
    sb_axes axes;
} sb_reduce_params;

#endif
