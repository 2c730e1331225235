/* What the kernels of Einsum share with its definition. */
#ifndef IV_OPS_EINSUM_H
#define IV_OPS_EINSUM_H

#include "graph/op.h"

/* Labels: the letters, then the dimensions of an ellipsis, counted from the last one. */
#define IV_EINSUM_ELLIPSIS 52
#define IV_EINSUM_LABELS (IV_EINSUM_ELLIPSIS + IV_MAX_RANK)
#define IV_EINSUM_MARK 127 /* stands for "..." in a term */

typedef struct iv_einsum_term {
    int count;
    uint8_t labels[IV_EINSUM_LABELS + 1];
} iv_einsum_term;

typedef struct iv_einsum_params {
    int count;             /* of operands */
    iv_einsum_term *terms; /* one per operand, then the output */
} iv_einsum_params;

/* The loops: output labels, then summed ones; per operand the step in elements along each. */
typedef struct iv_einsum_nest {
    int operands, outer, inner;
    int64_t dims[IV_EINSUM_LABELS];
    const iv_tensor **tensors;
    int64_t (*steps)[IV_EINSUM_LABELS]; /* [operands], zeroed by the caller */
    int64_t *offsets;                   /* [operands]: where the chain begins */
} iv_einsum_nest;

/** Fills outer, inner, dims and steps from `operands` tensors. SHAPE when they do not fit each
 * other. */
iv_status iv_einsum_plan(const iv_call *call, iv_einsum_nest *loops);

#endif
