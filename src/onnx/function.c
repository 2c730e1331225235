/* The model's own functions: found, and replaced by their nodes where they are called. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

/* Fields that are newer than the installed onnx.proto: protobuf-c keeps them as they are in the file. */
enum {
    NODE_OVERLOAD = 8,      /* NodeProto.overload, string, IR 10 */
    FUNCTION_DEFAULTS = 11, /* FunctionProto.attribute_proto, repeated AttributeProto, IR 9 */
    FUNCTION_OVERLOAD = 13  /* FunctionProto.overload, string, IR 10 */
};

const char *sb_onnx_domain(const char *domain) {
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* ---- finding them ---- */

/* The contents of the next length-prefixed unknown field of that number from *index on. An unknown
 * field holds its length as well. */
static bool next_unknown(const ProtobufCMessage *message, uint32_t number, unsigned *index, sb_wire_field *field) {
    for (; *index < message->n_unknown_fields; (*index)++) {
        const ProtobufCMessageUnknownField *unknown = &message->unknown_fields[*index];
        if (unknown->tag != number || unknown->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            continue;
        size_t at = 0;
        while (at < unknown->len && unknown->data[at] >= 0x80)
            at++;
        at += at < unknown->len ? 1 : 0;
        *field = (sb_wire_field){.bytes = unknown->data + at, .size = unknown->len - at};
        (*index)++;
        return true;
    }
    return false;
}

/* "domain:name:overload", by which functions are found; the caller frees it. The parts of a call
 * and of a function are joined alike. */
static sb_status make_key(const ProtobufCMessage *message, const char *domain, const char *name,
                          uint32_t overload_number, char **key, sb_error *error) {
    sb_wire_field overload = {0};
    unsigned index = 0;
    next_unknown(message, overload_number, &index, &overload);
    if (overload.size != 0 && memchr(overload.bytes, 0, overload.size) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "an overload's name holds a NUL character");
    domain = sb_onnx_domain(domain);
    size_t bytes = strlen(domain) + strlen(name) + overload.size + 3;
    char *text = sb_allocate(bytes);
    if (text == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(text, bytes, "%s:%s:%.*s", domain, name, (int)overload.size,
             overload.size != 0 ? (const char *)overload.bytes : "");
    *key = text;
    return SB_OK;
}

static sb_status read_defaults(sb_importer *importer, sb_onnx_function *function, sb_error *error) {
    const ProtobufCMessage *message = &function->proto->base;
    sb_wire_field field;
    unsigned index = 0;
    size_t count = 0;
    while (next_unknown(message, FUNCTION_DEFAULTS, &index, &field))
        count++;
    if (count == 0)
        return SB_OK;
    function->defaults = sb_arena_allocate(&importer->arena, count * sizeof *function->defaults);
    if (function->defaults == NULL)
        return sb_fail_memory(error, count * sizeof *function->defaults);
    index = 0;
    while (next_unknown(message, FUNCTION_DEFAULTS, &index, &field)) {
        ProtobufCMessage *attribute;
        SB_TRY(sb_wire_unpack(field.bytes, field.size, &onnx__attribute_proto__descriptor, &importer->arena, &attribute,
                              error));
        function->defaults[function->default_count++] = (const Onnx__AttributeProto *)attribute;
    }
    return SB_OK;
}

static sb_status add_function(sb_importer *importer, const Onnx__FunctionProto *proto, sb_error *error) {
    if (proto->name == NULL || proto->name[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "it has no name");
    sb_onnx_function *function = &importer->functions[importer->function_count];
    *function = (sb_onnx_function){.proto = proto};
    SB_TRY(make_key(&proto->base, proto->domain, proto->name, FUNCTION_OVERLOAD, &function->key, error));
    importer->function_count++;
    if (sb_names_find(&importer->function_names, function->key) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "it is defined twice");
    if (!sb_names_put(&importer->function_names, function->key, (int32_t)importer->function_count - 1))
        return sb_fail_memory(error, sizeof(sb_name_entry));
    return read_defaults(importer, function, error);
}

sb_status sb_onnx_find_functions(sb_importer *importer, sb_error *error) {
    const Onnx__ModelProto *model = importer->model;
    importer->functions = sb_allocate_array(model->n_functions, sizeof *importer->functions);
    if (importer->functions == NULL)
        return sb_fail_memory(error, model->n_functions * sizeof *importer->functions);
    for (size_t i = 0; i < model->n_functions; i++) {
        sb_status status = add_function(importer, model->functions[i], error);
        if (status != SB_OK)
            return sb_fail_within(error, status, "function %zu (%.200s): ", i,
                                  model->functions[i]->name != NULL ? model->functions[i]->name : "");
    }
    return SB_OK;
}

sb_status sb_onnx_function_of(const sb_importer *importer, const Onnx__NodeProto *node, sb_onnx_function **function,
                              sb_error *error) {
    *function = NULL;
    if (importer->function_count == 0)
        return SB_OK;
    char *key;
    SB_TRY(make_key(&node->base, node->domain, node->op_type, NODE_OVERLOAD, &key, error));
    const int32_t *index = sb_names_find(&importer->function_names, key);
    if (index != NULL)
        *function = &importer->functions[*index];
    sb_free(key);
    return SB_OK;
}

/* ---- replacing a call ---- */

static sb_status bind_inputs(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                             const Onnx__FunctionProto *proto, const char *name, sb_environment *body,
                             sb_error *error) {
    if (node->n_input > proto->n_input || node->n_output > proto->n_output)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %.200s: function %.100s has %zu inputs and %zu outputs, the call %zu and "
                       "%zu",
                       name, proto->name, proto->n_input, proto->n_output, node->n_input, node->n_output);
    for (size_t i = 0; i < proto->n_input; i++) {
        sb_value_id value = SB_NO_VALUE;
        if (i < node->n_input && node->input[i][0] != '\0')
            SB_TRY(sb_environment_find(importer, environment, node->input[i], name, &value, error));
        SB_TRY(sb_environment_bind(body, proto->input[i], value, error));
    }
    return SB_OK;
}

/* The values that the call defines exist before the body is read, so that the body's nodes make them directly. */
static sb_status prepare_outputs(sb_environment *environment, const Onnx__NodeProto *node,
                                 const Onnx__FunctionProto *proto, sb_value_id *outputs, sb_environment *body,
                                 sb_error *error) {
    for (size_t i = 0; i < node->n_output; i++) {
        outputs[i] = SB_NO_VALUE;
        if (node->output[i][0] == '\0')
            continue;
        if (sb_names_find(&environment->names, node->output[i]) != NULL)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "value '%.200s' is defined twice", node->output[i]);
        SB_TRY(sb_environment_new_value(environment, node->output[i], &outputs[i], error));
        if (sb_names_find(&body->targets, proto->output[i]) == NULL &&
            !sb_names_put(&body->targets, proto->output[i], outputs[i]))
            return sb_fail_memory(error, sizeof(sb_name_entry));
    }
    return SB_OK;
}

static sb_status copy_value(sb_importer *importer, sb_environment *body, const char *call, const char *name,
                            sb_value_id target, sb_error *error) {
    sb_value_id source;
    SB_TRY(sb_environment_find(importer, body, name, call, &source, error));
    if (source == target)
        return SB_OK;
    if (source == SB_NO_VALUE)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %.200s: the function's output '%.200s' is an input that the call omits", call, name);
    sb_attributes none = {0};
    sb_node_plan plan = {.version = SB_NEWEST_OPSET,
                         .input_count = 1,
                         .inputs = &source,
                         .output_count = 1,
                         .outputs = &target,
                         .attributes = &none};
    SB_TRY(sb_graph_builder_find_op("", "Identity", &plan.op, error));
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
    node.op_type = (char *)(uintptr_t) "Identity";
    char *unique;
    SB_TRY(sb_environment_node_name(body, &node, body->builder->graph->node_count, &unique, error));
    plan.name = unique;
    sb_status status = sb_graph_builder_add_node(body->builder, &plan, error);
    sb_free(unique);
    return status;
}

/* Outputs that are inputs passed through, or that come twice, are copied; then the caller may use
 * all of them. */
static sb_status finish_outputs(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                                const Onnx__FunctionProto *proto, const char *name, const sb_value_id *outputs,
                                sb_environment *body, sb_error *error) {
    for (size_t i = 0; i < node->n_output; i++) {
        if (outputs[i] == SB_NO_VALUE)
            continue;
        SB_TRY(copy_value(importer, body, name, proto->output[i], outputs[i], error));
        SB_TRY(sb_environment_bind(environment, node->output[i], outputs[i], error));
    }
    return SB_OK;
}

static sb_status read_body(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                           sb_onnx_function *function, const char *name, sb_value_id *outputs, sb_environment *body,
                           sb_error *error) {
    const Onnx__FunctionProto *proto = function->proto;
    SB_TRY(bind_inputs(importer, environment, node, proto, name, body, error));
    SB_TRY(prepare_outputs(environment, node, proto, outputs, body, error));
    const Onnx__GraphProto nodes = {.name = proto->name, .n_node = proto->n_node, .node = proto->node};
    if (function->order == NULL)
        SB_TRY(sb_onnx_order(importer, &nodes, &function->order, error));
    for (size_t i = 0; i < proto->n_node; i++)
        SB_TRY(sb_onnx_read_node(importer, body, proto->node[function->order[i]], function->order[i], error));
    return finish_outputs(importer, environment, node, proto, name, outputs, body, error);
}

static bool has_attribute(const sb_onnx_function *function, const char *name) {
    for (size_t i = 0; i < function->proto->n_attribute; i++) {
        if (strcmp(function->proto->attribute[i], name) == 0)
            return true;
    }
    for (size_t i = 0; i < function->default_count; i++) {
        if (function->defaults[i]->name != NULL && strcmp(function->defaults[i]->name, name) == 0)
            return true;
    }
    return false;
}

/* A call's attributes that the function does not list may be read by its nodes all the same. */
static sb_status check_attributes(sb_importer *importer, const Onnx__NodeProto *node, const sb_onnx_function *function,
                                  const char *name, sb_error *error) {
    for (size_t i = 0; i < node->n_attribute; i++) {
        const char *attribute = node->attribute[i]->name;
        if (attribute != NULL && !has_attribute(function, attribute))
            SB_TRY(sb_warn(importer->warnings, error,
                           "node '%.200s' calls function %.100s with an attribute '%.100s' that it does not list", name,
                           function->proto->name, attribute));
    }
    return SB_OK;
}

sb_status sb_onnx_read_call(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                            sb_onnx_function *function, const char *name, sb_error *error) {
    sb_call_site call = {function, node, environment};
    SB_TRY(check_attributes(importer, node, function, name, error));
    /* The call's name is taken, although there is no such node, so that no other call has the same prefix. */
    size_t bytes = strlen(name) + 2;
    char *taken = sb_arena_allocate(&importer->arena, bytes);
    if (taken == NULL)
        return sb_fail_memory(error, bytes);
    memcpy(taken, name, bytes - 1);
    SB_TRY(sb_graph_builder_take_node_name(environment->builder, taken, error));
    char *prefix = sb_allocate(bytes);
    sb_value_id *outputs = sb_allocate_array(node->n_output, sizeof *outputs);
    sb_status status;
    if (prefix != NULL && outputs != NULL) {
        snprintf(prefix, bytes, "%s/", name);
        sb_environment body = {.builder = environment->builder, .call = &call, .prefix = prefix};
        status = read_body(importer, environment, node, function, name, outputs, &body, error);
        sb_environment_clear(&body);
    } else {
        status = sb_fail_memory(error, bytes + node->n_output * sizeof *outputs);
    }
    sb_free(prefix);
    sb_free(outputs);
    return status;
}
