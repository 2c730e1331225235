/* All families, the one place that names them: a new one has a row here, and whatever goes through all families finds it.
 *
 * A row says which tables the family has, each an array that an entry without a name ends:
 *
 *     ops     sb_ops_<family>: operators, in src/ops
 *     axes    sb_axes_<family>: rules of axes, in src/ops
 *     cost    sb_cost_<family>: rules of costs, in src/ops
 *     cpu     sb_cpu_kernels_<family>: the host's kernels, in src/cpu
 *     cuda    sb_cuda_kernels_<family>: a GPU's kernels, in src/cuda
 *
 * and `no` where it has none. Of several kernels that take a node, that of the upper row wins: those that take any operator
 * stand last. Families of rules and of kernels need not be those of operators. */
#ifndef SB_OPS_FAMILIES_H
#define SB_OPS_FAMILIES_H

/* clang-format off */
#define SB_FAMILIES(F, ...) \
    F(dropout,                ops,  no,   no,   no,   cuda, __VA_ARGS__) \
    F(identity,               ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(constants,              ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(slice,                  no,   no,   no,   no,   cuda, __VA_ARGS__) \
    F(views,                  ops,  axes, no,   no,   cuda, __VA_ARGS__) \
    F(parts,                  no,   axes, no,   no,   no,   __VA_ARGS__) \
    F(slices,                 ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(joins,                  ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(pad,                    ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(blocks,                 ops,  axes, no,   no,   no,   __VA_ARGS__) \
    F(moving,                 no,   no,   cost, no,   cuda, __VA_ARGS__) \
    F(gather,                 ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(scatter,                ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(tensor_scatter,         ops,  axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(features,               ops,  axes, cost, no,   no,   __VA_ARGS__) \
    F(selection,              ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(tile,                   no,   no,   no,   cpu,  no,   __VA_ARGS__) \
    F(topk,                   ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(indexing,               no,   axes, no,   no,   no,   __VA_ARGS__) \
    F(control,                ops,  axes, cost, no,   no,   __VA_ARGS__) \
    F(loop,                   ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(scan,                   ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(sequences,              ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(resize,                 ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(sampling,               ops,  axes, no,   cpu,  cuda, __VA_ARGS__) \
    F(windows,                no,   axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(regions,                ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(einsum,                 ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(determinant,            ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(text,                   ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(text_parts,             ops,  axes, cost, no,   no,   __VA_ARGS__) \
    F(regex,                  ops,  axes, cost, no,   no,   __VA_ARGS__) \
    F(signal,                 ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(random,                 ops,  axes, no,   no,   cuda, __VA_ARGS__) \
    F(matmul_integer,         ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(convert,                no,   no,   no,   no,   cuda, __VA_ARGS__) \
    F(cast,                   ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(bit_cast,               ops,  axes, cost, no,   no,   __VA_ARGS__) \
    F(quantize,               ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(dynamic_quantize,       no,   no,   no,   cpu,  no,   __VA_ARGS__) \
    F(select,                 ops,  no,   no,   no,   cuda, __VA_ARGS__) \
    F(contraction,            no,   axes, cost, no,   no,   __VA_ARGS__) \
    F(attention_nodes,        no,   no,   no,   no,   cuda, __VA_ARGS__) \
    F(integer_product,        no,   no,   no,   cpu,  no,   __VA_ARGS__) \
    F(matmul,                 ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(gemm,                   ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(convolution,            ops,  axes, no,   no,   no,   __VA_ARGS__) \
    F(convolution_transpose,  ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(convolution_integer,    ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(convolution_deformable, ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(causal_convolution,     ops,  axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(conv,                   no,   no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(fused,                  ops,  axes, cost, no,   no,   __VA_ARGS__) \
    F(fused_elementwise,      no,   no,   no,   no,   cuda, __VA_ARGS__) \
    F(rows,                   no,   axes, cost, no,   no,   __VA_ARGS__) \
    F(reduce,                 ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(whole_rows,             no,   no,   no,   cpu,  no,   __VA_ARGS__) \
    F(arg_reduce,             ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(cumulative,             ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(softmax,                ops,  no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(pool,                   no,   no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(pool_max,               ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(pool_average,           ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(pool_global,            ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(order,                  no,   no,   no,   no,   cuda, __VA_ARGS__) \
    F(losses,                 ops,  axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(choose,                 ops,  axes, cost, no,   cuda, __VA_ARGS__) \
    F(recurrent,              ops,  axes, no,   cpu,  cuda, __VA_ARGS__) \
    F(attention,              ops,  axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(paged,                  ops,  axes, cost, cpu,  no,   __VA_ARGS__) \
    F(paged_append,           ops,  axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(linear_attention,       ops,  axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(flex_attention,         ops,  axes, cost, no,   cuda, __VA_ARGS__) \
    F(rotary,                 ops,  axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(normalization,          ops,  no,   no,   cpu,  no,   __VA_ARGS__) \
    F(row_normalization,      ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(batch_normalization,    ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(normalize,              no,   no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(normalize_groups,       no,   no,   no,   cpu,  no,   __VA_ARGS__) \
    F(batch,                  no,   no,   no,   cpu,  cuda, __VA_ARGS__) \
    F(variadic,               ops,  no,   no,   no,   cuda, __VA_ARGS__) \
    F(gated,                  ops,  axes, cost, no,   cuda, __VA_ARGS__) \
    F(unary,                  ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(binary,                 ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(power,                  ops,  no,   no,   no,   no,   __VA_ARGS__) \
    F(elementwise,            no,   axes, cost, cpu,  cuda, __VA_ARGS__) \
    F(body,                   no,   no,   no,   no,   cuda, __VA_ARGS__)

#define SB_FAMILY_no(...)
#define SB_FAMILY_ops(...) __VA_ARGS__
#define SB_FAMILY_axes(...) __VA_ARGS__
#define SB_FAMILY_cost(...) __VA_ARGS__
#define SB_FAMILY_cpu(...) __VA_ARGS__
#define SB_FAMILY_cuda(...) __VA_ARGS__

#define SB_WITH_OPS(name, ops, axes, cost, cpu, cuda, X) SB_FAMILY_##ops(X(name))
#define SB_WITH_AXES(name, ops, axes, cost, cpu, cuda, X) SB_FAMILY_##axes(X(name))
#define SB_WITH_COST(name, ops, axes, cost, cpu, cuda, X) SB_FAMILY_##cost(X(name))
#define SB_WITH_CPU(name, ops, axes, cost, cpu, cuda, X) SB_FAMILY_##cpu(X(name))
#define SB_WITH_CUDA(name, ops, axes, cost, cpu, cuda, X) SB_FAMILY_##cuda(X(name))

/* X(family) for each that has such a table. */
#define SB_OP_FAMILIES(X) SB_FAMILIES(SB_WITH_OPS, X)
#define SB_AXES_FAMILIES(X) SB_FAMILIES(SB_WITH_AXES, X)
#define SB_COST_FAMILIES(X) SB_FAMILIES(SB_WITH_COST, X)
#define SB_CPU_FAMILIES(X) SB_FAMILIES(SB_WITH_CPU, X)
#define SB_CUDA_FAMILIES(X) SB_FAMILIES(SB_WITH_CUDA, X)
/* clang-format on */

#endif
