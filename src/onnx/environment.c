/* Names: what they stand for, and how captures come about. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

void sb_graph_builder_clear(sb_graph_builder *builder) {
    sb_names_clear(&builder->values);
    sb_names_clear(&builder->nodes);
    sb_names_clear(&builder->reserved);
    sb_names_clear(&builder->captured);
    sb_free(builder->captures);
    *builder = (sb_graph_builder){0};
}

void sb_environment_clear(sb_environment *environment) {
    sb_names_clear(&environment->names);
    sb_names_clear(&environment->targets);
}

static sb_status put(sb_names *names, const char *name, int32_t number, sb_error *error) {
    return sb_names_put(names, name, number) ? SB_OK : sb_fail_memory(error, sizeof(sb_name_entry));
}

/* ---- making values ---- */

/* Adds a value called `name`, with a number behind it where that is taken, or reserved by the file
 * for something else. */
static sb_status add_value(sb_graph_builder *builder, const char *name, bool reserved_for_it, sb_value_id *value,
                           sb_error *error) {
    size_t bytes = strlen(name) + 16;
    char *candidate = sb_allocate(bytes);
    if (candidate == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(candidate, bytes, "%s", name);
    for (uint32_t number = 2; sb_names_find(&builder->values, candidate) != NULL ||
                              (!reserved_for_it && sb_names_find(&builder->reserved, candidate) != NULL);
         number++)
        snprintf(candidate, bytes, "%s_%u", name, (unsigned)number);
    sb_status status = sb_graph_add_value(builder->graph, candidate, value, error);
    sb_free(candidate);
    SB_TRY(status);
    return put(&builder->values, builder->graph->values[*value].name, *value, error);
}

sb_status sb_environment_new_value(sb_environment *environment, const char *name, sb_value_id *value, sb_error *error) {
    const int32_t *target = sb_names_find(&environment->targets, name);
    if (target != NULL && *target != SB_NO_VALUE) {
        *value = *target;
        return SB_OK;
    }
    if (environment->prefix[0] == '\0')
        return add_value(environment->builder, name, true, value, error);
    size_t bytes = strlen(environment->prefix) + strlen(name) + 1;
    char *full = sb_allocate(bytes);
    if (full == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(full, bytes, "%s%s", environment->prefix, name);
    sb_status status = add_value(environment->builder, full, false, value, error);
    sb_free(full);
    return status;
}

sb_status sb_environment_bind(sb_environment *environment, const char *name, sb_value_id value, sb_error *error) {
    if (sb_names_find(&environment->names, name) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "value '%.200s' is defined twice", name);
    return put(&environment->names, name, value, error);
}

sb_status sb_environment_define(sb_environment *environment, const char *name, sb_value_id *value, sb_error *error) {
    if (sb_names_find(&environment->names, name) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "value '%.200s' is defined twice", name);
    SB_TRY(sb_environment_new_value(environment, name, value, error));
    return sb_environment_bind(environment, name, *value, error);
}

/* ---- finding values ---- */

/* The value of this graph that stands for value `outer_id` of the graph around it. A constant is
 * shared rather than captured, so that inference knows it inside too. */
static sb_status capture(sb_importer *importer, sb_graph_builder *builder, const sb_graph *outer_graph,
                         sb_value_id outer_id, sb_value_id *value, sb_error *error) {
    const sb_value_info *outer = &outer_graph->values[outer_id];
    const int32_t *known = sb_names_find(&builder->captured, outer->name);
    if (known != NULL) {
        *value = *known;
        return SB_OK;
    }
    SB_TRY(add_value(builder, outer->name, false, value, error));
    SB_TRY(put(&builder->captured, outer->name, *value, error));
    if (outer->fact.constant != NULL)
        return sb_fact_of_tensor(&builder->graph->values[*value].fact, importer->scope, outer->fact.constant, true,
                                 error);
    if (!sb_grow((void **)&builder->captures, &builder->capture_capacity, builder->capture_count + 1,
                 sizeof *builder->captures))
        return sb_fail_memory(error, sizeof *builder->captures);
    builder->captures[builder->capture_count++] = (sb_capture){outer_id, *value};
    return SB_OK;
}

sb_status sb_environment_find(sb_importer *importer, sb_environment *environment, const char *name, const char *node,
                              sb_value_id *value, sb_error *error) {
    const int32_t *known = sb_names_find(&environment->names, name);
    if (known != NULL) {
        *value = *known;
        return SB_OK;
    }
    bool own = environment->prefix[0] == '\0'; /* not a function, whose names are nobody else's */
    if (own && sb_names_find(&environment->builder->reserved, name) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node '%.200s' uses value '%.200s' before the node that makes it: nodes must "
                       "be in an order in which they can run",
                       node != NULL ? node : "", name);
    if (environment->outer == NULL && node == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "the graph's output '%.200s' is a value that nothing defines",
                       name);
    if (environment->outer == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node '%.200s' uses value '%.200s', which nothing defines", node,
                       name);
    sb_value_id outer_id;
    SB_TRY(sb_environment_find(importer, environment->outer, name, node, &outer_id, error));
    if (outer_id == SB_NO_VALUE) {
        *value = SB_NO_VALUE;
        return put(&environment->names, name, *value, error);
    }
    SB_TRY(capture(importer, environment->builder, environment->outer->builder->graph, outer_id, value, error));
    return put(&environment->names, name, *value, error);
}

/* ---- names of nodes ---- */

sb_status sb_environment_node_name(sb_environment *environment, const Onnx__NodeProto *node, size_t index, char **name,
                                   sb_error *error) {
    bool named = node->name != NULL && node->name[0] != '\0';
    const char *base = named ? node->name : node->op_type != NULL ? node->op_type : "node";
    size_t bytes = strlen(environment->prefix) + strlen(base) + 48;
    char *text = sb_allocate(bytes);
    if (text == NULL)
        return sb_fail_memory(error, bytes);
    if (named)
        snprintf(text, bytes, "%s%s", environment->prefix, base);
    else
        snprintf(text, bytes, "%s%s_%zu", environment->prefix, base, index);
    int32_t *next = sb_names_find(&environment->builder->nodes, text);
    size_t length = strlen(text);
    while (next != NULL) {
        /* Each name remembers the last number tried, so that a thousand nodes of one name cost a
         * thousand steps. */
        snprintf(text + length, bytes - length, "_%d", (int)++*next);
        if (sb_names_find(&environment->builder->nodes, text) == NULL)
            break;
        text[length] = '\0';
        next = sb_names_find(&environment->builder->nodes, text);
    }
    *name = text;
    return SB_OK;
}

/* ---- joining captures ---- */

static int compare_ids(const void *left, const void *right) {
    sb_value_id a = *(const sb_value_id *)left, b = *(const sb_value_id *)right;
    return (a > b) - (a < b);
}

static int compare_captures(const void *left, const void *right) {
    return compare_ids(&((const sb_capture *)left)->outer, &((const sb_capture *)right)->outer);
}

static sb_status collect_outer(size_t count, sb_graph_builder *builders, sb_value_id **outer, size_t *outer_count,
                               sb_error *error) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += builders[i].capture_count;
    sb_value_id *ids = sb_allocate_array(total, sizeof *ids);
    if (ids == NULL)
        return sb_fail_memory(error, total * sizeof *ids);
    size_t filled = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < builders[i].capture_count; j++)
            ids[filled++] = builders[i].captures[j].outer;
    }
    qsort(ids, filled, sizeof *ids, compare_ids);
    for (size_t i = 0; i < filled; i++) {
        if (kept == 0 || ids[kept - 1] != ids[i])
            ids[kept++] = ids[i];
    }
    *outer = ids;
    *outer_count = kept;
    return SB_OK;
}

/* Adds the inputs of one graph; an outer value that it does not use becomes an input without
 * readers. */
static sb_status add_capture_inputs(sb_graph_builder *builder, const sb_graph *outer_graph, const sb_value_id *outer,
                                    size_t outer_count, sb_error *error) {
    if (builder->capture_count > 1)
        qsort(builder->captures, builder->capture_count, sizeof *builder->captures, compare_captures);
    size_t next = 0;
    for (size_t i = 0; i < outer_count; i++) {
        sb_value_id inner;
        if (next < builder->capture_count && builder->captures[next].outer == outer[i])
            inner = builder->captures[next++].inner;
        else
            SB_TRY(add_value(builder, outer_graph->values[outer[i]].name, false, &inner, error));
        SB_TRY(sb_graph_add_input(builder->graph, inner, error));
    }
    return SB_OK;
}

sb_status sb_onnx_join_captures(size_t count, sb_graph_builder *builders, const sb_graph *outer_graph,
                                sb_value_id **outer, size_t *outer_count, sb_error *error) {
    sb_value_id *ids;
    SB_TRY(collect_outer(count, builders, &ids, outer_count, error));
    for (size_t i = 0; i < count; i++) {
        sb_status status = add_capture_inputs(&builders[i], outer_graph, ids, *outer_count, error);
        if (status != SB_OK) {
            sb_free(ids);
            return status;
        }
    }
    *outer = ids;
    return SB_OK;
}
