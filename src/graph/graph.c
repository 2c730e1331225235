#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"

iv_status iv_graph_create(const char *name, iv_graph **graph, iv_error *error) {
    iv_graph *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh != NULL)
        fresh->name = iv_duplicate_string(name);
    if (fresh == NULL || fresh->name == NULL) {
        iv_free(fresh);
        return iv_fail_memory(error, sizeof *fresh);
    }
    *graph = fresh;
    return IV_OK;
}

void iv_graph_destroy(iv_graph *graph) {
    if (graph == NULL)
        return;
    for (size_t i = 0; i < graph->node_count; i++)
        iv_node_destroy(graph->nodes[i]);
    for (size_t i = 0; i < graph->value_count; i++) {
        iv_fact_clear(&graph->values[i].fact);
        iv_free(graph->values[i].name);
    }
    iv_free(graph->nodes);
    iv_free(graph->values);
    iv_free(graph->inputs);
    iv_free(graph->outputs);
    iv_free(graph->name);
    iv_free(graph);
}

iv_status iv_graph_add_value(iv_graph *graph, const char *name, iv_value_id *value, iv_error *error) {
    char *copy = iv_duplicate_string(name);
    if (copy == NULL || graph->value_count >= INT32_MAX ||
        !iv_grow((void **)&graph->values, &graph->value_capacity, graph->value_count + 1,
                 sizeof *graph->values)) {
        iv_free(copy);
        return iv_fail_memory(error, sizeof *graph->values);
    }
    *value = (iv_value_id)graph->value_count;
    graph->values[graph->value_count++] = (iv_value_info){.name = copy, .producer = -1};
    return IV_OK;
}

iv_status iv_graph_add_constant(iv_graph *graph, iv_scope *scope, const char *name,
                                iv_tensor *tensor, iv_value_id *value, iv_error *error) {
    IV_TRY(iv_graph_add_value(graph, name, value, error));
    return iv_fact_of_tensor(&graph->values[*value].fact, scope, tensor, true, error);
}

static iv_status append_id(iv_value_id **ids, size_t *count, size_t *capacity, iv_value_id value,
                           iv_error *error) {
    if (!iv_grow((void **)ids, capacity, *count + 1, sizeof **ids))
        return iv_fail_memory(error, sizeof **ids);
    (*ids)[(*count)++] = value;
    return IV_OK;
}

iv_status iv_graph_add_input(iv_graph *graph, iv_value_id value, iv_error *error) {
    return append_id(&graph->inputs, &graph->input_count, &graph->input_capacity, value, error);
}

iv_status iv_graph_add_output(iv_graph *graph, iv_value_id value, iv_error *error) {
    return append_id(&graph->outputs, &graph->output_count, &graph->output_capacity, value, error);
}

void iv_node_destroy(iv_node *node) {
    if (node == NULL)
        return;
    if (node->params != NULL && node->op->release != NULL)
        node->op->release(node->params);
    iv_free(node->params);
    iv_attributes_clear(&node->attributes);
    iv_free(node->inputs);
    iv_free(node->outputs);
    iv_free(node->name);
    iv_free(node);
}

static iv_status check_arity(const iv_node *node, iv_error *error) {
    const iv_op *op = node->op;
    int inputs = node->input_count - node->capture_count;
    if (inputs < op->least_inputs || (op->most_inputs >= 0 && inputs > op->most_inputs))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: %s takes %d to %d inputs, but has %d", node->name, op->name,
                       op->least_inputs, op->most_inputs, inputs);
    if (node->output_count < op->least_outputs ||
        (op->most_outputs >= 0 && node->output_count > op->most_outputs))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: %s gives %d to %d outputs, but has %d", node->name, op->name,
                       op->least_outputs, op->most_outputs, node->output_count);
    for (int i = 0; i < op->least_inputs; i++) {
        if (node->inputs[i] == IV_NO_VALUE)
            return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: input %d of %s is missing",
                           node->name, i, op->name);
    }
    return IV_OK;
}

static iv_status fill_node(iv_node *node, const iv_op *op, const char *name, int input_count,
                           const iv_value_id *inputs, int output_count, const iv_value_id *outputs,
                           iv_error *error) {
    node->name = iv_duplicate_string(name);
    node->inputs = iv_allocate_array((size_t)input_count, sizeof *inputs);
    node->outputs = iv_allocate_array((size_t)output_count, sizeof *outputs);
    if (op->params_size != 0)
        node->params = iv_allocate_array(1, op->params_size);
    if (node->name == NULL || node->inputs == NULL || node->outputs == NULL ||
        (op->params_size != 0 && node->params == NULL))
        return iv_fail_memory(error, sizeof *node);
    for (int i = 0; i < input_count; i++)
        node->inputs[i] = inputs[i];
    for (int i = 0; i < output_count; i++)
        node->outputs[i] = outputs[i];
    node->input_count = input_count;
    node->output_count = output_count;
    IV_TRY(check_arity(node, error));
    return op->prepare != NULL ? op->prepare(node, error) : IV_OK;
}

iv_status iv_graph_add_node(iv_graph *graph, const iv_op *op, int version, const char *name,
                            int input_count, const iv_value_id *inputs, int capture_count,
                            int output_count, const iv_value_id *outputs,
                            iv_attributes *attributes, iv_node **node, iv_error *error) {
    iv_node *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL) {
        iv_attributes_clear(attributes);
        return iv_fail_memory(error, sizeof *fresh);
    }
    fresh->op = op;
    fresh->version = version;
    fresh->capture_count = capture_count;
    fresh->attributes = *attributes;
    *attributes = (iv_attributes){0};
    iv_status status =
        fill_node(fresh, op, name, input_count, inputs, output_count, outputs, error);
    if (status == IV_OK && !iv_grow((void **)&graph->nodes, &graph->node_capacity,
                                    graph->node_count + 1, sizeof *graph->nodes))
        status = iv_fail_memory(error, sizeof *graph->nodes);
    if (status != IV_OK) {
        iv_node_destroy(fresh);
        return status;
    }
    for (int i = 0; i < output_count; i++) {
        if (outputs[i] != IV_NO_VALUE)
            graph->values[outputs[i]].producer = (int)graph->node_count;
    }
    graph->nodes[graph->node_count++] = fresh;
    if (node != NULL)
        *node = fresh;
    return IV_OK;
}

/* ---- reading attributes ---- */

static iv_status find_attribute(const iv_node *node, const char *name, iv_attribute_kind kind,
                                bool scalar, const iv_attribute **attribute, iv_error *error) {
    static const char *const kinds[] = {"integers", "floats", "text", "tensor", "graph"};
    *attribute = iv_attributes_find(&node->attributes, name);
    if (*attribute == NULL)
        return IV_OK;
    if ((*attribute)->kind != kind || (scalar && (*attribute)->count != 1))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): attribute %s holds %lld %s where %s%s is expected", node->name,
                       node->op->name, name, (long long)(*attribute)->count,
                       kinds[(*attribute)->kind], scalar ? "one value of kind " : "", kinds[kind]);
    return IV_OK;
}

iv_status iv_node_int(const iv_node *node, const char *name, int64_t otherwise, int64_t *value,
                      iv_error *error) {
    const iv_attribute *attribute;
    IV_TRY(find_attribute(node, name, IV_ATTRIBUTE_INTS, true, &attribute, error));
    *value = attribute != NULL ? attribute->ints[0] : otherwise;
    return IV_OK;
}

iv_status iv_node_float(const iv_node *node, const char *name, float otherwise, float *value,
                        iv_error *error) {
    const iv_attribute *attribute;
    IV_TRY(find_attribute(node, name, IV_ATTRIBUTE_FLOATS, true, &attribute, error));
    *value = attribute != NULL ? attribute->floats[0] : otherwise;
    return IV_OK;
}

iv_status iv_node_string(const iv_node *node, const char *name, const char *otherwise,
                         const char **text, iv_error *error) {
    const iv_attribute *attribute;
    IV_TRY(find_attribute(node, name, IV_ATTRIBUTE_STRINGS, true, &attribute, error));
    *text = attribute != NULL ? attribute->strings[0] : otherwise;
    return IV_OK;
}

iv_status iv_node_ints(const iv_node *node, const char *name, int64_t *count, const int64_t **values,
                       iv_error *error) {
    const iv_attribute *attribute;
    IV_TRY(find_attribute(node, name, IV_ATTRIBUTE_INTS, false, &attribute, error));
    *count = attribute != NULL ? attribute->count : 0;
    *values = attribute != NULL ? attribute->ints : NULL;
    return IV_OK;
}

iv_status iv_node_floats(const iv_node *node, const char *name, int64_t *count, const float **values,
                         iv_error *error) {
    const iv_attribute *attribute;
    IV_TRY(find_attribute(node, name, IV_ATTRIBUTE_FLOATS, false, &attribute, error));
    *count = attribute != NULL ? attribute->count : 0;
    *values = attribute != NULL ? attribute->floats : NULL;
    return IV_OK;
}

bool iv_node_has(const iv_node *node, const char *name) {
    return iv_attributes_find(&node->attributes, name) != NULL;
}

iv_graph *iv_node_graph(const iv_node *node, const char *name) {
    const iv_attribute *attribute = iv_attributes_find(&node->attributes, name);
    return attribute != NULL && attribute->kind == IV_ATTRIBUTE_GRAPH ? attribute->graph : NULL;
}
