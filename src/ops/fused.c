/* Fused: nodes that one kernel may compute together. The definition is the graph inside, so every rounding stays. */
#include <string.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "rules/counting.h"
#include "rules/question.h"

static sb_status prepare_fused(sb_node *node, sb_error *error) {
    if (sb_node_graph(node, "body") != NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: Fused has no body", node->name);
}

static sb_status infer_fused(sb_infer *infer) {
    sb_fact *inputs = sb_allocate_array((size_t)infer->input_count, sizeof *inputs);
    if (inputs == NULL)
        return sb_fail_memory(infer->error, (size_t)infer->input_count * sizeof *inputs);
    for (int i = 0; i < infer->input_count; i++) {
        if (infer->inputs[i] != NULL)
            inputs[i] = *infer->inputs[i]; /* borrowed */
    }
    sb_status status =
        sb_infer_graph(infer, sb_node_graph(infer->node, "body"), infer->input_count, inputs, infer->outputs);
    sb_free(inputs);
    return status;
}

static sb_status eval_fused(sb_call *call) {
    return sb_call_run_graph(call, sb_node_graph(call->node, "body"), call->input_count, call->inputs, call->outputs);
}

const sb_op sb_ops_fused[] = {
    {.name = "Fused",
     .domain = "samebit",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_FUSED,
     .prepare = prepare_fused,
     .infer = infer_fused,
     .eval = eval_fused},
    {0},
};

/* ---- rules: what the nodes of the body do with an axis, one after the other ---- */

/* A walk through a body. */
typedef struct walk {
    const sb_axis_question *question;
    const sb_graph *body;
    sb_scope *scope;
    sb_fact *facts; /* [values] */
    int *axes;      /* [values]: the axis that the asked one has become, or SB_AXIS_NONE */
    sb_axis_rule *answer;
} walk;

static sb_status infer_body(const walk *walk) {
    const sb_axis_question *question = walk->question;
    for (size_t i = 0; i < walk->body->input_count; i++) {
        const sb_fact *given = question->inputs[i];
        if (given != NULL)
            SB_TRY(sb_fact_copy(&walk->facts[walk->body->inputs[i]], given, question->error));
    }
    return sb_graph_infer(walk->body, walk->scope, walk->facts, question->error);
}

static void merge(walk *walk, const sb_node *node, const sb_axis_rule *rule) {
    sb_axis_rule *answer = walk->answer;
    if (rule->kind > answer->kind) {
        answer->kind = rule->kind;
        answer->reason = rule->reason;
        answer->conservative = rule->conservative;
    }
    answer->checked = answer->checked || rule->checked;
    for (int o = 0; o < node->output_count && answer->kind != SB_AXIS_EXACT; o++) {
        int *axis = node->outputs[o] != SB_NO_VALUE ? &walk->axes[node->outputs[o]] : NULL;
        if (axis == NULL || rule->output_axes[o] == SB_AXIS_NONE || *axis == rule->output_axes[o])
            continue;
        if (*axis != SB_AXIS_NONE)
            sb_axis_unknown(answer, "it comes back as two axes");
        *axis = rule->output_axes[o];
    }
}

static sb_status step(walk *walk, const sb_node *node, const sb_fact **inputs, sb_fact *outputs, int *output_axes) {
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != SB_NO_VALUE ? &walk->facts[node->inputs[i]] : NULL;
    for (int o = 0; o < node->output_count; o++) {
        if (node->outputs[o] != SB_NO_VALUE)
            outputs[o] = walk->facts[node->outputs[o]]; /* borrowed */
    }
    for (int i = 0; i < node->input_count && walk->answer->kind != SB_AXIS_EXACT; i++) {
        int axis = inputs[i] != NULL ? walk->axes[node->inputs[i]] : SB_AXIS_NONE;
        sb_axis_rule rule = {.output_axes = output_axes};
        if (axis == SB_AXIS_NONE)
            continue;
        SB_TRY(sb_axes_of(node, inputs, outputs, i, axis, &rule, walk->question->error));
        merge(walk, node, &rule);
    }
    return SB_OK;
}

static sb_status take_step(walk *walk, const sb_node *node) {
    const sb_fact **inputs = sb_allocate_array((size_t)node->input_count, sizeof *inputs);
    sb_fact *outputs = sb_allocate_array((size_t)node->output_count, sizeof *outputs);
    int *output_axes = sb_allocate_array((size_t)node->output_count, sizeof *output_axes);
    sb_status status = SB_OK;
    if (inputs == NULL || outputs == NULL || output_axes == NULL)
        status = sb_fail_memory(walk->question->error, (size_t)node->output_count * sizeof *outputs);
    if (status == SB_OK)
        status = step(walk, node, inputs, outputs, output_axes);
    sb_free(inputs);
    sb_free(outputs);
    sb_free(output_axes);
    return status;
}

static sb_status walk_body(walk *walk) {
    const sb_graph *body = walk->body;
    for (size_t v = 0; v < body->value_count; v++)
        walk->axes[v] = SB_AXIS_NONE;
    walk->axes[body->inputs[walk->question->input]] = walk->question->axis;
    SB_TRY(infer_body(walk));
    for (size_t n = 0; n < body->node_count; n++)
        SB_TRY(take_step(walk, body->nodes[n]));
    for (size_t o = 0; o < body->output_count && walk->answer->output_axes != NULL; o++)
        walk->answer->output_axes[o] =
            walk->answer->kind != SB_AXIS_EXACT ? walk->axes[body->outputs[o]] : SB_AXIS_NONE;
    return SB_OK;
}

static sb_status axes_of_fused(const sb_axis_question *question, sb_axis_rule *answer) {
    walk walk = {.question = question, .body = sb_node_graph(question->node, "body"), .answer = answer};
    SB_TRY(sb_scope_create(&walk.scope, question->error));
    walk.facts = sb_allocate_array(walk.body->value_count, sizeof *walk.facts);
    walk.axes = sb_allocate_array(walk.body->value_count, sizeof *walk.axes);
    sb_status status = SB_OK;
    if (walk.facts == NULL || walk.axes == NULL)
        status = sb_fail_memory(question->error, walk.body->value_count * sizeof *walk.facts);
    if (status == SB_OK)
        status = walk_body(&walk);
    for (size_t v = 0; walk.facts != NULL && v < walk.body->value_count; v++)
        sb_fact_clear(&walk.facts[v]);
    sb_free(walk.facts);
    sb_free(walk.axes);
    sb_scope_destroy(walk.scope);
    return status;
}

const sb_axes_entry sb_axes_fused[] = {
    {.op = {"Fused", "samebit"},
     .rule = axes_of_fused,
     .independent = "as in every node of the body",
     .bounded = "as in a node of the body",
     .exact = "as in a node of the body"},
    {.op = {NULL}},
};

/* ---- cost: the sum over the body ---- */

static void gather(const sb_node *node, const sb_fact *facts, const sb_fact **inputs, sb_fact *outputs) {
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != SB_NO_VALUE ? &facts[node->inputs[i]] : NULL;
    for (int o = 0; o < node->output_count; o++) {
        if (node->outputs[o] != SB_NO_VALUE)
            outputs[o] = facts[node->outputs[o]]; /* borrowed */
    }
}

/* *sum is NULL from the first node on of which the count is not known. */
static sb_status add_flops(const sb_node *node, sb_scope *scope, const sb_fact *facts, sb_dim *sum) {
    const sb_fact **inputs = sb_allocate_array((size_t)node->input_count, sizeof *inputs);
    sb_fact *outputs = sb_allocate_array((size_t)node->output_count, sizeof *outputs);
    sb_dim flops = NULL;
    sb_status status = SB_ERROR_OUT_OF_MEMORY;
    if (inputs != NULL && outputs != NULL) {
        gather(node, facts, inputs, outputs);
        status = sb_node_flops(node, scope, inputs, outputs, &flops, NULL);
    }
    sb_free(inputs);
    sb_free(outputs);
    *sum = status == SB_OK && *sum != NULL && flops != NULL ? sb_dim_add(scope, *sum, flops) : NULL;
    return status;
}

/* Without memory the count is not known. */
static sb_dim body_flops(const sb_cost_question *question, int64_t number) {
    const sb_graph *body = sb_node_graph(question->node, "body");
    sb_fact *facts = sb_allocate_array(body->value_count, sizeof *facts);
    sb_dim sum = sb_dim_constant(question->scope, 0);
    sb_status status = facts != NULL ? SB_OK : SB_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < body->input_count && status == SB_OK; i++) {
        if (question->inputs[i] != NULL)
            status = sb_fact_copy(&facts[body->inputs[i]], question->inputs[i], NULL);
    }
    if (status == SB_OK)
        status = sb_graph_infer(body, question->scope, facts, NULL);
    for (size_t n = 0; n < body->node_count && status == SB_OK && sum != NULL; n++)
        status = add_flops(body->nodes[n], question->scope, facts, &sum);
    for (size_t v = 0; facts != NULL && v < body->value_count; v++)
        sb_fact_clear(&facts[v]);
    sb_free(facts);
    return status == SB_OK ? sum : NULL;
}

static const sb_flops_rule fused_flops = {body_flops, "those of the nodes inside"};

const sb_cost_entry sb_cost_fused[] = {
    {.op = {"Fused", "samebit"}, .flops = &fused_flops, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
