/* NodeProto: nodes, and the constants that some of them are. */
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

static bool is_constant(const Onnx__NodeProto *node) {
    return iv_onnx_domain(node->domain)[0] == '\0' && strcmp(node->op_type, "Constant") == 0;
}

/* ---- Constant ---- */

static iv_status strings_tensor(const iv_attribute *attribute, int rank, iv_tensor **tensor,
                                iv_error *error) {
    iv_string *strings = iv_allocate_array((size_t)attribute->count, sizeof *strings);
    if (strings == NULL)
        return iv_fail_memory(error, (size_t)attribute->count * sizeof *strings);
    for (int64_t i = 0; i < attribute->count; i++)
        strings[i] = (iv_string){attribute->strings[i], strlen(attribute->strings[i])};
    iv_status status = iv_tensor_from_strings(rank, &attribute->count, strings, tensor, error);
    iv_free(strings);
    return status;
}

/* One of value, sparse_value, value_float(s), value_int(s), value_string(s). */
static iv_status constant_tensor(const iv_attributes *attributes, iv_tensor **tensor,
                                 iv_error *error) {
    const iv_attribute *only = NULL;
    for (size_t i = 0; i < attributes->count; i++) {
        const char *name = attributes->items[i].name;
        if (strncmp(name, "value", 5) != 0 && strcmp(name, "sparse_value") != 0)
            continue;
        if (only != NULL)
            return iv_fail(error, IV_ERROR_INVALID_MODEL, "a Constant with both %.100s and %.100s",
                           only->name, name);
        only = &attributes->items[i];
    }
    if (only == NULL || only->kind == IV_ATTRIBUTE_GRAPH)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "a Constant without a value");
    int rank = only->scalar ? 0 : 1;
    switch (only->kind) {
    case IV_ATTRIBUTE_INTS:
        return iv_tensor_from_data(IV_S64, rank, &only->count, only->ints, tensor, error);
    case IV_ATTRIBUTE_FLOATS:
        return iv_tensor_from_data(IV_F32, rank, &only->count, only->floats, tensor, error);
    case IV_ATTRIBUTE_STRINGS:
        return strings_tensor(only, rank, tensor, error);
    default:
        *tensor = iv_tensor_retain(only->tensor);
        return IV_OK;
    }
}

static iv_status add_constant(iv_importer *importer, iv_environment *environment,
                              const Onnx__NodeProto *node, const iv_attributes *attributes,
                              iv_error *error) {
    if (node->n_input != 0 || node->n_output != 1 || node->output[0][0] == '\0')
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "a Constant has no inputs and one output");
    iv_tensor *tensor;
    IV_TRY(constant_tensor(attributes, &tensor, error));
    iv_value_id value;
    iv_status status = iv_environment_define(environment, node->output[0], &value, error);
    if (status == IV_OK)
        status = iv_fact_of_tensor(&environment->builder->graph->values[value].fact,
                                   importer->scope, tensor, true, error);
    iv_tensor_release(tensor);
    return status;
}

/* ---- all other nodes ---- */

/* The number of outputs without those that nobody wants at the end. */
static size_t named_count(size_t count, char *const *names) {
    while (count > 0 && names[count - 1][0] == '\0')
        count--;
    return count;
}

static iv_status find_inputs(iv_importer *importer, iv_environment *environment,
                             const Onnx__NodeProto *node, const char *name, size_t count,
                             iv_value_id *inputs, iv_error *error) {
    for (size_t i = 0; i < count; i++) {
        inputs[i] = IV_NO_VALUE;
        if (node->input[i][0] != '\0')
            IV_TRY(iv_environment_find(importer, environment, node->input[i], name, &inputs[i],
                                       error));
    }
    return IV_OK;
}

static iv_status define_outputs(iv_environment *environment, const Onnx__NodeProto *node,
                                size_t count, iv_value_id *outputs, iv_error *error) {
    for (size_t i = 0; i < count; i++) {
        outputs[i] = IV_NO_VALUE;
        if (node->output[i][0] != '\0')
            IV_TRY(iv_environment_define(environment, node->output[i], &outputs[i], error));
    }
    return IV_OK;
}

static iv_status add_to_graph(iv_environment *environment, const iv_op *op, int version,
                              const char *name, size_t input_count, const iv_value_id *inputs,
                              size_t capture_count, size_t output_count, const iv_value_id *outputs,
                              iv_attributes *attributes, iv_error *error) {
    iv_node *added;
    IV_TRY(iv_graph_add_node(environment->builder->graph, op, version, name, (int)input_count,
                             inputs, (int)capture_count, (int)output_count, outputs, attributes,
                             &added, error));
    return iv_names_put(&environment->builder->nodes, added->name, 1)
               ? IV_OK
               : iv_fail_memory(error, sizeof(iv_name_entry));
}

/* `ids` has room for all inputs, captures and outputs, in this order. */
static iv_status connect(iv_importer *importer, iv_environment *environment,
                         const Onnx__NodeProto *node, const iv_op *op, const char *name,
                         iv_node_reading *reading, size_t outer_count, const iv_value_id *outer,
                         iv_value_id *ids, iv_error *error) {
    int version;
    IV_TRY(iv_onnx_version(importer, environment, node, name, &version, error));
    size_t formal = node->n_input;
    size_t output_count = named_count(node->n_output, node->output);
    IV_TRY(find_inputs(importer, environment, node, name, formal, ids, error));
    /* What is omitted at the end, by an empty name or by a call that gives no such argument, is as
     * good as not there. */
    while (formal > 0 && ids[formal - 1] == IV_NO_VALUE)
        formal--;
    size_t input_count = formal + outer_count;
    for (size_t i = 0; i < outer_count; i++)
        ids[formal + i] = outer[i];
    IV_TRY(define_outputs(environment, node, output_count, ids + input_count, error));
    return add_to_graph(environment, op, version, name, input_count, ids, outer_count, output_count,
                        ids + input_count, &reading->attributes, error);
}

static iv_status read_operator(iv_importer *importer, iv_environment *environment,
                               const Onnx__NodeProto *node, const char *name,
                               iv_node_reading *reading, iv_error *error) {
    const iv_op *op = iv_op_find(iv_onnx_domain(node->domain), node->op_type);
    if (op == NULL)
        return iv_fail(error, IV_ERROR_INTERNAL, "operator %.100s vanished", node->op_type);
    iv_value_id *outer;
    size_t outer_count;
    IV_TRY(iv_onnx_join_captures(reading->graph_count, reading->graphs, environment->builder->graph,
                                 &outer, &outer_count, error));
    size_t count = node->n_input + outer_count + node->n_output;
    iv_value_id *ids = iv_allocate_array(count, sizeof *ids);
    iv_status status = ids != NULL ? connect(importer, environment, node, op, name, reading,
                                             outer_count, outer, ids, error)
                                   : iv_fail_memory(error, count * sizeof *ids);
    iv_free(ids);
    iv_free(outer);
    return status;
}

/* Messages of deeper layers name the node themselves; those of reading its parts do not. */
static iv_status read_named(iv_importer *importer, iv_environment *environment,
                            const Onnx__NodeProto *node, const char *name, iv_error *error) {
    iv_onnx_function *function;
    IV_TRY(iv_onnx_function_of(importer, node, &function, error));
    if (function != NULL)
        return iv_onnx_read_call(importer, environment, node, function, name, error);
    iv_node_reading reading = {0};
    iv_status status = iv_onnx_read_attributes(importer, environment, node, &reading, error);
    if (status == IV_OK && is_constant(node))
        status = add_constant(importer, environment, node, &reading.attributes, error);
    else if (status == IV_OK) {
        status = read_operator(importer, environment, node, name, &reading, error);
        iv_node_reading_clear(&reading);
        return status;
    }
    iv_node_reading_clear(&reading);
    if (status != IV_OK)
        return iv_fail_within(error, status, "node %.200s (%.100s): ", name, node->op_type);
    return IV_OK;
}

iv_status iv_onnx_read_node(iv_importer *importer, iv_environment *environment,
                            const Onnx__NodeProto *node, size_t index, iv_error *error) {
    if (node->op_type == NULL || node->op_type[0] == '\0')
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %zu has no operator", index);
    if (importer->depth >= IV_ONNX_NESTING)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "graphs and function calls lie more than %d deep in each other",
                       IV_ONNX_NESTING);
    char *name;
    IV_TRY(iv_environment_node_name(environment, node, index, &name, error));
    importer->depth++;
    iv_status status = read_named(importer, environment, node, name, error);
    importer->depth--;
    iv_free(name);
    return status;
}
