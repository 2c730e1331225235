#include "ops/attention_nodes.h"

#include <string.h>

#include "ops/softmax.h"

static const sb_fact *fact_of(const sb_graph *graph, sb_value_id value) {
    return &graph->values[value].fact;
}

/* A tensor of that dtype, or of the 16 bits of `like`, with at least so many dimensions. */
static bool is_tensor(const sb_fact *fact, sb_dtype dtype, int least_rank) {
    return fact->kind == SB_KIND_TENSOR && !fact->optional && fact->dtype == dtype && fact->rank != SB_RANK_UNKNOWN &&
           fact->rank >= least_rank;
}

static bool has_one_element(const sb_fact *fact) {
    for (int d = 0; d < fact->rank; d++) {
        int64_t extent;
        if (!sb_dim_is_constant(fact->dims[d], &extent) || extent != 1)
            return false;
    }
    return true;
}

static bool is_product(const sb_graph *graph, const sb_node *node, sb_dtype dtype) {
    return sb_node_is(node, "MatMul") && is_tensor(fact_of(graph, node->inputs[0]), dtype, 2) &&
           is_tensor(fact_of(graph, node->inputs[1]), dtype, 2);
}

/* A node behind the scores `value`, as a step whose operand is a value of `graph`. */
static bool is_step(const sb_graph *graph, const sb_node *node, sb_value_id value, sb_dtype dtype,
                    sb_attention_nodes *nodes) {
    bool adds = sb_node_is(node, "Add"), multiplies = sb_node_is(node, "Mul"), divides = sb_node_is(node, "Div");
    if ((!adds && !multiplies && !divides) || nodes->step_count == SB_ATTENTION_NODE_STEPS)
        return false;
    bool first = node->inputs[0] == value, second = node->inputs[1] == value;
    if (first == second || (divides && second))
        return false;
    sb_value_id operand = node->inputs[first ? 1 : 0];
    const sb_fact *fact = fact_of(graph, operand), *result = fact_of(graph, node->outputs[0]);
    if (!is_tensor(fact, dtype, 0) || fact->rank > result->rank || (!adds && !has_one_element(fact)))
        return false;
    nodes->steps[nodes->step_count].operation = adds         ? SB_ATTENTION_ADD
                                                : multiplies ? SB_ATTENTION_MULTIPLY
                                                             : SB_ATTENTION_DIVIDE;
    nodes->steps[nodes->step_count++].operand = operand;
    return true;
}

/* The value of the graph that a body's input is; SB_NO_VALUE: none. */
static sb_value_id outer_value(const sb_node *fused, const sb_graph *body, sb_value_id inner) {
    for (size_t i = 0; i < body->input_count; i++) {
        if (body->inputs[i] == inner)
            return fused->inputs[i];
    }
    return SB_NO_VALUE;
}

/* The product and steps inside of a fused node, with the outer graph's values. */
static bool match_body(const sb_node *fused, sb_dtype dtype, sb_attention_nodes *nodes) {
    const sb_graph *body = sb_node_graph(fused, "body");
    if (body == NULL || body->node_count == 0 || !is_product(body, body->nodes[0], dtype))
        return false;
    const sb_node *product = body->nodes[0];
    nodes->queries = outer_value(fused, body, product->inputs[0]);
    nodes->keys = outer_value(fused, body, product->inputs[1]);
    for (size_t n = 1; n < body->node_count; n++) {
        int step = nodes->step_count;
        if (!is_step(body, body->nodes[n], body->nodes[n - 1]->outputs[0], dtype, nodes))
            return false;
        nodes->steps[step].operand = outer_value(fused, body, nodes->steps[step].operand);
        if (nodes->steps[step].operand == SB_NO_VALUE)
            return false;
    }
    return nodes->queries != SB_NO_VALUE && nodes->keys != SB_NO_VALUE;
}

static bool match_scores(const sb_graph *graph, const sb_node *scores, sb_dtype dtype, sb_attention_nodes *nodes) {
    if ((scores->op->flags & SB_OP_FUSED) != 0)
        return match_body(scores, dtype, nodes);
    nodes->queries = scores->inputs[0];
    nodes->keys = scores->inputs[1];
    return is_product(graph, scores, dtype);
}

bool sb_attention_nodes_match(const sb_graph *graph, const sb_node *scores, const sb_node *softmax,
                              const sb_node *result, sb_attention_nodes *nodes) {
    *nodes = (sb_attention_nodes){0};
    if (!sb_node_is(softmax, "Softmax") || !sb_node_is(result, "MatMul") || softmax->inputs[0] != scores->outputs[0] ||
        result->inputs[0] != softmax->outputs[0] || result->inputs[1] == softmax->outputs[0] ||
        result->inputs[1] == scores->outputs[0])
        return false;
    const sb_fact *weights = fact_of(graph, softmax->outputs[0]);
    nodes->values = result->inputs[1];
    return (weights->dtype == SB_F16 || weights->dtype == SB_BF16) && is_tensor(weights, weights->dtype, 2) &&
           is_product(graph, result, weights->dtype) && match_scores(graph, scores, weights->dtype, nodes) &&
           sb_softmax_axes(softmax->params, weights->rank) == UINT32_C(1) << (weights->rank - 1);
}
