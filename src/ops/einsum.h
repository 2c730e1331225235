/* What the kernels of Einsum share with its definition. */
#ifndef SB_OPS_EINSUM_H
#define SB_OPS_EINSUM_H

#include "graph/op.h"

/* Labels: the letters, then the dimensions of an ellipsis, counted from the last one. */
#define SB_EINSUM_ELLIPSIS 52
#define SB_EINSUM_LABELS (SB_EINSUM_ELLIPSIS + SB_MAX_RANK)
#define SB_EINSUM_MARK 127 /* stands for "..." in a term */

typedef struct sb_einsum_term {
    int count;
    uint8_t labels[SB_EINSUM_LABELS + 1];
} sb_einsum_term;

typedef struct sb_einsum_params {
    int count;             /* of operands */
    sb_einsum_term *terms; /* one per operand, then the output */
} sb_einsum_params;

/* The loops: output labels, then summed ones; per operand the step in elements along each. */
typedef struct sb_einsum_nest {
    int operands, outer, inner;
    int64_t dims[SB_EINSUM_LABELS];
    const sb_tensor **tensors;
    int64_t (*steps)[SB_EINSUM_LABELS]; /* [operands], zeroed by the caller */
    int64_t *offsets;                   /* [operands]: where the chain begins */
} sb_einsum_nest;

/** Fills outer, inner, dims and steps from `operands` tensors. SHAPE when they do not fit each other. */
sb_status sb_einsum_plan(const sb_call *call, sb_einsum_nest *loops);

#endif
