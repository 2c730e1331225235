/* What the operators with graphs of their own share: facts that hold for several runs of a graph,
 * and results stacked to one tensor. */
#ifndef IV_OPS_CONTROL_H
#define IV_OPS_CONTROL_H

#include "graph/op.h"

/* The parameters of every operator with the flag IV_OP_CONTROL begin with this. */
typedef struct iv_control_params {
    int height; /* how deep such operators are nested in its graphs, itself included */
} iv_control_params;

/** From this height on, facts of repeated graphs are found in one step with open ranks instead of
 * by refinement, so that inference stays linear in the depth of nesting. */
#define IV_CONTROL_REFINED_HEIGHT 4

/** Checks that the node has the graph attribute `name` with as many inputs (captures not counted)
 * as given, or any number for -1, and raises the height in the node's params above those in the
 * graph. */
iv_status iv_control_prepare(iv_node *node, const char *name, int inputs, iv_graph **graph,
                             iv_error *error);

/** Widens `into` so that it describes both what it described and `other`: extents that differ
 * become fresh ones of output `output`, ranks that differ become open, values that differ are
 * dropped. *changed is set when `into` was changed. With `repeated`, extents of `into` that an
 * earlier merge made fresh already stand for any. SHAPE when kinds or dtypes differ. */
iv_status iv_control_merge(iv_infer *infer, int output, iv_fact *into, const iv_fact *other,
                           bool repeated, bool *changed);
/** Forgets all of a tensor or sequence but its kind and dtype. */
void iv_control_forget(iv_fact *fact);
/** Whether a formula consists of symbols that the node's inputs mention, so that it means the same
 * outside the graph. */
bool iv_control_closed(const iv_infer *infer, iv_dim dim);

/** Stacks `count` tensors of equal dtype and extents along a new axis `axis` (in [0, rank]), the
 * first one last if `reverse`. With no tensors the result has the dtype and (constant) element
 * extents of `fact`, whose axis `axis` is the stack's; open ones are 0. `*stack` is the caller's.
 */
iv_status iv_control_stack(const iv_call *call, const iv_fact *fact, int axis, bool reverse,
                           int64_t count, iv_tensor *const *tensors, iv_tensor **stack);

/** A list of tensors, each of which it holds a reference to. */
typedef struct iv_control_list {
    iv_tensor **items;
    size_t count, capacity;
} iv_control_list;

/** Appends a tensor, whose reference moves into the list (also on failure). */
iv_status iv_control_append(iv_control_list *list, iv_tensor *tensor, iv_error *error);
/** Releases the tensors and the list's memory. */
void iv_control_clear(iv_control_list *list);

#endif
