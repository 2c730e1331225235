/* The element-wise operators of one input, for whatever has something of each of them: loops, table entries, rules, kernels
 * of both sides, and tests. X(op) is expanded once for each. */
#ifndef SB_OPS_UNARY_LIST_H
#define SB_OPS_UNARY_LIST_H

/* clang-format off */
/* Of floats alone, in few instructions. Attributes: unary.c. */
#define SB_UNARY_LIGHT_OPS(X) \
    X(Ceil) X(Floor) X(Round) X(Sqrt) X(Reciprocal) X(Softsign) X(LeakyRelu) X(ThresholdedRelu) X(HardSigmoid) \
    X(HardSwish)
/* Of floats alone, by elementary functions: some hundred instructions each. */
#define SB_UNARY_HEAVY_OPS(X) \
    X(Exp) X(Log) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Asinh) X(Acosh) X(Atanh) X(Erf) \
    X(Sigmoid) X(Tanh) X(Softplus) X(Elu) X(Selu) X(Celu) X(Swish) X(Mish)
/* Those that need more than a formula: of integers too, of truth values, with shape arithmetic or with two formulas. */
#define SB_UNARY_OTHER_OPS(X) \
    X(Abs) X(Neg) X(Sign) X(Relu) X(Shrink) X(Gelu) X(IsNaN) X(IsInf) X(Not) X(BitwiseNot)

#define SB_UNARY_FLOAT_OPS(X) SB_UNARY_LIGHT_OPS(X) SB_UNARY_HEAVY_OPS(X)
#define SB_UNARY_OPS(X) SB_UNARY_FLOAT_OPS(X) SB_UNARY_OTHER_OPS(X)
/* clang-format on */

#endif
