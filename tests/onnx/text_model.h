/* Loading models that are written as text. Include after cmocka.h. */
#ifndef SB_TESTS_TEXT_MODEL_H
#define SB_TESTS_TEXT_MODEL_H

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"
#include "onnx/import.h"
#include "onnx/text_proto.h"

#define FLOATS(name, shape) VALUE(name, "1", shape)
#define VALUE(name, type, shape)                                                                                       \
    "{ name: \"" name "\" type { tensor_type { elem_type: " type " shape { " shape " } } } } "
#define DIM(number) "dim { dim_value: " #number " } "
#define SYMBOL(name) "dim { dim_param: \"" name "\" } "
#define OPSET(version) "ir_version: 8 opset_import { version: " #version " } "

typedef struct loaded_model {
    sb_scope *scope;
    sb_graph *graph;
    sb_model_metadata info;
    sb_warnings warnings;
} loaded_model;

static inline sb_status load_text(const char *text, loaded_model *model, sb_error *error) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    size_t size = text_proto(&onnx__model_proto__descriptor, text, bytes);
    model->warnings = (sb_warnings){0};
    SB_TRY(sb_scope_create(&model->scope, error));
    sb_status status =
        sb_onnx_load(bytes, size, NULL, model->scope, &model->graph, &model->info, &model->warnings, error);
    if (status != SB_OK) {
        sb_warnings_clear(&model->warnings);
        sb_scope_destroy(model->scope);
    }
    return status;
}

static inline void unload(loaded_model *model) {
    sb_graph_destroy(model->graph);
    sb_metadata_clear(&model->info);
    sb_warnings_clear(&model->warnings);
    sb_scope_destroy(model->scope);
}

static inline loaded_model load_or_fail(const char *text) {
    loaded_model model;
    sb_error error = {0};
    if (load_text(text, &model, &error) != SB_OK)
        fail_msg("%s", error.message);
    return model;
}

static inline void expect_refused(const char *text, sb_status status, const char *message) {
    loaded_model model;
    sb_error error = {0};
    sb_status found = load_text(text, &model, &error);
    if (found != status || strstr(error.message, message) == NULL)
        fail_msg("'%s' is not in '%s' (%s)", message, error.message, sb_status_name(found));
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* The model loads, with one warning, in which `warning` occurs. */
static inline void expect_warning(const char *text, const char *warning) {
    loaded_model model = load_or_fail(text);
    if (model.warnings.count != 1 || strstr(model.warnings.texts[0], warning) == NULL)
        fail_msg("'%s' is not the only warning: %zu, the first is '%s'", warning, model.warnings.count,
                 model.warnings.count != 0 ? model.warnings.texts[0] : "");
    unload(&model);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* The graph as text: "inputs -> outputs: node=Op(inputs)[outputs]; …", with captures behind '|' and
 * constants as 'name!'. */
static inline char *describe(const sb_graph *graph, char *text, size_t bytes);

static inline void describe_ids(const sb_graph *graph, int count, const sb_value_id *ids, int captures, char *text,
                                size_t bytes) {
    for (int i = 0; i < count; i++) {
        size_t used = strlen(text);
        const sb_value_info *info = ids[i] != SB_NO_VALUE ? &graph->values[ids[i]] : NULL;
        bool constant = info != NULL && info->producer < 0 && info->fact.constant != NULL;
        snprintf(text + used, bytes - used, "%s%s%s",
                 i == 0                  ? ""
                 : i == count - captures ? "|"
                                         : ",",
                 info != NULL ? info->name : "", constant ? "!" : "");
    }
}

static inline void describe_node(const sb_graph *graph, const sb_node *node, char *text, size_t bytes) {
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s=%s(", node->name, node->op->name);
    describe_ids(graph, node->input_count, node->inputs, node->capture_count, text, bytes);
    used = strlen(text);
    snprintf(text + used, bytes - used, ")[");
    describe_ids(graph, node->output_count, node->outputs, 0, text, bytes);
    for (size_t i = 0; i < node->attributes.count; i++) {
        if (node->attributes.items[i].kind != SB_ATTRIBUTE_GRAPH)
            continue;
        used = strlen(text);
        snprintf(text + used, bytes - used, "; %s{", node->attributes.items[i].name);
        used = strlen(text);
        describe(node->attributes.items[i].graph, text + used, bytes - used);
        used = strlen(text);
        snprintf(text + used, bytes - used, "}");
    }
    used = strlen(text);
    snprintf(text + used, bytes - used, "]");
}

static inline char *describe(const sb_graph *graph, char *text, size_t bytes) {
    text[0] = '\0';
    describe_ids(graph, (int)graph->input_count, graph->inputs, 0, text, bytes);
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "->");
    describe_ids(graph, (int)graph->output_count, graph->outputs, 0, text, bytes);
    for (size_t i = 0; i < graph->node_count; i++) {
        used = strlen(text);
        snprintf(text + used, bytes - used, " ");
        describe_node(graph, graph->nodes[i], text, bytes);
    }
    return text;
}

static inline void expect_graph(const char *text, const char *wanted) {
    loaded_model model = load_or_fail(text);
    char found[4096];
    assert_string_equal(describe(model.graph, found, sizeof found), wanted);
    unload(&model);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

#endif
