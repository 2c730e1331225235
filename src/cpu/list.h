/* The tables of CPU kernels, one for each family of ops/families.h that has any. */
#ifndef SB_CPU_LIST_H
#define SB_CPU_LIST_H

#include "kernel/kernel.h"
#include "ops/families.h"

#define SB_DECLARE_FAMILY(name) extern const sb_kernel sb_cpu_kernels_##name[];
SB_CPU_FAMILIES(SB_DECLARE_FAMILY)
#undef SB_DECLARE_FAMILY

/** The CPU's sb_kernel_finder. */
sb_status sb_cpu_find_kernel(const sb_kernel_query *query, const sb_kernel **kernel, char *why, sb_error *error);

#endif
