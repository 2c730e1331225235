/* Batch normalisation as one multiply-add per element: y = fma(x, a, b) with a = scale / sqrt(variance + epsilon) and
 * b = bias - mean a, each operation rounded, as the operator defines it. */
#ifndef SB_CPU_ELEMENTWISE_BATCH_FACTORS_H
#define SB_CPU_ELEMENTWISE_BATCH_FACTORS_H

#include "graph/op.h"

/** The factors of a BatchNormalization node whose inputs 1 to 4 are constants (facts[1] to facts[4]) of dtype
 * f32, as tensors that broadcast along dimension 1 of a tensor of rank `rank`. The caller releases both.
 * UNSUPPORTED for other dtypes. */
sb_status sb_batch_factors(const sb_node *node, const sb_fact *const *facts, int rank, sb_tensor **scale,
                           sb_tensor **shift, sb_error *error);

/** The row loop of y = fma(x, a, b) in f32: operands y, x, a, b; no context. */
sb_walk_row *sb_batch_factors_loop(sb_isa isa);

#endif
