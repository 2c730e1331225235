/* Dead code: keeps the nodes from which a path leads to an output or to an update of a variable,
 * and the reads that such nodes need. */
#include "base/allocation.h"
#include "passes/passes.h"

static bool any_needed(const sb_node *node, const bool *needed) {
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE && needed[node->outputs[i]])
            return true;
    }
    return false;
}

static void drop_reads(sb_graph *graph, const bool *needed) {
    size_t kept = 0;
    for (size_t i = 0; i < graph->read_count; i++) {
        if (needed[graph->reads[i].value])
            graph->reads[kept++] = graph->reads[i];
    }
    graph->read_count = kept;
}

sb_status sb_pass_sweep(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    bool *needed = sb_allocate_array(graph->value_count, sizeof *needed);
    if (needed == NULL)
        return sb_fail_memory(error, graph->value_count * sizeof *needed);
    for (size_t o = 0; o < graph->output_count; o++)
        needed[graph->outputs[o]] = true;
    for (size_t u = 0; u < graph->update_count; u++)
        needed[graph->updates[u].value] = true;
    for (size_t n = graph->node_count; n-- > 0;) {
        sb_node *node = graph->nodes[n];
        if (!any_needed(node, needed)) {
            sb_node_destroy(node);
            graph->nodes[n] = NULL;
            continue;
        }
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != SB_NO_VALUE)
                needed[node->inputs[i]] = true;
        }
    }
    size_t kept = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        sb_node *node = graph->nodes[n];
        if (node == NULL)
            continue;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != SB_NO_VALUE)
                graph->values[node->outputs[i]].producer = (int)kept;
        }
        graph->nodes[kept++] = node;
    }
    graph->node_count = kept;
    drop_reads(graph, needed);
    for (size_t i = 0; i < graph->input_count; i++)
        needed[graph->inputs[i]] = true;
    for (size_t v = 0; v < graph->value_count; v++) {
        if (!needed[v]) {
            sb_fact_clear(&graph->values[v].fact);
            graph->values[v].producer = -1;
        }
    }
    sb_free(needed);
    return SB_OK;
}
