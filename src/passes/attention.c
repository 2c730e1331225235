/* Attention that a model writes as nodes of f16 or bf16 (ops/attention_nodes.h) becomes one node, after other nodes have been
 * fused: its body is the scores, a MatMul or what has been fused with it, Softmax, and the product with the values. Run one by
 * one they are what they were before.
 *
 * Of a decoder's caches keys are more than queries, and of them all but the last are read in each step: these stay single
 * nodes, whose kernels share out the keys of one query, and which stop at the rows that a cache uses. */
#include <string.h>

#include "ops/attention_nodes.h"
#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* As many queries as keys, or queries for whole blocks of threads, or few enough keys for any number of queries. */
static bool is_wanted(const sb_fact *scores) {
    sb_dim rows = scores->dims[scores->rank - 2], keys = scores->dims[scores->rank - 1];
    int64_t row_count, key_count;
    return sb_dim_equal(rows, keys) || (sb_dim_is_constant(keys, &key_count) &&
                                        (key_count <= SB_ATTENTION_NODE_KEYS || (sb_dim_is_constant(rows, &row_count) &&
                                                                                 row_count >= SB_ATTENTION_NODE_ROWS)));
}

/* The group that ends with node `last`. */
static bool find_group(const sb_graph *graph, size_t last, sb_group *group) {
    const sb_node *result = graph->nodes[last];
    if (result == NULL || strcmp(result->op->name, "MatMul") != 0 || result->op->domain[0] != '\0')
        return false;
    const sb_node *softmax = sb_maker_of(graph, result->inputs[0], NULL);
    if (softmax == NULL || strcmp(softmax->op->name, "Softmax") != 0)
        return false;
    const sb_node *scores = sb_maker_of(graph, softmax->inputs[0], NULL);
    sb_attention_nodes nodes;
    if (scores == NULL || !sb_attention_nodes_match(graph, scores, softmax, result, &nodes) ||
        !is_wanted(&graph->values[softmax->inputs[0]].fact))
        return false;
    group->count = 3;
    group->nodes[0] = (size_t)graph->values[softmax->inputs[0]].producer;
    group->nodes[1] = (size_t)graph->values[result->inputs[0]].producer;
    group->nodes[2] = last;
    return true;
}

sb_status sb_pass_attention(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    return sb_groups_fuse(graph, find_group, error);
}
