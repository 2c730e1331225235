/* Names: what they stand for. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "onnx/importer.h"

void sb_environment_clear(sb_environment *environment) {
    sb_names_clear(&environment->names);
    sb_names_clear(&environment->targets);
}

static sb_status put(sb_names *names, const char *name, int32_t number, sb_error *error) {
    return sb_names_put(names, name, number) ? SB_OK : sb_fail_memory(error, sizeof(sb_name_entry));
}

/* ---- making values ---- */

sb_status sb_environment_new_value(sb_environment *environment, const char *name, sb_value_id *value, sb_error *error) {
    const int32_t *target = sb_names_find(&environment->targets, name);
    if (target != NULL && *target != SB_NO_VALUE) {
        *value = *target;
        return SB_OK;
    }
    if (environment->prefix[0] == '\0')
        return sb_graph_builder_add_value(environment->builder, name, true, value, error);
    size_t bytes = strlen(environment->prefix) + strlen(name) + 1;
    char *full = sb_allocate(bytes);
    if (full == NULL)
        return sb_fail_memory(error, bytes);
    snprintf(full, bytes, "%s%s", environment->prefix, name);
    sb_status status = sb_graph_builder_add_value(environment->builder, full, false, value, error);
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

sb_status sb_environment_find(sb_importer *importer, sb_environment *environment, const char *name, const char *node,
                              sb_value_id *value, sb_error *error) {
    const int32_t *known = sb_names_find(&environment->names, name);
    if (known != NULL) {
        *value = *known;
        return SB_OK;
    }
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
    SB_TRY(sb_graph_builder_capture(environment->builder, outer_id, value, error));
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
    sb_status status = sb_graph_builder_node_name(environment->builder, text, name, error);
    sb_free(text);
    return status;
}
