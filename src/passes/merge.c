/* Common subexpressions: nodes of the same op, version, inputs and attributes have the same outputs. */
#include <string.h>

#include "base/allocation.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

static uint64_t mix(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) /* FNV-1a */
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_node(const sb_node *node) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = mix(hash, &node->op, sizeof node->op);
    hash = mix(hash, node->inputs, (size_t)node->input_count * sizeof *node->inputs);
    return mix(hash, &node->attributes.count, sizeof node->attributes.count);
}

static bool mergeable(const sb_node *node) {
    return (node->op->flags & (SB_OP_RANDOM | SB_OP_CONTROL)) == 0;
}

static bool same_node(const sb_node *left, const sb_node *right) {
    return left->op == right->op && left->version == right->version && left->input_count == right->input_count &&
           left->output_count == right->output_count &&
           memcmp(left->inputs, right->inputs, (size_t)left->input_count * sizeof *left->inputs) == 0 &&
           sb_attributes_equal(&left->attributes, &right->attributes);
}

/* Makes the uses of `node`'s outputs read those of the equal node `first`. */
static void merge_outputs(sb_graph *graph, const sb_node *node, const sb_node *first) {
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE && first->outputs[i] != SB_NO_VALUE)
            sb_rewrite_uses(graph, node->outputs[i], first->outputs[i]);
    }
}

sb_status sb_pass_merge(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    size_t slots = 16;
    while (slots < 2 * graph->node_count)
        slots *= 2;
    const sb_node **table = sb_allocate_array(slots, sizeof *table);
    if (table == NULL)
        return sb_fail_memory(error, slots * sizeof *table);
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        if (!mergeable(node))
            continue;
        size_t slot = hash_node(node) & (slots - 1);
        while (table[slot] != NULL && !same_node(table[slot], node))
            slot = (slot + 1) & (slots - 1);
        if (table[slot] != NULL)
            merge_outputs(graph, node, table[slot]);
        else
            table[slot] = node;
    }
    sb_free(table);
    return SB_OK;
}
