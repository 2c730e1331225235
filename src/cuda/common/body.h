/* Graphs inside of nodes that a launch runs on the device (sb_call_run_graph). */
#ifndef SB_CUDA_COMMON_BODY_H
#define SB_CUDA_COMMON_BODY_H

#include "kernel/kernel.h"

/** Whether every node of `body`, a graph of the query's node, has a kernel of the device that reads nothing on the host but constants,
 * or outputs that follow from extents. `inputs` are facts of the graph's inputs, of which dtype and extents count; NULL where
 * nothing is known. `why` as for sb_kernel.supports; sets *query->exhausted where memory runs out. */
bool sb_cuda_graph_fits(const sb_kernel_query *query, const sb_graph *body, const sb_fact *const *inputs, char *why);

#endif
