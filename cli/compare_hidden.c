/* Values of the model that passes have hidden: inside fused nodes, as constants, or altogether. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "picture.h"

static bool is_body_output(const sb_inspection *body, int value) {
    for (int i = 0; i < sb_inspection_output_count(body); i++) {
        if (sb_inspection_output(body, i) == value)
            return true;
    }
    return false;
}

/* The inner values of one fused node, into `items` unless that is NULL. Returns how many. */
static int visit_body(const sb_inspected_node *fused, hidden_value *items) {
    const sb_inspection *body = fused->bodies[0];
    int count = 0;
    for (int n = 0; n < sb_inspection_node_count(body); n++) {
        const sb_inspected_node *node = sb_inspection_node(body, n);
        for (int o = 0; o < node->output_count; o++) {
            if (node->outputs[o] < 0 || is_body_output(body, node->outputs[o]))
                continue;
            if (items != NULL)
                items[count] = (hidden_value){sb_inspection_value(body, node->outputs[o])->name, node->op, node->name,
                                              fused->name, false};
            count++;
        }
    }
    return count;
}

bool find_hidden_values(const sb_inspection *graph, hidden_values *hidden) {
    int count = 0;
    *hidden = (hidden_values){0};
    for (int i = 0; i < sb_inspection_node_count(graph); i++) {
        const sb_inspected_node *node = sb_inspection_node(graph, i);
        count += is_fused(node) ? visit_body(node, NULL) : 0;
    }
    hidden->items = calloc((size_t)count + 1, sizeof *hidden->items);
    for (int i = 0; hidden->items != NULL && i < sb_inspection_node_count(graph); i++) {
        const sb_inspected_node *node = sb_inspection_node(graph, i);
        if (is_fused(node))
            hidden->count += visit_body(node, hidden->items + hidden->count);
    }
    return hidden->items != NULL;
}

hidden_value *find_hidden(hidden_values *hidden, const char *name, const char *op) {
    for (int i = 0; i < hidden->count; i++) {
        hidden_value *item = &hidden->items[i];
        if (strcmp(item->name, name) == 0 && strcmp(item->op, op) == 0)
            return item;
    }
    return NULL;
}

/* A finding of a value that nobody has seen. */
static sb_status list_unseen(findings *findings, const char *node, const char *op, const char *name, const char *why,
                             sb_error *error) {
    finding *finding;
    sb_status status = start_finding(findings, node, op, name, "", (sb_value){0}, &finding, error);
    if (status == SB_OK) {
        finding->type[0] = '\0';
        findings->node_count++;
        status = leave_unchecked(finding, why, error);
    }
    return status;
}

sb_status list_hidden(findings *findings, hidden_values *hidden, reference *reference, const char *fused,
                      sb_error *error) {
    sb_status status = SB_OK;
    for (int i = 0; i < hidden->count && status == SB_OK; i++) {
        hidden_value *item = &hidden->items[i];
        char why[256];
        if (item->done || (fused != NULL && strcmp(item->fused, fused) != 0))
            continue;
        item->done = true;
        find_recorded(reference, item->name);
        snprintf(why, sizeof why, "inside the fused node %.200s", item->fused);
        status = list_unseen(findings, item->node, item->op, item->name, why, error);
    }
    return status;
}

/* The constant that the graph has under a name; nothing when it has none. */
static sb_value constant_value(const sb_inspection *graph, const char *name) {
    for (int i = 0; i < sb_inspection_value_count(graph); i++) {
        const sb_inspected_value *value = sb_inspection_value(graph, i);
        if (value->constant != NULL && strcmp(value->name, name) == 0)
            return sb_value_of_tensor((sb_tensor *)(uintptr_t)value->constant); /* borrowed */
    }
    return (sb_value){0};
}

sb_status list_removed(findings *findings, reference *reference, const sb_inspection *graph, sb_error *error) {
    sb_status status = SB_OK;
    for (int i = 0; i < reference->count && status == SB_OK; i++) {
        struct reference_item *item = &reference->items[i];
        if (item->used || item->node == NULL)
            continue;
        item->used = true;
        finding *finding;
        sb_value constant = constant_value(graph, item->name);
        if (constant.kind == SB_KIND_NONE) {
            status = list_unseen(findings, item->node, item->op, item->name,
                                 "a pass removed it: it shows or repeats another value, or nobody needs it", error);
            continue;
        }
        status = start_finding(findings, item->node, item->op, item->name, "constant", constant, &finding, error);
        findings->node_count++;
        if (status == SB_OK)
            status = judge(findings, finding, constant, &item->value, error);
    }
    return status;
}
