/* Element-wise operators of integers on a device: a kernel for each type takes several, and learns which one when it
 * runs. Integers are seldom what a model's time goes to, and a kernel for each operator of each type took a fifth of
 * the time that all kernels took to compile. */
#ifndef SB_CUDA_ELEMENTWISE_INTEGER_OPERATIONS_H
#define SB_CUDA_ELEMENTWISE_INTEGER_OPERATIONS_H

#include "ops/binary_list.h"
#include "ops/unary_list.h"

/* X(op): sb_cuda_unary_integer_<type>. */
#define SB_CUDA_INTEGER_UNARY_OPS(X)                                                                                   \
    SB_UNARY_LIGHT_INTEGERS(SB_UNARY_ALONE, X)                                                                         \
    SB_UNARY_HEAVY_INTEGERS(SB_UNARY_ALONE, X) SB_UNARY_SIGNED(SB_UNARY_ALONE, X)
/* sb_cuda_binary_integer_<type>. */
#define SB_CUDA_INTEGER_BINARY_OPS(X)                                                                                  \
    SB_BINARY_INTEGERS(SB_BINARY_ALONE, X)                                                                             \
    SB_BINARY_INTEGER_QUOTIENTS(SB_BINARY_ALONE, X)
/* sb_cuda_comparison_integer_<type>: truth values. */
#define SB_CUDA_INTEGER_COMPARISON_OPS(X) SB_BINARY_COMPARISONS(SB_BINARY_ALONE, X)

#define SB_CUDA_INTEGER_OP(op) SB_CUDA_INTEGER_##op,
enum {
    SB_CUDA_INTEGER_UNARY_OPS(SB_CUDA_INTEGER_OP) SB_CUDA_INTEGER_BINARY_OPS(SB_CUDA_INTEGER_OP)
        SB_CUDA_INTEGER_COMPARISON_OPS(SB_CUDA_INTEGER_OP) SB_CUDA_INTEGER_OPS
};
#undef SB_CUDA_INTEGER_OP

#endif
