/* What the element-wise operators of two inputs share. */
#ifndef IV_OPS_BINARY_H
#define IV_OPS_BINARY_H

#include "ops/loops.h"

/* node->params of the operators in the families `binary` and `power`. */
typedef struct iv_binary_params {
    /* Operator sets before 7: the dimension of the first input at which the second one's shape
     * begins; -1: numpy's rule. */
    int64_t axis;
    bool variant; /* Mod: the quotient is truncated; BitShift: to the right */
} iv_binary_params;

/* Rows of the tables of loops. Those of IV_BINARY_OPS are places in iv_ops_binary as well. */
#define IV_BINARY_OPS(X)                                                                           \
    X(Add)                                                                                         \
    X(Sub) X(Mul) X(Div) X(Mod) X(PRelu) X(And) X(Or) X(Xor) X(Equal) X(Greater) X(Less)           \
        X(GreaterOrEqual) X(LessOrEqual) X(BitShift) X(BitwiseAnd) X(BitwiseOr) X(BitwiseXor)
#define IV_BINARY_ROW(op) IV_BINARY_ROW_##op,
enum {
    IV_BINARY_OPS(IV_BINARY_ROW) IV_BINARY_ROW_Fmod,
    IV_BINARY_ROW_ShiftRight,
    IV_BINARY_ROW_Max,
    IV_BINARY_ROW_Min,
    IV_BINARY_ROW_Pow,
    IV_BINARY_ROWS
};

/* What a loop notes. Only integer Div, Mod and Fmod touch it; the others may be called without. */
typedef struct iv_binary_context {
    bool divided_by_zero;
} iv_binary_context;

/* Loops over rows: operand 0 is the output, 1 and 2 are the inputs, all of one dtype (the output of
 * a comparison is bool). */
IV_DECLARE_LOOPS(iv_binary_loops, IV_BINARY_ROWS)

/** Reads `broadcast` and `axis` of operator sets before 7 into node->params (an iv_binary_params).
 */
iv_status iv_binary_prepare(iv_node *node, iv_error *error);

/** Infers the broadcast shape of inputs 0 and 1 into output 0 with `dtype`. */
iv_status iv_binary_infer_shape(iv_infer *infer, iv_dtype dtype);

/** Makes *aligned a borrowed copy of input 1 with trailing extents of 1, so that numpy's rule
 * places it where the node's `axis` says. Not to be retained or released. */
void iv_binary_align(const iv_call *call, iv_tensor *aligned);

#endif
