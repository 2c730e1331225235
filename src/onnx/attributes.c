/* AttributeProto. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/attribute_names.h"
#include "onnx/importer.h"

void sb_node_reading_clear(sb_node_reading *reading) {
    for (size_t i = 0; i < reading->graph_count; i++)
        sb_graph_builder_destroy(reading->graphs[i].builder);
    sb_free(reading->graphs);
    sb_attributes_clear(&reading->attributes);
    *reading = (sb_node_reading){0};
}

/* ---- references of functions to their callers' attributes ---- */

static const Onnx__AttributeProto *find_in(size_t count, Onnx__AttributeProto *const *attributes, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (attributes[i]->name != NULL && strcmp(attributes[i]->name, name) == 0)
            return attributes[i];
    }
    return NULL;
}

static bool is_reference(const Onnx__AttributeProto *attribute) {
    return attribute->ref_attr_name != NULL && attribute->ref_attr_name[0] != '\0';
}

/* Follows references from call to call: *found NULL when the caller gives no such attribute and
 * there is no default. */
static sb_status resolve(const Onnx__AttributeProto *attribute, sb_environment **environment,
                         const Onnx__AttributeProto **found, sb_error *error) {
    while (is_reference(attribute)) {
        const sb_call_site *call = (*environment)->call;
        const char *name = attribute->ref_attr_name;
        if (call == NULL)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "it refers to attribute %.100s of a function, but is in none",
                           name);
        attribute = find_in(call->node->n_attribute, call->node->attribute, name);
        *environment = call->environment;
        if (attribute == NULL) {
            *found =
                find_in(call->function->default_count, (Onnx__AttributeProto *const *)call->function->defaults, name);
            return SB_OK;
        }
    }
    *found = attribute;
    return SB_OK;
}

/* ---- tensors ---- */

static sb_status read_dense_or_sparse(sb_importer *importer, void *proto, bool sparse, sb_tensor **tensor,
                                      sb_error *error) {
    if (sparse)
        return sb_onnx_tensor_of_sparse(proto, &importer->external, &importer->dense_left, tensor, error);
    return sb_onnx_tensor_of_proto(proto, &importer->arena, &importer->external, tensor, error);
}

sb_status sb_onnx_read_tensor(sb_importer *importer, bool in_function, void *proto, bool sparse, sb_tensor **tensor,
                              sb_error *error) {
    if (!in_function)
        return read_dense_or_sparse(importer, proto, sparse, tensor, error);
    char address[24];
    snprintf(address, sizeof address, "%p", proto);
    const int32_t *known = sb_names_find(&importer->shared_names, address);
    if (known != NULL) {
        *tensor = sb_tensor_retain(importer->shared[*known]);
        return SB_OK;
    }
    char *key = sb_arena_allocate(&importer->arena, sizeof address);
    if (key == NULL || !sb_grow((void **)&importer->shared, &importer->shared_capacity, importer->shared_count + 1,
                                sizeof *importer->shared))
        return sb_fail_memory(error, sizeof *importer->shared);
    memcpy(key, address, sizeof address);
    sb_tensor *fresh;
    SB_TRY(read_dense_or_sparse(importer, proto, sparse, &fresh, error));
    importer->shared[importer->shared_count] = fresh;
    if (!sb_names_put(&importer->shared_names, key, (int32_t)importer->shared_count++))
        return sb_fail_memory(error, sizeof(sb_name_entry));
    *tensor = sb_tensor_retain(fresh);
    return SB_OK;
}

static sb_status add_tensor(sb_importer *importer, const sb_environment *environment, const char *name, void *proto,
                            bool sparse, sb_node_reading *reading, sb_error *error) {
    if (proto == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "the tensor is missing");
    sb_tensor *tensor;
    SB_TRY(sb_onnx_read_tensor(importer, environment->call != NULL, proto, sparse, &tensor, error));
    return sb_attributes_add_tensor(&reading->attributes, name, tensor, error);
}

/* ---- text ---- */

static sb_status add_strings(const char *name, bool scalar, size_t count, const ProtobufCBinaryData *texts,
                             sb_node_reading *reading, sb_error *error) {
    sb_string *strings = sb_allocate_array(count, sizeof *strings);
    if (strings == NULL)
        return sb_fail_memory(error, count * sizeof *strings);
    sb_status status = SB_OK;
    for (size_t i = 0; i < count && status == SB_OK; i++) {
        strings[i] = (sb_string){(const char *)texts[i].data, texts[i].len};
        if (texts[i].len != 0 && memchr(texts[i].data, 0, texts[i].len) != NULL)
            status = sb_fail(error, SB_ERROR_UNSUPPORTED, "text %zu holds a NUL character", i);
    }
    if (status == SB_OK)
        status = sb_attributes_add_strings(&reading->attributes, name, scalar, (int64_t)count, strings, error);
    sb_free(strings);
    return status;
}

static sb_status add_type(const char *name, const Onnx__TypeProto *type, sb_node_reading *reading, sb_error *error) {
    char text[64];
    SB_TRY(sb_onnx_type_text(type, text, sizeof text, error));
    return sb_attributes_add_strings(&reading->attributes, name, true, 1, &(sb_string){text, strlen(text)}, error);
}

/* ---- graphs ---- */

static sb_status add_graph(sb_importer *importer, sb_environment *environment, sb_environment *at, const char *name,
                           const Onnx__GraphProto *proto, sb_node_reading *reading, sb_error *error) {
    if (proto == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "the graph is missing");
    if (at->builder != environment->builder)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "a function passes the graph on into a graph of its own");
    if (!sb_grow((void **)&reading->graphs, &reading->graph_capacity, reading->graph_count + 1,
                 sizeof *reading->graphs))
        return sb_fail_memory(error, sizeof *reading->graphs);
    sb_nested_graph *nested = &reading->graphs[reading->graph_count];
    SB_TRY(sb_onnx_read_graph(importer, proto, at, &nested->builder, error));
    nested->attribute = name;
    reading->graph_count++;
    return SB_OK;
}

/* ---- all kinds ---- */

/* Files of the format's first version do not say the type: then it is that of the field that is there. */
static int attribute_type(const Onnx__AttributeProto *a) {
    if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return (int)a->type;
    const struct {
        bool present;
        int type;
    } fields[] = {
        {a->has_f, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT},
        {a->has_i, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT},
        {a->has_s, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING},
        {a->t != NULL, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR},
        {a->g != NULL, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH},
        {a->sparse_tensor != NULL, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR},
        {a->tp != NULL, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO},
        {a->n_floats != 0, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS},
        {a->n_strings != 0, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].present)
            return fields[i].type;
    }
    return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS; /* also the empty list */
}

static sb_status read_one(sb_importer *importer, sb_environment *environment, sb_environment *at, const char *name,
                          const Onnx__AttributeProto *a, sb_node_reading *reading, sb_error *error) {
    sb_attributes *attributes = &reading->attributes;
    switch (attribute_type(a)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        return sb_attributes_add_floats(attributes, name, true, 1, &a->f, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        return sb_attributes_add_ints(attributes, name, true, 1, &a->i, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        return add_strings(name, true, 1, &a->s, reading, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        return add_tensor(importer, environment, name, a->t, false, reading, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
        return add_graph(importer, environment, at, name, a->g, reading, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR:
        return add_tensor(importer, environment, name, a->sparse_tensor, true, reading, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO:
        return add_type(name, a->tp, reading, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        return sb_attributes_add_floats(attributes, name, false, (int64_t)a->n_floats, a->floats, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        return sb_attributes_add_ints(attributes, name, false, (int64_t)a->n_ints, a->ints, error);
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        return add_strings(name, false, a->n_strings, a->strings, reading, error);
    default:
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "lists of tensors, graphs and types are not supported");
    }
}

static bool is_known(const sb_node_reading *reading, const char *name) {
    for (size_t i = 0; i < reading->graph_count; i++) {
        if (strcmp(reading->graphs[i].attribute, name) == 0)
            return true;
    }
    return sb_attributes_find(&reading->attributes, name) != NULL;
}

/* Whether the attribute is one that the operator may have; it is left out where not. */
static sb_status check_known(sb_importer *importer, const Onnx__NodeProto *node, const char *called, int version,
                             const char *name, bool *known, sb_error *error) {
    sb_attribute_standing standing =
        sb_onnx_attribute_standing(sb_onnx_domain(node->domain), node->op_type, version, name);
    *known = standing != SB_ATTRIBUTE_UNKNOWN;
    if (standing == SB_ATTRIBUTE_KNOWN)
        return SB_OK;
    if (standing == SB_ATTRIBUTE_UNKNOWN)
        return sb_warn(
            importer->warnings, error,
            "node '%.200s' (%.100s) has an attribute '%.100s', which is none of the operator's; it is ignored", called,
            node->op_type, name);
    return sb_warn(importer->warnings, error,
                   "node '%.200s' (%.100s) has an attribute '%.100s', which other versions of the operator have than "
                   "that of operator set %d",
                   called, node->op_type, name, version);
}

sb_status sb_onnx_read_attributes(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                                  const char *called, int version, sb_node_reading *reading, sb_error *error) {
    for (size_t i = 0; i < node->n_attribute; i++) {
        const char *name = node->attribute[i]->name;
        bool known;
        if (name == NULL || name[0] == '\0')
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "attribute %zu has no name", i);
        if (is_known(reading, name))
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "attribute %.100s is given twice", name);
        SB_TRY(check_known(importer, node, called, version, name, &known, error));
        if (!known)
            continue;
        sb_environment *at = environment;
        const Onnx__AttributeProto *found;
        sb_status status = resolve(node->attribute[i], &at, &found, error);
        if (status == SB_OK && found != NULL)
            status = read_one(importer, environment, at, name, found, reading, error);
        if (status != SB_OK)
            return sb_fail_within(error, status, "attribute %.100s: ", name);
    }
    return SB_OK;
}
