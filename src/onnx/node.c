/* NodeProto: nodes, and the constants that some of them are. */
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

static bool is_constant(const Onnx__NodeProto *node) {
    return sb_onnx_domain(node->domain)[0] == '\0' && strcmp(node->op_type, "Constant") == 0;
}

/* ---- Constant ---- */

static sb_status strings_tensor(const sb_attribute *attribute, int rank, sb_tensor **tensor, sb_error *error) {
    sb_string *strings = sb_allocate_array((size_t)attribute->count, sizeof *strings);
    if (strings == NULL)
        return sb_fail_memory(error, (size_t)attribute->count * sizeof *strings);
    for (int64_t i = 0; i < attribute->count; i++)
        strings[i] = (sb_string){attribute->strings[i], strlen(attribute->strings[i])};
    sb_status status = sb_tensor_from_strings(rank, &attribute->count, strings, tensor, error);
    sb_free(strings);
    return status;
}

/* One of value, sparse_value, value_float(s), value_int(s), value_string(s). */
static sb_status constant_tensor(const sb_attributes *attributes, sb_tensor **tensor, sb_error *error) {
    const sb_attribute *only = NULL;
    for (size_t i = 0; i < attributes->count; i++) {
        const char *name = attributes->items[i].name;
        if (strncmp(name, "value", 5) != 0 && strcmp(name, "sparse_value") != 0)
            continue;
        if (only != NULL)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "a Constant with both %.100s and %.100s", only->name, name);
        only = &attributes->items[i];
    }
    if (only == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "a Constant without a value");
    int rank = only->scalar ? 0 : 1;
    switch (only->kind) {
    case SB_ATTRIBUTE_INTS:
        return sb_tensor_from_data(SB_S64, rank, &only->count, only->ints, tensor, error);
    case SB_ATTRIBUTE_FLOATS:
        return sb_tensor_from_data(SB_F32, rank, &only->count, only->floats, tensor, error);
    case SB_ATTRIBUTE_STRINGS:
        return strings_tensor(only, rank, tensor, error);
    default:
        *tensor = sb_tensor_retain(only->tensor);
        return SB_OK;
    }
}

static sb_status add_constant(sb_environment *environment, const Onnx__NodeProto *node, const sb_attributes *attributes,
                              sb_error *error) {
    if (node->n_input != 0 || node->n_output != 1 || node->output[0][0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "a Constant has no inputs and one output");
    sb_tensor *tensor;
    SB_TRY(constant_tensor(attributes, &tensor, error));
    sb_value_id value;
    sb_status status = sb_environment_define(environment, node->output[0], &value, error);
    if (status == SB_OK)
        status = sb_graph_builder_set_constant(environment->builder, value, tensor, error);
    sb_tensor_release(tensor);
    return status;
}

/* ---- all other nodes ---- */

/* The number of outputs without those that nobody wants at the end. */
static size_t named_count(size_t count, char *const *names) {
    while (count > 0 && names[count - 1][0] == '\0')
        count--;
    return count;
}

static sb_status find_inputs(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                             const char *name, size_t count, sb_value_id *inputs, sb_error *error) {
    for (size_t i = 0; i < count; i++) {
        inputs[i] = SB_NO_VALUE;
        if (node->input[i][0] != '\0')
            SB_TRY(sb_environment_find(importer, environment, node->input[i], name, &inputs[i], error));
    }
    return SB_OK;
}

static sb_status define_outputs(sb_environment *environment, const Onnx__NodeProto *node, size_t count,
                                sb_value_id *outputs, sb_error *error) {
    for (size_t i = 0; i < count; i++) {
        outputs[i] = SB_NO_VALUE;
        if (node->output[i][0] != '\0')
            SB_TRY(sb_environment_define(environment, node->output[i], &outputs[i], error));
    }
    return SB_OK;
}

/* `ids` has room for all inputs and outputs, in this order. */
static sb_status connect(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                         const char *name, int version, sb_node_reading *reading, sb_value_id *ids, sb_error *error) {
    sb_node_plan plan = {.name = name,
                         .version = version,
                         .input_count = node->n_input,
                         .inputs = ids,
                         .output_count = named_count(node->n_output, node->output),
                         .outputs = ids + node->n_input,
                         .attributes = &reading->attributes,
                         .nested_count = reading->graph_count,
                         .nested = reading->graphs};
    SB_TRY(sb_graph_builder_find_op(sb_onnx_domain(node->domain), node->op_type, &plan.op, error));
    SB_TRY(find_inputs(importer, environment, node, name, node->n_input, ids, error));
    SB_TRY(define_outputs(environment, node, plan.output_count, ids + node->n_input, error));
    return sb_graph_builder_add_node(environment->builder, &plan, error);
}

static sb_status read_operator(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                               const char *name, int version, sb_node_reading *reading, sb_error *error) {
    size_t count = node->n_input + node->n_output;
    sb_value_id *ids = sb_allocate_array(count, sizeof *ids);
    if (ids == NULL)
        return sb_fail_memory(error, count * sizeof *ids);
    sb_status status = connect(importer, environment, node, name, version, reading, ids, error);
    sb_free(ids);
    return status;
}

/* Messages of deeper layers name the node themselves; those of reading its parts do not. */
static sb_status read_named(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                            const char *name, sb_error *error) {
    sb_onnx_function *function;
    SB_TRY(sb_onnx_function_of(importer, node, &function, error));
    if (function != NULL)
        return sb_onnx_read_call(importer, environment, node, function, name, error);
    int version = SB_NEWEST_OPSET; /* a Constant has any that was ever one */
    if (!is_constant(node))
        SB_TRY(sb_onnx_version(importer, environment, node, name, &version, error));
    sb_node_reading reading = {0};
    sb_status status = sb_onnx_read_attributes(importer, environment, node, name, version, &reading, error);
    if (status == SB_OK && is_constant(node))
        status = add_constant(environment, node, &reading.attributes, error);
    else if (status == SB_OK) {
        status = read_operator(importer, environment, node, name, version, &reading, error);
        sb_node_reading_clear(&reading);
        return status;
    }
    sb_node_reading_clear(&reading);
    if (status != SB_OK)
        return sb_fail_within(error, status, "node %.200s (%.100s): ", name, node->op_type);
    return SB_OK;
}

sb_status sb_onnx_read_node(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                            size_t index, sb_error *error) {
    if (node->op_type == NULL || node->op_type[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %zu has no operator", index);
    if (importer->depth >= SB_ONNX_NESTING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "graphs and function calls lie more than %d deep in each other",
                       SB_ONNX_NESTING);
    char *name;
    SB_TRY(sb_environment_node_name(environment, node, index, &name, error));
    importer->depth++;
    sb_status status = read_named(importer, environment, node, name, error);
    importer->depth--;
    sb_free(name);
    return status;
}
