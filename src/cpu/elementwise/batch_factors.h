/* Batch normalisation as one multiply-add per element: y = fma(x, a, b) with a = scale / sqrt(variance + epsilon) and
 * b = bias - mean a, each operation rounded, as the operator defines it. */
#ifndef SB_CPU_ELEMENTWISE_BATCH_FACTORS_H
#define SB_CPU_ELEMENTWISE_BATCH_FACTORS_H

#include "graph/op.h"

/** The factors of a BatchNormalization node whose inputs 1 to 4 are constants (facts[1] to facts[4]) of f32, f16 or
 * bf16, as tensors of f32 that broadcast along dimension 1 of a tensor of rank `rank`. The caller releases both.
 * UNSUPPORTED for other dtypes. */
sb_status sb_batch_factors(const sb_node *node, const sb_fact *const *facts, int rank, sb_tensor **scale,
                           sb_tensor **shift, sb_error *error);

/** The row loop of y = fma(x, a, b), x and y of f32, f16 or bf16 (rounded once), a and b of f32: operands y, x, a, b; no
 * context. NULL for other dtypes. */
sb_walk_row *sb_batch_factors_loop(sb_isa isa, sb_dtype dtype);

#endif
