/* The public builder: nodes and their attributes. */
#include <stdio.h>
#include <string.h>

#include "api/builder.h"
#include "base/allocation.h"

/* ---- making attributes ---- */

sb_builder_attribute sb_attribute_int(const char *name, int64_t value) {
    return (sb_builder_attribute){.name = name, .kind = SB_BUILDER_INTS, .count = 1, .integer = value};
}

sb_builder_attribute sb_attribute_ints(const char *name, int64_t count, const int64_t *values) {
    return (sb_builder_attribute){
        .name = name, .kind = SB_BUILDER_INTS, .list = true, .count = count, .integers = values};
}

sb_builder_attribute sb_attribute_float(const char *name, float value) {
    return (sb_builder_attribute){.name = name, .kind = SB_BUILDER_FLOATS, .count = 1, .number = value};
}

sb_builder_attribute sb_attribute_floats(const char *name, int64_t count, const float *values) {
    return (sb_builder_attribute){
        .name = name, .kind = SB_BUILDER_FLOATS, .list = true, .count = count, .numbers = values};
}

sb_builder_attribute sb_attribute_text(const char *name, const char *text) {
    return (sb_builder_attribute){.name = name, .kind = SB_BUILDER_TEXTS, .count = 1, .text = text};
}

sb_builder_attribute sb_attribute_texts(const char *name, int64_t count, const char *const *texts) {
    return (sb_builder_attribute){.name = name, .kind = SB_BUILDER_TEXTS, .list = true, .count = count, .texts = texts};
}

sb_builder_attribute sb_attribute_tensor(const char *name, sb_tensor *tensor) {
    return (sb_builder_attribute){.name = name, .kind = SB_BUILDER_TENSOR, .count = 1, .tensor = tensor};
}

sb_builder_attribute sb_attribute_graph(const char *name, sb_builder_graph graph) {
    return (sb_builder_attribute){.name = name, .kind = SB_BUILDER_GRAPH, .count = 1, .graph = graph};
}

/* ---- a node in the making ---- */

typedef struct making {
    sb_builder *builder;
    const sb_builder_node *given;
    sb_attributes attributes;
    size_t graph_count;
    sb_nested_graph *graphs; /* room for one per attribute */
    sb_value_id *ids;        /* inputs, then outputs */
    char *name;
} making;

static bool has_attribute(const making *node, const char *name) {
    for (size_t i = 0; i < node->graph_count; i++) {
        if (strcmp(node->graphs[i].attribute, name) == 0)
            return true;
    }
    return sb_attributes_find(&node->attributes, name) != NULL;
}

static sb_status read_texts(making *node, const sb_builder_attribute *attribute, sb_error *error) {
    const char *const *texts = attribute->list ? attribute->texts : &attribute->text;
    sb_string *strings = sb_allocate_array((size_t)attribute->count, sizeof *strings);
    sb_status status = strings != NULL ? SB_OK : sb_fail_memory(error, (size_t)attribute->count * sizeof *strings);
    for (int64_t i = 0; status == SB_OK && i < attribute->count; i++) {
        if (texts[i] == NULL)
            status = sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "text %lld is missing", (long long)i);
        else
            strings[i] = (sb_string){texts[i], strlen(texts[i])};
    }
    if (status == SB_OK)
        status = sb_attributes_add_strings(&node->attributes, attribute->name, !attribute->list, attribute->count,
                                           strings, error);
    sb_free(strings);
    return status;
}

static sb_status read_graph(making *node, const sb_builder_attribute *attribute, sb_error *error) {
    size_t index;
    SB_TRY(sb_builder_index(node->builder, SB_HANDLE_GRAPH, attribute->graph, &index, error));
    sb_graph_builder *graph = node->builder->nested[index];
    bool taken = graph->graph == NULL;
    for (size_t i = 0; i < node->graph_count; i++)
        taken = taken || node->graphs[i].builder == graph;
    if (taken)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "another node or attribute has the graph already");
    if (graph->outer != node->builder->open)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "graph '%.100s' was not begun in the open graph '%.100s'",
                       graph->graph->name, node->builder->open->graph->name);
    node->graphs[node->graph_count++] = (sb_nested_graph){attribute->name, graph};
    return SB_OK;
}

static sb_status read_attribute(making *node, const sb_builder_attribute *attribute, sb_error *error) {
    if (attribute->count < 0 || (!attribute->list && attribute->count != 1))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "its count is %lld", (long long)attribute->count);
    if (attribute->list && attribute->count != 0 && attribute->integers == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "its list is missing");
    switch (attribute->kind) {
    case SB_BUILDER_INTS:
        return sb_attributes_add_ints(&node->attributes, attribute->name, !attribute->list, attribute->count,
                                      attribute->list ? attribute->integers : &attribute->integer, error);
    case SB_BUILDER_FLOATS:
        return sb_attributes_add_floats(&node->attributes, attribute->name, !attribute->list, attribute->count,
                                        attribute->list ? attribute->numbers : &attribute->number, error);
    case SB_BUILDER_TEXTS:
        return read_texts(node, attribute, error);
    case SB_BUILDER_TENSOR:
        if (attribute->tensor == NULL)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "its tensor is missing");
        SB_TRY(sb_tensor_check_on_host(attribute->tensor, "made an attribute", error));
        return sb_attributes_add_tensor(&node->attributes, attribute->name, sb_tensor_retain(attribute->tensor), error);
    case SB_BUILDER_GRAPH:
        return read_graph(node, attribute, error);
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%d is not an sb_builder_attribute_kind", (int)attribute->kind);
}

static sb_status read_attributes(making *node, sb_error *error) {
    for (int i = 0; i < node->given->attribute_count; i++) {
        const sb_builder_attribute *attribute = &node->given->attributes[i];
        if (attribute->name == NULL || attribute->name[0] == '\0')
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "node %s: attribute %d has no name", node->name, i);
        sb_status status = has_attribute(node, attribute->name)
                               ? sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "it is given twice")
                               : read_attribute(node, attribute, error);
        if (status != SB_OK)
            return sb_fail_within(error, status, "node %s: attribute %.100s: ", node->name, attribute->name);
    }
    return SB_OK;
}

static sb_status read_inputs(making *node, sb_error *error) {
    for (int i = 0; i < node->given->input_count; i++) {
        node->ids[i] = SB_NO_VALUE;
        sb_status status = node->given->inputs[i] != 0
                               ? sb_builder_resolve(node->builder, node->given->inputs[i], &node->ids[i], error)
                               : SB_OK;
        if (status != SB_OK)
            return sb_fail_within(error, status, "node %s: input %d: ", node->name, i);
    }
    return SB_OK;
}

/* Outputs without a name are called after the node. */
static sb_status make_outputs(making *node, sb_error *error) {
    const sb_builder_node *given = node->given;
    for (int i = 0; i < given->output_count; i++) {
        sb_value_id *id = &node->ids[given->input_count + i];
        const char *name = given->output_names != NULL ? given->output_names[i] : NULL;
        *id = SB_NO_VALUE;
        if (name == NULL) {
            SB_TRY(sb_graph_builder_add_value(node->builder->open, node->name, false, id, error));
        } else if (name[0] != '\0') {
            sb_status status = sb_builder_named_value(node->builder, name, id, error);
            if (status != SB_OK)
                return sb_fail_within(error, status, "node %s: output %d: ", node->name, i);
        }
    }
    return SB_OK;
}

static sb_status name_node(making *node, sb_error *error) {
    const sb_builder_node *given = node->given;
    if (given->name != NULL && given->name[0] != '\0') {
        node->name = sb_duplicate_string(given->name);
        return node->name != NULL ? SB_OK : sb_fail_memory(error, strlen(given->name) + 1);
    }
    char base[96];
    snprintf(base, sizeof base, "%.64s_%zu", given->op, node->builder->open->graph->node_count);
    return sb_graph_builder_node_name(node->builder->open, base, &node->name, error);
}

static sb_status make(making *node, sb_error *error) {
    const sb_builder_node *given = node->given;
    const char *domain = given->domain != NULL ? given->domain : "";
    size_t values = (size_t)given->input_count + (size_t)given->output_count;
    sb_node_plan plan = {.version = given->version};
    SB_TRY(name_node(node, error));
    SB_TRY(sb_graph_builder_find_op(domain, given->op, &plan.op, error));
    node->ids = sb_allocate_array(values, sizeof *node->ids);
    node->graphs = sb_allocate_array((size_t)given->attribute_count, sizeof *node->graphs);
    if (node->ids == NULL || node->graphs == NULL)
        return sb_fail_memory(error, values * sizeof *node->ids);
    SB_TRY(sb_builder_reserve_values(node->builder, (size_t)given->output_count, error));
    SB_TRY(read_attributes(node, error));
    SB_TRY(read_inputs(node, error));
    SB_TRY(make_outputs(node, error));
    if (plan.version == 0)
        plan.version = plan.op->domain[0] == '\0' ? SB_NEWEST_OPSET : 1;
    plan.name = node->name;
    plan.input_count = (size_t)given->input_count;
    plan.inputs = node->ids;
    plan.output_count = (size_t)given->output_count;
    plan.outputs = node->ids + given->input_count;
    plan.attributes = &node->attributes;
    plan.nested_count = node->graph_count;
    plan.nested = node->graphs;
    return sb_graph_builder_add_node(node->builder->open, &plan, error);
}

static sb_status check_node(const sb_builder *builder, const sb_builder_node *given, sb_builder_node *node,
                            sb_error *error) {
    SB_TRY(sb_builder_check(builder, error));
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_builder_node has %zu bytes where this library knows %zu: start from "
                       "SB_BUILDER_NODE_DEFAULT",
                       given->struct_bytes, sizeof *given);
    *node = (sb_builder_node)SB_BUILDER_NODE_DEFAULT;
    memcpy(node, given, given->struct_bytes);
    if (node->op == NULL || node->op[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "node %.200s has no operator",
                       node->name != NULL ? node->name : "");
    if (node->input_count < 0 || (node->input_count > 0 && node->inputs == NULL) || node->attribute_count < 0 ||
        (node->attribute_count > 0 && node->attributes == NULL) || node->output_count < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a %.100s node with %d inputs, %d attributes and %d outputs",
                       node->op, node->input_count, node->attribute_count, node->output_count);
    return SB_OK;
}

sb_status sb_builder_add_node(sb_builder *builder, const sb_builder_node *given, sb_builder_value *outputs,
                              sb_error *error) {
    sb_builder_node complete;
    sb_builder_change change;
    SB_TRY(check_node(builder, given, &complete, error));
    making node = {.builder = builder, .given = &complete};
    sb_builder_begin(builder, &change);
    sb_status status = sb_builder_end(builder, &change, make(&node, error));
    for (int i = 0; i < complete.output_count && status == SB_OK; i++) {
        sb_value_id id = node.ids[complete.input_count + i];
        outputs[i] = id != SB_NO_VALUE ? sb_builder_note_value(builder, id) : 0;
    }
    sb_attributes_clear(&node.attributes);
    sb_free(node.graphs);
    sb_free(node.ids);
    sb_free(node.name);
    return status;
}

sb_status sb_builder_op(sb_builder *builder, const char *op, int input_count, const sb_builder_value *inputs,
                        int attribute_count, const sb_builder_attribute *attributes, sb_builder_value *output,
                        sb_error *error) {
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = op;
    node.input_count = input_count;
    node.inputs = inputs;
    node.attribute_count = attribute_count;
    node.attributes = attributes;
    return sb_builder_add_node(builder, &node, output, error);
}
