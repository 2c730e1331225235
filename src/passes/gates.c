/* A gate and what it opens, which one product makes since they were joined (join.c), become one node with SwiGLU behind them
 * (ops/gated_nodes.h): a kernel that has a column's gate and its value at hand writes what comes of them, and neither of them.
 *
 * Only where the weights lie by columns, as those of linear layers do. Of weights that lie by rows the quick kernels of a GPU
 * cannot bring gates and values to the same thread, and two kernels are quicker than a slow one. */
#include <string.h>

#include "ops/gated_nodes.h"
#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* Gates and values in eights, as the copy engine of a GPU takes turns with them. */
#define COLUMN_UNIT 16

static bool lies_by_columns(const sb_graph *graph, sb_value_id weights) {
    const sb_tensor *tensor = sb_is_constant(graph, weights) ? graph->values[weights].fact.constant : NULL;
    return tensor != NULL && tensor->rank == 2 && tensor->strides[0] == 1 && tensor->dims[0] > 0 &&
           tensor->dims[1] % COLUMN_UNIT == 0;
}

/* The group that ends with node `last`. */
static bool find_group(const sb_graph *graph, size_t last, sb_group *group) {
    const sb_node *gated = graph->nodes[last];
    if (gated == NULL || strcmp(gated->op->name, "SwiGLU") != 0 || sb_only_output(gated) == SB_NO_VALUE)
        return false;
    group->count = 3;
    group->nodes[2] = last;
    const sb_node *split = sb_maker_of(graph, gated->inputs[0], &group->nodes[1]);
    const sb_node *product =
        split != NULL && split->input_count > 0 ? sb_maker_of(graph, split->inputs[0], &group->nodes[0]) : NULL;
    return product != NULL && sb_gated_nodes_match(graph, product, split, gated) &&
           lies_by_columns(graph, product->inputs[1]);
}

sb_status sb_pass_gates(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    return sb_groups_fuse(graph, find_group, error);
}
