/* Graphs that are fused into one node, as cases: their inputs and constants. */
#ifndef HARNESS_GRAPHS_H
#define HARNESS_GRAPHS_H

#include "harness/harness.h"

/** An input of the graph, whose tensor goes to the place in `tensors` that its number says. */
sb_value_id graph_input(harness *h, builder *b, sb_dtype dtype, int rank, const int64_t *dims, layout layout,
                        sb_tensor **tensors);
/** A constant of rank 0. */
sb_value_id graph_scalar(builder *b, sb_dtype dtype, float value);
/** Attributes of one number. */
void set_graph_int(sb_attributes *attributes, const char *name, int64_t value);
void set_graph_float(sb_attributes *attributes, const char *name, float value);
void release_all(sb_tensor **tensors, size_t count);

#endif
