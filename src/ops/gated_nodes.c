#include "ops/gated_nodes.h"

#include <string.h>

#include "ops/gated.h"

/* The last extent of a tensor of 16 bits with at least two dimensions; 0: it is none, or not known. */
static int64_t columns_of(const sb_graph *graph, sb_value_id value, sb_dtype dtype) {
    const sb_fact *fact = value != SB_NO_VALUE ? &graph->values[value].fact : NULL;
    int64_t columns = 0;
    if (fact == NULL || fact->kind != SB_KIND_TENSOR || fact->optional || fact->dtype != dtype ||
        fact->rank == SB_RANK_UNKNOWN || fact->rank < 2 || !sb_dim_is_constant(fact->dims[fact->rank - 1], &columns))
        return 0;
    return columns;
}

bool sb_gated_nodes_match(const sb_graph *graph, const sb_node *product, const sb_node *split, const sb_node *gated) {
    if (!sb_node_is(product, "MatMul") || !sb_node_is(split, "Split") || !sb_node_is(gated, "SwiGLU") ||
        split->output_count != 2 || product->outputs[0] == SB_NO_VALUE || split->inputs[0] != product->outputs[0] ||
        split->outputs[0] == SB_NO_VALUE || gated->inputs[0] != split->outputs[0] ||
        gated->inputs[1] != split->outputs[1] || ((const sb_gated_params *)gated->params)->alpha != 1.0f)
        return false;
    sb_dtype dtype = graph->values[product->outputs[0]].fact.dtype;
    const sb_fact *matrix = &graph->values[product->inputs[1]].fact;
    int64_t columns = columns_of(graph, split->outputs[0], dtype);
    /* Of halves of another axis both would have all columns. */
    return (dtype == SB_F16 || dtype == SB_BF16) && columns > 0 &&
           columns == columns_of(graph, split->outputs[1], dtype) &&
           columns_of(graph, product->outputs[0], dtype) == 2 * columns &&
           columns_of(graph, product->inputs[0], dtype) > 0 && columns_of(graph, product->inputs[1], dtype) > 0 &&
           matrix->rank == 2;
}

bool sb_gated_nodes_are(const sb_node *fused) {
    const sb_graph *body = (fused->op->flags & SB_OP_FUSED) != 0 ? sb_node_graph(fused, "body") : NULL;
    return body != NULL && body->node_count == 3 &&
           sb_gated_nodes_match(body, body->nodes[0], body->nodes[1], body->nodes[2]);
}
