/* Nodes that are written as text (support/case_text.h), run by their definitions. Include after cmocka.h. */
#ifndef SB_TESTS_MADE_CASES_H
#define SB_TESTS_MADE_CASES_H

#include "rules/axis_case.h"
#include "support/case_text.h"

typedef struct made_node {
    sb_graph *graph;
    sb_value_id ids[MADE_INPUTS];
    sb_value *values; /* [values of the graph] */
} made_node;

/* A graph of one node, and its inputs' values. */
static inline void make_node_of(const made_case *made, made_node *result) {
    random_source random = {17};
    sb_tensor *tensors[MADE_INPUTS] = {NULL};
    sb_attributes attributes = {0};
    sb_value_id outputs[16];
    int count = 0;
    char name[16];
    MUST(sb_graph_create("made", &result->graph, error));
    for (int i = 0; i < MADE_INPUTS && made->inputs[i] != NULL; i++) {
        count = i + 1;
        result->ids[i] = SB_NO_VALUE;
        if (made->inputs[i][0] == '\0')
            continue;
        snprintf(name, sizeof name, "i%d", i);
        tensors[i] = made_tensor(made->inputs[i], &random);
        MUST(sb_graph_add_value(result->graph, name, &result->ids[i], error));
    }
    for (int o = 0; o < made->outputs; o++) {
        snprintf(name, sizeof name, "o%d", o);
        MUST(sb_graph_add_value(result->graph, name, &outputs[o], error));
    }
    made_attributes(&attributes, made->attributes);
    const sb_op *op = sb_op_find(made->domain != NULL ? made->domain : "", made->op);
    assert_non_null(op);
    MUST(sb_graph_add_node(result->graph, op, made->version, made->op, count, result->ids, 0, made->outputs, outputs,
                           &attributes, NULL, error));
    result->values = sb_allocate_array(result->graph->value_count, sizeof *result->values);
    for (int i = 0; i < count; i++) {
        if (tensors[i] != NULL)
            result->values[result->ids[i]] = sb_value_of_tensor(tensors[i]);
    }
}

static inline void clear_made(made_node *node) {
    release_values(node->graph, node->values);
    sb_graph_destroy(node->graph);
}

/* Runs the node and calls `visit` for it. */
static inline void run_made(const made_case *made, void (*visit)(void *context, axis_case *c), void *context) {
    made_node node;
    make_node_of(made, &node);
    MUST(run_nodes(node.graph, node.values, visit, context, error));
    clear_made(&node);
}

#endif
