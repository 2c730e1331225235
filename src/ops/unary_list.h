/* The element-wise operators of one input, for whatever has something of each of them: loops, table entries, rules, kernels
 * of both sides, and tests. An operator is named twice: among the operators, and among the functions of unary_formulas.h and
 * unary_values.h for each kind of element that it has. */
#ifndef SB_OPS_UNARY_LIST_H
#define SB_OPS_UNARY_LIST_H

/* clang-format off */
/* ---- operators: X(op) ---- */

/* Those that need nothing more than parameters, which stand in unary.c. */
#define SB_UNARY_PLAIN_OPS(X) \
    X(Ceil) X(Floor) X(Round) X(Sqrt) X(Reciprocal) X(Softsign) X(LeakyRelu) X(ThresholdedRelu) X(HardSigmoid) \
    X(HardSwish) X(Exp) X(Log) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Asinh) X(Acosh) \
    X(Atanh) X(Erf) X(Sigmoid) X(Tanh) X(Softplus) X(Elu) X(Selu) X(Celu) X(Swish) X(Mish) X(Shrink) X(IsNaN) \
    X(IsInf) X(Not) X(BitwiseNot)
/* Those with shape arithmetic or with two formulas: their table entries stand in unary.c. */
#define SB_UNARY_OTHER_OPS(X) X(Abs) X(Neg) X(Sign) X(Relu) X(Gelu)

#define SB_UNARY_OPS(X) SB_UNARY_PLAIN_OPS(X) SB_UNARY_OTHER_OPS(X)

/* ---- functions, by their elements: X(function, …) ----
 *
 * All have an operator's name but GeluTanh, which is Gelu by its attribute. */

/* Of floats, in few instructions; and by elementary functions, some hundred instructions each. */
#define SB_UNARY_LIGHT_FLOATS(X, ...) \
    X(Abs, __VA_ARGS__) X(Neg, __VA_ARGS__) X(Sign, __VA_ARGS__) X(Relu, __VA_ARGS__) X(Shrink, __VA_ARGS__) \
    X(Ceil, __VA_ARGS__) X(Floor, __VA_ARGS__) X(Round, __VA_ARGS__) X(Sqrt, __VA_ARGS__) X(Reciprocal, __VA_ARGS__) \
    X(Softsign, __VA_ARGS__) X(LeakyRelu, __VA_ARGS__) X(ThresholdedRelu, __VA_ARGS__) X(HardSigmoid, __VA_ARGS__) \
    X(HardSwish, __VA_ARGS__)
#define SB_UNARY_HEAVY_FLOATS(X, ...) \
    SB_UNARY_EVEN_FLOATS(X, __VA_ARGS__) SB_UNARY_STAGED_FLOATS(X, __VA_ARGS__) SB_UNARY_ANGLE_FLOATS(X, __VA_ARGS__)
/* The latter without a branch, in two parts (staged_loops.h), and with a branch for large arguments. */
#define SB_UNARY_EVEN_FLOATS(X, ...) \
    X(Exp, __VA_ARGS__) X(Log, __VA_ARGS__) X(Asin, __VA_ARGS__) X(Acos, __VA_ARGS__) X(Atan, __VA_ARGS__) X(Sinh, __VA_ARGS__) X(Cosh, __VA_ARGS__) \
    X(Asinh, __VA_ARGS__) X(Acosh, __VA_ARGS__) X(Atanh, __VA_ARGS__) X(Softplus, __VA_ARGS__) X(Elu, __VA_ARGS__) \
    X(Selu, __VA_ARGS__) X(Celu, __VA_ARGS__) X(Mish, __VA_ARGS__)
#define SB_UNARY_STAGED_FLOATS(X, ...) \
    X(Erf, __VA_ARGS__) X(Sigmoid, __VA_ARGS__) X(Tanh, __VA_ARGS__) X(Swish, __VA_ARGS__) X(Gelu, __VA_ARGS__) \
    X(GeluTanh, __VA_ARGS__)
#define SB_UNARY_ANGLE_FLOATS(X, ...) X(Sin, __VA_ARGS__) X(Cos, __VA_ARGS__) X(Tan, __VA_ARGS__)
/* Of floats, with a truth value for a result. */
#define SB_UNARY_QUESTIONS(X, ...) X(IsNaN, __VA_ARGS__) X(IsInf, __VA_ARGS__)
/* Of integers, in few instructions and in many; of signed ones. */
#define SB_UNARY_LIGHT_INTEGERS(X, ...) \
    X(Abs, __VA_ARGS__) X(Sign, __VA_ARGS__) X(Relu, __VA_ARGS__) X(BitwiseNot, __VA_ARGS__)
#define SB_UNARY_HEAVY_INTEGERS(X, ...) X(Shrink, __VA_ARGS__)
#define SB_UNARY_SIGNED(X, ...) X(Neg, __VA_ARGS__)
/* Of truth values. */
#define SB_UNARY_TRUTHS(X, ...) X(Not, __VA_ARGS__)
/* clang-format on */

/* SB_UNARY_…(SB_UNARY_ALONE, X) is X(function) for each. */
#define SB_UNARY_ALONE(function, X) X(function)

#endif
