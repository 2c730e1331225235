/* The tables of GPU kernels for operators, one for each family of ops/families.h that has any. */
#ifndef SB_CUDA_LIST_H
#define SB_CUDA_LIST_H

#include "kernel/kernel.h"
#include "ops/families.h"

#define SB_DECLARE_FAMILY(name) extern const sb_kernel sb_cuda_kernels_##name[];
SB_CUDA_FAMILIES(SB_DECLARE_FAMILY)
#undef SB_DECLARE_FAMILY

/** A CUDA device's sb_kernel_finder. The kernels' `launch` gives tasks to call->target. */
sb_status sb_cuda_find_kernel(const sb_kernel_query *query, const sb_kernel **kernel, char *why, sb_error *error);

#endif
