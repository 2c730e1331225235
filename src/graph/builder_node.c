/* Adding nodes: what their graphs capture, the updates that leave these graphs,
 * and how a failure takes everything back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/builder.h"

/* ---- lists of values ---- */

typedef struct id_list {
    size_t count, capacity;
    sb_value_id *items;
} id_list;

/* Puts `value` at position `at`, behind SB_NO_VALUE where the list is shorter. */
static sb_status insert_id(sb_value_id **items, size_t *count, size_t *capacity, size_t at, sb_value_id value,
                           sb_error *error) {
    size_t least = at > *count ? at : *count;
    if (!sb_grow((void **)items, capacity, least + 1, sizeof **items))
        return sb_fail_memory(error, (least + 1) * sizeof **items);
    for (; *count < at; (*count)++)
        (*items)[*count] = SB_NO_VALUE;
    memmove(*items + at + 1, *items + at, (*count - at) * sizeof **items);
    (*items)[at] = value;
    (*count)++;
    return SB_OK;
}

static sb_status insert_in(id_list *list, size_t at, sb_value_id value, sb_error *error) {
    return insert_id(&list->items, &list->count, &list->capacity, at, value, error);
}

static sb_status fill_list(id_list *list, size_t count, const sb_value_id *items, sb_error *error) {
    for (size_t i = 0; i < count; i++)
        SB_TRY(insert_in(list, i, items[i], error));
    return SB_OK;
}

static void drop_omitted(id_list *list) {
    while (list->count > 0 && list->items[list->count - 1] == SB_NO_VALUE)
        list->count--;
}

/* ---- a node in the making ---- */

/* A nested graph as it was: adding its node changes inputs, outputs and captures. */
typedef struct snapshot {
    sb_builder_mark mark;
    sb_value_id *ids; /* inputs, then outputs */
    sb_capture *captures;
} snapshot;

typedef struct addition {
    sb_graph_builder *builder;
    const sb_node_plan *plan;
    id_list inputs, outputs;
    size_t formal_count;    /* of `inputs`, before the captures */
    size_t graphs_moved;    /* attributes that hold nested graphs, behind all others */
    bool added;             /* whether the graph has the node */
    snapshot *snapshots;    /* one per nested graph */
    sb_builder_mark *marks; /* of the builder and those around it, from the inside out */
    id_list updates;        /* pairs: variable, value */
} addition;

static size_t chain_length(const sb_graph_builder *builder) {
    size_t length = 0;
    for (; builder != NULL; builder = builder->outer)
        length++;
    return length;
}

static sb_status take_snapshot(const sb_graph_builder *builder, snapshot *taken, sb_error *error) {
    const sb_graph *graph = builder->graph;
    size_t inputs = graph->input_count, outputs = graph->output_count, captures = builder->capture_count;
    taken->mark = sb_graph_builder_mark(builder);
    taken->ids = sb_allocate_array(inputs + outputs, sizeof *taken->ids);
    taken->captures = sb_allocate_array(captures, sizeof *taken->captures);
    if (taken->ids == NULL || taken->captures == NULL)
        return sb_fail_memory(error, (inputs + outputs) * sizeof *taken->ids);
    if (inputs != 0)
        memcpy(taken->ids, graph->inputs, inputs * sizeof *taken->ids);
    if (outputs != 0)
        memcpy(taken->ids + inputs, graph->outputs, outputs * sizeof *taken->ids);
    if (captures != 0)
        memcpy(taken->captures, builder->captures, captures * sizeof *taken->captures);
    return SB_OK;
}

static void restore_snapshot(sb_graph_builder *builder, const snapshot *taken) {
    sb_graph *graph = builder->graph;
    const sb_builder_mark *mark = &taken->mark;
    if (taken->ids == NULL || taken->captures == NULL)
        return; /* nothing has changed yet */
    if (mark->inputs != 0)
        memcpy(graph->inputs, taken->ids, mark->inputs * sizeof *graph->inputs);
    if (mark->outputs != 0)
        memcpy(graph->outputs, taken->ids + mark->inputs, mark->outputs * sizeof *graph->outputs);
    if (mark->captures != 0)
        memcpy(builder->captures, taken->captures, mark->captures * sizeof *builder->captures);
    sb_graph_builder_undo(builder, mark);
}

static sb_status begin(addition *node, sb_error *error) {
    const sb_node_plan *plan = node->plan;
    size_t length = chain_length(node->builder);
    node->snapshots = sb_allocate_array(plan->nested_count, sizeof *node->snapshots);
    node->marks = sb_allocate_array(length, sizeof *node->marks);
    if (node->snapshots == NULL || node->marks == NULL)
        return sb_fail_memory(error, length * sizeof *node->marks);
    size_t at = 0;
    for (const sb_graph_builder *builder = node->builder; builder != NULL; builder = builder->outer)
        node->marks[at++] = sb_graph_builder_mark(builder);
    for (size_t i = 0; i < plan->nested_count; i++)
        SB_TRY(take_snapshot(plan->nested[i].builder, &node->snapshots[i], error));
    SB_TRY(fill_list(&node->inputs, plan->input_count, plan->inputs, error));
    drop_omitted(&node->inputs);
    return fill_list(&node->outputs, plan->output_count, plan->outputs, error);
}

/* Takes everything back. The graphs go back to their builders, the other attributes to the caller. */
static void undo(addition *node) {
    const sb_node_plan *plan = node->plan;
    sb_graph *graph = node->builder->graph;
    if (node->marks == NULL)
        return;
    if (node->added)
        sb_graph_remove_last_node(graph, plan->attributes);
    for (; node->graphs_moved > 0; node->graphs_moved--)
        sb_free(plan->attributes->items[--plan->attributes->count].name);
    for (size_t i = 0; i < plan->output_count; i++) {
        if (plan->outputs[i] != SB_NO_VALUE)
            sb_fact_clear(&graph->values[plan->outputs[i]].fact);
    }
    for (size_t i = 0; node->snapshots != NULL && i < plan->nested_count; i++)
        restore_snapshot(plan->nested[i].builder, &node->snapshots[i]);
    size_t at = 0;
    for (sb_graph_builder *builder = node->builder; builder != NULL; builder = builder->outer)
        sb_graph_builder_undo(builder, &node->marks[at++]);
}

static void end(addition *node) {
    for (size_t i = 0; node->snapshots != NULL && i < node->plan->nested_count; i++) {
        sb_free(node->snapshots[i].ids);
        sb_free(node->snapshots[i].captures);
    }
    sb_free(node->snapshots);
    sb_free(node->marks);
    sb_free(node->inputs.items);
    sb_free(node->outputs.items);
    sb_free(node->updates.items);
}

/* ---- updates in nested graphs ---- */

/* The value by which a nested graph knows the variable's version `outer` of the graph around it,
 * no longer as a capture. */
static sb_status become_state(sb_graph_builder *nested, int variable, sb_value_id outer, sb_value_id *inner,
                              sb_error *error) {
    for (size_t i = 0; i < nested->capture_count; i++) {
        if (nested->captures[i].outer != outer)
            continue;
        *inner = nested->captures[i].inner;
        nested->captures[i] = nested->captures[--nested->capture_count];
        return SB_OK;
    }
    return sb_graph_builder_add_value(nested, nested->variables->items[variable].name, false, inner, error);
}

/* Lets one variable through one nested graph: its version in, as a state or a capture, and its next version out. */
static sb_status pass_through(sb_graph_builder *nested, int variable, sb_value_id outer, const sb_passage *passage,
                              sb_error *error) {
    sb_graph *graph = nested->graph;
    sb_value_id inner, next = sb_graph_update_of(graph, variable);
    if (passage->graph_output > graph->output_count || (passage->state && passage->graph_input > graph->input_count))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "graph '%.100s' has %zu inputs and %zu outputs: too few",
                       graph->name, graph->input_count, graph->output_count);
    if (passage->state) {
        SB_TRY(become_state(nested, variable, outer, &inner, error));
        SB_TRY(
            insert_id(&graph->inputs, &graph->input_count, &graph->input_capacity, passage->graph_input, inner, error));
    }
    if (next == SB_NO_VALUE) /* another branch updates it, this one leaves it as it is */
        SB_TRY(sb_graph_builder_capture(nested, outer, &next, error));
    return insert_id(&graph->outputs, &graph->output_count, &graph->output_capacity, passage->graph_output, next,
                     error);
}

static sb_status refuse_updates(const addition *node, int variable, sb_error *error) {
    return sb_fail(
        error, SB_ERROR_INVALID_MODEL,
        "node %.200s (%s): its graph updates variable '%.200s', and %s of version %d cannot hand updates on: "
        "make the new value an output, and update the variable with that",
        node->plan->name, node->plan->op->name, node->builder->variables->items[variable].name, node->plan->op->name,
        node->plan->version);
}

/* Lets a variable that any of the node's graphs updates through all of them. */
static sb_status hand_on(addition *node, int variable, sb_error *error) {
    const sb_node_plan *plan = node->plan;
    const sb_graph *first = plan->nested[0].builder->graph;
    sb_passage passage;
    if (plan->op->passage == NULL ||
        !plan->op->passage(plan->version, plan->attributes, first->input_count, first->output_count, &passage))
        return refuse_updates(node, variable, error);
    if (passage.state && passage.node_input > node->inputs.count && passage.node_input > passage.omittable)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %.200s (%s): %zu inputs are given where its graph takes more", plan->name, plan->op->name,
                       node->inputs.count);
    sb_value_id outer, after;
    SB_TRY(sb_graph_builder_read(node->builder, variable, &outer, error));
    const char *name = node->builder->variables->items[variable].name;
    SB_TRY(sb_graph_builder_add_value(node->builder, name, false, &after, error));
    for (size_t i = 0; i < plan->nested_count; i++)
        SB_TRY(pass_through(plan->nested[i].builder, variable, outer, &passage, error));
    if (passage.state)
        SB_TRY(insert_in(&node->inputs, passage.node_input, outer, error));
    SB_TRY(insert_in(&node->outputs, passage.node_output, after, error));
    SB_TRY(insert_in(&node->updates, node->updates.count, variable, error));
    return insert_in(&node->updates, node->updates.count, after, error);
}

static bool handed_on(const addition *node, int variable) {
    for (size_t i = 0; i < node->updates.count; i += 2) {
        if (node->updates.items[i] == variable)
            return true;
    }
    return false;
}

static sb_status hand_all_on(addition *node, sb_error *error) {
    for (size_t i = 0; i < node->plan->nested_count; i++) {
        const sb_graph *graph = node->plan->nested[i].builder->graph;
        for (size_t u = 0; u < graph->update_count; u++) {
            if (!handed_on(node, graph->updates[u].variable))
                SB_TRY(hand_on(node, graph->updates[u].variable, error));
        }
    }
    return SB_OK;
}

/* ---- captures ---- */

static int compare_ids(const void *left, const void *right) {
    sb_value_id a = *(const sb_value_id *)left, b = *(const sb_value_id *)right;
    return (a > b) - (a < b);
}

static int compare_captures(const void *left, const void *right) {
    return compare_ids(&((const sb_capture *)left)->outer, &((const sb_capture *)right)->outer);
}

/* Appends the outer values that any of the graphs captures to the node's inputs. */
static sb_status collect_captures(addition *node, sb_error *error) {
    const sb_node_plan *plan = node->plan;
    id_list *inputs = &node->inputs;
    node->formal_count = inputs->count;
    for (size_t i = 0; i < plan->nested_count; i++) {
        const sb_graph_builder *nested = plan->nested[i].builder;
        for (size_t c = 0; c < nested->capture_count; c++)
            SB_TRY(insert_in(inputs, inputs->count, nested->captures[c].outer, error));
    }
    size_t kept = node->formal_count;
    if (inputs->count > kept)
        qsort(inputs->items + kept, inputs->count - kept, sizeof *inputs->items, compare_ids);
    for (size_t i = kept; i < inputs->count; i++) {
        if (kept == node->formal_count || inputs->items[kept - 1] != inputs->items[i])
            inputs->items[kept++] = inputs->items[i];
    }
    inputs->count = kept;
    return SB_OK;
}

/* Adds the inputs of one graph; an outer value that it does not use becomes an input without readers. */
static sb_status add_capture_inputs(const addition *node, sb_graph_builder *nested, sb_error *error) {
    if (nested->capture_count > 1)
        qsort(nested->captures, nested->capture_count, sizeof *nested->captures, compare_captures);
    size_t next = 0;
    for (size_t i = node->formal_count; i < node->inputs.count; i++) {
        sb_value_id outer = node->inputs.items[i], inner;
        if (next < nested->capture_count && nested->captures[next].outer == outer)
            inner = nested->captures[next++].inner;
        else
            SB_TRY(sb_graph_builder_add_value(nested, node->builder->graph->values[outer].name, false, &inner, error));
        SB_TRY(sb_graph_add_input(nested->graph, inner, error));
    }
    return SB_OK;
}

/* ---- the node ---- */

static sb_status check_plan(const addition *node, sb_error *error) {
    const sb_node_plan *plan = node->plan;
    if (sb_names_find(&node->builder->nodes, plan->name) != NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "another node of graph '%.100s' is called '%.200s'",
                       node->builder->graph->name, plan->name);
    if (plan->op->domain[0] == '\0' && (plan->version < SB_OLDEST_OPSET || plan->version > SB_NEWEST_OPSET))
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "node %.200s (%s): operator set %d is outside of those that are supported, %d to %d", plan->name,
                       plan->op->name, plan->version, SB_OLDEST_OPSET, SB_NEWEST_OPSET);
    if (plan->input_count > INT32_MAX / 4 || plan->output_count > INT32_MAX / 4)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %.200s (%s): too many inputs or outputs", plan->name,
                       plan->op->name);
    return SB_OK;
}

/* Hands the nested graphs over to the attributes; `undo` takes them back. */
static sb_status move_graphs(addition *node, sb_error *error) {
    const sb_node_plan *plan = node->plan;
    for (size_t i = 0; i < plan->nested_count; i++) {
        SB_TRY(sb_attributes_add_graph(plan->attributes, plan->nested[i].attribute, NULL, error));
        plan->attributes->items[plan->attributes->count - 1].graph = plan->nested[i].builder->graph;
        node->graphs_moved++;
    }
    return SB_OK;
}

static sb_status append_node(addition *node, sb_error *error) {
    const sb_node_plan *plan = node->plan;
    size_t captures = node->inputs.count - node->formal_count;
    sb_node *added;
    SB_TRY(sb_graph_add_node(node->builder->graph, plan->op, plan->version, plan->name, (int)node->inputs.count,
                             node->inputs.items, (int)captures, (int)node->outputs.count, node->outputs.items,
                             plan->attributes, &added, error));
    node->added = true;
    if (node->builder->outer == NULL)
        SB_TRY(sb_graph_infer_node(node->builder->graph, added, node->builder->scope, error));
    for (size_t i = 0; i < node->updates.count; i += 2)
        SB_TRY(sb_graph_builder_update(node->builder, node->updates.items[i], node->updates.items[i + 1], error));
    return sb_graph_builder_take_node_name(node->builder, added->name, error);
}

static sb_status add(addition *node, sb_error *error) {
    SB_TRY(check_plan(node, error));
    SB_TRY(begin(node, error));
    SB_TRY(hand_all_on(node, error));
    SB_TRY(collect_captures(node, error));
    for (size_t i = 0; i < node->plan->nested_count; i++)
        SB_TRY(add_capture_inputs(node, node->plan->nested[i].builder, error));
    SB_TRY(move_graphs(node, error));
    return append_node(node, error);
}

sb_status sb_graph_builder_add_node(sb_graph_builder *builder, const sb_node_plan *plan, sb_error *error) {
    addition node = {.builder = builder, .plan = plan};
    sb_status status = add(&node, error);
    if (status != SB_OK)
        undo(&node);
    for (size_t i = 0; i < plan->nested_count && status == SB_OK; i++)
        sb_graph_builder_take(plan->nested[i].builder)->update_count = 0; /* they are outputs now */
    end(&node);
    return status;
}

/* ---- operators ---- */

typedef struct domain_search {
    const char *name;
    size_t used, bytes;
    char *text;
} domain_search;

static void note_domain(void *context, const sb_op *op) {
    domain_search *search = context;
    if (strcmp(op->name, search->name) != 0 || (op->flags & SB_OP_FUSED) != 0 || search->used >= search->bytes)
        return;
    search->used += (size_t)snprintf(search->text + search->used, search->bytes - search->used, "%s'%s'",
                                     search->used == 0 ? "" : ", ", op->domain);
}

sb_status sb_graph_builder_find_op(const char *domain, const char *name, const sb_op **op, sb_error *error) {
    const sb_op *found = sb_op_find(domain, name);
    if (found != NULL && (found->flags & SB_OP_FUSED) == 0) {
        *op = found;
        return SB_OK;
    }
    char domains[256] = "";
    domain_search search = {.name = name, .bytes = sizeof domains, .text = domains};
    sb_op_visit(note_domain, &search);
    if (domains[0] == '\0')
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "operator %.100s of domain '%.100s' is not known", name, domain);
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "operator %.100s is not known in domain '%.100s', but in these: %s",
                   name, domain, domains);
}
