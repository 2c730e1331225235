/* The public builder: graphs, values and handles. */
#include "api/builder.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/model.h"

/* ---- handles ---- */

#define INDEX_BITS 30

int64_t sb_builder_handle(const sb_builder *builder, sb_handle_kind kind, size_t index) {
    return (int64_t)((uint64_t)builder->number << 32 | (uint64_t)kind << INDEX_BITS | (uint64_t)index);
}

sb_status sb_builder_index(const sb_builder *builder, sb_handle_kind kind, int64_t handle, size_t *index,
                           sb_error *error) {
    static const char *const kinds[] = {"value", "value", "variable", "graph"};
    const size_t counts[] = {0, builder->value_count, builder->graphs.variables.count, builder->nested_count};
    uint64_t number = (uint64_t)handle >> 32, of_kind = (uint64_t)handle >> INDEX_BITS & 3;
    *index = (size_t)((uint64_t)handle & ((UINT64_C(1) << INDEX_BITS) - 1));
    if (number == builder->number && of_kind == (uint64_t)kind && *index < counts[kind])
        return SB_OK;
    if (handle == 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the handle of a %s is 0: none", kinds[kind]);
    if (number != builder->number)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%" PRId64 " is the handle of a %s of another builder", handle,
                       kinds[of_kind]);
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%" PRId64 " is not the handle of a %s of this builder", handle,
                   kinds[kind]);
}

sb_status sb_builder_check(const sb_builder *builder, sb_error *error) {
    return builder->built ? sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                                    "the builder has built its model: its graphs are no longer here")
                          : SB_OK;
}

/* The value that stands for `known` in the graph `at`, by way of the graphs between. */
static sb_status capture_at(sb_graph_builder *at, const sb_known_value *known, sb_value_id *value, sb_error *error) {
    sb_value_id outer;
    if (at == known->home) {
        *value = known->id;
        return SB_OK;
    }
    SB_TRY(capture_at(at->outer, known, &outer, error));
    return sb_graph_builder_capture(at, outer, value, error);
}

sb_status sb_builder_resolve(sb_builder *builder, sb_builder_value handle, sb_value_id *value, sb_error *error) {
    size_t index;
    SB_TRY(sb_builder_index(builder, SB_HANDLE_VALUE, handle, &index, error));
    const sb_known_value *known = &builder->values[index];
    for (sb_graph_builder *at = builder->open; at != NULL; at = at->outer) {
        if (at == known->home)
            return capture_at(builder->open, known, value, error);
    }
    if (known->home->graph == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "value %" PRId64 " is of a graph inside of a node: make it an output of that graph", handle);
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "value '%.200s' is of graph '%.100s', which is not around the open graph '%.100s'",
                   known->home->graph->values[known->id].name, known->home->graph->name, builder->open->graph->name);
}

sb_status sb_builder_reserve_values(sb_builder *builder, size_t count, sb_error *error) {
    size_t most = (size_t)1 << INDEX_BITS;
    if (count >= most - builder->value_count || !sb_grow((void **)&builder->values, &builder->value_capacity,
                                                         builder->value_count + count, sizeof *builder->values))
        return sb_fail_memory(error, sizeof *builder->values);
    return SB_OK;
}

sb_builder_value sb_builder_note_value(sb_builder *builder, sb_value_id id) {
    builder->values[builder->value_count] = (sb_known_value){builder->open, id};
    return sb_builder_handle(builder, SB_HANDLE_VALUE, builder->value_count++);
}

sb_status sb_builder_named_value(sb_builder *builder, const char *name, sb_value_id *value, sb_error *error) {
    if (name == NULL || name[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a value of graph '%.100s' has no name",
                       builder->open->graph->name);
    if (sb_graph_builder_has_value(builder->open, name))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "another value of graph '%.100s' is called '%.200s'",
                       builder->open->graph->name, name);
    return sb_graph_builder_add_value(builder->open, name, true, value, error);
}

/* ---- changes ---- */

void sb_builder_begin(const sb_builder *builder, sb_builder_change *change) {
    size_t at = 0;
    for (const sb_graph_builder *graph = builder->open; graph != NULL; graph = graph->outer)
        change->marks[at++] = sb_graph_builder_mark(graph);
}

sb_status sb_builder_end(sb_builder *builder, const sb_builder_change *change, sb_status status) {
    size_t at = 0;
    for (sb_graph_builder *graph = builder->open; graph != NULL && status != SB_OK; graph = graph->outer)
        sb_graph_builder_undo(graph, &change->marks[at++]);
    return status;
}

/* ---- the builder itself ---- */

static sb_status add_entry(sb_builder *builder, const char *name, sb_error *error) {
    sb_known_entry fresh = {.name = sb_duplicate_string(name)};
    sb_status status = fresh.name != NULL && sb_grow((void **)&builder->entries, &builder->entry_capacity,
                                                     builder->entry_count + 1, sizeof *builder->entries)
                           ? sb_graph_builder_create(name, builder->graphs.scope, &builder->graphs.variables, NULL,
                                                     &fresh.graph, error)
                           : sb_fail_memory(error, sizeof fresh);
    if (status != SB_OK) {
        sb_free(fresh.name);
        return status;
    }
    builder->entries[builder->entry_count++] = fresh;
    builder->open = fresh.graph;
    return SB_OK;
}

sb_status sb_builder_create(sb_builder **builder, sb_error *error) {
    static atomic_uint builders;
    sb_builder *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    /* 31 bits, so that handles are positive; never 0, so that they are not 0. */
    fresh->number = atomic_fetch_add(&builders, 1) % INT32_MAX + 1;
    sb_status status = sb_scope_create(&fresh->graphs.scope, error);
    if (status == SB_OK)
        status = add_entry(fresh, "main", error);
    if (status != SB_OK) {
        sb_builder_destroy(fresh);
        return status;
    }
    *builder = fresh;
    return SB_OK;
}

void sb_builder_destroy(sb_builder *builder) {
    if (builder == NULL)
        return;
    for (size_t i = builder->nested_count; i-- > 0;)
        sb_graph_builder_destroy(builder->nested[i]);
    for (size_t i = 0; i < builder->entry_count; i++) {
        sb_graph_builder_destroy(builder->entries[i].graph);
        sb_free(builder->entries[i].name);
    }
    sb_names_clear(&builder->variable_names);
    sb_free(builder->nested);
    sb_free(builder->entries);
    sb_free(builder->values);
    sb_graphs_clear(&builder->graphs);
    sb_free(builder);
}

/* ---- graphs ---- */

sb_status sb_builder_entry(sb_builder *builder, const char *name, sb_error *error) {
    SB_TRY(sb_builder_check(builder, error));
    if (name == NULL || name[0] == '\0')
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "an entry graph has no name");
    if (builder->open->outer != NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "entry graph '%.100s' is wanted while nested graph '%.100s' is open: end that first", name,
                       builder->open->graph->name);
    for (size_t i = 0; i < builder->entry_count; i++) {
        if (strcmp(builder->entries[i].name, name) == 0) {
            builder->open = builder->entries[i].graph;
            return SB_OK;
        }
    }
    return add_entry(builder, name, error);
}

sb_status sb_builder_begin_graph(sb_builder *builder, const char *name, sb_error *error) {
    SB_TRY(sb_builder_check(builder, error));
    int depth = 0;
    for (const sb_graph_builder *at = builder->open; at != NULL; at = at->outer)
        depth++;
    if (depth > SB_BUILDER_NESTING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "graphs lie more than %d deep in each other", SB_BUILDER_NESTING);
    if (builder->nested_count >= (size_t)1 << INDEX_BITS ||
        !sb_grow((void **)&builder->nested, &builder->nested_capacity, builder->nested_count + 1,
                 sizeof(sb_graph_builder *)))
        return sb_fail_memory(error, sizeof *builder->nested);
    sb_graph_builder *fresh;
    SB_TRY(sb_graph_builder_create(name != NULL ? name : "", builder->graphs.scope, &builder->graphs.variables,
                                   builder->open, &fresh, error));
    builder->nested[builder->nested_count++] = fresh;
    builder->open = fresh;
    return SB_OK;
}

sb_status sb_builder_end_graph(sb_builder *builder, sb_builder_graph *graph, sb_error *error) {
    SB_TRY(sb_builder_check(builder, error));
    if (builder->open->outer == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no nested graph is open, but entry graph '%.100s'",
                       builder->open->graph->name);
    size_t index = builder->nested_count;
    while (builder->nested[index - 1] != builder->open)
        index--;
    *graph = sb_builder_handle(builder, SB_HANDLE_GRAPH, index - 1);
    builder->open = builder->open->outer;
    return SB_OK;
}

/* ---- constants and outputs ---- */

static sb_status add_constant(sb_builder *builder, const char *name, sb_tensor *tensor, sb_value_id *id,
                              sb_error *error) {
    if (name != NULL)
        SB_TRY(sb_builder_named_value(builder, name, id, error));
    else
        SB_TRY(sb_graph_builder_add_value(builder->open, "constant", false, id, error));
    return sb_graph_builder_set_constant(builder->open, *id, tensor, error);
}

sb_status sb_builder_constant(sb_builder *builder, const char *name, sb_tensor *tensor, sb_builder_value *value,
                              sb_error *error) {
    sb_value_id id;
    sb_builder_change change;
    SB_TRY(sb_builder_check(builder, error));
    if (tensor == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "constant '%.200s' has no tensor", name != NULL ? name : "");
    SB_TRY(sb_tensor_check_on_host(tensor, "made a constant", error));
    SB_TRY(sb_builder_reserve_values(builder, 1, error));
    sb_builder_begin(builder, &change);
    SB_TRY(sb_builder_end(builder, &change, add_constant(builder, name, tensor, &id, error)));
    *value = sb_builder_note_value(builder, id);
    return SB_OK;
}

sb_status sb_builder_output(sb_builder *builder, sb_builder_value value, sb_error *error) {
    sb_value_id id;
    sb_builder_change change;
    SB_TRY(sb_builder_check(builder, error));
    sb_builder_begin(builder, &change);
    sb_status status = sb_builder_resolve(builder, value, &id, error);
    if (status == SB_OK)
        status = sb_graph_builder_add_output(builder->open, id, error);
    return sb_builder_end(builder, &change, status);
}

/* ---- the model ---- */

static bool is_empty(const sb_graph *graph) {
    return graph->value_count == 0;
}

/* "main", when others were made and nothing was put in it. */
static bool left_out(const sb_builder *builder, size_t entry) {
    return entry == 0 && builder->entry_count > 1 && is_empty(builder->entries[0].graph->graph);
}

static sb_status check_complete(const sb_builder *builder, sb_error *error) {
    SB_TRY(sb_builder_check(builder, error));
    if (builder->open->outer != NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "nested graph '%.100s' is still open",
                       builder->open->graph->name);
    for (size_t i = 0; i < builder->entry_count; i++) {
        const sb_graph *graph = builder->entries[i].graph->graph;
        if (graph->output_count == 0 && graph->update_count == 0 && !left_out(builder, i))
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "entry graph '%.100s' has no outputs and updates no variable: it does nothing",
                           builder->entries[i].name);
    }
    return SB_OK;
}

static sb_status hand_over(void *context, sb_graphs *graphs, sb_error *error) {
    sb_builder *builder = context;
    builder->built = true;
    *graphs = builder->graphs;
    builder->graphs = (sb_graphs){0};
    for (size_t i = 0; i < builder->entry_count; i++) {
        if (!left_out(builder, i))
            SB_TRY(sb_graphs_add(graphs, builder->entries[i].name, sb_graph_builder_take(builder->entries[i].graph),
                                 error));
    }
    return SB_OK;
}

sb_status sb_builder_build(sb_builder *builder, const sb_model_options *options, sb_model **model, sb_error *error) {
    SB_TRY(check_complete(builder, error));
    return sb_model_make(hand_over, builder, options, model, error);
}
