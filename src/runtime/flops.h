/* Counting a node's arithmetic from its facts. */
#ifndef IV_RUNTIME_FLOPS_H
#define IV_RUNTIME_FLOPS_H

#include "graph/op.h"

/** The operations of one run of the node as a formula in `scope`, counted as <invar/inspect.h>
 * says.
 *
 * *flops is NULL when the op's count is not known, or the facts leave it open. Nodes with graphs of
 * their own are not counted here. `inputs` has an entry per node input (NULL where omitted),
 * `outputs` one per output. Errors: OUT_OF_MEMORY. */
iv_status iv_node_flops(const iv_node *node, iv_scope *scope, const iv_fact *const *inputs,
                        const iv_fact *outputs, iv_dim *flops, iv_error *error);

#endif
