/* What the element-wise operators of one input and faster kernels share. */
#ifndef SB_OPS_UNARY_H
#define SB_OPS_UNARY_H

#include "ops/loops.h"

/* node->params of the operators in the family `unary`: the a and b of unary_formulas.h. */
typedef struct sb_unary_params {
    float a, b;
    bool by_tanh; /* Gelu: the approximation */
} sb_unary_params;

/* X(op): floats only, no parameters. */
/* clang-format off */
#define SB_UNARY_PLAIN_OPS(X) \
    X(Ceil) X(Floor) X(Round) X(Sqrt) X(Reciprocal) X(Exp) X(Log) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) \
    X(Sinh) X(Cosh) X(Asinh) X(Acosh) X(Atanh) X(Erf) X(Sigmoid) X(Tanh) X(Softplus) X(Softsign) X(HardSwish) \
    X(Mish)
/* clang-format on */
/* X(op): the others. */
/* clang-format off */
#define SB_UNARY_OTHER_OPS(X) \
    X(Abs) X(Neg) X(Sign) X(Relu) X(LeakyRelu) X(ThresholdedRelu) X(Elu) X(Selu) X(Celu) X(HardSigmoid) X(Swish) \
    X(Shrink) X(Gelu) X(IsNaN) X(IsInf) X(Not) X(BitwiseNot)
/* clang-format on */

/* Rows of the tables of loops, and places in sb_ops_unary; Gelu by tanh has loops of its own. */
#define SB_UNARY_ROW(op) SB_UNARY_ROW_##op,
enum { SB_UNARY_PLAIN_OPS(SB_UNARY_ROW) SB_UNARY_OTHER_OPS(SB_UNARY_ROW) SB_UNARY_ROW_GeluTanh, SB_UNARY_ROWS };

/* Loops over rows: operand 0 is the output, 1 the input; the context is an sb_unary_params. */
SB_DECLARE_LOOPS(sb_unary_loops, SB_UNARY_ROWS)

#endif
