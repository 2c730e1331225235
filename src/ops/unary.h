/* What the element-wise operators of one input and faster kernels share. */
#ifndef IV_OPS_UNARY_H
#define IV_OPS_UNARY_H

#include "ops/loops.h"

/* node->params of the operators in the family `unary`: the a and b of unary_formulas.h. */
typedef struct iv_unary_params {
    float a, b;
    bool by_tanh; /* Gelu: the approximation */
} iv_unary_params;

/* X(op): floats only, no parameters. */
#define IV_UNARY_PLAIN_OPS(X)                                                                      \
    X(Ceil)                                                                                        \
    X(Floor) X(Round) X(Sqrt) X(Reciprocal) X(Exp) X(Log) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos)     \
        X(Atan) X(Sinh) X(Cosh) X(Asinh) X(Acosh) X(Atanh) X(Erf) X(Sigmoid) X(Tanh) X(Softplus)   \
            X(Softsign) X(HardSwish) X(Mish)
/* X(op): the others. */
#define IV_UNARY_OTHER_OPS(X)                                                                      \
    X(Abs)                                                                                         \
    X(Neg) X(Sign) X(Relu) X(LeakyRelu) X(ThresholdedRelu) X(Elu) X(Selu) X(Celu) X(HardSigmoid)   \
        X(Swish) X(Shrink) X(Gelu) X(IsNaN) X(IsInf) X(Not) X(BitwiseNot)

/* Rows of the tables of loops, and places in iv_ops_unary; Gelu by tanh has loops of its own. */
#define IV_UNARY_ROW(op) IV_UNARY_ROW_##op,
enum {
    IV_UNARY_PLAIN_OPS(IV_UNARY_ROW) IV_UNARY_OTHER_OPS(IV_UNARY_ROW) IV_UNARY_ROW_GeluTanh,
    IV_UNARY_ROWS
};

/* Loops over rows: operand 0 is the output, 1 the input; the context is an iv_unary_params. */
IV_DECLARE_LOOPS(iv_unary_loops, IV_UNARY_ROWS)

#endif
