#include "graph/variable.h"

#include "base/allocation.h"
#include "graph/op.h"

/* ---- the table ---- */

void sb_variables_remove_last(sb_variables *variables) {
    sb_variable *last = &variables->items[--variables->count];
    sb_free(last->name);
    sb_fact_clear(&last->fact);
    sb_tensor_release(last->initial);
}

void sb_variables_clear(sb_variables *variables) {
    while (variables->count > 0)
        sb_variables_remove_last(variables);
    sb_free(variables->items);
    *variables = (sb_variables){0};
}

sb_status sb_variables_add(sb_variables *variables, const char *name, const sb_fact *fact, sb_tensor *initial,
                           bool slots, int *variable, sb_error *error) {
    sb_variable fresh = {.name = sb_duplicate_string(name), .slots = slots};
    sb_status status = fresh.name != NULL ? sb_fact_copy(&fresh.fact, fact, error) : sb_fail_memory(error, 1);
    if (status == SB_OK && (variables->count >= INT32_MAX || !sb_grow((void **)&variables->items, &variables->capacity,
                                                                      variables->count + 1, sizeof *variables->items)))
        status = sb_fail_memory(error, sizeof *variables->items);
    if (status != SB_OK) {
        sb_fact_clear(&fresh.fact);
        sb_free(fresh.name);
        return status;
    }
    fresh.initial = sb_tensor_retain(initial);
    *variable = (int)variables->count;
    variables->items[variables->count++] = fresh;
    return SB_OK;
}

/* ---- graphs ---- */

void sb_graphs_clear(sb_graphs *graphs) {
    for (size_t i = 0; i < graphs->count; i++) {
        sb_free(graphs->entries[i].name);
        sb_graph_destroy(graphs->entries[i].graph);
    }
    sb_free(graphs->entries);
    sb_variables_clear(&graphs->variables);
    sb_metadata_clear(&graphs->metadata);
    sb_warnings_clear(&graphs->warnings);
    sb_scope_destroy(graphs->scope);
    *graphs = (sb_graphs){0};
}

sb_status sb_graphs_add(sb_graphs *graphs, const char *name, sb_graph *graph, sb_error *error) {
    char *copy = sb_duplicate_string(name);
    if (copy == NULL ||
        !sb_grow((void **)&graphs->entries, &graphs->capacity, graphs->count + 1, sizeof *graphs->entries)) {
        sb_free(copy);
        sb_graph_destroy(graph);
        return sb_fail_memory(error, sizeof *graphs->entries);
    }
    graphs->entries[graphs->count++] = (sb_entry){copy, graph};
    return SB_OK;
}

bool sb_graphs_update(const sb_graphs *graphs, int variable) {
    for (size_t i = 0; i < graphs->count; i++) {
        if (sb_graph_update_of(graphs->entries[i].graph, variable) != SB_NO_VALUE)
            return true;
    }
    return false;
}

/* ---- variables that nobody updates ---- */

/* The tensor that such a variable is in every run. */
static sb_status settled_tensor(const sb_variable *variable, sb_tensor **tensor, sb_error *error) {
    int64_t dims[SB_MAX_RANK];
    char text[SB_FACT_TEXT_BYTES];
    if (!sb_fact_is_concrete(&variable->fact, dims))
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "variable '%.200s' is %s and no graph updates it: what stays the same in all runs needs extents "
                       "that are numbers",
                       variable->name, sb_fact_text(&variable->fact, text, sizeof text));
    if (variable->initial == NULL)
        return sb_tensor_create(variable->fact.dtype, variable->fact.rank, dims, tensor, error);
    if (variable->slots)
        return sb_tensor_broadcast(variable->initial, variable->fact.rank, dims, tensor, error);
    *tensor = sb_tensor_retain(variable->initial);
    return SB_OK;
}

/* Makes the read a constant. *any tells of a change. */
static sb_status settle_reads(sb_graphs *graphs, sb_graph *graph, bool *any, sb_error *error) {
    size_t kept = 0;
    sb_status status = SB_OK;
    for (size_t i = 0; i < graph->read_count; i++) {
        sb_variable_use read = graph->reads[i];
        if (status != SB_OK || sb_graphs_update(graphs, read.variable)) {
            graph->reads[kept++] = read;
            continue;
        }
        sb_tensor *tensor;
        status = settled_tensor(&graphs->variables.items[read.variable], &tensor, error);
        if (status != SB_OK)
            continue;
        status = sb_fact_of_tensor(&graph->values[read.value].fact, graphs->scope, tensor, true, error);
        sb_tensor_release(tensor);
        *any = true;
    }
    graph->read_count = kept;
    return status;
}

static sb_status infer_again(sb_graph *graph, sb_scope *scope, sb_error *error) {
    for (size_t v = 0; v < graph->value_count; v++) {
        if (graph->values[v].producer >= 0)
            sb_fact_clear(&graph->values[v].fact);
    }
    for (size_t n = 0; n < graph->node_count; n++)
        SB_TRY(sb_graph_infer_node(graph, graph->nodes[n], scope, error));
    return SB_OK;
}

sb_status sb_graphs_settle(sb_graphs *graphs, sb_error *error) {
    for (size_t i = 0; i < graphs->count; i++) {
        bool any = false;
        SB_TRY(settle_reads(graphs, graphs->entries[i].graph, &any, error));
        if (any)
            SB_TRY(infer_again(graphs->entries[i].graph, graphs->scope, error));
    }
    return SB_OK;
}
