/* The families of CPU kernels: one source file and one table each. */
#ifndef SB_CPU_LIST_H
#define SB_CPU_LIST_H

#include "kernel/kernel.h"

/* Each table ends with an entry without a name. Where several kernels take a node, the first wins. */
/* clang-format off */
#define SB_CPU_FAMILIES(family) \
    family(normalize) \
    family(matmul) \
    family(conv) \
    family(pool) \
    family(recurrent) \
    family(elementwise)

/* clang-format on */

#define SB_DECLARE_FAMILY(name) extern const sb_kernel sb_cpu_kernels_##name[];
SB_CPU_FAMILIES(SB_DECLARE_FAMILY)
#undef SB_DECLARE_FAMILY

/** The CPU's sb_kernel_finder. */
sb_status sb_cpu_find_kernel(const sb_kernel_query *query, const sb_kernel **kernel, char *why, sb_error *error);

#endif
