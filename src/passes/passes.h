/* Passes: graph to graph, never changing a bit of an output or of an update.
 *
 * What updates a variable is a value like others, and so is the version that a graph reads (graph/variable.h): a
 * version is never a constant, nodes that read different versions read different values, and what a variable is left
 * with is as needed as an output. Only a node that is moved has to heed more: see sb_pass_fuse. */
#ifndef SB_PASSES_PASSES_H
#define SB_PASSES_PASSES_H

#include "graph/op.h"

/** Runs all passes over a graph whose facts are inferred, and over the graphs inside it, in place. */
sb_status sb_passes_run(sb_graph *graph, sb_scope *scope, sb_error *error);

/* The single passes, in the order in which they run. Each works on one graph, not on those inside it. */

/** Turns values that follow from constants into constants. */
sb_status sb_pass_fold(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Takes out nodes whose output is their input, and joins transposes of transposes. */
sb_status sb_pass_views(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Has a Gather of one known index be a view: a Slice, and a Squeeze behind it. */
sb_status sb_pass_picks(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Computes what is computed twice once. */
sb_status sb_pass_merge(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Removes nodes, constants and reads of variables that no output and no update needs. */
sb_status sb_pass_sweep(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Makes one product of several of 16 bits that read the same rows, whose weights are constants of the graph's own, or lie in a mapped
 * file: Q, K and V, a gate and what it opens.
 * What each made is a view of its columns, where all who read it take strides. The single weights go. */
sb_status sb_pass_join(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Gathers a joined product of a gate and what it opens, and SwiGLU behind it: ops/gated_nodes.h. */
sb_status sb_pass_gates(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Gathers products of quantized networks, with the quantization behind: ops/integer_product.h. */
sb_status sb_pass_integers(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Gathers nodes that one kernel can compute together into a node with a graph of its own. The version of a
 * variable that a node reads may lie in the bytes that its update writes, so no reader is moved behind the node
 * that makes the update. */
sb_status sb_pass_fuse(sb_graph *graph, sb_scope *scope, sb_error *error);
/** Gathers attention that is written as nodes of 16 bits: ops/attention_nodes.h. */
sb_status sb_pass_attention(sb_graph *graph, sb_scope *scope, sb_error *error);

#endif
