#include "rules/follow.h"

#include "base/allocation.h"

/* One run of sb_follow_symbol. */
typedef struct follow {
    const sb_graph *graph;
    const sb_fact *facts;
    const char *symbol;
    sb_scope *scope; /* for formulas on the way */
    sb_followed *result;
    sb_error *error;
} follow;

/* ---- values ---- */

static sb_dim substitute(const follow *follow, sb_dim extent, int64_t value) {
    const sb_binding binding = {1, &follow->symbol, &value};
    return sb_dim_substitute(follow->scope, extent, &binding);
}

/* f is affine in s when f(s) = f(0) + s·(f(1) - f(0)): equal formulas have one normal form. */
static sb_status find_dependence(const follow *follow, sb_dim extent, sb_dependence *dependence) {
    *dependence = SB_DEPENDS_NOT;
    if (!sb_dim_mentions(extent, follow->symbol))
        return SB_OK;
    sb_scope *scope = follow->scope;
    sb_dim base = substitute(follow, extent, 0), next = substitute(follow, extent, 1);
    sb_dim slope = sb_dim_subtract(scope, next, base);
    sb_dim line = sb_dim_add(scope, base, sb_dim_multiply(scope, sb_dim_symbol(scope, follow->symbol), slope));
    *dependence = line != NULL && sb_dim_equal(line, extent) ? SB_DEPENDS_AFFINE : SB_DEPENDS_OTHERWISE;
    /* A formula that cannot be built (a division by 0 at s = 0, one beyond all bounds) is no affine one. */
    return sb_scope_check(scope, follow->error) == SB_ERROR_OUT_OF_MEMORY ? SB_ERROR_OUT_OF_MEMORY : SB_OK;
}

static sb_status look_at_value(const follow *follow, size_t index) {
    const sb_fact *fact = &follow->facts[index];
    sb_followed_value *value = &follow->result->values[index];
    for (int d = 0; fact->kind != SB_KIND_NONE && d < fact->rank; d++)
        SB_TRY(find_dependence(follow, fact->dims[d], &value->extents[d]));
    for (int64_t e = 0; fact->elements != NULL && e < fact->element_count; e++)
        value->elements = value->elements || sb_dim_mentions(fact->elements[e], follow->symbol);
    return SB_OK;
}

/* ---- nodes ---- */

/* A node with its facts, and what is found of it. */
typedef struct visit {
    const sb_node *node;
    const sb_fact **inputs;
    sb_fact *outputs;  /* borrowed copies */
    int *output_axes;  /* of one rule */
    uint32_t *reached; /* per output: the axes that a rule sends an axis to */
    sb_followed_node *found;
} visit;

static void harden(visit *visit, sb_axis_kind kind, const char *reason, int input, int axis) {
    sb_followed_node *found = visit->found;
    found->touched = true;
    if (kind > found->kind) {
        found->kind = kind;
        found->reason = reason;
        found->input = input;
        found->axis = axis;
    }
}

static sb_status look_at_axis(const follow *follow, visit *visit, int input, int axis) {
    sb_axis_rule rule = {.output_axes = visit->output_axes};
    SB_TRY(sb_axes_of(visit->node, visit->inputs, visit->outputs, input, axis, &rule, follow->error));
    harden(visit, rule.kind, rule.reason, input, axis);
    for (int o = 0; o < visit->node->output_count; o++) {
        int to = rule.output_axes[o];
        if (to == SB_AXIS_NONE || visit->node->outputs[o] == SB_NO_VALUE)
            continue;
        visit->reached[o] |= UINT32_C(1) << to;
        if (!sb_dim_is_constant(visit->outputs[o].dims[to], NULL) &&
            !sb_dim_mentions(visit->outputs[o].dims[to], follow->symbol))
            harden(visit, SB_AXIS_EXACT, "the extent of its output is known only when the node runs", input, axis);
    }
    return SB_OK;
}

static sb_status look_at_input(const follow *follow, visit *visit, int input) {
    if (visit->inputs[input] == NULL)
        return SB_OK;
    const sb_fact *fact = visit->inputs[input];
    const sb_followed_value *value = &follow->result->values[visit->node->inputs[input]];
    for (int d = 0; fact->kind != SB_KIND_NONE && d < fact->rank; d++) {
        if (value->extents[d] == SB_DEPENDS_NOT)
            continue;
        if (fact->kind == SB_KIND_TENSOR)
            SB_TRY(look_at_axis(follow, visit, input, d));
        else
            harden(visit, SB_AXIS_EXACT, "tensors in a sequence have extents of their own", input, d);
    }
    if (value->elements)
        harden(visit, SB_AXIS_BOUNDED, "the extent is among its values", input, -1);
    return SB_OK;
}

/* Extents of outputs that come from no axis come from values, such as a shape that was computed. */
static void look_at_outputs(const follow *follow, visit *visit) {
    bool by_value = false;
    for (int i = 0; i < visit->node->input_count; i++) {
        if (visit->inputs[i] != NULL)
            by_value = by_value || follow->result->values[visit->node->inputs[i]].elements;
    }
    for (int o = 0; o < visit->node->output_count; o++) {
        const sb_followed_value *value =
            visit->node->outputs[o] != SB_NO_VALUE ? &follow->result->values[visit->node->outputs[o]] : NULL;
        for (int d = 0; value != NULL && d < visit->outputs[o].rank; d++) {
            if (value->extents[d] != SB_DEPENDS_NOT && (visit->reached[o] >> d & 1) == 0 && !by_value)
                harden(visit, SB_AXIS_EXACT, "no axis of an input becomes this extent of the output", -1, d);
        }
    }
}

static sb_status look_at_node(const follow *follow, visit *visit) {
    const sb_node *node = visit->node;
    for (int i = 0; i < node->input_count; i++)
        visit->inputs[i] = node->inputs[i] != SB_NO_VALUE ? &follow->facts[node->inputs[i]] : NULL;
    for (int o = 0; o < node->output_count; o++) {
        if (node->outputs[o] != SB_NO_VALUE)
            visit->outputs[o] = follow->facts[node->outputs[o]];
    }
    *visit->found = (sb_followed_node){.kind = SB_AXIS_INDEPENDENT, .input = -1, .axis = -1};
    for (int i = 0; i < node->input_count; i++)
        SB_TRY(look_at_input(follow, visit, i));
    look_at_outputs(follow, visit);
    return SB_OK;
}

static sb_status visit_node(const follow *follow, size_t index) {
    const sb_node *node = follow->graph->nodes[index];
    size_t outputs = (size_t)node->output_count;
    visit visit = {.node = node,
                   .inputs = sb_allocate_array((size_t)node->input_count, sizeof *visit.inputs),
                   .outputs = sb_allocate_array(outputs, sizeof *visit.outputs),
                   .output_axes = sb_allocate_array(outputs, sizeof *visit.output_axes),
                   .reached = sb_allocate_array(outputs, sizeof *visit.reached),
                   .found = &follow->result->nodes[index]};
    sb_status status = SB_OK;
    if (visit.inputs == NULL || visit.outputs == NULL || visit.output_axes == NULL || visit.reached == NULL)
        status = sb_fail_memory(follow->error, outputs * sizeof *visit.outputs);
    if (status == SB_OK)
        status = look_at_node(follow, &visit);
    sb_free(visit.inputs);
    sb_free(visit.outputs);
    sb_free(visit.output_axes);
    sb_free(visit.reached);
    return status;
}

/* ---- graphs ---- */

static sb_status follow_all(const follow *follow) {
    for (size_t v = 0; v < follow->graph->value_count; v++)
        SB_TRY(look_at_value(follow, v));
    for (size_t n = 0; n < follow->graph->node_count; n++)
        SB_TRY(visit_node(follow, n));
    return SB_OK;
}

sb_status sb_follow_symbol(const sb_graph *graph, const sb_fact *facts, const char *symbol, sb_followed *followed,
                           sb_error *error) {
    follow follow = {.graph = graph, .facts = facts, .symbol = symbol, .result = followed, .error = error};
    *followed = (sb_followed){.value_count = graph->value_count, .node_count = graph->node_count};
    SB_TRY(sb_scope_create(&follow.scope, error));
    followed->values = sb_allocate_array(graph->value_count, sizeof *followed->values);
    followed->nodes = sb_allocate_array(graph->node_count, sizeof *followed->nodes);
    sb_status status = SB_OK;
    if (followed->values == NULL || followed->nodes == NULL)
        status = sb_fail_memory(error, graph->value_count * sizeof *followed->values);
    if (status == SB_OK)
        status = follow_all(&follow);
    if (status != SB_OK)
        sb_followed_clear(followed);
    sb_scope_destroy(follow.scope);
    return status;
}

void sb_followed_clear(sb_followed *followed) {
    sb_free(followed->values);
    sb_free(followed->nodes);
    *followed = (sb_followed){0};
}
