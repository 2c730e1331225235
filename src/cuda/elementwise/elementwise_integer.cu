/* Element-wise operators of integers and truth values. */
#include "cuda/elementwise/elementwise.cuh"
#include "cuda/elementwise/integer_operations.h"
#include "ops/binary_values.h"
#include "ops/unary_values.h"

/* The group's elements at once, for operators of an instruction or two. */
#define UNARY(op, suffix)                                                                                              \
    case SB_CUDA_INTEGER_##op:                                                                                         \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j = 0; j < SB_CUDA_GROUP; j++)                                                                        \
            result[j] = sb_unary_value_##op##_##suffix(x[j], p->a, p->b);                                              \
        break;
#define BINARY(op, suffix)                                                                                             \
    case SB_CUDA_INTEGER_##op:                                                                                         \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j = 0; j < SB_CUDA_GROUP; j++)                                                                        \
            result[j] = sb_binary_value_##op##_##suffix(x[j], y[j]);                                                   \
        break;
/* … or one by one. */
#define UNARY_LONG(op, suffix, type)                                                                                   \
    case SB_CUDA_INTEGER_##op:                                                                                         \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                                             \
            type value = sb_unary_value_##op##_##suffix(x[0], p->a, p->b);                                             \
            SB_CUDA_GROUP_TURN(type, x, x[0]);                                                                         \
            SB_CUDA_GROUP_TURN(type, result, value);                                                                   \
        }                                                                                                              \
        break;
/* Threads that divide by zero all write the same. */
#define QUOTIENT(op, suffix, type)                                                                                     \
    case SB_CUDA_INTEGER_##op:                                                                                         \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                                             \
            if (y[0] == 0)                                                                                             \
                *p->fault = SB_FAULT_DIVISION;                                                                         \
            type value = sb_binary_value_##op##_##suffix(x[0], y[0]);                                                  \
            SB_CUDA_GROUP_TURN(type, x, x[0]);                                                                         \
            SB_CUDA_GROUP_TURN(type, y, y[0]);                                                                         \
            SB_CUDA_GROUP_TURN(type, result, value);                                                                   \
        }                                                                                                              \
        break;

/* clang-format off */
#define KERNELS(dtype, suffix, type, wide, more_unary)                                                                 \
    SB_CUDA_ELEMENTWISE(sb_cuda_unary_integer_##suffix, 2, SB_CUDA_LOAD_X(type),                                       \
                        switch (p->op) {                                                                               \
                            SB_UNARY_LIGHT_INTEGERS(UNARY, suffix)                                                     \
                            SB_UNARY_HEAVY_INTEGERS(UNARY_LONG, suffix, type)                                          \
                            more_unary(suffix)                                                                         \
                        },                                                                                             \
                        type)                                                                                          \
    SB_CUDA_ELEMENTWISE(sb_cuda_binary_integer_##suffix, 3, SB_CUDA_LOAD_XY(type),                                     \
                        switch (p->op) {                                                                               \
                            SB_BINARY_INTEGERS(BINARY, suffix)                                                         \
                            SB_BINARY_INTEGER_QUOTIENTS(QUOTIENT, suffix, type)                                        \
                        },                                                                                             \
                        type)                                                                                          \
    SB_CUDA_ELEMENTWISE(sb_cuda_comparison_integer_##suffix, 3, SB_CUDA_LOAD_XY(type),                                 \
                        switch (p->op) {                                                                               \
                            SB_BINARY_COMPARISONS(BINARY, suffix)                                                      \
                        },                                                                                             \
                        uint8_t)
/* clang-format on */
#define NONE(suffix)
#define SIGNED(suffix) SB_UNARY_SIGNED(UNARY, suffix)
SB_SIGNED_TYPES(KERNELS, SIGNED)
SB_UNSIGNED_TYPES(KERNELS, NONE)

/* C's `bool` is a macro, so it must not pass through a second one. */
#define UNARY_TRUTH(op, unused) SB_CUDA_UNARY(op, bool, uint8_t, uint8_t)
SB_UNARY_TRUTHS(UNARY_TRUTH, )
#define BINARY_TRUTH(op, unused) SB_CUDA_BINARY(op, bool, uint8_t, uint8_t)
SB_BINARY_TRUTHS(BINARY_TRUTH, )
