#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"

sb_status sb_graph_create(const char *name, sb_graph **graph, sb_error *error) {
    sb_graph *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh != NULL)
        fresh->name = sb_duplicate_string(name);
    if (fresh == NULL || fresh->name == NULL) {
        sb_free(fresh);
        return sb_fail_memory(error, sizeof *fresh);
    }
    *graph = fresh;
    return SB_OK;
}

void sb_graph_destroy(sb_graph *graph) {
    if (graph == NULL)
        return;
    for (size_t i = 0; i < graph->node_count; i++)
        sb_node_destroy(graph->nodes[i]);
    for (size_t i = 0; i < graph->value_count; i++) {
        sb_fact_clear(&graph->values[i].fact);
        sb_free(graph->values[i].name);
    }
    sb_free(graph->nodes);
    sb_free(graph->values);
    sb_free(graph->inputs);
    sb_free(graph->outputs);
    sb_free(graph->reads);
    sb_free(graph->updates);
    sb_free(graph->name);
    sb_free(graph);
}

sb_status sb_graph_add_value(sb_graph *graph, const char *name, sb_value_id *value, sb_error *error) {
    char *copy = sb_duplicate_string(name);
    if (copy == NULL || graph->value_count >= INT32_MAX ||
        !sb_grow((void **)&graph->values, &graph->value_capacity, graph->value_count + 1, sizeof *graph->values)) {
        sb_free(copy);
        return sb_fail_memory(error, sizeof *graph->values);
    }
    *value = (sb_value_id)graph->value_count;
    graph->values[graph->value_count++] = (sb_value_info){.name = copy, .producer = -1};
    return SB_OK;
}

sb_status sb_graph_add_constant(sb_graph *graph, sb_scope *scope, const char *name, sb_tensor *tensor,
                                sb_value_id *value, sb_error *error) {
    SB_TRY(sb_graph_add_value(graph, name, value, error));
    return sb_fact_of_tensor(&graph->values[*value].fact, scope, tensor, true, error);
}

static sb_status append_id(sb_value_id **ids, size_t *count, size_t *capacity, sb_value_id value, sb_error *error) {
    if (!sb_grow((void **)ids, capacity, *count + 1, sizeof **ids))
        return sb_fail_memory(error, sizeof **ids);
    (*ids)[(*count)++] = value;
    return SB_OK;
}

sb_status sb_graph_add_input(sb_graph *graph, sb_value_id value, sb_error *error) {
    return append_id(&graph->inputs, &graph->input_count, &graph->input_capacity, value, error);
}

sb_status sb_graph_add_output(sb_graph *graph, sb_value_id value, sb_error *error) {
    return append_id(&graph->outputs, &graph->output_count, &graph->output_capacity, value, error);
}

static sb_status append_use(sb_variable_use **uses, size_t *count, size_t *capacity, int variable, sb_value_id value,
                            sb_error *error) {
    if (!sb_grow((void **)uses, capacity, *count + 1, sizeof **uses))
        return sb_fail_memory(error, sizeof **uses);
    (*uses)[(*count)++] = (sb_variable_use){variable, value};
    return SB_OK;
}

sb_status sb_graph_add_read(sb_graph *graph, int variable, sb_value_id value, sb_error *error) {
    return append_use(&graph->reads, &graph->read_count, &graph->read_capacity, variable, value, error);
}

sb_status sb_graph_add_update(sb_graph *graph, int variable, sb_value_id value, sb_error *error) {
    return append_use(&graph->updates, &graph->update_count, &graph->update_capacity, variable, value, error);
}

static sb_value_id find_use(const sb_variable_use *uses, size_t count, int variable) {
    for (size_t i = 0; i < count; i++) {
        if (uses[i].variable == variable)
            return uses[i].value;
    }
    return SB_NO_VALUE;
}

sb_value_id sb_graph_read_of(const sb_graph *graph, int variable) {
    return find_use(graph->reads, graph->read_count, variable);
}

sb_value_id sb_graph_update_of(const sb_graph *graph, int variable) {
    return find_use(graph->updates, graph->update_count, variable);
}

void sb_node_destroy(sb_node *node) {
    if (node == NULL)
        return;
    if (node->params != NULL && node->op->release != NULL)
        node->op->release(node->params);
    sb_free(node->params);
    sb_attributes_clear(&node->attributes);
    sb_free(node->inputs);
    sb_free(node->outputs);
    sb_free(node->name);
    sb_free(node);
}

static sb_status check_arity(const sb_node *node, sb_error *error) {
    const sb_op *op = node->op;
    int inputs = node->input_count - node->capture_count;
    if (inputs < op->least_inputs || (op->most_inputs >= 0 && inputs > op->most_inputs))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %s takes %d to %d inputs, but has %d", node->name,
                       op->name, op->least_inputs, op->most_inputs, inputs);
    if (node->output_count < op->least_outputs || (op->most_outputs >= 0 && node->output_count > op->most_outputs))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %s gives %d to %d outputs, but has %d", node->name,
                       op->name, op->least_outputs, op->most_outputs, node->output_count);
    for (int i = 0; i < op->least_inputs; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: input %d of %s is missing", node->name, i,
                           op->name);
    }
    return SB_OK;
}

static sb_status fill_node(sb_node *node, const sb_op *op, const char *name, int input_count, const sb_value_id *inputs,
                           int output_count, const sb_value_id *outputs, sb_error *error) {
    node->name = sb_duplicate_string(name);
    node->inputs = sb_allocate_array((size_t)input_count, sizeof *inputs);
    node->outputs = sb_allocate_array((size_t)output_count, sizeof *outputs);
    if (op->params_size != 0)
        node->params = sb_allocate_array(1, op->params_size);
    if (node->name == NULL || node->inputs == NULL || node->outputs == NULL ||
        (op->params_size != 0 && node->params == NULL))
        return sb_fail_memory(error, sizeof *node);
    for (int i = 0; i < input_count; i++)
        node->inputs[i] = inputs[i];
    for (int i = 0; i < output_count; i++)
        node->outputs[i] = outputs[i];
    node->input_count = input_count;
    node->output_count = output_count;
    SB_TRY(check_arity(node, error));
    return op->prepare != NULL ? op->prepare(node, error) : SB_OK;
}

sb_status sb_graph_add_node(sb_graph *graph, const sb_op *op, int version, const char *name, int input_count,
                            const sb_value_id *inputs, int capture_count, int output_count, const sb_value_id *outputs,
                            sb_attributes *attributes, sb_node **node, sb_error *error) {
    sb_node *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->op = op;
    fresh->version = version;
    fresh->capture_count = capture_count;
    fresh->attributes = *attributes;
    *attributes = (sb_attributes){0};
    sb_status status = fill_node(fresh, op, name, input_count, inputs, output_count, outputs, error);
    if (status == SB_OK &&
        !sb_grow((void **)&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes))
        status = sb_fail_memory(error, sizeof *graph->nodes);
    if (status != SB_OK) {
        *attributes = fresh->attributes;
        fresh->attributes = (sb_attributes){0};
        sb_node_destroy(fresh);
        return status;
    }
    for (int i = 0; i < output_count; i++) {
        if (outputs[i] != SB_NO_VALUE)
            graph->values[outputs[i]].producer = (int)graph->node_count;
    }
    graph->nodes[graph->node_count++] = fresh;
    if (node != NULL)
        *node = fresh;
    return SB_OK;
}

void sb_graph_remove_last_node(sb_graph *graph, sb_attributes *attributes) {
    sb_node *node = graph->nodes[--graph->node_count];
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE)
            graph->values[node->outputs[i]].producer = -1;
    }
    *attributes = node->attributes;
    node->attributes = (sb_attributes){0};
    sb_node_destroy(node);
}

/* ---- reading attributes ---- */

static sb_status find_attribute(const sb_node *node, const char *name, sb_attribute_kind kind, bool scalar,
                                const sb_attribute **attribute, sb_error *error) {
    static const char *const kinds[] = {"integers", "floats", "text", "tensor", "graph"};
    *attribute = sb_attributes_find(&node->attributes, name);
    if (*attribute == NULL)
        return SB_OK;
    if ((*attribute)->kind != kind || (scalar && (*attribute)->count != 1))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): attribute %s holds %lld %s where %s%s is expected",
                       node->name, node->op->name, name, (long long)(*attribute)->count, kinds[(*attribute)->kind],
                       scalar ? "one value of kind " : "", kinds[kind]);
    return SB_OK;
}

sb_status sb_node_int(const sb_node *node, const char *name, int64_t otherwise, int64_t *value, sb_error *error) {
    const sb_attribute *attribute;
    SB_TRY(find_attribute(node, name, SB_ATTRIBUTE_INTS, true, &attribute, error));
    *value = attribute != NULL ? attribute->ints[0] : otherwise;
    return SB_OK;
}

sb_status sb_node_float(const sb_node *node, const char *name, float otherwise, float *value, sb_error *error) {
    const sb_attribute *attribute;
    SB_TRY(find_attribute(node, name, SB_ATTRIBUTE_FLOATS, true, &attribute, error));
    *value = attribute != NULL ? attribute->floats[0] : otherwise;
    return SB_OK;
}

sb_status sb_node_string(const sb_node *node, const char *name, const char *otherwise, const char **text,
                         sb_error *error) {
    const sb_attribute *attribute;
    SB_TRY(find_attribute(node, name, SB_ATTRIBUTE_STRINGS, true, &attribute, error));
    *text = attribute != NULL ? attribute->strings[0] : otherwise;
    return SB_OK;
}

sb_status sb_node_ints(const sb_node *node, const char *name, int64_t *count, const int64_t **values, sb_error *error) {
    const sb_attribute *attribute;
    SB_TRY(find_attribute(node, name, SB_ATTRIBUTE_INTS, false, &attribute, error));
    *count = attribute != NULL ? attribute->count : 0;
    *values = attribute != NULL ? attribute->ints : NULL;
    return SB_OK;
}

sb_status sb_node_floats(const sb_node *node, const char *name, int64_t *count, const float **values, sb_error *error) {
    const sb_attribute *attribute;
    SB_TRY(find_attribute(node, name, SB_ATTRIBUTE_FLOATS, false, &attribute, error));
    *count = attribute != NULL ? attribute->count : 0;
    *values = attribute != NULL ? attribute->floats : NULL;
    return SB_OK;
}

bool sb_node_has(const sb_node *node, const char *name) {
    return sb_attributes_find(&node->attributes, name) != NULL;
}

bool sb_node_is(const sb_node *node, const char *name) {
    return node->op->domain[0] == '\0' && strcmp(node->op->name, name) == 0;
}

sb_graph *sb_node_graph(const sb_node *node, const char *name) {
    const sb_attribute *attribute = sb_attributes_find(&node->attributes, name);
    return attribute != NULL && attribute->kind == SB_ATTRIBUTE_GRAPH ? attribute->graph : NULL;
}
