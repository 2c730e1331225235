#include "onnx/import.h"

#include <inttypes.h>
#include <string.h>

#include "base/allocation.h"
#include "base/file.h"
#include "onnx/importer.h"

/* ---- what the file says of itself ---- */

static bool copy_text(const char **target, const char *source) {
    *target = sb_duplicate_string(source != NULL ? source : "");
    return *target != NULL;
}

static bool fill_metadata(sb_model_metadata *metadata, const Onnx__ModelProto *model) {
    metadata->format_version = model->ir_version;
    metadata->model_version = model->model_version;
    sb_model_opset *opsets = sb_allocate_array(model->n_opset_import, sizeof *opsets);
    sb_model_property *properties = sb_allocate_array(model->n_metadata_props, sizeof *properties);
    metadata->opsets = opsets;
    metadata->properties = properties;
    bool complete = opsets != NULL && properties != NULL && copy_text(&metadata->producer_name, model->producer_name) &&
                    copy_text(&metadata->producer_version, model->producer_version) &&
                    copy_text(&metadata->domain, model->domain) &&
                    copy_text(&metadata->graph_name, model->graph->name) &&
                    copy_text(&metadata->description, model->doc_string);
    for (size_t i = 0; complete && i < model->n_opset_import; i++) {
        metadata->opset_count++;
        opsets[i].version = model->opset_import[i]->version;
        complete = copy_text(&opsets[i].domain, sb_onnx_domain(model->opset_import[i]->domain));
    }
    for (size_t i = 0; complete && i < model->n_metadata_props; i++) {
        metadata->property_count++;
        complete = copy_text(&properties[i].key, model->metadata_props[i]->key) &&
                   copy_text(&properties[i].value, model->metadata_props[i]->value);
    }
    return complete;
}

/* ---- the graph ---- */

static sb_status check_model(sb_importer *importer, sb_error *error) {
    const Onnx__ModelProto *model = importer->model;
    if (model->graph == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "the file holds no graph: is it an ONNX model?");
    if (model->ir_version > SB_ONNX_NEWEST_IR)
        return sb_warn(importer->warnings, error,
                       "the file is of ONNX's format version %" PRId64 "; it is read as version %d, the newest known",
                       model->ir_version, SB_ONNX_NEWEST_IR);
    return SB_OK;
}

static sb_status check_outputs(sb_importer *importer, const sb_graph *graph, const Onnx__GraphProto *proto,
                               sb_error *error) {
    for (size_t i = 0; i < graph->output_count; i++)
        SB_TRY(sb_onnx_check_type(importer, proto->output[i]->type, &graph->values[graph->outputs[i]].fact,
                                  proto->output[i]->name, error));
    return SB_OK;
}

static sb_status check_declared(sb_importer *importer, const sb_graph *graph, const Onnx__GraphProto *proto,
                                const sb_names *values, sb_error *error) {
    for (size_t i = 0; i < proto->n_value_info; i++) {
        const char *name = proto->value_info[i]->name;
        const int32_t *value = name != NULL ? sb_names_find(values, name) : NULL;
        if (value != NULL)
            SB_TRY(sb_onnx_check_type(importer, proto->value_info[i]->type, &graph->values[*value].fact, name, error));
    }
    return SB_OK;
}

/* What the file says of values inside the graph, against what its nodes make of them. */
static sb_status check_values(sb_importer *importer, const sb_graph *graph, const Onnx__GraphProto *proto,
                              sb_error *error) {
    if (proto->n_value_info == 0)
        return SB_OK;
    sb_names values = {0};
    sb_status status = SB_OK;
    for (size_t v = 0; v < graph->value_count && status == SB_OK; v++) {
        const char *name = graph->values[v].name;
        if (sb_names_find(&values, name) == NULL && !sb_names_put(&values, name, (int32_t)v))
            status = sb_fail_memory(error, sizeof(sb_name_entry));
    }
    if (status == SB_OK)
        status = check_declared(importer, graph, proto, &values, error);
    sb_names_clear(&values);
    return status;
}

/* Everything from the unpacked message to the finished graph. */
static sb_status build(sb_importer *importer, sb_graph **graph, sb_error *error) {
    const Onnx__ModelProto *model = importer->model;
    SB_TRY(check_model(importer, error));
    SB_TRY(sb_onnx_find_functions(importer, error));
    SB_TRY(sb_onnx_survey(importer, error));
    sb_graph_builder *builder;
    SB_TRY(sb_onnx_read_graph(importer, model->graph, NULL, &builder, error));
    sb_status status = check_outputs(importer, builder->graph, model->graph, error);
    if (status == SB_OK)
        status = check_values(importer, builder->graph, model->graph, error);
    if (status == SB_OK)
        *graph = sb_graph_builder_take(builder);
    sb_graph_builder_destroy(builder);
    return status;
}

static void end_import(sb_importer *importer) {
    for (size_t i = 0; i < importer->function_count; i++) {
        sb_free(importer->functions[i].key);
        sb_free(importer->functions[i].order);
    }
    sb_free(importer->functions);
    sb_names_clear(&importer->function_names);
    for (size_t i = 0; i < importer->shared_count; i++)
        sb_tensor_release(importer->shared[i]);
    sb_free(importer->shared);
    sb_names_clear(&importer->shared_names);
    sb_external_end(&importer->external);
    sb_arena_end(&importer->arena);
}

/* From memory, which with a path is a mapping of that file. */
static sb_status load(const sb_onnx_source *source, sb_scope *scope, sb_graph **graph, sb_model_metadata *metadata,
                      sb_warnings *warnings, sb_error *error) {
    const void *bytes = source->bytes;
    size_t size = source->size;
    sb_importer importer = {.scope = scope,
                            .size = size,
                            .warnings = warnings,
                            .unrelated = source->unrelated,
                            .dense_left = SB_ONNX_DENSE_BYTES};
    sb_arena_begin(&importer.arena, sb_wire_budget(size));
    sb_external_begin(&importer.external, source->folder);
    if (source->path != NULL)
        sb_arena_set_mapping(&importer.arena, bytes, size);
    ProtobufCMessage *message;
    sb_graph *fresh = NULL;
    sb_status status = sb_wire_unpack(bytes, size, &onnx__model_proto__descriptor, &importer.arena, &message, error);
    if (status == SB_OK) {
        importer.model = (const Onnx__ModelProto *)message;
        status = build(&importer, &fresh, error);
    }
    if (status == SB_OK && metadata != NULL) {
        *metadata = (sb_model_metadata){0};
        if (!fill_metadata(metadata, importer.model)) {
            sb_metadata_clear(metadata);
            sb_graph_destroy(fresh);
            status = sb_fail_memory(error, sizeof *metadata);
        }
    }
    end_import(&importer);
    if (status == SB_OK)
        *graph = fresh;
    return status;
}

static sb_status load_file(const sb_onnx_source *source, sb_scope *scope, sb_graph **graph, sb_model_metadata *metadata,
                           sb_warnings *warnings, sb_error *error) {
    const char *path = source->path;
    sb_mapping mapping;
    SB_TRY(sb_file_map(path, &mapping, error));
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = sb_allocate(length + 2);
    if (folder == NULL) {
        sb_file_unmap(&mapping);
        return sb_fail_memory(error, length + 2);
    }
    memcpy(folder, length != 0 ? path : ".", length != 0 ? length : 1);
    folder[length != 0 ? length : 1] = '\0';
    sb_status status = load(&(sb_onnx_source){path, mapping.bytes, mapping.size, folder, source->unrelated}, scope,
                            graph, metadata, warnings, error);
    sb_free(folder);
    sb_file_unmap(&mapping);
    if (status != SB_OK)
        return sb_fail_within(error, status, "%.200s: ", path);
    return SB_OK;
}

sb_status sb_onnx_read(const sb_onnx_source *source, sb_scope *scope, sb_graph **graph, sb_model_metadata *metadata,
                       sb_warnings *warnings, sb_error *error) {
    return (source->path != NULL ? load_file : load)(source, scope, graph, metadata, warnings, error);
}

sb_status sb_onnx_load(const void *bytes, size_t size, const char *folder, sb_scope *scope, sb_graph **graph,
                       sb_model_metadata *metadata, sb_warnings *warnings, sb_error *error) {
    return sb_onnx_read(&(sb_onnx_source){.bytes = bytes, .size = size, .folder = folder}, scope, graph, metadata,
                        warnings, error);
}

sb_status sb_onnx_load_file(const char *path, sb_scope *scope, sb_graph **graph, sb_model_metadata *metadata,
                            sb_warnings *warnings, sb_error *error) {
    return sb_onnx_read(&(sb_onnx_source){.path = path}, scope, graph, metadata, warnings, error);
}
