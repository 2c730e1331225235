/* The families of CPU kernels: one source file and one table each. */
#ifndef IV_CPU_LIST_H
#define IV_CPU_LIST_H

#include "runtime/backend.h"

/* Each table ends with an entry without a name. Where several kernels take a node, the first wins. */
/* clang-format off */
#define IV_CPU_FAMILIES(family) \
    family(normalize) \
    family(matmul) \
    family(conv) \
    family(pool) \
    family(recurrent) \
    family(elementwise) \

/* clang-format on */

#define IV_DECLARE_FAMILY(name) extern const iv_kernel iv_cpu_kernels_##name[];
IV_CPU_FAMILIES(IV_DECLARE_FAMILY)
#undef IV_DECLARE_FAMILY

#endif
