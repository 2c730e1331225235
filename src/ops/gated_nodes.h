/* A gate behind the product that makes it and what it opens: MatMul, Split into two halves of its columns, and SwiGLU of these. Each
 * node keeps its own rounding: gates and values are rounded to 16 bits, and then the result. Which nodes these are is said here
 * once, for the pass that gathers them and for kernels that compute them together. */
#ifndef SB_OPS_GATED_NODES_H
#define SB_OPS_GATED_NODES_H

#include "graph/op.h"

/** Whether these nodes of `graph` are that, each reading the one before, of f16 or bf16: `product` a MatMul of rows and a matrix,
 * `split` its last axis into two equal parts, `gated` a SwiGLU with alpha 1 of the first, which is the gate, and the second. */
bool sb_gated_nodes_match(const sb_graph *graph, const sb_node *product, const sb_node *split, const sb_node *gated);

/** Whether a Fused node has nothing but these in its body. */
bool sb_gated_nodes_are(const sb_node *fused);

#endif
