/* What several kernels answer when they are asked whether they take a node. */
#ifndef SB_CPU_SUPPORTS_H
#define SB_CPU_SUPPORTS_H

#include "kernel/kernel.h"

/** Any node: the definition takes nothing that the kernel does not. */
bool sb_cpu_supports_all(const sb_kernel_query *query, char *why);

/** Nodes whose first input is computed in f32: of f32, f16 or bf16. Else `why` says so. */
bool sb_cpu_supports_small_floats(const sb_kernel_query *query, char *why);

#endif
