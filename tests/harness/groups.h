/* All groups of cases: X(family, group, the sides that must have a kernel for each case). The function family_group
 * makes the cases FAMILY.GROUP.0 and so on; each family is a file, and a test of its own. */
#ifndef HARNESS_GROUPS_H
#define HARNESS_GROUPS_H

#include "harness/harness.h"

/* clang-format off */
#define HARNESS_GROUPS(X) \
    X(axes, pools, HARNESS_CUDA) \
    X(axes, global_pools, HARNESS_CUDA) \
    X(axes, unpool, HARNESS_CUDA) \
    X(axes, best, HARNESS_CUDA) \
    X(axes, cumulative, HARNESS_CUDA) \
    X(axes, topk, HARNESS_CUDA) \
    X(axes, losses, HARNESS_CUDA) \
    X(axes, determinants, HARNESS_CUDA) \
    X(chain16, patterns, HARNESS_CPU) \
    X(chain16, shapes, HARNESS_CPU) \
    X(chain16, largest, HARNESS_CPU) \
    X(chain16, views, HARNESS_CPU) \
    X(conv, shapes, HARNESS_CUDA) \
    X(conv, tiles, HARNESS_CUDA) \
    X(conv, dtypes, HARNESS_CUDA) \
    X(conv, epilogues, HARNESS_CUDA) \
    X(convolution, random, HARNESS_CPU) \
    X(convolution, large, HARNESS_CPU) \
    X(convolution, empty, HARNESS_CPU) \
    X(elementwise, unary, HARNESS_CPU | HARNESS_CUDA) \
    X(elementwise, halves, HARNESS_CUDA) \
    X(elementwise, binary, HARNESS_CPU | HARNESS_CUDA) \
    X(elementwise, divisions, HARNESS_CUDA) \
    X(elementwise, remainders, HARNESS_CUDA) \
    X(elementwise, joins, HARNESS_CUDA) \
    X(elementwise, copies, HARNESS_CUDA) \
    X(epilogue, steps, HARNESS_CUDA) \
    X(epilogue, quick, HARNESS_CUDA) \
    X(f32_product, small, HARNESS_CPU) \
    X(f32_product, seams, HARNESS_CPU) \
    X(f32_product, steps, HARNESS_CPU) \
    X(f32_convolution, random, HARNESS_CPU) \
    X(f32_convolution, larger, HARNESS_CPU) \
    X(fused, bodies, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(fused, normalizations, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(fused, casts, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(fused, values, HARNESS_CPU | HARNESS_CUDA) \
    X(gemm, tiles, HARNESS_CUDA) \
    X(gemm, vectors, HARNESS_CUDA) \
    X(gemm, batches, HARNESS_CUDA) \
    X(gemm, dtypes, HARNESS_CUDA) \
    X(gemm, negative_zeros, HARNESS_CUDA) \
    X(gemm, gemm, HARNESS_CUDA) \
    X(gemm, epilogues, HARNESS_CUDA) \
    X(matmul, matmul, HARNESS_CPU) \
    X(matmul, large, HARNESS_CPU) \
    X(matmul, gemm, HARNESS_CPU) \
    X(moving, joins, HARNESS_CUDA) \
    X(moving, blocks, HARNESS_CUDA) \
    X(moving, pads, HARNESS_CUDA) \
    X(moving, making, HARNESS_CUDA) \
    X(moving, slices, HARNESS_CUDA) \
    X(moving, random, HARNESS_CUDA) \
    X(moving, gathers, HARNESS_CUDA) \
    X(moving, scatters, HARNESS_CUDA) \
    X(pool, windows, HARNESS_CPU) \
    X(pool, global, HARNESS_CPU) \
    X(recurrent, layers, HARNESS_CUDA) \
    X(recurrent, random, HARNESS_CPU | HARNESS_CUDA) \
    X(recurrent, lengths, HARNESS_CUDA) \
    X(rows, reductions, HARNESS_CUDA) \
    X(rows, plain_rows, HARNESS_CUDA) \
    X(rows, layers, HARNESS_CUDA) \
    X(rows, channels, HARNESS_CUDA) \
    X(sampling, resize, HARNESS_CUDA) \
    X(sampling, sampling, HARNESS_CUDA) \
    X(sampling, regions, HARNESS_CUDA) \
    X(sampling, transposed, HARNESS_CUDA) \
    X(sampling, deformed, HARNESS_CUDA) \
    X(sampling, folds, HARNESS_CUDA) \
    X(sampling, integer_convolutions, HARNESS_CUDA) \
    X(sampling, integer_products, HARNESS_CUDA) \
    X(sampling, einsum, HARNESS_CUDA) \
    X(sampling, spectra, HARNESS_CUDA) \
    X(select, casts, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(select, choices, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(select, clips, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(select, views, HARNESS_CPU | HARNESS_CUDA) \
    X(select, powers, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(select, joins, HARNESS_CPU_IF_ANY | HARNESS_CUDA) \
    X(select, normalizations, HARNESS_CUDA) \
    X(select, training, HARNESS_CUDA) \
    X(select, quantization, HARNESS_CUDA) \
    X(select, dropout, HARNESS_CUDA)
/* clang-format on */

#define HARNESS_DECLARE_GROUP(family, group, needs) void family##_##group(harness *h);
HARNESS_GROUPS(HARNESS_DECLARE_GROUP)
#undef HARNESS_DECLARE_GROUP
#define HARNESS_GROUP_ENTRY(family, group, needs) {#family "." #group, family##_##group, needs},

#endif
