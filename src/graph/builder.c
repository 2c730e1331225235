#include "graph/builder.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"

static sb_status put(sb_names *names, const char *name, int32_t number, sb_error *error) {
    return sb_names_put(names, name, number) ? SB_OK : sb_fail_memory(error, sizeof(sb_name_entry));
}

/* ---- the builder itself ---- */

sb_status sb_graph_builder_create(const char *name, sb_scope *scope, sb_variables *variables, sb_graph_builder *outer,
                                  sb_graph_builder **builder, sb_error *error) {
    sb_graph_builder *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    *fresh = (sb_graph_builder){.scope = scope, .variables = variables, .outer = outer};
    sb_status status = sb_graph_create(name, &fresh->graph, error);
    if (status != SB_OK) {
        sb_free(fresh);
        return status;
    }
    *builder = fresh;
    return SB_OK;
}

void sb_graph_builder_destroy(sb_graph_builder *builder) {
    if (builder == NULL)
        return;
    sb_graph_destroy(builder->graph);
    sb_names_clear(&builder->values);
    sb_names_clear(&builder->nodes);
    sb_names_clear(&builder->reserved);
    sb_names_clear(&builder->captured);
    sb_free(builder->captures);
    sb_free(builder);
}

sb_graph *sb_graph_builder_take(sb_graph_builder *builder) {
    sb_graph *graph = builder->graph;
    builder->graph = NULL;
    return graph;
}

/* ---- changes that may be taken back ---- */

sb_builder_mark sb_graph_builder_mark(const sb_graph_builder *builder) {
    return (sb_builder_mark){.values = builder->graph->value_count,
                             .inputs = builder->graph->input_count,
                             .outputs = builder->graph->output_count,
                             .reads = builder->graph->read_count,
                             .updates = builder->graph->update_count,
                             .captures = builder->capture_count};
}

void sb_graph_builder_undo(sb_graph_builder *builder, const sb_builder_mark *mark) {
    sb_graph *graph = builder->graph;
    sb_names_remove_from(&builder->values, (int32_t)mark->values);
    sb_names_remove_from(&builder->captured, (int32_t)mark->values);
    while (graph->value_count > mark->values) {
        sb_value_info *info = &graph->values[--graph->value_count];
        sb_fact_clear(&info->fact);
        sb_free(info->name);
    }
    graph->input_count = mark->inputs;
    graph->output_count = mark->outputs;
    graph->read_count = mark->reads;
    graph->update_count = mark->updates;
    builder->capture_count = mark->captures;
}

/* ---- names ---- */

sb_status sb_graph_builder_reserve(sb_graph_builder *builder, const char *name, sb_error *error) {
    return sb_names_find(&builder->reserved, name) != NULL ? SB_OK : put(&builder->reserved, name, 0, error);
}

sb_status sb_graph_builder_node_name(sb_graph_builder *builder, const char *base, char **name, sb_error *error) {
    size_t length = strlen(base), bytes = length + 16;
    char *text = sb_allocate(bytes);
    if (text == NULL)
        return sb_fail_memory(error, bytes);
    memcpy(text, base, length + 1);
    int32_t *next = sb_names_find(&builder->nodes, text);
    /* Each name remembers the last number tried, so that a thousand nodes of one name cost a thousand steps. */
    while (next != NULL) {
        snprintf(text + length, bytes - length, "_%d", (int)++*next);
        if (sb_names_find(&builder->nodes, text) == NULL)
            break;
    }
    *name = text;
    return SB_OK;
}

sb_status sb_graph_builder_take_node_name(sb_graph_builder *builder, const char *name, sb_error *error) {
    return put(&builder->nodes, name, 1, error);
}

/* ---- values ---- */

bool sb_graph_builder_has_value(const sb_graph_builder *builder, const char *name) {
    return sb_names_find(&builder->values, name) != NULL;
}

sb_status sb_graph_builder_add_value(sb_graph_builder *builder, const char *name, bool reserved_for_it,
                                     sb_value_id *value, sb_error *error) {
    size_t bytes = strlen(name) + 16;
    char *candidate = sb_allocate(bytes);
    if (candidate == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(candidate, bytes, "%s", name);
    for (uint32_t number = 2; sb_graph_builder_has_value(builder, candidate) ||
                              (!reserved_for_it && sb_names_find(&builder->reserved, candidate) != NULL);
         number++)
        snprintf(candidate, bytes, "%s_%u", name, (unsigned)number);
    sb_builder_mark mark = sb_graph_builder_mark(builder);
    sb_value_id fresh;
    sb_status status = sb_graph_add_value(builder->graph, candidate, &fresh, error);
    sb_free(candidate);
    if (status == SB_OK)
        status = put(&builder->values, builder->graph->values[fresh].name, fresh, error);
    if (status != SB_OK) {
        sb_graph_builder_undo(builder, &mark);
        return status;
    }
    *value = fresh;
    return SB_OK;
}

sb_status sb_graph_builder_set_input(sb_graph_builder *builder, sb_value_id value, const sb_fact *fact,
                                     sb_error *error) {
    if (fact != NULL)
        SB_TRY(sb_fact_copy(&builder->graph->values[value].fact, fact, error));
    return sb_graph_add_input(builder->graph, value, error);
}

sb_status sb_graph_builder_set_constant(sb_graph_builder *builder, sb_value_id value, sb_tensor *tensor,
                                        sb_error *error) {
    return sb_fact_of_tensor(&builder->graph->values[value].fact, builder->scope, tensor, true, error);
}

bool sb_graph_builder_is_constant(const sb_graph_builder *builder, sb_value_id value) {
    const sb_value_info *info = &builder->graph->values[value];
    return info->producer == -1 && info->fact.constant != NULL;
}

sb_status sb_graph_builder_add_output(sb_graph_builder *builder, sb_value_id value, sb_error *error) {
    return sb_graph_add_output(builder->graph, value, error);
}

static sb_status add_capture(sb_graph_builder *builder, sb_value_id outer, sb_value_id *value, sb_error *error) {
    const sb_value_info *info = &builder->outer->graph->values[outer];
    SB_TRY(sb_graph_builder_add_value(builder, info->name, false, value, error));
    SB_TRY(put(&builder->captured, info->name, *value, error));
    if (sb_graph_builder_is_constant(builder->outer, outer))
        return sb_graph_builder_set_constant(builder, *value, info->fact.constant, error);
    if (!sb_grow((void **)&builder->captures, &builder->capture_capacity, builder->capture_count + 1,
                 sizeof *builder->captures))
        return sb_fail_memory(error, sizeof *builder->captures);
    builder->captures[builder->capture_count++] = (sb_capture){outer, *value};
    return SB_OK;
}

sb_status sb_graph_builder_capture(sb_graph_builder *builder, sb_value_id outer, sb_value_id *value, sb_error *error) {
    const int32_t *known = sb_names_find(&builder->captured, builder->outer->graph->values[outer].name);
    if (known != NULL) {
        *value = *known;
        return SB_OK;
    }
    sb_builder_mark mark = sb_graph_builder_mark(builder);
    sb_status status = add_capture(builder, outer, value, error);
    if (status != SB_OK)
        sb_graph_builder_undo(builder, &mark);
    return status;
}

/* ---- variables ---- */

static sb_status add_read(sb_graph_builder *builder, int variable, sb_value_id *value, sb_error *error) {
    const sb_variable *known = &builder->variables->items[variable];
    SB_TRY(sb_graph_builder_add_value(builder, known->name, false, value, error));
    SB_TRY(sb_fact_copy(&builder->graph->values[*value].fact, &known->fact, error));
    return sb_graph_add_read(builder->graph, variable, *value, error);
}

sb_status sb_graph_builder_read(sb_graph_builder *builder, int variable, sb_value_id *value, sb_error *error) {
    if (builder->outer != NULL) {
        sb_value_id outer;
        SB_TRY(sb_graph_builder_read(builder->outer, variable, &outer, error));
        return sb_graph_builder_capture(builder, outer, value, error);
    }
    sb_value_id known = sb_graph_read_of(builder->graph, variable);
    if (known != SB_NO_VALUE) {
        *value = known;
        return SB_OK;
    }
    sb_builder_mark mark = sb_graph_builder_mark(builder);
    sb_status status = add_read(builder, variable, value, error);
    if (status != SB_OK)
        sb_graph_builder_undo(builder, &mark);
    return status;
}

/* Whether a value may be the variable's next version: what inference leaves open may be. */
static bool fits(sb_scope *scope, const sb_fact *variable, const sb_fact *value) {
    if (value->kind != SB_KIND_TENSOR || value->optional || value->dtype != variable->dtype)
        return false;
    if (value->rank == SB_RANK_UNKNOWN)
        return true;
    if (value->rank != variable->rank)
        return false;
    for (int d = 0; d < value->rank; d++) {
        int64_t difference = 0;
        sb_dim left = sb_dim_subtract(scope, value->dims[d], variable->dims[d]);
        if (left != NULL && sb_dim_is_constant(left, &difference) && difference != 0)
            return false;
    }
    return true;
}

sb_status sb_graph_builder_update(sb_graph_builder *builder, int variable, sb_value_id value, sb_error *error) {
    const sb_variable *known = &builder->variables->items[variable];
    const sb_value_info *info = &builder->graph->values[value];
    if (sb_graph_update_of(builder->graph, variable) != SB_NO_VALUE)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "graph '%.100s' updates variable '%.200s' twice: the second value must follow from the first",
                       builder->graph->name, known->name);
    /* In a nested graph the node that takes it knows what the value is. */
    if (builder->outer == NULL) {
        char wanted[SB_FACT_TEXT_BYTES], given[SB_FACT_TEXT_BYTES];
        bool fitting = fits(builder->scope, &known->fact, &info->fact);
        SB_TRY(sb_scope_check(builder->scope, error));
        if (!fitting)
            return sb_fail(error, SB_ERROR_SHAPE, "variable '%.200s' is %s, and value '%.200s', its update, is %s",
                           known->name, sb_fact_text(&known->fact, wanted, sizeof wanted), info->name,
                           sb_fact_text(&info->fact, given, sizeof given));
    }
    return sb_graph_add_update(builder->graph, variable, value, error);
}
