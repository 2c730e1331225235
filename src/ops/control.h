/* What the operators with graphs of their own share: facts that hold for several runs of a graph,
 * and results stacked to one tensor. */
#ifndef SB_OPS_CONTROL_H
#define SB_OPS_CONTROL_H

#include "graph/op.h"

/* The parameters of every operator with the flag SB_OP_CONTROL begin with this. */
typedef struct sb_control_params {
    int height; /* how deep such operators are nested in its graphs, itself included */
} sb_control_params;

/** From this height on, facts of repeated graphs are found in one step with open ranks instead of
 * by refinement, so that inference stays linear in the depth of nesting. */
#define SB_CONTROL_REFINED_HEIGHT 4

/** Checks that the node has the graph attribute `name` with as many inputs (captures not counted) as given, or any
 * number for -1, and raises the height in the node's params above those in the graph. */
sb_status sb_control_prepare(sb_node *node, const char *name, int inputs, sb_graph **graph, sb_error *error);

/** Widens `into` so that it describes both what it described and `other`: extents that differ
 * become fresh ones of output `output`, ranks that differ become open, values that differ are
 * dropped. *changed is set when `into` was changed. With `repeated`, extents of `into` that an
 * earlier merge made fresh already stand for any. SHAPE when kinds or dtypes differ. */
sb_status sb_control_merge(sb_infer *infer, int output, sb_fact *into, const sb_fact *other, bool repeated,
                           bool *changed);
/** Forgets all of a tensor or sequence but its kind and dtype. */
void sb_control_forget(sb_fact *fact);
/** Whether a formula consists of symbols that the node's inputs mention, so that it means the same
 * outside the graph. */
bool sb_control_closed(const sb_infer *infer, sb_dim dim);

/** Stacks `count` tensors of equal dtype and extents along a new axis `axis` (in [0, rank]), the first one last if
 * `reverse`. With no tensors the result has the dtype and (constant) element extents of `fact`, whose axis `axis` is
 * the stack's; open ones are 0. `*stack` is the caller's. */
sb_status sb_control_stack(const sb_call *call, const sb_fact *fact, int axis, bool reverse, int64_t count,
                           sb_tensor *const *tensors, sb_tensor **stack);

/** A list of tensors, each of which it holds a reference to. */
typedef struct sb_control_list {
    sb_tensor **items;
    size_t count, capacity;
} sb_control_list;

/** Appends a tensor, whose reference moves into the list (also on failure). */
sb_status sb_control_append(sb_control_list *list, sb_tensor *tensor, sb_error *error);
/** Releases the tensors and the list's memory. */
void sb_control_clear(sb_control_list *list);

#endif
