/* A Gather of one index that is known is a Slice, and a Squeeze behind it where the index is a scalar: both are views, so nothing is
 * copied. State-space models that exporters wrote out step by step have hundreds (a step's rows of four tensors), and the first
 * token of a sentence is one.
 *
 * Not along the last axis, since its neighbours would be a whole row apart for whoever reads the view, and only where the index is
 * certainly within the axis: a Gather fails elsewhere, and a Slice does not. */
#include <stdio.h>
#include <string.h>

#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* Which no name of the graph may begin with. */
#define PREFIX "picked "

typedef struct pick {
    sb_node *node; /* the Gather, which goes */
    int64_t axis, index;
    bool drops; /* the axis, behind a scalar */
    int number; /* of the graph's, as nodes may share a name, or have none */
} pick;

/* ---- which ---- */

static bool has_prefix(const char *name) {
    return name != NULL && strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
}

static bool are_names_free(const sb_graph *graph) {
    bool taken = false;
    for (size_t v = 0; v < graph->value_count && !taken; v++)
        taken = has_prefix(graph->values[v].name);
    for (size_t n = 0; n < graph->node_count && !taken; n++)
        taken = has_prefix(graph->nodes[n]->name);
    return !taken;
}

static bool is_within(sb_dim extent, int64_t index) {
    return index < 0 ? index != INT64_MIN && sb_dim_at_least(extent, -index)
                     : index != INT64_MAX && sb_dim_at_least(extent, index + 1);
}

/* The one index of a constant of integers; false: it is something else. */
static bool read_index(const sb_tensor *tensor, int64_t *index) {
    if (tensor->rank > 1 || sb_tensor_elements(tensor) != 1 || (tensor->dtype != SB_S64 && tensor->dtype != SB_S32))
        return false;
    *index = tensor->dtype == SB_S64 ? *(const int64_t *)(const void *)tensor->data
                                     : *(const int32_t *)(const void *)tensor->data;
    return true;
}

/* Slice has its bounds as inputs from version 10 on. */
static bool find_pick(const sb_graph *graph, sb_node *node, pick *found) {
    if (!sb_node_is(node, "Gather") || node->version < 10 || node->input_count != 2 || node->inputs[0] == SB_NO_VALUE ||
        node->inputs[1] == SB_NO_VALUE || node->outputs[0] == SB_NO_VALUE || !sb_is_constant(graph, node->inputs[1]))
        return false;
    const sb_fact *data = &graph->values[node->inputs[0]].fact;
    const sb_tensor *indices = graph->values[node->inputs[1]].fact.constant;
    *found = (pick){.node = node, .drops = indices->rank == 0};
    if (data->kind != SB_KIND_TENSOR || data->optional || data->rank == SB_RANK_UNKNOWN ||
        !read_index(indices, &found->index) || sb_node_int(node, "axis", 0, &found->axis, NULL) != SB_OK)
        return false;
    found->axis += found->axis < 0 ? data->rank : 0;
    return found->axis >= 0 && found->axis < data->rank - 1 && is_within(data->dims[found->axis], found->index);
}

/* ---- what takes its place ---- */

static void name_part(const pick *found, const char *what, char *name, size_t bytes) {
    snprintf(name, bytes, PREFIX "%s %d of %.200s", what, found->number, found->node->name);
}

static sb_status add_number(sb_graph *graph, sb_scope *scope, const pick *found, const char *what, int64_t number,
                            sb_value_id *value, sb_error *error) {
    char name[256];
    sb_tensor *tensor;
    SB_TRY(sb_tensor_create(SB_S64, 1, (int64_t[]){1}, &tensor, error));
    *(int64_t *)sb_tensor_mutable_data(tensor) = number;
    name_part(found, what, name, sizeof name);
    sb_status status = sb_graph_add_constant(graph, scope, name, tensor, value, error);
    sb_tensor_release(tensor);
    return status;
}

static sb_status add_node(sb_graph *graph, sb_scope *scope, const char *op, const pick *found, int input_count,
                          const sb_value_id *inputs, sb_value_id output, sb_attributes *attributes, sb_error *error) {
    char name[256];
    sb_node *node;
    name_part(found, op, name, sizeof name);
    sb_status status = sb_graph_add_node(graph, sb_op_find("", op), found->node->version, name, input_count, inputs, 0,
                                         1, &output, attributes, &node, error);
    sb_attributes_clear(attributes);
    return status == SB_OK ? sb_graph_infer_node(graph, node, scope, error) : status;
}

/* Squeeze has its axes as an input from version 13 on. */
static sb_status add_squeeze(sb_graph *graph, sb_scope *scope, const pick *found, sb_value_id part, sb_value_id axes,
                             sb_error *error) {
    sb_attributes attributes = {0};
    bool by_input = found->node->version >= 13;
    if (!by_input)
        SB_TRY(sb_attributes_add_ints(&attributes, "axes", false, 1, &found->axis, error));
    return add_node(graph, scope, "Squeeze", found, by_input ? 2 : 1, (sb_value_id[]){part, axes},
                    found->node->outputs[0], &attributes, error);
}

/* Appends the nodes. */
static sb_status add_views(sb_graph *graph, sb_scope *scope, const pick *found, sb_error *error) {
    char name[256];
    sb_attributes none = {0};
    sb_value_id inputs[4] = {found->node->inputs[0]}, part = found->node->outputs[0];
    const int64_t end = found->index == -1 ? INT64_MAX : found->index + 1;
    SB_TRY(add_number(graph, scope, found, "start", found->index, &inputs[1], error));
    SB_TRY(add_number(graph, scope, found, "end", end, &inputs[2], error));
    SB_TRY(add_number(graph, scope, found, "axis", found->axis, &inputs[3], error));
    if (found->drops) {
        name_part(found, "part", name, sizeof name);
        SB_TRY(sb_graph_add_value(graph, name, &part, error));
    }
    SB_TRY(add_node(graph, scope, "Slice", found, 4, inputs, part, &none, error));
    return found->drops ? add_squeeze(graph, scope, found, part, inputs[3], error) : SB_OK;
}

sb_status sb_pass_picks(sb_graph *graph, sb_scope *scope, sb_error *error) {
    int count = 0;
    sb_status status = SB_OK;
    for (size_t n = 0; n < graph->node_count && status == SB_OK; n++) {
        pick found;
        size_t fresh = graph->node_count;
        if (graph->nodes[n] == NULL || !find_pick(graph, graph->nodes[n], &found))
            continue;
        if (count == 0 && !are_names_free(graph))
            return SB_OK;
        found.number = count++;
        status = add_views(graph, scope, &found, error);
        if (status == SB_OK)
            status = sb_rewrite_move(graph, fresh, n, error);
        if (status != SB_OK)
            break;
        n += graph->node_count - fresh; /* where the Gather is now */
        sb_node_destroy(found.node);
        graph->nodes[n] = NULL;
    }
    if (count > 0)
        sb_groups_close_gaps(graph);
    return status;
}
