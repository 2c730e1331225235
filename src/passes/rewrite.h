/* Small changes to graphs, from which passes are made. */
#ifndef IV_PASSES_REWRITE_H
#define IV_PASSES_REWRITE_H

#include "graph/op.h"

/** Makes every node that reads `from` read `to`. Graph outputs stay as they are. */
void iv_rewrite_uses(iv_graph *graph, iv_value_id from, iv_value_id to);

/** Whether the value is one of the graph's outputs. */
bool iv_is_graph_output(const iv_graph *graph, iv_value_id value);

/** Whether the value is the same in every run and known. */
bool iv_is_constant(const iv_graph *graph, iv_value_id value);

/** Takes the value away from the node that makes it: the caller makes it a constant. */
void iv_detach_value(iv_graph *graph, iv_value_id value);

#endif
