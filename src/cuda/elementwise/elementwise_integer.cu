/* Element-wise operators of integers and truth values. */
#include "cuda/elementwise/elementwise.cuh"
#include "ops/binary_values.h"
#include "ops/unary_values.h"

/* Threads that divide by zero all write the same. */
#define NOTE_ZERO                                                                                                      \
    if (y[0] == 0)                                                                                                     \
    *p->fault = SB_FAULT_DIVISION

#define KERNELS(dtype, suffix, type, wide, unused)                                                                     \
    SB_CUDA_UNARY(Abs, suffix, type, type)                                                                             \
    SB_CUDA_UNARY(Sign, suffix, type, type)                                                                            \
    SB_CUDA_UNARY(Relu, suffix, type, type)                                                                            \
    SB_CUDA_UNARY(BitwiseNot, suffix, type, type)                                                                      \
    SB_CUDA_UNARY(Shrink, suffix, type, type)                                                                          \
    SB_CUDA_BINARY(Add, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Sub, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Mul, suffix, type, type)                                                                            \
    SB_CUDA_BINARY_LONG(Div, suffix, type, type, NOTE_ZERO)                                                            \
    SB_CUDA_BINARY_LONG(Mod, suffix, type, type, NOTE_ZERO)                                                            \
    SB_CUDA_BINARY_LONG(Fmod, suffix, type, type, NOTE_ZERO)                                                           \
    SB_CUDA_BINARY(PRelu, suffix, type, type)                                                                          \
    SB_CUDA_BINARY(BitwiseAnd, suffix, type, type)                                                                     \
    SB_CUDA_BINARY(BitwiseOr, suffix, type, type)                                                                      \
    SB_CUDA_BINARY(BitwiseXor, suffix, type, type)                                                                     \
    SB_CUDA_BINARY(Max, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Min, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Equal, suffix, uint8_t, type)                                                                       \
    SB_CUDA_BINARY(Greater, suffix, uint8_t, type)                                                                     \
    SB_CUDA_BINARY(Less, suffix, uint8_t, type)                                                                        \
    SB_CUDA_BINARY(GreaterOrEqual, suffix, uint8_t, type)                                                              \
    SB_CUDA_BINARY(LessOrEqual, suffix, uint8_t, type)
SB_SIGNED_TYPES(KERNELS, )
SB_UNSIGNED_TYPES(KERNELS, )

#define NEGATIONS(dtype, suffix, type, wide, unused) SB_CUDA_UNARY(Neg, suffix, type, type)
SB_SIGNED_TYPES(NEGATIONS, )

#define SHIFTS(dtype, suffix, type, wide, unused)                                                                      \
    SB_CUDA_BINARY(ShiftLeft, suffix, type, type)                                                                      \
    SB_CUDA_BINARY(ShiftRight, suffix, type, type)
SB_UNSIGNED_TYPES(SHIFTS, )

/* C's `bool` is a macro, so it must not pass through a second one. */
SB_CUDA_UNARY(Not, bool, uint8_t, uint8_t)
SB_CUDA_BINARY(And, bool, uint8_t, uint8_t)
SB_CUDA_BINARY(Or, bool, uint8_t, uint8_t)
SB_CUDA_BINARY(Xor, bool, uint8_t, uint8_t)
SB_CUDA_BINARY(Equal, bool, uint8_t, uint8_t)
