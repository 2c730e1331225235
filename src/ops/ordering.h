/* The attributes of operators along one axis (ArgMax, ArgMin, TopK, CumSum, CumProd), for their
 * definitions and for kernels. */
#ifndef SB_OPS_ORDERING_H
#define SB_OPS_ORDERING_H

#include "graph/op.h"

typedef struct sb_arg_params {
    int64_t axis;
    bool keep, last; /* last: of equal elements */
} sb_arg_params;

typedef struct sb_topk_params {
    int64_t axis, k;
    bool has_k; /* k is an attribute (before opset 10) */
    bool largest;
} sb_topk_params;

typedef struct sb_cumulative_params {
    bool exclusive, reverse;
} sb_cumulative_params;

/** TopK: the axis, in [0, rank), how many are wanted, and the outputs, which the call keeps; *indices
 * is NULL where nobody wants them. k as an input is read on the host. Errors: SHAPE where axis or k
 * do not fit. */
sb_status sb_topk_outputs(sb_call *call, int *axis, int64_t *k, sb_tensor **values, sb_tensor **indices);

/** CumSum and CumProd: the axis, read on the host, as a set of one dimension. Errors: SHAPE where the
 * input has no such axis. */
sb_status sb_cumulative_inner(const sb_call *call, uint32_t *inner);

#endif
