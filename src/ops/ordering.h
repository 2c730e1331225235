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

/** TopK: the axis, in [0, rank), how many are wanted, and the outputs, which the call keeps; *indices
 * is NULL where nobody wants them. k as an input is read on the host. Errors: SHAPE where axis or k
 * do not fit. */
iv_status iv_topk_outputs(iv_call *call, int *axis, int64_t *k, iv_tensor **values,
                          iv_tensor **indices);

/** CumSum and CumProd: the axis, read on the host, as a set of one dimension. Errors: SHAPE where the
 * input has no such axis. */
iv_status iv_cumulative_inner(const iv_call *call, uint32_t *inner);

#endif
