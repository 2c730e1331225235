#include "passes/rewrite.h"

void iv_rewrite_uses(iv_graph *graph, iv_value_id from, iv_value_id to) {
    for (size_t n = 0; n < graph->node_count; n++) {
        iv_node *node = graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == from)
                node->inputs[i] = to;
        }
    }
}

bool iv_is_graph_output(const iv_graph *graph, iv_value_id value) {
    for (size_t i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i] == value)
            return true;
    }
    return false;
}

bool iv_is_constant(const iv_graph *graph, iv_value_id value) {
    return graph->values[value].producer == -1 && graph->values[value].fact.constant != NULL;
}

void iv_detach_value(iv_graph *graph, iv_value_id value) {
    iv_value_info *info = &graph->values[value];
    iv_node *producer = graph->nodes[info->producer];
    for (int i = 0; i < producer->output_count; i++) {
        if (producer->outputs[i] == value)
            producer->outputs[i] = IV_NO_VALUE;
    }
    info->producer = -1;
}
