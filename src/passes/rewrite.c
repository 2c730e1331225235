#include "passes/rewrite.h"

#include <string.h>

#include "base/allocation.h"

void sb_rewrite_uses(sb_graph *graph, sb_value_id from, sb_value_id to) {
    for (size_t n = 0; n < graph->node_count; n++) {
        sb_node *node = graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == from)
                node->inputs[i] = to;
        }
    }
}

bool sb_leaves_graph(const sb_graph *graph, sb_value_id value) {
    for (size_t i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i] == value)
            return true;
    }
    for (size_t i = 0; i < graph->update_count; i++) {
        if (graph->updates[i].value == value)
            return true;
    }
    return false;
}

bool sb_is_constant(const sb_graph *graph, sb_value_id value) {
    return graph->values[value].producer == -1 && graph->values[value].fact.constant != NULL;
}

void sb_detach_value(sb_graph *graph, sb_value_id value) {
    sb_value_info *info = &graph->values[value];
    sb_node *producer = graph->nodes[info->producer];
    for (int i = 0; i < producer->output_count; i++) {
        if (producer->outputs[i] == value)
            producer->outputs[i] = SB_NO_VALUE;
    }
    info->producer = -1;
}

const sb_node *sb_maker_of(const sb_graph *graph, sb_value_id value, size_t *number) {
    int producer = value != SB_NO_VALUE ? graph->values[value].producer : -1;
    if (producer < 0)
        return NULL;
    if (number != NULL)
        *number = (size_t)producer;
    return graph->nodes[producer];
}

sb_status sb_rewrite_move(sb_graph *graph, size_t fresh, size_t place, sb_error *error) {
    size_t count = graph->node_count - fresh;
    sb_node **moved = sb_allocate_array(count, sizeof(sb_node *));
    if (moved == NULL)
        return sb_fail_memory(error, count * sizeof(sb_node *));
    memcpy(moved, graph->nodes + fresh, count * sizeof(sb_node *));
    memmove(graph->nodes + place + count, graph->nodes + place, (fresh - place) * sizeof(sb_node *));
    memcpy(graph->nodes + place, moved, count * sizeof(sb_node *));
    sb_free(moved);
    return SB_OK;
}
