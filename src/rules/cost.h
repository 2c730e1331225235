/* Counting a node's arithmetic from its facts. */
#ifndef SB_RULES_COST_H
#define SB_RULES_COST_H

#include "graph/op.h"

/** The operations of one run of the node as a formula in `scope`, counted as <samebit/inspect.h>
 * says.
 *
 * *flops is NULL when the op's count is not known, or the facts leave it open. Nodes with graphs of
 * their own are not counted here. `inputs` has an entry per node input (NULL where omitted),
 * `outputs` one per output. Errors: OUT_OF_MEMORY. */
sb_status sb_node_flops(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *outputs,
                        sb_dim *flops, sb_error *error);

#endif
