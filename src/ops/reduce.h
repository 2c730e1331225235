/* The reductions' attributes, for their definition and for kernels. */
#ifndef IV_OPS_REDUCE_H
#define IV_OPS_REDUCE_H

#include "ops/axes.h"

typedef struct iv_reduce_params {
    bool keep;
    iv_axes axes;
} iv_reduce_params;

#endif
