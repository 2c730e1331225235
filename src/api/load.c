/* Loading models: the importer's graph, made into a model. */
#include "onnx/import.h"
#include "runtime/model.h"

/* Where a model comes from: a path, or bytes. */
typedef struct file_source {
    const char *path;
    const void *bytes;
    size_t size;
} file_source;

static sb_status import_graph(void *context, sb_graphs *graphs, sb_error *error) {
    const file_source *from = context;
    sb_graph *graph = NULL;
    SB_TRY(sb_scope_create(&graphs->scope, error));
    if (from->path != NULL)
        SB_TRY(sb_onnx_load_file(from->path, graphs->scope, &graph, &graphs->metadata, &graphs->warnings, error));
    else
        SB_TRY(sb_onnx_load(from->bytes, from->size, NULL, graphs->scope, &graph, &graphs->metadata, &graphs->warnings,
                            error));
    return sb_graphs_add(graphs, "", graph, error);
}

sb_status sb_model_load(const char *path, const sb_model_options *options, sb_model **model, sb_error *error) {
    file_source source = {.path = path};
    return sb_model_make(import_graph, &source, options, model, error);
}

sb_status sb_model_load_memory(const void *bytes, size_t size, const sb_model_options *options, sb_model **model,
                               sb_error *error) {
    file_source source = {.bytes = bytes, .size = size};
    return sb_model_make(import_graph, &source, options, model, error);
}
