/* GraphProto. */
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

static iv_status reserve(iv_graph_builder *builder, const char *name, iv_error *error) {
    if (name == NULL || name[0] == '\0' || iv_names_find(&builder->reserved, name) != NULL)
        return IV_OK;
    return iv_names_put(&builder->reserved, name, 0) ? IV_OK
                                                     : iv_fail_memory(error, sizeof(iv_name_entry));
}

static const char *sparse_name(const Onnx__SparseTensorProto *sparse) {
    return sparse->values != NULL ? sparse->values->name : NULL;
}

static iv_status reserve_all(iv_graph_builder *builder, const Onnx__GraphProto *proto,
                             iv_error *error) {
    for (size_t i = 0; i < proto->n_input; i++)
        IV_TRY(reserve(builder, proto->input[i]->name, error));
    for (size_t i = 0; i < proto->n_initializer; i++)
        IV_TRY(reserve(builder, proto->initializer[i]->name, error));
    for (size_t i = 0; i < proto->n_sparse_initializer; i++)
        IV_TRY(reserve(builder, sparse_name(proto->sparse_initializer[i]), error));
    for (size_t i = 0; i < proto->n_node; i++) {
        for (size_t j = 0; j < proto->node[i]->n_output; j++)
            IV_TRY(reserve(builder, proto->node[i]->output[j], error));
    }
    return IV_OK;
}

static iv_status add_initializer(iv_importer *importer, iv_environment *environment,
                                 const char *name, void *proto, bool sparse, size_t index,
                                 iv_error *error) {
    if (name == NULL || name[0] == '\0')
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "%sinitialiser %zu has no name",
                       sparse ? "sparse " : "", index);
    iv_value_id value;
    IV_TRY(iv_environment_define(environment, name, &value, error));
    iv_tensor *tensor;
    IV_TRY(iv_onnx_read_tensor(importer, environment->call != NULL, proto, sparse, &tensor, error));
    iv_status status = iv_fact_of_tensor(&environment->builder->graph->values[value].fact,
                                         importer->scope, tensor, true, error);
    iv_tensor_release(tensor);
    return status;
}

static iv_status add_initializers(iv_importer *importer, iv_environment *environment,
                                  const Onnx__GraphProto *proto, iv_error *error) {
    for (size_t i = 0; i < proto->n_initializer; i++)
        IV_TRY(add_initializer(importer, environment, proto->initializer[i]->name,
                               proto->initializer[i], false, i, error));
    for (size_t i = 0; i < proto->n_sparse_initializer; i++)
        IV_TRY(add_initializer(importer, environment, sparse_name(proto->sparse_initializer[i]),
                               proto->sparse_initializer[i], true, i, error));
    return IV_OK;
}

static iv_status add_inputs(iv_importer *importer, iv_environment *environment,
                            const Onnx__GraphProto *proto, iv_error *error) {
    iv_graph *graph = environment->builder->graph;
    bool main = environment->outer == NULL;
    for (size_t i = 0; main && i < proto->n_input; i++)
        iv_onnx_declare_symbols(importer->scope, proto->input[i]->type);
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = proto->input[i]->name;
        if (name == NULL || name[0] == '\0')
            return iv_fail(error, IV_ERROR_INVALID_MODEL, "the graph's input %zu has no name", i);
        const int32_t *known = iv_names_find(&environment->names, name);
        if (known != NULL && graph->values[*known].fact.constant != NULL)
            continue; /* an initialiser */
        iv_value_id value;
        IV_TRY(iv_environment_define(environment, name, &value, error));
        IV_TRY(iv_graph_add_input(graph, value, error));
        /* What enters an inner graph is the business of the node that has it. */
        if (main)
            IV_TRY(iv_onnx_fact_of_type(importer->scope, proto->input[i]->type, name,
                                        &graph->values[value].fact, error));
    }
    return iv_scope_check(importer->scope, error);
}

static iv_status add_outputs(iv_importer *importer, iv_environment *environment,
                             const Onnx__GraphProto *proto, iv_error *error) {
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = proto->output[i]->name;
        if (name == NULL || name[0] == '\0')
            return iv_fail(error, IV_ERROR_INVALID_MODEL, "the graph's output %zu has no name", i);
        iv_value_id value;
        IV_TRY(iv_environment_find(importer, environment, name, NULL, &value, error));
        if (value == IV_NO_VALUE)
            return iv_fail(error, IV_ERROR_INVALID_MODEL,
                           "the graph's output '%.200s' is an input that a function's call omits",
                           name);
        IV_TRY(iv_graph_add_output(environment->builder->graph, value, error));
    }
    return IV_OK;
}

static iv_status fill(iv_importer *importer, iv_environment *environment,
                      const Onnx__GraphProto *proto, iv_error *error) {
    IV_TRY(reserve_all(environment->builder, proto, error));
    IV_TRY(add_initializers(importer, environment, proto, error));
    IV_TRY(add_inputs(importer, environment, proto, error));
    for (size_t i = 0; i < proto->n_node; i++)
        IV_TRY(iv_onnx_read_node(importer, environment, proto->node[i], i, error));
    return add_outputs(importer, environment, proto, error);
}

iv_status iv_onnx_read_graph(iv_importer *importer, const Onnx__GraphProto *proto,
                             iv_environment *outer, iv_graph_builder *builder, iv_error *error) {
    *builder = (iv_graph_builder){0};
    IV_TRY(iv_graph_create(proto->name != NULL ? proto->name : "", &builder->graph, error));
    iv_environment environment = {.builder = builder,
                                  .outer = outer,
                                  .call = outer != NULL ? outer->call : NULL,
                                  .prefix = ""};
    iv_status status = fill(importer, &environment, proto, error);
    iv_environment_clear(&environment);
    if (status != IV_OK) {
        iv_graph_destroy(builder->graph);
        iv_graph_builder_clear(builder);
    }
    return status;
}
