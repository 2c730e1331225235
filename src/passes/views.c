/* Views that change nothing, and transposes of transposes. */
#include <string.h>

#include "base/allocation.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* Ops that hand their first input on, if only the output's dtype and shape are the input's. */
static bool keeps_order(const sb_op *op) {
    static const char *const names[] = {"Identity",  "Reshape", "Flatten", "Squeeze",
                                        "Unsqueeze", "Expand",  "Cast",    "CastLike"};
    if (op->domain[0] != '\0')
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(op->name, names[i]) == 0)
            return true;
    }
    return false;
}

/* A cache is joined with what was empty when the model was exported. */
static bool joins_one(const sb_node *node) {
    return strcmp(node->op->name, "Concat") == 0 && node->op->domain[0] == '\0' && node->input_count == 1;
}

static bool is_transpose(const sb_node *node) {
    return strcmp(node->op->name, "Transpose") == 0 && node->op->domain[0] == '\0';
}

/* The permutation of a Transpose over `rank` dimensions: its attribute, or the reversal. */
static void read_permutation(const sb_node *node, int rank, int64_t *permutation) {
    const sb_attribute *attribute = sb_attributes_find(&node->attributes, "perm");
    for (int i = 0; i < rank; i++)
        permutation[i] = attribute != NULL ? attribute->ints[i] : rank - 1 - i;
}

static bool is_order(int rank, const int64_t *permutation) {
    for (int i = 0; i < rank; i++) {
        if (permutation[i] != i)
            return false;
    }
    return true;
}

/* Makes `node`, a transpose of the transpose `inner`, read what `inner` reads. */
static sb_status join_transposes(sb_graph *graph, sb_node *node, const sb_node *inner, sb_error *error) {
    int rank = graph->values[node->inputs[0]].fact.rank;
    int64_t first[SB_MAX_RANK], second[SB_MAX_RANK], joined[SB_MAX_RANK];
    read_permutation(inner, rank, first);
    read_permutation(node, rank, second);
    for (int i = 0; i < rank; i++)
        joined[i] = first[second[i]];
    sb_attributes attributes = {0};
    SB_TRY(sb_attributes_add_ints(&attributes, "perm", false, rank, joined, error));
    sb_attributes_clear(&node->attributes);
    node->attributes = attributes;
    node->inputs[0] = inner->inputs[0];
    if (node->op->params_size != 0) {
        if (node->op->release != NULL)
            node->op->release(node->params);
        memset(node->params, 0, node->op->params_size);
    }
    return node->op->prepare != NULL ? node->op->prepare(node, error) : SB_OK;
}

static sb_status simplify(sb_graph *graph, sb_node *node, sb_error *error) {
    sb_value_id input = node->inputs[0], output = node->outputs[0];
    const sb_fact *from = &graph->values[input].fact, *to = &graph->values[output].fact;
    int producer = graph->values[input].producer;
    bool transpose = is_transpose(node);
    if (transpose && from->rank != SB_RANK_UNKNOWN && producer >= 0 && is_transpose(graph->nodes[producer])) {
        SB_TRY(join_transposes(graph, node, graph->nodes[producer], error));
        input = node->inputs[0];
        from = &graph->values[input].fact;
    }
    bool same = from->kind == SB_KIND_TENSOR && from->rank != SB_RANK_UNKNOWN && !from->optional &&
                sb_fact_same_shape(from, to);
    if (same && transpose) {
        int64_t permutation[SB_MAX_RANK];
        read_permutation(node, from->rank, permutation);
        same = is_order(from->rank, permutation);
    } else if (same) {
        same = keeps_order(node->op) || joins_one(node);
    }
    if (same && !sb_leaves_graph(graph, output))
        sb_rewrite_uses(graph, output, input);
    return SB_OK;
}

sb_status sb_pass_views(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    for (size_t n = 0; n < graph->node_count; n++) {
        sb_node *node = graph->nodes[n];
        if (node->input_count > 0 && node->inputs[0] != SB_NO_VALUE && node->output_count > 0 &&
            node->outputs[0] != SB_NO_VALUE)
            SB_TRY(simplify(graph, node, error));
    }
    return SB_OK;
}
