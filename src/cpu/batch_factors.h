/* Batch normalisation as one multiply-add per element: y = fma(x, a, b) with a = scale / sqrt(variance + epsilon) and
 * b = bias - mean a, each operation rounded, as the operator defines it. */
#ifndef IV_CPU_BATCH_FACTORS_H
#define IV_CPU_BATCH_FACTORS_H

#include "graph/op.h"

/** The factors of a BatchNormalization node whose inputs 1 to 4 are constants (facts[1] to facts[4]) of dtype f32, as tensors that broadcast
 * along dimension 1 of a tensor of rank `rank`. The caller releases both. UNSUPPORTED for other dtypes. */
iv_status iv_batch_factors(const iv_node *node, const iv_fact *const *facts, int rank,
                           iv_tensor **scale, iv_tensor **shift, iv_error *error);

/** The row loop of y = fma(x, a, b) in f32: operands y, x, a, b; no context. */
iv_walk_row *iv_batch_factors_loop(iv_isa isa);

#endif
