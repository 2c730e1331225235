/* Loading models: the importer's graph, made into a model. */
#include <stddef.h>

#include "onnx/import.h"
#include "runtime/model.h"

static sb_status import_graph(void *context, sb_graphs *graphs, sb_error *error) {
    sb_graph *graph = NULL;
    SB_TRY(sb_scope_create(&graphs->scope, error));
    SB_TRY(sb_onnx_read(context, graphs->scope, &graph, &graphs->metadata, &graphs->warnings, error));
    return sb_graphs_add(graphs, "", graph, error);
}

/* Of options that may be those of an older header; what is no size of them at all, sb_model_make refuses first. */
static const char *unrelated_of(const sb_model_options *options) {
    size_t known = offsetof(sb_model_options, unrelated_symbols) + sizeof options->unrelated_symbols;
    return options != NULL && options->struct_bytes >= known ? options->unrelated_symbols : NULL;
}

sb_status sb_model_load(const char *path, const sb_model_options *options, sb_model **model, sb_error *error) {
    sb_onnx_source source = {.path = path, .unrelated = unrelated_of(options)};
    return sb_model_make(import_graph, &source, options, model, error);
}

sb_status sb_model_load_memory(const void *bytes, size_t size, const sb_model_options *options, sb_model **model,
                               sb_error *error) {
    sb_onnx_source source = {.bytes = bytes, .size = size, .unrelated = unrelated_of(options)};
    return sb_model_make(import_graph, &source, options, model, error);
}
