/* The families of GPU kernels for operators: one table each. */
#ifndef SB_CUDA_LIST_H
#define SB_CUDA_LIST_H

#include "kernel/kernel.h"

/* Each table ends with an entry without a name. Where several kernels take a node, the first wins. */
/* clang-format off */
#define SB_CUDA_FAMILIES(family) \
    family(dropout) \
    family(slice) \
    family(views) \
    family(moving) \
    family(gather) \
    family(resize) \
    family(sampling) \
    family(windows) \
    family(einsum) \
    family(signal) \
    family(random) \
    family(matmul_integer) \
    family(convert) \
    family(quantize) \
    family(select) \
    family(matmul) \
    family(conv) \
    family(fused_elementwise) \
    family(reduce) \
    family(softmax) \
    family(pool) \
    family(order) \
    family(losses) \
    family(recurrent) \
    family(normalize) \
    family(batch) \
    family(variadic) \
    family(elementwise) \
    family(body)

/* clang-format on */

#define SB_DECLARE_FAMILY(name) extern const sb_kernel sb_cuda_kernels_##name[];
SB_CUDA_FAMILIES(SB_DECLARE_FAMILY)
#undef SB_DECLARE_FAMILY

/** A CUDA device's sb_kernel_finder. The kernels' `launch` gives tasks to call->target. */
sb_status sb_cuda_find_kernel(const sb_kernel_query *query, const sb_kernel **kernel, char *why, sb_error *error);

#endif
