/* What the element-wise operators of two inputs share. */
#ifndef SB_OPS_BINARY_H
#define SB_OPS_BINARY_H

#include "ops/binary_list.h"
#include "ops/loops.h"

/* node->params of the operators in the families `binary` and `power`. */
typedef struct sb_binary_params {
    /* Operator sets before 7: the dimension of the first input at which the second one's shape
     * begins; -1: numpy's rule. */
    int64_t axis;
    bool variant; /* Mod: the quotient is truncated; BitShift: to the right */
} sb_binary_params;

/* Rows of the tables of loops. Those of SB_BINARY_OPS are places in sb_ops_binary as well. */
#define SB_BINARY_ROW(op) SB_BINARY_ROW_##op,
enum {
    SB_BINARY_OPS(SB_BINARY_ROW) SB_BINARY_ROW_Fmod,
    SB_BINARY_ROW_ShiftRight,
    SB_BINARY_ROW_Max,
    SB_BINARY_ROW_Min,
    SB_BINARY_ROW_Pow,
    SB_BINARY_ROWS,
    SB_BINARY_ROW_ShiftLeft = SB_BINARY_ROW_BitShift
};

/* What a loop notes. Only integer Div, Mod and Fmod touch it; the others may be called without. */
typedef struct sb_binary_context {
    bool divided_by_zero;
} sb_binary_context;

/* Loops over rows: operand 0 is the output, 1 and 2 are the inputs, all of one dtype (the output of
 * a comparison is bool). */
SB_DECLARE_LOOPS(sb_binary_loops, SB_BINARY_ROWS)

/** Reads `broadcast` and `axis` of operator sets before 7 into node->params (an sb_binary_params). */
sb_status sb_binary_prepare(sb_node *node, sb_error *error);

/** Infers the broadcast shape of inputs 0 and 1 into output 0 with `dtype`. */
sb_status sb_binary_infer_shape(sb_infer *infer, sb_dtype dtype);

/** Makes *aligned a borrowed copy of input 1 with trailing extents of 1, so that numpy's rule
 * places it where the node's `axis` says. Not to be retained or released. */
void sb_binary_align(const sb_call *call, sb_tensor *aligned);

#endif
