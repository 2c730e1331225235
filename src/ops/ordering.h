/* The attributes of operators along one axis (ArgMax, ArgMin, TopK, CumSum, CumProd), for their
 * definitions and for kernels. */
#ifndef IV_OPS_ORDERING_H
#define IV_OPS_ORDERING_H

#include "graph/op.h"

typedef struct iv_arg_params {
    int64_t axis;
    bool keep, last; /* last: of equal elements */
} iv_arg_params;

typedef struct iv_topk_params {
    int64_t axis, k;
    bool has_k; /* k is an attribute (before opset 10) */
    bool largest;
} iv_topk_params;

typedef struct iv_cumulative_params {
    bool exclusive, reverse;
} iv_cumulative_params;

#endif
