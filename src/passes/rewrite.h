/* Small changes to graphs, from which passes are made. */
#ifndef SB_PASSES_REWRITE_H
#define SB_PASSES_REWRITE_H

#include "graph/op.h"

/** Makes every node that reads `from` read `to`. Graph outputs and updates stay as they are. */
void sb_rewrite_uses(sb_graph *graph, sb_value_id from, sb_value_id to);

/** Whether the value leaves the graph: as an output, or as what a variable is left with. */
bool sb_leaves_graph(const sb_graph *graph, sb_value_id value);

/** Whether the value is the same in every run and known. A variable's version never is. */
bool sb_is_constant(const sb_graph *graph, sb_value_id value);

/** The node that makes the value, and where it stands (NULL: not asked); NULL: none does, or it has been moved into a body. */
const sb_node *sb_maker_of(const sb_graph *graph, sb_value_id value, size_t *number);

/** Takes the value away from the node that makes it: the caller makes it a constant. */
void sb_detach_value(sb_graph *graph, sb_value_id value);

/** Puts the nodes from `fresh` on, the last ones, to `place`, ahead of what is there. Which node makes a value has to be found anew then
 * (sb_groups_close_gaps). Errors: OUT_OF_MEMORY. */
sb_status sb_rewrite_move(sb_graph *graph, size_t fresh, size_t place, sb_error *error);

#endif
