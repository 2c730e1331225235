/* The element-wise operators of two inputs, for whatever has something of each of them: loops, table entries, rules, kernels
 * of both sides, and tests. An operator is named twice: among the operators, and among the functions of binary_values.h for
 * each kind of element that it has. */
#ifndef SB_OPS_BINARY_LIST_H
#define SB_OPS_BINARY_LIST_H

/* clang-format off */
/* ---- operators: X(op) ---- */

/* Those that need nothing more. */
#define SB_BINARY_PLAIN_OPS(X) \
    X(And) X(Or) X(Xor) X(BitwiseAnd) X(BitwiseOr) X(BitwiseXor)
/* Those with attributes of their own or shape arithmetic: their table entries stand in binary.c. */
#define SB_BINARY_OTHER_OPS(X) \
    X(Add) X(Sub) X(Mul) X(PRelu) X(BitShift) X(Equal) X(Greater) X(Less) X(GreaterOrEqual) X(LessOrEqual)
/* Likewise those that refuse integers that are 0. */
#define SB_BINARY_QUOTIENT_OPS(X) X(Div) X(Mod)

#define SB_BINARY_OPS(X) SB_BINARY_PLAIN_OPS(X) SB_BINARY_OTHER_OPS(X) SB_BINARY_QUOTIENT_OPS(X)

/* ---- functions, by their elements: X(function, …) ----
 *
 * Most have an operator's name. The others are variants (Fmod is Mod by its attribute, the shifts are BitShift) or belong to
 * other families (Max, Min, Pow). */

/* Of floats, in few instructions; and those that take some hundred. */
#define SB_BINARY_LIGHT_FLOATS(X, ...) \
    X(Add, __VA_ARGS__) X(Sub, __VA_ARGS__) X(Mul, __VA_ARGS__) X(Div, __VA_ARGS__) X(PRelu, __VA_ARGS__) \
    X(Max, __VA_ARGS__) X(Min, __VA_ARGS__)
#define SB_BINARY_HEAVY_FLOATS(X, ...) SB_BINARY_REMAINDER_FLOATS(X, __VA_ARGS__) X(Pow, __VA_ARGS__)
#define SB_BINARY_REMAINDER_FLOATS(X, ...) X(Mod, __VA_ARGS__) X(Fmod, __VA_ARGS__)
/* Of integers; those that note a divisor of 0. */
#define SB_BINARY_INTEGERS(X, ...) \
    X(Add, __VA_ARGS__) X(Sub, __VA_ARGS__) X(Mul, __VA_ARGS__) X(PRelu, __VA_ARGS__) X(BitwiseAnd, __VA_ARGS__) \
    X(BitwiseOr, __VA_ARGS__) X(BitwiseXor, __VA_ARGS__) X(Max, __VA_ARGS__) X(Min, __VA_ARGS__) \
    X(ShiftLeft, __VA_ARGS__) X(ShiftRight, __VA_ARGS__)
#define SB_BINARY_INTEGER_QUOTIENTS(X, ...) X(Div, __VA_ARGS__) X(Mod, __VA_ARGS__) X(Fmod, __VA_ARGS__)
/* Of floats and integers, with a truth value for a result. */
#define SB_BINARY_COMPARISONS(X, ...) \
    X(Equal, __VA_ARGS__) X(Greater, __VA_ARGS__) X(Less, __VA_ARGS__) X(GreaterOrEqual, __VA_ARGS__) \
    X(LessOrEqual, __VA_ARGS__)
/* Of truth values. */
#define SB_BINARY_TRUTHS(X, ...) X(And, __VA_ARGS__) X(Or, __VA_ARGS__) X(Xor, __VA_ARGS__) X(Equal, __VA_ARGS__)
/* clang-format on */

/* SB_BINARY_…(SB_BINARY_ALONE, X) is X(function) for each. */
#define SB_BINARY_ALONE(function, X) X(function)

#endif
