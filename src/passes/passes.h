/* Passes: graph to graph, never changing a bit of an output. */
#ifndef IV_PASSES_PASSES_H
#define IV_PASSES_PASSES_H

#include "graph/op.h"

/** Runs all passes over a graph whose facts are inferred, and over the graphs inside it, in place. */
iv_status iv_passes_run(iv_graph *graph, iv_scope *scope, iv_error *error);

/* The single passes, in the order in which they run. Each works on one graph, not on those inside it. */

/** Turns values that follow from constants into constants. */
iv_status iv_pass_fold(iv_graph *graph, iv_scope *scope, iv_error *error);
/** Takes out nodes whose output is their input, and joins transposes of transposes. */
iv_status iv_pass_views(iv_graph *graph, iv_scope *scope, iv_error *error);
/** Computes what is computed twice once. */
iv_status iv_pass_merge(iv_graph *graph, iv_scope *scope, iv_error *error);
/** Removes nodes and constants that no output needs. */
iv_status iv_pass_sweep(iv_graph *graph, iv_scope *scope, iv_error *error);
/** Gathers nodes that one kernel can compute together into a node with a graph of its own. */
iv_status iv_pass_fuse(iv_graph *graph, iv_scope *scope, iv_error *error);

#endif
