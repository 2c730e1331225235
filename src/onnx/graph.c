/* GraphProto. */
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

static sb_status reserve(sb_graph_builder *builder, const char *name, sb_error *error) {
    return name == NULL || name[0] == '\0' ? SB_OK : sb_graph_builder_reserve(builder, name, error);
}

static const char *sparse_name(const Onnx__SparseTensorProto *sparse) {
    return sparse->values != NULL ? sparse->values->name : NULL;
}

static sb_status reserve_all(sb_graph_builder *builder, const Onnx__GraphProto *proto, sb_error *error) {
    for (size_t i = 0; i < proto->n_input; i++)
        SB_TRY(reserve(builder, proto->input[i]->name, error));
    for (size_t i = 0; i < proto->n_initializer; i++)
        SB_TRY(reserve(builder, proto->initializer[i]->name, error));
    for (size_t i = 0; i < proto->n_sparse_initializer; i++)
        SB_TRY(reserve(builder, sparse_name(proto->sparse_initializer[i]), error));
    for (size_t i = 0; i < proto->n_node; i++) {
        for (size_t j = 0; j < proto->node[i]->n_output; j++)
            SB_TRY(reserve(builder, proto->node[i]->output[j], error));
    }
    return SB_OK;
}

static sb_status add_initializer(sb_importer *importer, sb_environment *environment, const char *name, void *proto,
                                 bool sparse, size_t index, sb_error *error) {
    if (name == NULL || name[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "%sinitialiser %zu has no name", sparse ? "sparse " : "", index);
    sb_value_id value;
    SB_TRY(sb_environment_define(environment, name, &value, error));
    sb_tensor *tensor;
    SB_TRY(sb_onnx_read_tensor(importer, environment->call != NULL, proto, sparse, &tensor, error));
    tensor->storage->dispensable = environment->call == NULL; /* those of functions are shared between calls */
    sb_status status = sb_graph_builder_set_constant(environment->builder, value, tensor, error);
    sb_tensor_release(tensor);
    return status;
}

/* Writes to `last` which initialiser is the last of each name: of several that one counts, as for others who read such
 * files. */
static sb_status find_last(sb_importer *importer, const Onnx__GraphProto *proto, sb_names *last, sb_error *error) {
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const char *name = proto->initializer[i]->name != NULL ? proto->initializer[i]->name : "";
        int32_t *known = sb_names_find(last, name);
        if (known == NULL && !sb_names_put(last, name, (int32_t)i))
            return sb_fail_memory(error, sizeof(sb_name_entry));
        if (known == NULL)
            continue;
        *known = (int32_t)i;
        SB_TRY(sb_warn(importer->warnings, error, "initialiser '%.200s' is there more than once; the last one counts",
                       name));
    }
    return SB_OK;
}

static sb_status add_dense(sb_importer *importer, sb_environment *environment, const Onnx__GraphProto *proto,
                           const sb_names *last, sb_error *error) {
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const char *name = proto->initializer[i]->name != NULL ? proto->initializer[i]->name : "";
        if ((size_t)*sb_names_find(last, name) != i)
            continue;
        SB_TRY(add_initializer(importer, environment, name, proto->initializer[i], false, i, error));
    }
    return SB_OK;
}

static sb_status add_initializers(sb_importer *importer, sb_environment *environment, const Onnx__GraphProto *proto,
                                  sb_error *error) {
    sb_names last = {0};
    sb_status status = find_last(importer, proto, &last, error);
    if (status == SB_OK)
        status = add_dense(importer, environment, proto, &last, error);
    sb_names_clear(&last);
    SB_TRY(status);
    for (size_t i = 0; i < proto->n_sparse_initializer; i++)
        SB_TRY(add_initializer(importer, environment, sparse_name(proto->sparse_initializer[i]),
                               proto->sparse_initializer[i], true, i, error));
    return SB_OK;
}

/* The type that the file says an input has, which some say in value_info alone. */
static sb_status declared_type(sb_importer *importer, const Onnx__GraphProto *graph, const Onnx__ValueInfoProto *input,
                               const Onnx__TypeProto **type, sb_error *error) {
    *type = input->type;
    if (input->type != NULL && input->type->value_case != ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return SB_OK;
    for (size_t i = 0; i < graph->n_value_info; i++) {
        const Onnx__ValueInfoProto *other = graph->value_info[i];
        if (other->type == NULL || other->name == NULL || strcmp(other->name, input->name) != 0)
            continue;
        *type = other->type;
        return sb_warn(importer->warnings, error, "input '%.200s' has no type; that of value_info counts", input->name);
    }
    return SB_OK;
}

/* What enters an inner graph is the business of the node that has it: only inputs of the main graph have types. */
static sb_status add_input(sb_importer *importer, sb_environment *environment, const Onnx__GraphProto *graph,
                           const Onnx__ValueInfoProto *proto, sb_error *error) {
    sb_value_id value;
    sb_fact fact = {0};
    SB_TRY(sb_environment_define(environment, proto->name, &value, error));
    if (environment->outer != NULL)
        return sb_graph_builder_set_input(environment->builder, value, NULL, error);
    const Onnx__TypeProto *type;
    SB_TRY(declared_type(importer, graph, proto, &type, error));
    SB_TRY(sb_onnx_fact_of_type(importer, type, proto->name, &fact, error));
    return sb_graph_builder_set_input(environment->builder, value, &fact, error);
}

static sb_status add_inputs(sb_importer *importer, sb_environment *environment, const Onnx__GraphProto *proto,
                            sb_error *error) {
    for (size_t i = 0; environment->outer == NULL && i < proto->n_input; i++)
        sb_onnx_declare_symbols(importer->scope, proto->input[i]->type);
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = proto->input[i]->name;
        if (name == NULL || name[0] == '\0')
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "the graph's input %zu has no name", i);
        const int32_t *known = sb_names_find(&environment->names, name);
        if (known != NULL && sb_graph_builder_is_constant(environment->builder, *known))
            continue; /* an initialiser */
        SB_TRY(add_input(importer, environment, proto, proto->input[i], error));
    }
    if (environment->outer == NULL && importer->unrelated != NULL)
        SB_TRY(sb_onnx_check_unrelated(importer, proto, error));
    return sb_scope_check(importer->scope, error);
}

static sb_status add_outputs(sb_importer *importer, sb_environment *environment, const Onnx__GraphProto *proto,
                             sb_error *error) {
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = proto->output[i]->name;
        if (name == NULL || name[0] == '\0')
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "the graph's output %zu has no name", i);
        sb_value_id value;
        SB_TRY(sb_environment_find(importer, environment, name, NULL, &value, error));
        if (value == SB_NO_VALUE)
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "the graph's output '%.200s' is an input that a function's call omits", name);
        SB_TRY(sb_graph_builder_add_output(environment->builder, value, error));
    }
    return SB_OK;
}

static sb_status fill(sb_importer *importer, sb_environment *environment, const Onnx__GraphProto *proto,
                      sb_error *error) {
    SB_TRY(reserve_all(environment->builder, proto, error));
    SB_TRY(add_initializers(importer, environment, proto, error));
    SB_TRY(add_inputs(importer, environment, proto, error));
    size_t *order;
    SB_TRY(sb_onnx_order(importer, proto, &order, error));
    sb_status status = SB_OK;
    for (size_t i = 0; i < proto->n_node && status == SB_OK; i++)
        status = sb_onnx_read_node(importer, environment, proto->node[order[i]], order[i], error);
    sb_free(order);
    return status == SB_OK ? add_outputs(importer, environment, proto, error) : status;
}

sb_status sb_onnx_read_graph(sb_importer *importer, const Onnx__GraphProto *proto, sb_environment *outer,
                             sb_graph_builder **builder, sb_error *error) {
    sb_graph_builder *fresh;
    SB_TRY(sb_graph_builder_create(proto->name != NULL ? proto->name : "", importer->scope, NULL,
                                   outer != NULL ? outer->builder : NULL, &fresh, error));
    sb_environment environment = {
        .builder = fresh, .outer = outer, .call = outer != NULL ? outer->call : NULL, .prefix = ""};
    sb_status status = fill(importer, &environment, proto, error);
    sb_environment_clear(&environment);
    if (status != SB_OK) {
        sb_graph_builder_destroy(fresh);
        return status;
    }
    *builder = fresh;
    return SB_OK;
}
