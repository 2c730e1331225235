/* Names: what they stand for, and how captures come about. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

void iv_graph_builder_clear(iv_graph_builder *builder) {
    iv_names_clear(&builder->values);
    iv_names_clear(&builder->nodes);
    iv_names_clear(&builder->reserved);
    iv_names_clear(&builder->captured);
    iv_free(builder->captures);
    *builder = (iv_graph_builder){0};
}

void iv_environment_clear(iv_environment *environment) {
    iv_names_clear(&environment->names);
    iv_names_clear(&environment->targets);
}

static iv_status put(iv_names *names, const char *name, int32_t number, iv_error *error) {
    return iv_names_put(names, name, number) ? IV_OK : iv_fail_memory(error, sizeof(iv_name_entry));
}

/* ---- making values ---- */

/* Adds a value called `name`, with a number behind it where that is taken, or reserved by the file
 * for something else. */
static iv_status add_value(iv_graph_builder *builder, const char *name, bool reserved_for_it,
                           iv_value_id *value, iv_error *error) {
    size_t bytes = strlen(name) + 16;
    char *candidate = iv_allocate(bytes);
    if (candidate == NULL)
        return iv_fail_memory(error, bytes);
    snprintf(candidate, bytes, "%s", name);
    for (uint32_t number = 2;
         iv_names_find(&builder->values, candidate) != NULL ||
         (!reserved_for_it && iv_names_find(&builder->reserved, candidate) != NULL);
         number++)
        snprintf(candidate, bytes, "%s_%u", name, (unsigned)number);
    iv_status status = iv_graph_add_value(builder->graph, candidate, value, error);
    iv_free(candidate);
    IV_TRY(status);
    return put(&builder->values, builder->graph->values[*value].name, *value, error);
}

iv_status iv_environment_new_value(iv_environment *environment, const char *name,
                                   iv_value_id *value, iv_error *error) {
    const int32_t *target = iv_names_find(&environment->targets, name);
    if (target != NULL && *target != IV_NO_VALUE) {
        *value = *target;
        return IV_OK;
    }
    if (environment->prefix[0] == '\0')
        return add_value(environment->builder, name, true, value, error);
    size_t bytes = strlen(environment->prefix) + strlen(name) + 1;
    char *full = iv_allocate(bytes);
    if (full == NULL)
        return iv_fail_memory(error, bytes);
    snprintf(full, bytes, "%s%s", environment->prefix, name);
    iv_status status = add_value(environment->builder, full, false, value, error);
    iv_free(full);
    return status;
}

iv_status iv_environment_bind(iv_environment *environment, const char *name, iv_value_id value,
                              iv_error *error) {
    if (iv_names_find(&environment->names, name) != NULL)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "value '%.200s' is defined twice", name);
    return put(&environment->names, name, value, error);
}

iv_status iv_environment_define(iv_environment *environment, const char *name, iv_value_id *value,
                                iv_error *error) {
    if (iv_names_find(&environment->names, name) != NULL)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "value '%.200s' is defined twice", name);
    IV_TRY(iv_environment_new_value(environment, name, value, error));
    return iv_environment_bind(environment, name, *value, error);
}

/* ---- finding values ---- */

/* The value of this graph that stands for value `outer_id` of the graph around it. A constant is
 * shared rather than captured, so that inference knows it inside too. */
static iv_status capture(iv_importer *importer, iv_graph_builder *builder,
                         const iv_graph *outer_graph, iv_value_id outer_id, iv_value_id *value,
                         iv_error *error) {
    const iv_value_info *outer = &outer_graph->values[outer_id];
    const int32_t *known = iv_names_find(&builder->captured, outer->name);
    if (known != NULL) {
        *value = *known;
        return IV_OK;
    }
    IV_TRY(add_value(builder, outer->name, false, value, error));
    IV_TRY(put(&builder->captured, outer->name, *value, error));
    if (outer->fact.constant != NULL)
        return iv_fact_of_tensor(&builder->graph->values[*value].fact, importer->scope,
                                 outer->fact.constant, true, error);
    if (!iv_grow((void **)&builder->captures, &builder->capture_capacity,
                 builder->capture_count + 1, sizeof *builder->captures))
        return iv_fail_memory(error, sizeof *builder->captures);
    builder->captures[builder->capture_count++] = (iv_capture){outer_id, *value};
    return IV_OK;
}

iv_status iv_environment_find(iv_importer *importer, iv_environment *environment, const char *name,
                              const char *node, iv_value_id *value, iv_error *error) {
    const int32_t *known = iv_names_find(&environment->names, name);
    if (known != NULL) {
        *value = *known;
        return IV_OK;
    }
    bool own = environment->prefix[0] == '\0'; /* not a function, whose names are nobody else's */
    if (own && iv_names_find(&environment->builder->reserved, name) != NULL)
        return iv_fail(
            error, IV_ERROR_INVALID_MODEL,
            "node '%.200s' uses value '%.200s' before the node that makes it: nodes must "
            "be in an order in which they can run",
            node != NULL ? node : "", name);
    if (environment->outer == NULL && node == NULL)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "the graph's output '%.200s' is a value that nothing defines", name);
    if (environment->outer == NULL)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node '%.200s' uses value '%.200s', which nothing defines", node, name);
    iv_value_id outer_id;
    IV_TRY(iv_environment_find(importer, environment->outer, name, node, &outer_id, error));
    if (outer_id == IV_NO_VALUE) {
        *value = IV_NO_VALUE;
        return put(&environment->names, name, *value, error);
    }
    IV_TRY(capture(importer, environment->builder, environment->outer->builder->graph, outer_id,
                   value, error));
    return put(&environment->names, name, *value, error);
}

/* ---- names of nodes ---- */

iv_status iv_environment_node_name(iv_environment *environment, const Onnx__NodeProto *node,
                                   size_t index, char **name, iv_error *error) {
    bool named = node->name != NULL && node->name[0] != '\0';
    const char *base = named ? node->name : node->op_type != NULL ? node->op_type : "node";
    size_t bytes = strlen(environment->prefix) + strlen(base) + 48;
    char *text = iv_allocate(bytes);
    if (text == NULL)
        return iv_fail_memory(error, bytes);
    if (named)
        snprintf(text, bytes, "%s%s", environment->prefix, base);
    else
        snprintf(text, bytes, "%s%s_%zu", environment->prefix, base, index);
    int32_t *next = iv_names_find(&environment->builder->nodes, text);
    size_t length = strlen(text);
    while (next != NULL) {
        /* Each name remembers the last number tried, so that a thousand nodes of one name cost a
         * thousand steps. */
        snprintf(text + length, bytes - length, "_%d", (int)++*next);
        if (iv_names_find(&environment->builder->nodes, text) == NULL)
            break;
        text[length] = '\0';
        next = iv_names_find(&environment->builder->nodes, text);
    }
    *name = text;
    return IV_OK;
}

/* ---- joining captures ---- */

static int compare_ids(const void *left, const void *right) {
    iv_value_id a = *(const iv_value_id *)left, b = *(const iv_value_id *)right;
    return (a > b) - (a < b);
}

static int compare_captures(const void *left, const void *right) {
    return compare_ids(&((const iv_capture *)left)->outer, &((const iv_capture *)right)->outer);
}

static iv_status collect_outer(size_t count, iv_graph_builder *builders, iv_value_id **outer,
                               size_t *outer_count, iv_error *error) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += builders[i].capture_count;
    iv_value_id *ids = iv_allocate_array(total, sizeof *ids);
    if (ids == NULL)
        return iv_fail_memory(error, total * sizeof *ids);
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
    return IV_OK;
}

/* Adds the inputs of one graph; an outer value that it does not use becomes an input without
 * readers. */
static iv_status add_capture_inputs(iv_graph_builder *builder, const iv_graph *outer_graph,
                                    const iv_value_id *outer, size_t outer_count, iv_error *error) {
    if (builder->capture_count > 1)
        qsort(builder->captures, builder->capture_count, sizeof *builder->captures,
              compare_captures);
    size_t next = 0;
    for (size_t i = 0; i < outer_count; i++) {
        iv_value_id inner;
        if (next < builder->capture_count && builder->captures[next].outer == outer[i])
            inner = builder->captures[next++].inner;
        else
            IV_TRY(add_value(builder, outer_graph->values[outer[i]].name, false, &inner, error));
        IV_TRY(iv_graph_add_input(builder->graph, inner, error));
    }
    return IV_OK;
}

iv_status iv_onnx_join_captures(size_t count, iv_graph_builder *builders,
                                const iv_graph *outer_graph, iv_value_id **outer,
                                size_t *outer_count, iv_error *error) {
    iv_value_id *ids;
    IV_TRY(collect_outer(count, builders, &ids, outer_count, error));
    for (size_t i = 0; i < count; i++) {
        iv_status status = add_capture_inputs(&builders[i], outer_graph, ids, *outer_count, error);
        if (status != IV_OK) {
            iv_free(ids);
            return status;
        }
    }
    *outer = ids;
    return IV_OK;
}
