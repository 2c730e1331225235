#include "passes/passes.h"

sb_status sb_passes_run(sb_graph *graph, sb_scope *scope, sb_error *error) {
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_attributes *attributes = &graph->nodes[n]->attributes;
        for (size_t a = 0; a < attributes->count; a++) {
            if (attributes->items[a].kind == SB_ATTRIBUTE_GRAPH)
                SB_TRY(sb_passes_run(attributes->items[a].graph, scope, error));
        }
    }
    SB_TRY(sb_pass_fold(graph, scope, error));
    SB_TRY(sb_pass_views(graph, scope, error));
    SB_TRY(sb_pass_picks(graph, scope, error));
    SB_TRY(sb_pass_merge(graph, scope, error));
    SB_TRY(sb_pass_sweep(graph, scope, error));
    SB_TRY(sb_pass_join(graph, scope, error));
    SB_TRY(sb_pass_gates(graph, scope, error));
    SB_TRY(sb_pass_integers(graph, scope, error));
    SB_TRY(sb_pass_fuse(graph, scope, error));
    return sb_pass_attention(graph, scope, error);
}
