#include "passes/passes.h"

iv_status iv_passes_run(iv_graph *graph, iv_scope *scope, iv_error *error) {
    for (size_t n = 0; n < graph->node_count; n++) {
        const iv_attributes *attributes = &graph->nodes[n]->attributes;
        for (size_t a = 0; a < attributes->count; a++) {
            if (attributes->items[a].kind == IV_ATTRIBUTE_GRAPH)
                IV_TRY(iv_passes_run(attributes->items[a].graph, scope, error));
        }
    }
    IV_TRY(iv_pass_fold(graph, scope, error));
    IV_TRY(iv_pass_views(graph, scope, error));
    IV_TRY(iv_pass_merge(graph, scope, error));
    IV_TRY(iv_pass_sweep(graph, scope, error));
    return iv_pass_fuse(graph, scope, error);
}
