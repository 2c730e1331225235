/* Graphs and nodes, from the library's to messages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/exporter.h"

/* A graph that is being written; a fused node's body has its own, and the message of the graph around it. */
typedef struct place {
    sb_exporter *exporter;
    const sb_graph *graph;
    const char **names; /* by value; NULL: it has none yet */
    bool *made;         /* by value: whether a node of the graph makes it */
    Onnx__GraphProto *proto;
} place;

#define NO_MEMORY SB_ERROR_OUT_OF_MEMORY /* which is set where memory has run out */

/* ---- names ---- */

static sb_status take_name(sb_exporter *exporter, const char *name, sb_error *error) {
    return sb_names_put(&exporter->names, name, 1) ? SB_OK : sb_fail_memory(error, sizeof(sb_name_entry));
}

/* `wanted`, or with a number behind it where that is taken. */
static sb_status new_name(sb_exporter *exporter, const char *wanted, const char **name, sb_error *error) {
    int32_t *last = sb_names_find(&exporter->names, wanted);
    *name = wanted;
    if (last == NULL)
        return take_name(exporter, wanted, error);
    size_t room = strlen(wanted) + 16;
    char *numbered = sb_exporter_room(exporter, room, 1, error);
    if (numbered == NULL)
        return NO_MEMORY;
    do
        snprintf(numbered, room, "%s_%" PRId32, wanted, ++*last);
    while (sb_names_find(&exporter->names, numbered) != NULL);
    *name = numbered;
    return take_name(exporter, numbered, error);
}

static sb_status add_initialiser(const place *place, sb_value_id value, sb_error *error) {
    sb_exporter *exporter = place->exporter;
    Onnx__TensorProto *proto;
    SB_TRY(sb_export_tensor(exporter, place->graph->values[value].fact.constant, place->names[value], &proto, error));
    if (!sb_grow((void **)&exporter->initialisers, &exporter->initialiser_capacity, exporter->initialiser_count + 1,
                 sizeof *exporter->initialisers))
        return sb_fail_memory(error, sizeof *exporter->initialisers);
    exporter->initialisers[exporter->initialiser_count++] = proto;
    place->proto->initializer[place->proto->n_initializer++] = proto;
    return SB_OK;
}

/* The name of a value; a constant becomes an initialiser where it is first read. */
static sb_status name_of(const place *place, sb_value_id value, const char **name, sb_error *error) {
    if (value == SB_NO_VALUE) {
        *name = "";
        return SB_OK;
    }
    const sb_value_info *info = &place->graph->values[value];
    if (place->names[value] == NULL) {
        if (!place->made[value] && info->fact.constant == NULL)
            return sb_fail(error, SB_ERROR_INTERNAL, "value %.200s comes from nowhere", info->name);
        SB_TRY(new_name(place->exporter, info->name, &place->names[value], error));
        if (!place->made[value])
            SB_TRY(add_initialiser(place, value, error));
    }
    *name = place->names[value];
    return SB_OK;
}

static sb_status name_all(const place *place, int count, const sb_value_id *values, char ***names, sb_error *error) {
    *names = sb_exporter_room(place->exporter, (size_t)count, sizeof **names, error);
    if (*names == NULL)
        return NO_MEMORY;
    for (int i = 0; i < count; i++) {
        const char *name;
        SB_TRY(name_of(place, values[i], &name, error));
        (*names)[i] = (char *)(uintptr_t)name;
    }
    return SB_OK;
}

static sb_status begin_place(sb_exporter *exporter, const sb_graph *graph, Onnx__GraphProto *proto, place *place,
                             sb_error *error) {
    *place = (struct place){.exporter = exporter, .graph = graph, .proto = proto};
    place->names = sb_exporter_room(exporter, graph->value_count, sizeof *place->names, error);
    place->made = sb_exporter_room(exporter, graph->value_count, sizeof *place->made, error);
    if (place->names == NULL || place->made == NULL)
        return NO_MEMORY;
    for (size_t n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n]->output_count; i++) {
            if (graph->nodes[n]->outputs[i] != SB_NO_VALUE)
                place->made[graph->nodes[n]->outputs[i]] = true;
        }
    }
    return SB_OK;
}

/* ---- attributes ---- */

static sb_status nested_graph(const place *outer, const sb_node *node, const sb_graph *graph, Onnx__GraphProto **proto,
                              sb_error *error);

static sb_status strings(sb_exporter *exporter, const sb_attribute *attribute, Onnx__AttributeProto *proto,
                         sb_error *error) {
    ProtobufCBinaryData *texts = sb_exporter_room(exporter, (size_t)attribute->count, sizeof *texts, error);
    if (texts == NULL)
        return NO_MEMORY;
    for (int64_t i = 0; i < attribute->count; i++)
        texts[i] = (ProtobufCBinaryData){strlen(attribute->strings[i]), (uint8_t *)attribute->strings[i]};
    proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    proto->n_strings = (size_t)attribute->count;
    proto->strings = texts;
    if (attribute->scalar) {
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        proto->n_strings = 0;
        proto->has_s = 1;
        proto->s = texts[0];
    }
    return SB_OK;
}

static void integers(const sb_attribute *attribute, Onnx__AttributeProto *proto) {
    if (attribute->scalar) {
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        proto->has_i = 1;
        proto->i = attribute->ints[0];
        return;
    }
    proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    proto->n_ints = (size_t)attribute->count;
    proto->ints = attribute->ints;
}

static void floats(const sb_attribute *attribute, Onnx__AttributeProto *proto) {
    if (attribute->scalar) {
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        proto->has_f = 1;
        proto->f = attribute->floats[0];
        return;
    }
    proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    proto->n_floats = (size_t)attribute->count;
    proto->floats = attribute->floats;
}

/* The importer makes text of the one attribute that is a type. */
static bool is_type(const sb_node *node, const sb_attribute *attribute) {
    return attribute->scalar && strcmp(node->op->name, "Optional") == 0 && strcmp(attribute->name, "type") == 0;
}

static sb_status attribute_of(const place *place, const sb_node *node, const sb_attribute *attribute,
                              Onnx__AttributeProto **result, sb_error *error) {
    Onnx__AttributeProto *proto = *result = sb_new_AttributeProto(place->exporter, error);
    if (proto == NULL)
        return NO_MEMORY;
    proto->name = attribute->name;
    proto->has_type = 1;
    switch (attribute->kind) {
    case SB_ATTRIBUTE_INTS:
        integers(attribute, proto);
        return SB_OK;
    case SB_ATTRIBUTE_FLOATS:
        floats(attribute, proto);
        return SB_OK;
    case SB_ATTRIBUTE_STRINGS:
        if (!is_type(node, attribute))
            return strings(place->exporter, attribute, proto, error);
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO;
        return sb_export_type_text(place->exporter, attribute->strings[0], &proto->tp, error);
    case SB_ATTRIBUTE_TENSOR:
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
        return sb_export_tensor(place->exporter, attribute->tensor, NULL, &proto->t, error);
    default:
        proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
        return nested_graph(place, node, attribute->graph, &proto->g, error);
    }
}

static sb_status all_attributes(const place *place, const sb_node *node, Onnx__NodeProto *proto, sb_error *error) {
    const sb_attributes *attributes = &node->attributes;
    proto->attribute = sb_exporter_room(place->exporter, attributes->count, sizeof *proto->attribute, error);
    if (proto->attribute == NULL)
        return NO_MEMORY;
    for (size_t i = 0; i < attributes->count; i++)
        SB_TRY(attribute_of(place, node, &attributes->items[i], &proto->attribute[proto->n_attribute++], error));
    return SB_OK;
}

/* ---- nodes ---- */

/* A file imports one version of each set of operators. */
static sb_status import_set(sb_exporter *exporter, const sb_node *node, sb_error *error) {
    for (size_t i = 0; i < exporter->set_count; i++) {
        const sb_exported_set *set = &exporter->sets[i];
        if (strcmp(set->domain, node->op->domain) != 0)
            continue;
        if (set->version == node->version)
            return SB_OK;
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "node %.200s (%.100s) is of version %d of its operator set and node %.200s of version %d, and a "
                       "file has one: convert the functions of the model with onnx.version_converter",
                       node->name, node->op->name, node->version, set->node, set->version);
    }
    if (!sb_grow((void **)&exporter->sets, &exporter->set_capacity, exporter->set_count + 1, sizeof *exporter->sets))
        return sb_fail_memory(error, sizeof *exporter->sets);
    exporter->sets[exporter->set_count++] = (sb_exported_set){node->op->domain, node->version, node->name};
    return SB_OK;
}

static sb_status add_node(const place *place, const sb_node *node, sb_error *error) {
    if (strcmp(node->op->domain, "samebit") == 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %.200s: %.100s is an operator of Samebit's own", node->name,
                       node->op->name);
    SB_TRY(import_set(place->exporter, node, error));
    Onnx__NodeProto *proto = sb_new_NodeProto(place->exporter, error);
    if (proto == NULL)
        return NO_MEMORY;
    proto->name = node->name;
    proto->op_type = (char *)(uintptr_t)node->op->name;
    proto->domain = (char *)(uintptr_t)node->op->domain;
    proto->n_input = (size_t)(node->input_count - node->capture_count);
    proto->n_output = (size_t)node->output_count;
    SB_TRY(name_all(place, (int)proto->n_input, node->inputs, &proto->input, error));
    SB_TRY(name_all(place, node->output_count, node->outputs, &proto->output, error));
    SB_TRY(all_attributes(place, node, proto, error));
    place->proto->node[place->proto->n_node++] = proto;
    return SB_OK;
}

static sb_status add_body(const place *outer, const sb_node *node, sb_error *error) {
    const sb_graph *body = sb_node_graph(node, "body");
    place place;
    SB_TRY(begin_place(outer->exporter, body, outer->proto, &place, error));
    for (size_t i = 0; i < body->input_count; i++)
        SB_TRY(name_of(outer, node->inputs[i], &place.names[body->inputs[i]], error));
    for (size_t i = 0; i < body->output_count; i++)
        SB_TRY(name_of(outer, node->outputs[i], &place.names[body->outputs[i]], error));
    for (size_t n = 0; n < body->node_count; n++)
        SB_TRY(add_node(&place, body->nodes[n], error));
    return SB_OK;
}

static bool is_fused(const sb_node *node) {
    return (node->op->flags & SB_OP_FUSED) != 0;
}

/* `output` = Identity(`input`). */
static sb_status add_identity(const place *place, const char *input, const char *output, sb_error *error) {
    Onnx__NodeProto *proto = sb_new_NodeProto(place->exporter, error);
    char **names = sb_exporter_room(place->exporter, 2, sizeof *names, error);
    if (proto == NULL || names == NULL)
        return NO_MEMORY;
    names[0] = (char *)(uintptr_t)input;
    names[1] = (char *)(uintptr_t)output;
    proto->op_type = (char *)(uintptr_t) "Identity";
    proto->n_input = proto->n_output = 1;
    proto->input = &names[0];
    proto->output = &names[1];
    place->proto->node[place->proto->n_node++] = proto;
    return SB_OK;
}

/* ---- graphs ---- */

/* Lists that no graph can outgrow: every node, those of bodies instead of fused ones, and an Identity for each output. */
static sb_status make_lists(const place *place, sb_error *error) {
    const sb_graph *graph = place->graph;
    Onnx__GraphProto *proto = place->proto;
    size_t nodes = graph->output_count;
    for (size_t n = 0; n < graph->node_count; n++)
        nodes += is_fused(graph->nodes[n]) ? sb_node_graph(graph->nodes[n], "body")->node_count : 1;
    proto->node = sb_exporter_room(place->exporter, nodes, sizeof *proto->node, error);
    proto->initializer = sb_exporter_room(place->exporter, graph->value_count, sizeof *proto->initializer, error);
    proto->input = sb_exporter_room(place->exporter, graph->input_count, sizeof *proto->input, error);
    proto->output = sb_exporter_room(place->exporter, graph->output_count, sizeof *proto->output, error);
    bool complete = proto->node != NULL && proto->initializer != NULL && proto->input != NULL && proto->output != NULL;
    return complete ? SB_OK : NO_MEMORY;
}

static sb_status value_info(const place *place, const sb_fact *fact, const char *name, Onnx__ValueInfoProto **proto,
                            sb_error *error) {
    *proto = sb_new_ValueInfoProto(place->exporter, error);
    if (*proto == NULL)
        return NO_MEMORY;
    (*proto)->name = (char *)(uintptr_t)name;
    return sb_export_type(place->exporter, fact, &(*proto)->type, error);
}

static sb_status add_input(const place *place, sb_value_id value, const sb_fact *fact, const char *name,
                           sb_error *error) {
    Onnx__GraphProto *proto = place->proto;
    place->names[value] = name;
    return value_info(place, fact, name, &proto->input[proto->n_input++], error);
}

static sb_status add_nodes(const place *place, sb_error *error) {
    for (size_t n = 0; n < place->graph->node_count; n++) {
        const sb_node *node = place->graph->nodes[n];
        SB_TRY((is_fused(node) ? add_body : add_node)(place, node, error));
    }
    return SB_OK;
}

static sb_status add_output(const place *place, const sb_fact *fact, const char *name, sb_error *error) {
    Onnx__GraphProto *proto = place->proto;
    return value_info(place, fact, name, &proto->output[proto->n_output++], error);
}

static bool is_listed(const sb_value_id *values, size_t count, sb_value_id value) {
    for (size_t i = 0; i < count; i++) {
        if (values[i] == value)
            return true;
    }
    return false;
}

static sb_value_id value_at(const sb_value_id *values, int count, size_t index) {
    return index < (size_t)count ? values[index] : SB_NO_VALUE;
}

/* What is known of an input or output of a node's graph. `outside` is the node's own input or output at the same place. The
 * importer keeps none of the types that files give there, since they follow from the node; readers find them out again for
 * If, Loop and Scan, but some want those of SequenceMap, which is a function to them. */
static sb_fact inner_fact(const place *outer, const sb_node *node, sb_value_id outside, const place *inner,
                          sb_value_id inside) {
    if (strcmp(node->op->name, "SequenceMap") != 0 || outside == SB_NO_VALUE)
        return inner->graph->values[inside].fact;
    sb_fact fact = outer->graph->values[outside].fact;
    if (fact.kind == SB_KIND_SEQUENCE)
        fact.kind = SB_KIND_TENSOR; /* an item */
    return fact;
}

/* Inputs get names of the exporter's; captures have those of the values outside. */
static sb_status add_nested_inputs(const place *outer, const sb_node *node, const place *inner, sb_error *error) {
    const sb_graph *graph = inner->graph;
    size_t formal = graph->input_count - (size_t)node->capture_count;
    for (size_t i = 0; i < formal; i++) {
        sb_value_id value = graph->inputs[i];
        sb_fact fact = inner_fact(outer, node, value_at(node->inputs, node->input_count, i), inner, value);
        const char *name;
        SB_TRY(new_name(inner->exporter, graph->values[value].name, &name, error));
        SB_TRY(add_input(inner, value, &fact, name, error));
    }
    const sb_value_id *captured = node->inputs + (node->input_count - node->capture_count);
    for (size_t i = formal; i < graph->input_count; i++)
        SB_TRY(name_of(outer, captured[i - formal], &inner->names[graph->inputs[i]], error));
    return SB_OK;
}

static sb_status add_nested_outputs(const place *outer, const sb_node *node, const place *inner, sb_error *error) {
    const sb_graph *graph = inner->graph;
    for (size_t i = 0; i < graph->output_count; i++) {
        const char *name, *made;
        sb_value_id value = graph->outputs[i];
        sb_fact fact = inner_fact(outer, node, value_at(node->outputs, node->output_count, i), inner, value);
        SB_TRY(name_of(inner, value, &name, error));
        if (!inner->made[value] || is_listed(graph->outputs, i, value)) {
            made = name;
            SB_TRY(new_name(inner->exporter, graph->values[value].name, &name, error));
            SB_TRY(add_identity(inner, made, name, error));
        }
        SB_TRY(add_output(inner, &fact, name, error));
    }
    return SB_OK;
}

static sb_status nested_graph(const place *outer, const sb_node *node, const sb_graph *graph, Onnx__GraphProto **proto,
                              sb_error *error) {
    place inner;
    *proto = sb_new_GraphProto(outer->exporter, error);
    if (*proto == NULL)
        return NO_MEMORY;
    (*proto)->name = graph->name;
    SB_TRY(begin_place(outer->exporter, graph, *proto, &inner, error));
    SB_TRY(make_lists(&inner, error));
    SB_TRY(add_nested_inputs(outer, node, &inner, error));
    SB_TRY(add_nodes(&inner, error));
    return add_nested_outputs(outer, node, &inner, error);
}

sb_status sb_export_graph(sb_exporter *exporter, const sb_graph *graph, Onnx__GraphProto **proto, sb_error *error) {
    place place;
    *proto = sb_new_GraphProto(exporter, error);
    if (*proto == NULL)
        return NO_MEMORY;
    SB_TRY(begin_place(exporter, graph, *proto, &place, error));
    SB_TRY(make_lists(&place, error));
    for (size_t i = 0; i < graph->input_count; i++) {
        const char *name = graph->values[graph->inputs[i]].name;
        SB_TRY(take_name(exporter, name, error));
        SB_TRY(add_input(&place, graph->inputs[i], &graph->values[graph->inputs[i]].fact, name, error));
    }
    for (size_t i = 0; i < graph->output_count; i++) {
        sb_value_id value = graph->outputs[i];
        if (place.names[value] != NULL || is_listed(graph->outputs, i, value))
            continue;
        SB_TRY(take_name(exporter, graph->values[value].name, error));
        if (place.made[value])
            place.names[value] = graph->values[value].name;
    }
    SB_TRY(add_nodes(&place, error));
    for (size_t i = 0; i < graph->output_count; i++) {
        sb_value_id value = graph->outputs[i];
        const char *made, *name = graph->values[value].name;
        SB_TRY(name_of(&place, value, &made, error));
        if (strcmp(made, name) != 0 && !is_listed(graph->outputs, i, value))
            SB_TRY(add_identity(&place, made, name, error));
        SB_TRY(add_output(&place, &graph->values[value].fact, name, error));
    }
    return SB_OK;
}
