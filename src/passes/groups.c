#include "passes/groups.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "passes/rewrite.h"

sb_value_id sb_only_output(const sb_node *node) {
    for (int i = 1; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE)
            return SB_NO_VALUE;
    }
    return node->output_count > 0 ? node->outputs[0] : SB_NO_VALUE;
}

/* ---- who reads what ---- */

static sb_status find_readers(const sb_graph *graph, sb_group_uses *uses, sb_error *error) {
    size_t total = 0;
    uses->first_use = sb_allocate_array(graph->value_count + 2, sizeof *uses->first_use);
    if (uses->first_use == NULL)
        return sb_fail_memory(error, graph->value_count * sizeof *uses->first_use);
    for (size_t n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n]->input_count; i++) {
            if (graph->nodes[n]->inputs[i] != SB_NO_VALUE) {
                uses->first_use[graph->nodes[n]->inputs[i] + 2]++;
                total++;
            }
        }
    }
    uses->readers = sb_allocate_array(total, sizeof *uses->readers);
    if (uses->readers == NULL)
        return sb_fail_memory(error, total * sizeof *uses->readers);
    for (size_t v = 0; v < graph->value_count; v++)
        uses->first_use[v + 2] += uses->first_use[v + 1];
    /* Filling moves each start up by one place, to where it belongs. */
    for (size_t n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n]->input_count; i++) {
            if (graph->nodes[n]->inputs[i] != SB_NO_VALUE)
                uses->readers[uses->first_use[graph->nodes[n]->inputs[i] + 1]++] = n;
        }
    }
    return SB_OK;
}

/* Notes for each version, and for what views make of it, where its variable's update is made. */
static sb_status find_updates(const sb_graph *graph, sb_group_uses *uses, sb_error *error) {
    uses->updated_by = sb_allocate_array(graph->value_count, sizeof *uses->updated_by);
    if (uses->updated_by == NULL)
        return sb_fail_memory(error, graph->value_count * sizeof *uses->updated_by);
    for (size_t v = 0; v < graph->value_count; v++)
        uses->updated_by[v] = SIZE_MAX;
    for (size_t i = 0; i < graph->read_count; i++) {
        sb_value_id update = sb_graph_update_of(graph, graph->reads[i].variable);
        if (update != SB_NO_VALUE && graph->values[update].producer >= 0)
            uses->updated_by[graph->reads[i].value] = (size_t)graph->values[update].producer;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        if ((node->op->flags & SB_OP_VIEW) != 0 && node->input_count > 0 && node->inputs[0] != SB_NO_VALUE &&
            sb_only_output(node) != SB_NO_VALUE)
            uses->updated_by[sb_only_output(node)] = uses->updated_by[node->inputs[0]];
    }
    return SB_OK;
}

sb_status sb_group_uses_find(const sb_graph *graph, sb_group_uses *uses, sb_error *error) {
    SB_TRY(find_readers(graph, uses, error));
    return find_updates(graph, uses, error);
}

void sb_group_uses_clear(sb_group_uses *uses) {
    sb_free(uses->first_use);
    sb_free(uses->readers);
    sb_free(uses->updated_by);
    *uses = (sb_group_uses){NULL, NULL, NULL};
}

static bool contains(const sb_group *group, size_t node) {
    for (size_t i = 0; i < group->count; i++) {
        if (group->nodes[i] == node)
            return true;
    }
    return false;
}

static bool stays_inside(const sb_graph *graph, const sb_group_uses *uses, const sb_group *group, sb_value_id value) {
    if (sb_leaves_graph(graph, value))
        return false;
    for (size_t u = uses->first_use[value]; u < uses->first_use[value + 1]; u++) {
        if (!contains(group, uses->readers[u]))
            return false;
    }
    return true;
}

/* Whether only the last of the nodes is read outside of them. */
static bool is_closed(const sb_graph *graph, const sb_group_uses *uses, const sb_group *group) {
    for (size_t i = 0; i + 1 < group->count; i++) {
        const sb_node *node = graph->nodes[group->nodes[i]];
        for (int o = 0; o < node->output_count; o++) {
            if (node->outputs[o] != SB_NO_VALUE && !stays_inside(graph, uses, group, node->outputs[o]))
                return false;
        }
    }
    return true;
}

/* Whether the nodes, moved to where the last of them is, put a reader of a variable's version behind the
 * node that makes its next one. */
static bool crosses_update(const sb_graph *graph, const sb_group_uses *uses, const sb_group *group) {
    size_t place = group->nodes[group->count - 1];
    for (size_t i = 0; i + 1 < group->count; i++) {
        const sb_node *node = graph->nodes[group->nodes[i]];
        for (int j = 0; j < node->input_count; j++) {
            size_t update = node->inputs[j] != SB_NO_VALUE ? uses->updated_by[node->inputs[j]] : SIZE_MAX;
            if (group->nodes[i] < update && update < place)
                return true;
        }
    }
    return false;
}

bool sb_group_fits(const sb_graph *graph, const sb_group_uses *uses, const sb_group *group) {
    return is_closed(graph, uses, group) && !crosses_update(graph, uses, group);
}

/* ---- moving a group into a node ---- */

/* A body under construction: for each value of the outer graph, its number inside plus one. */
typedef struct body {
    sb_graph *graph;
    sb_value_id *inside; /* per outer value; SB_NO_VALUE where not there yet */
    size_t input_count, input_capacity;
    sb_value_id *inputs; /* outer values that become inputs */
} body;

static sb_status enter_value(body *body, const sb_graph *graph, sb_value_id outer, bool is_input, sb_error *error) {
    if (body->inside[outer] != SB_NO_VALUE)
        return SB_OK;
    sb_value_id inner;
    SB_TRY(sb_graph_add_value(body->graph, graph->values[outer].name, &inner, error));
    SB_TRY(sb_fact_copy(&body->graph->values[inner].fact, &graph->values[outer].fact, error));
    body->inside[outer] = inner;
    if (!is_input)
        return SB_OK;
    /* Inside, a constant is an input like any other: its tensor stays with the outer graph. */
    sb_tensor_release(body->graph->values[inner].fact.constant);
    body->graph->values[inner].fact.constant = NULL;
    if (!sb_grow((void **)&body->inputs, &body->input_capacity, body->input_count + 1, sizeof *body->inputs))
        return sb_fail_memory(error, sizeof *body->inputs);
    body->inputs[body->input_count++] = outer;
    return sb_graph_add_input(body->graph, inner, error);
}

static sb_status enter_values(body *body, const sb_graph *graph, const sb_group *group, sb_error *error) {
    for (size_t i = 0; i < group->count; i++) {
        const sb_node *node = graph->nodes[group->nodes[i]];
        for (int j = 0; j < node->input_count; j++) {
            if (node->inputs[j] != SB_NO_VALUE)
                SB_TRY(enter_value(body, graph, node->inputs[j], true, error));
        }
        for (int j = 0; j < node->output_count; j++) {
            if (node->outputs[j] != SB_NO_VALUE)
                SB_TRY(enter_value(body, graph, node->outputs[j], false, error));
        }
    }
    if (!sb_grow((void **)&body->graph->nodes, &body->graph->node_capacity, group->count, sizeof *body->graph->nodes))
        return sb_fail_memory(error, group->count * sizeof *body->graph->nodes);
    sb_value_id last = sb_only_output(graph->nodes[group->nodes[group->count - 1]]);
    return sb_graph_add_output(body->graph, body->inside[last], error);
}

/* Hands the nodes over; nothing can fail any more. */
static void move_nodes(body *body, sb_graph *graph, const sb_group *group) {
    for (size_t i = 0; i < group->count; i++) {
        sb_node *node = graph->nodes[group->nodes[i]];
        for (int j = 0; j < node->input_count; j++) {
            if (node->inputs[j] != SB_NO_VALUE)
                node->inputs[j] = body->inside[node->inputs[j]];
        }
        for (int j = 0; j < node->output_count; j++) {
            if (node->outputs[j] != SB_NO_VALUE) {
                node->outputs[j] = body->inside[node->outputs[j]];
                body->graph->values[node->outputs[j]].producer = (int)body->graph->node_count;
            }
        }
        body->graph->nodes[body->graph->node_count++] = node;
        graph->nodes[group->nodes[i]] = NULL;
    }
}

static void fused_name(const sb_graph *graph, const sb_group *group, char *name, size_t bytes) {
    size_t used = 0;
    for (size_t i = 0; i < group->count && used < bytes; i++)
        used += (size_t)snprintf(name + used, bytes - used, i == 0 ? "%s" : "+%s", graph->nodes[group->nodes[i]]->name);
}

/* Makes the new node in a temporary graph of its own, so that it can be put where the group's last node was. */
static sb_status create_node(body *body, sb_value_id output, const char *name, sb_node **node, sb_error *error) {
    sb_attributes attributes = {0};
    sb_graph *graph = body->graph;
    body->graph = NULL; /* the attribute owns it from here on */
    SB_TRY(sb_attributes_add_graph(&attributes, "body", graph, error));
    sb_node *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh != NULL) {
        fresh->op = sb_op_find("samebit", "Fused");
        fresh->name = sb_duplicate_string(name);
        fresh->inputs = sb_allocate_array(body->input_count, sizeof *fresh->inputs);
        fresh->outputs = sb_allocate_array(1, sizeof *fresh->outputs);
        fresh->attributes = attributes;
    } else {
        sb_attributes_clear(&attributes);
    }
    if (fresh == NULL || fresh->name == NULL || fresh->inputs == NULL || fresh->outputs == NULL) {
        sb_node_destroy(fresh);
        return sb_fail_memory(error, sizeof *fresh);
    }
    memcpy(fresh->inputs, body->inputs, body->input_count * sizeof *fresh->inputs);
    fresh->input_count = (int)body->input_count;
    fresh->outputs[0] = output;
    fresh->output_count = 1;
    *node = fresh;
    return SB_OK;
}

sb_status sb_group_fuse(sb_graph *graph, const sb_group *group, sb_error *error) {
    char name[1024];
    fused_name(graph, group, name, sizeof name);
    size_t last = group->nodes[group->count - 1];
    sb_value_id output = sb_only_output(graph->nodes[last]);
    body body = {.inside = sb_allocate_array(graph->value_count, sizeof *body.inside)};
    sb_status status = SB_OK;
    if (body.inside == NULL)
        status = sb_fail_memory(error, graph->value_count * sizeof *body.inside);
    for (size_t v = 0; status == SB_OK && v < graph->value_count; v++)
        body.inside[v] = SB_NO_VALUE;
    if (status == SB_OK)
        status = sb_graph_create(name, &body.graph, error);
    if (status == SB_OK)
        status = enter_values(&body, graph, group, error);
    sb_graph *inner = body.graph;
    sb_node *node = NULL;
    if (status == SB_OK)
        status = create_node(&body, output, name, &node, error);
    if (status == SB_OK) {
        body.graph = inner;
        move_nodes(&body, graph, group);
        body.graph = NULL;
        graph->nodes[last] = node;
    }
    sb_graph_destroy(body.graph);
    sb_free(body.inside);
    sb_free(body.inputs);
    return status;
}

void sb_groups_close_gaps(sb_graph *graph) {
    size_t kept = 0;
    for (size_t v = 0; v < graph->value_count; v++)
        graph->values[v].producer = -1;
    for (size_t n = 0; n < graph->node_count; n++) {
        sb_node *node = graph->nodes[n];
        if (node == NULL)
            continue;
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != SB_NO_VALUE)
                graph->values[node->outputs[i]].producer = (int)kept;
        }
        graph->nodes[kept++] = node;
    }
    graph->node_count = kept;
}

sb_status sb_groups_fuse(sb_graph *graph, bool (*find)(const sb_graph *graph, size_t last, sb_group *group),
                         sb_error *error) {
    sb_group_uses uses = {NULL, NULL, NULL};
    sb_status status = sb_group_uses_find(graph, &uses, error);
    for (size_t n = 0; n < graph->node_count && status == SB_OK; n++) {
        sb_group group;
        if (find(graph, n, &group) && sb_group_fits(graph, &uses, &group))
            status = sb_group_fuse(graph, &group, error);
    }
    sb_groups_close_gaps(graph);
    sb_group_uses_clear(&uses);
    return status;
}
