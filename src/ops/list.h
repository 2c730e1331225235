/* The families of operators: one source file and one table each. Adding an op is one entry in its family's table. */
#ifndef SB_OPS_LIST_H
#define SB_OPS_LIST_H

#include "graph/op.h"

/* Each table ends with an entry without a name. */
/* clang-format off */
#define SB_OP_FAMILIES(family) \
    family(identity) \
    family(constants) \
    family(views) \
    family(slices) \
    family(joins) \
    family(pad) \
    family(blocks) \
    family(gather) \
    family(scatter) \
    family(selection) \
    family(topk) \
    family(control) \
    family(loop) \
    family(scan) \
    family(sequences) \
    family(resize) \
    family(einsum) \
    family(determinant) \
    family(text) \
    family(random) \
    family(sampling) \
    family(regions) \
    family(signal) \
    family(fused) \
    family(unary) \
    family(binary) \
    family(power) \
    family(variadic) \
    family(select) \
    family(cast) \
    family(quantize) \
    family(reduce) \
    family(arg_reduce) \
    family(cumulative) \
    family(softmax) \
    family(row_normalization) \
    family(normalization) \
    family(batch_normalization) \
    family(dropout) \
    family(losses) \
    family(matmul) \
    family(gemm) \
    family(matmul_integer) \
    family(convolution) \
    family(convolution_transpose) \
    family(convolution_integer) \
    family(convolution_deformable) \
    family(pool_max) \
    family(pool_average) \
    family(pool_global) \
    family(recurrent)

/* clang-format on */

#define SB_DECLARE_FAMILY(name) extern const sb_op sb_ops_##name[];
SB_OP_FAMILIES(SB_DECLARE_FAMILY)
#undef SB_DECLARE_FAMILY

#endif
