#include "onnx/import.h"

#include <inttypes.h>
#include <string.h>

#include "base/allocation.h"
#include "base/file.h"
#include "onnx/importer.h"

/* ---- what the file says of itself ---- */

void iv_onnx_info_clear(iv_onnx_info *info) {
    iv_free(info->producer_name);
    iv_free(info->producer_version);
    iv_free(info->domain);
    iv_free(info->graph_name);
    for (size_t i = 0; i < info->opset_count; i++)
        iv_free(info->opsets[i].domain);
    iv_free(info->opsets);
    for (size_t i = 0; i < info->metadata_count; i++) {
        iv_free(info->metadata[i].key);
        iv_free(info->metadata[i].value);
    }
    iv_free(info->metadata);
    *info = (iv_onnx_info){0};
}

static bool copy_text(char **target, const char *source) {
    *target = iv_duplicate_string(source != NULL ? source : "");
    return *target != NULL;
}

static bool fill_info(iv_onnx_info *info, const Onnx__ModelProto *model) {
    info->ir_version = model->ir_version;
    info->model_version = model->model_version;
    info->opsets = iv_allocate_array(model->n_opset_import, sizeof *info->opsets);
    info->metadata = iv_allocate_array(model->n_metadata_props, sizeof *info->metadata);
    bool complete = info->opsets != NULL && info->metadata != NULL &&
                    copy_text(&info->producer_name, model->producer_name) &&
                    copy_text(&info->producer_version, model->producer_version) &&
                    copy_text(&info->domain, model->domain) &&
                    copy_text(&info->graph_name, model->graph->name);
    for (size_t i = 0; complete && i < model->n_opset_import; i++) {
        info->opset_count++;
        info->opsets[i].version = model->opset_import[i]->version;
        complete =
            copy_text(&info->opsets[i].domain, iv_onnx_domain(model->opset_import[i]->domain));
    }
    for (size_t i = 0; complete && i < model->n_metadata_props; i++) {
        info->metadata_count++;
        complete = copy_text(&info->metadata[i].key, model->metadata_props[i]->key) &&
                   copy_text(&info->metadata[i].value, model->metadata_props[i]->value);
    }
    return complete;
}

/* ---- the graph ---- */

static iv_status check_model(const Onnx__ModelProto *model, iv_error *error) {
    if (model->graph == NULL)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "the file holds no graph: is it an ONNX model?");
    if (model->ir_version > IV_ONNX_NEWEST_IR)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "the file is of ONNX's format version %" PRId64 ", and %d is the newest "
                       "supported: save the model with an older ir_version",
                       model->ir_version, IV_ONNX_NEWEST_IR);
    return IV_OK;
}

/* Infers the facts of all values and notes them in the graph. */
static iv_status infer_facts(iv_graph *graph, iv_scope *scope, iv_error *error) {
    iv_fact *facts = iv_allocate_array(graph->value_count, sizeof *facts);
    if (facts == NULL)
        return iv_fail_memory(error, graph->value_count * sizeof *facts);
    iv_status status = IV_OK;
    for (size_t i = 0; i < graph->input_count && status == IV_OK; i++) {
        iv_value_id input = graph->inputs[i];
        status = iv_fact_copy(&facts[input], &graph->values[input].fact, error);
    }
    if (status == IV_OK)
        status = iv_graph_infer(graph, scope, facts, error);
    for (size_t i = 0; i < graph->value_count; i++) {
        if (status == IV_OK) {
            iv_fact_clear(&graph->values[i].fact);
            graph->values[i].fact = facts[i];
        } else {
            iv_fact_clear(&facts[i]);
        }
    }
    iv_free(facts);
    return status;
}

static iv_status check_outputs(const iv_graph *graph, const Onnx__GraphProto *proto,
                               iv_error *error) {
    for (size_t i = 0; i < graph->output_count; i++)
        IV_TRY(iv_onnx_check_type(proto->output[i]->type, &graph->values[graph->outputs[i]].fact,
                                  proto->output[i]->name, error));
    return IV_OK;
}

static iv_status check_declared(const iv_graph *graph, const Onnx__GraphProto *proto,
                                const iv_names *values, iv_error *error) {
    for (size_t i = 0; i < proto->n_value_info; i++) {
        const char *name = proto->value_info[i]->name;
        const int32_t *value = name != NULL ? iv_names_find(values, name) : NULL;
        iv_status status = IV_OK;
        if (value != NULL)
            status = iv_onnx_check_type(proto->value_info[i]->type, &graph->values[*value].fact,
                                        name, error);
        if (status == IV_ERROR_INVALID_MODEL)
            return iv_fail_within(error, status,
                                  "a declaration in value_info, which the file may also leave "
                                  "out, is wrong: ");
        /* A type that Invar does not have cannot be that of a value that it has computed, but says
         * nothing about the others either. */
        if (status != IV_OK && status != IV_ERROR_UNSUPPORTED)
            return status;
    }
    return IV_OK;
}

/* What the file says of values inside the graph must be what its nodes make of them. */
static iv_status check_values(const iv_graph *graph, const Onnx__GraphProto *proto,
                              iv_error *error) {
    if (proto->n_value_info == 0)
        return IV_OK;
    iv_names values = {0};
    iv_status status = IV_OK;
    for (size_t v = 0; v < graph->value_count && status == IV_OK; v++) {
        const char *name = graph->values[v].name;
        if (iv_names_find(&values, name) == NULL && !iv_names_put(&values, name, (int32_t)v))
            status = iv_fail_memory(error, sizeof(iv_name_entry));
    }
    if (status == IV_OK)
        status = check_declared(graph, proto, &values, error);
    iv_names_clear(&values);
    return status;
}

/* Everything from the unpacked message to the finished graph. */
static iv_status build(iv_importer *importer, iv_graph **graph, iv_error *error) {
    const Onnx__ModelProto *model = importer->model;
    IV_TRY(check_model(model, error));
    IV_TRY(iv_onnx_find_functions(importer, error));
    IV_TRY(iv_onnx_survey(importer, error));
    iv_graph_builder builder;
    IV_TRY(iv_onnx_read_graph(importer, model->graph, NULL, &builder, error));
    iv_graph *fresh = builder.graph;
    iv_graph_builder_clear(&builder);
    iv_status status = infer_facts(fresh, importer->scope, error);
    if (status == IV_OK)
        status = check_outputs(fresh, model->graph, error);
    if (status == IV_OK)
        status = check_values(fresh, model->graph, error);
    if (status != IV_OK) {
        iv_graph_destroy(fresh);
        return status;
    }
    *graph = fresh;
    return IV_OK;
}

static void end_import(iv_importer *importer) {
    for (size_t i = 0; i < importer->function_count; i++)
        iv_free(importer->functions[i].key);
    iv_free(importer->functions);
    iv_names_clear(&importer->function_names);
    for (size_t i = 0; i < importer->shared_count; i++)
        iv_tensor_release(importer->shared[i]);
    iv_free(importer->shared);
    iv_names_clear(&importer->shared_names);
    iv_external_end(&importer->external);
    iv_arena_end(&importer->arena);
}

static iv_status load(const iv_mapping *file, bool mapped, const char *folder, iv_scope *scope,
                      iv_graph **graph, iv_onnx_info *info, iv_error *error) {
    const void *bytes = file->bytes;
    size_t size = file->size;
    iv_importer importer = {.scope = scope, .size = size, .dense_left = IV_ONNX_DENSE_BYTES};
    iv_arena_begin(&importer.arena, iv_wire_budget(size));
    iv_external_begin(&importer.external, folder);
    if (mapped)
        iv_arena_set_mapping(&importer.arena, bytes, size);
    ProtobufCMessage *message;
    iv_graph *fresh = NULL;
    iv_status status = iv_wire_unpack(bytes, size, &onnx__model_proto__descriptor, &importer.arena,
                                      &message, error);
    if (status == IV_OK) {
        importer.model = (const Onnx__ModelProto *)message;
        status = build(&importer, &fresh, error);
    }
    if (status == IV_OK && info != NULL) {
        *info = (iv_onnx_info){0};
        if (!fill_info(info, importer.model)) {
            iv_onnx_info_clear(info);
            iv_graph_destroy(fresh);
            status = iv_fail_memory(error, sizeof *info);
        }
    }
    end_import(&importer);
    if (status == IV_OK)
        *graph = fresh;
    return status;
}

iv_status iv_onnx_load(const void *bytes, size_t size, const char *folder, iv_scope *scope,
                       iv_graph **graph, iv_onnx_info *info, iv_error *error) {
    return load(&(iv_mapping){bytes, size}, false, folder, scope, graph, info, error);
}

iv_status iv_onnx_load_file(const char *path, iv_scope *scope, iv_graph **graph, iv_onnx_info *info,
                            iv_error *error) {
    iv_mapping mapping;
    IV_TRY(iv_file_map(path, &mapping, error));
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = iv_allocate(length + 2);
    if (folder == NULL) {
        iv_file_unmap(&mapping);
        return iv_fail_memory(error, length + 2);
    }
    memcpy(folder, length != 0 ? path : ".", length != 0 ? length : 1);
    folder[length != 0 ? length : 1] = '\0';
    iv_status status = load(&mapping, true, folder, scope, graph, info, error);
    iv_free(folder);
    iv_file_unmap(&mapping);
    if (status != IV_OK)
        return iv_fail_within(error, status, "%.200s: ", path);
    return IV_OK;
}
