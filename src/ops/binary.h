/* What the element-wise operators of two inputs share. */
#ifndef IV_OPS_BINARY_H
#define IV_OPS_BINARY_H

#include "graph/op.h"

/* node->params of the operators in the families `binary` and `power`. */
typedef struct iv_binary_params {
    /* Operator sets before 7: the dimension of the first input at which the second one's shape
     * begins; -1: numpy's rule. */
    int64_t axis;
    bool variant; /* Mod: the quotient is truncated; BitShift: to the right */
} iv_binary_params;

/** Reads `broadcast` and `axis` of operator sets before 7 into node->params (an iv_binary_params).
 */
iv_status iv_binary_prepare(iv_node *node, iv_error *error);

/** Infers the broadcast shape of inputs 0 and 1 into output 0 with `dtype`. */
iv_status iv_binary_infer_shape(iv_infer *infer, iv_dtype dtype);

/** Makes *aligned a borrowed copy of input 1 with trailing extents of 1, so that numpy's rule
 * places it where the node's `axis` says. Not to be retained or released. */
void iv_binary_align(const iv_call *call, iv_tensor *aligned);

#endif
