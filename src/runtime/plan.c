#include "runtime/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/memory_plan.h"
#include "runtime/replay.h"

/* ---- the binding ---- */

static bool input_fits(const iv_fact *fact, iv_value value) {
    if (fact->kind != value.kind)
        return false;
    if (value.kind == IV_KIND_SEQUENCE)
        return fact->dtype == value.sequence->dtype;
    if (value.kind == IV_KIND_NONE)
        return true;
    if (fact->dtype != value.tensor->dtype || fact->rank != value.tensor->rank)
        return false;
    for (int d = 0; d < fact->rank; d++) {
        int64_t extent;
        if (!iv_dim_is_constant(fact->dims[d], &extent) || extent != value.tensor->dims[d])
            return false;
    }
    return true;
}

bool iv_plan_fits(const iv_plan *plan, const iv_program *program, bool host_outputs, const iv_value *inputs) {
    for (size_t i = 0; i < program->graph->input_count; i++) {
        iv_value_id input = program->graph->inputs[i];
        if (!input_fits(&plan->facts[input], inputs[i]) || plan->sides[input] != iv_value_side(inputs[i]))
            return false;
    }
    return plan->host_outputs == host_outputs;
}

/* ---- steps ---- */

static iv_step_mode step_mode(const iv_node *node, const iv_fact *facts) {
    bool known = (node->op->flags & IV_OP_RANDOM) == 0, concrete = true;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == IV_NO_VALUE)
            continue;
        const iv_fact *fact = &facts[node->outputs[i]];
        known = known && fact->constant != NULL;
        concrete = concrete && iv_fact_is_concrete(fact, NULL);
    }
    return known ? IV_STEP_SKIP : concrete ? IV_STEP_STATIC : IV_STEP_DYNAMIC;
}

/* What the step knows: facts of its inputs, then of its outputs, all borrowed. */
typedef struct step_facts {
    iv_fact *outputs;
    const iv_fact **inputs;
} step_facts;

static iv_status gather_facts(const iv_plan *plan, const iv_node *node, step_facts *facts, iv_error *error) {
    size_t bytes = (size_t)node->input_count * sizeof(iv_fact *) +
                   (size_t)node->output_count * sizeof(iv_fact);
    facts->outputs = iv_allocate_array(1, bytes);
    if (facts->outputs == NULL)
        return iv_fail_memory(error, bytes);
    facts->inputs = (const iv_fact **)(void *)(facts->outputs + node->output_count);
    for (int i = 0; i < node->input_count; i++)
        facts->inputs[i] = node->inputs[i] != IV_NO_VALUE ? &plan->facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != IV_NO_VALUE)
            facts->outputs[i] = plan->facts[node->outputs[i]];
    }
    return IV_OK;
}

iv_status iv_plan_explain(iv_planned_step *step, const char *why, iv_error *error) {
    if (why == NULL || step->why == NULL || strcmp(step->why, why) != 0) {
        iv_free(step->why);
        step->why = NULL;
    }
    if (why == NULL || step->why != NULL)
        return IV_OK;
    size_t bytes = strlen(why) + 1;
    step->why = iv_allocate(bytes);
    if (step->why == NULL)
        return iv_fail_memory(error, bytes);
    memcpy(step->why, why, bytes);
    return IV_OK;
}

/* Whether the step only shows what a node on the CPU has made: it stays there, since a copy to the device would only be copied
 * back if nobody needs it there. */
static bool shows_host_value(const iv_plan *plan, const iv_program *program, const iv_node *node) {
    if ((node->op->flags & IV_OP_VIEW) == 0 || node->inputs[0] == IV_NO_VALUE)
        return false;
    return program->graph->values[node->inputs[0]].producer >= 0 && plan->sides[node->inputs[0]] == IV_HOST &&
           plan->facts[node->inputs[0]].constant == NULL;
}

/* `stays`: why the step is not for the device to begin with; NULL if it may be. */
static iv_status choose_kernel(iv_planned_step *planned, iv_program *program, const iv_placement *placement,
                               size_t step, const step_facts *facts, const char *stays, iv_error *error) {
    char why[IV_WHY_BYTES];
    planned->in_place = -1;
    if (placement->lane != NULL) {
        if (stays != NULL)
            snprintf(why, sizeof why, "%s", stays);
        else
            IV_TRY(iv_place(placement, program, step, facts->inputs, facts->outputs, &planned->kernel, why, error));
        planned->side = planned->kernel != NULL ? IV_DEVICE : IV_HOST;
        if (planned->side == IV_DEVICE)
            return iv_program_prepare(program, step, planned->kernel, facts->inputs, facts->outputs, &planned->state,
                                      error);
        IV_TRY(iv_plan_explain(planned, why, error));
    }
    return iv_program_choose(program, step, facts->inputs, facts->outputs, &planned->kernel,
                             &planned->state, &planned->in_place, error);
}

static iv_status place_step(iv_plan *plan, iv_program *program, const iv_placement *placement, size_t step,
                            const char *stays, iv_error *error) {
    const iv_node *node = program->steps[step].node;
    iv_planned_step *planned = &plan->steps[step];
    step_facts facts;
    IV_TRY(gather_facts(plan, node, &facts, error));
    planned->kernel = NULL;
    planned->state = NULL;
    iv_status status = choose_kernel(planned, program, placement, step, &facts, stays, error);
    iv_free(facts.outputs);
    for (int i = 0; i < node->output_count && status == IV_OK; i++) {
        if (node->outputs[i] != IV_NO_VALUE)
            plan->sides[node->outputs[i]] = planned->side;
    }
    return status;
}

/* Chooses where and by which kernel a static step runs. With a device, a step that reads what only the data shape becomes
 * dynamic: it is placed when its inputs are there. */
static iv_status plan_step(iv_plan *plan, iv_program *program, const iv_placement *placement, size_t step,
                           iv_error *error) {
    const iv_node *node = program->steps[step].node;
    iv_planned_step *planned = &plan->steps[step];
    planned->mode = step_mode(node, plan->facts);
    for (int i = 0; i < node->input_count && placement->lane != NULL && planned->mode == IV_STEP_STATIC; i++) {
        const iv_fact *fact = node->inputs[i] != IV_NO_VALUE ? &plan->facts[node->inputs[i]] : NULL;
        if (fact != NULL && fact->kind == IV_KIND_TENSOR && !iv_fact_is_concrete(fact, NULL))
            planned->mode = IV_STEP_DYNAMIC;
    }
    if (planned->mode != IV_STEP_STATIC)
        return IV_OK;
    return place_step(plan, program, placement, step,
                      shows_host_value(plan, program, node) ? "it shows what a node on the CPU has made" : NULL, error);
}

/* ---- views of what lies on the host ---- */

/* The value whose memory a view shows, through the views between. */
static iv_value_id shown_value(const iv_program *program, iv_value_id view) {
    for (;;) {
        int64_t producer = program->graph->values[view].producer;
        const iv_node *node = producer >= 0 ? program->graph->nodes[producer] : NULL;
        if (node == NULL || (node->op->flags & IV_OP_VIEW) == 0 || node->inputs[0] == IV_NO_VALUE)
            return view;
        view = node->inputs[0];
    }
}

/* Whether somebody reads the value, and everybody who does reads it on the host. */
static bool is_for_host(const iv_plan *plan, const iv_program *program, iv_value_id value) {
    bool read = false;
    for (size_t o = 0; o < program->graph->output_count; o++) {
        if (program->graph->outputs[o] == value)
            return false;
    }
    for (size_t s = 0; s < program->step_count; s++) {
        const iv_planned_step *reader = &plan->steps[s];
        const iv_node *node = program->steps[s].node;
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != value || reader->mode == IV_STEP_SKIP)
                continue;
            if (reader->mode == IV_STEP_DYNAMIC || iv_input_side(reader->kernel, reader->side, i) == IV_DEVICE)
                return false;
            read = true;
        }
    }
    return read;
}

/* A view of an input that lies on the host belongs there if it is for steps on the CPU alone: on the device, the input would go
 * there only to come back. From the last step to the first, since views may be for views. */
static iv_status keep_views_on_host(iv_plan *plan, iv_program *program, const iv_placement *placement, iv_error *error) {
    for (size_t s = program->step_count; s-- > 0;) {
        const iv_node *node = program->steps[s].node;
        const iv_planned_step *planned = &plan->steps[s];
        if (planned->mode != IV_STEP_STATIC || planned->side != IV_DEVICE || (node->op->flags & IV_OP_VIEW) == 0 ||
            node->output_count != 1 || node->inputs[0] == IV_NO_VALUE)
            continue;
        iv_value_id shown = shown_value(program, node->inputs[0]);
        if (program->graph->values[shown].producer >= 0 || plan->sides[shown] != IV_HOST ||
            plan->facts[shown].constant != NULL || !is_for_host(plan, program, node->outputs[0]))
            continue;
        IV_TRY(place_step(plan, program, placement, s, "it shows an input on the host to nodes on the CPU", error));
    }
    return IV_OK;
}

/* ---- a plan ---- */

static iv_status infer_facts(iv_plan *plan, iv_program *program, const iv_value *inputs,
                             iv_error *error) {
    const iv_graph *graph = program->graph;
    for (size_t i = 0; i < graph->input_count; i++)
        IV_TRY(iv_fact_of_value(&plan->facts[graph->inputs[i]], plan->scope, inputs[i], false, error));
    return iv_graph_infer(graph, plan->scope, plan->facts, error);
}

static iv_status fill_plan(iv_plan *plan, iv_program *program, const iv_placement *placement,
                           const iv_value *inputs, iv_error *error) {
    const iv_graph *graph = program->graph;
    size_t values = graph->value_count;
    IV_TRY(iv_scope_create(&plan->scope, error));
    plan->facts = iv_allocate_array(values, sizeof *plan->facts);
    plan->sides = iv_allocate_array(values, sizeof *plan->sides);
    plan->offsets = iv_allocate_array(values, IV_SIDES * sizeof *plan->offsets);
    plan->copied = iv_allocate_array(values, sizeof *plan->copied);
    plan->steps = iv_allocate_array(program->step_count, sizeof *plan->steps);
    if (placement->lane != NULL)
        plan->constants = iv_allocate_array(values, sizeof(iv_tensor *));
    if (plan->facts == NULL || plan->sides == NULL || plan->offsets == NULL || plan->copied == NULL ||
        plan->steps == NULL || (placement->lane != NULL && plan->constants == NULL))
        return iv_fail_memory(error, values * sizeof *plan->facts);
    for (size_t i = 0; i < graph->input_count; i++)
        plan->sides[graph->inputs[i]] = iv_value_side(inputs[i]);
    IV_TRY(infer_facts(plan, program, inputs, error));
    for (size_t s = 0; s < program->step_count; s++)
        IV_TRY(plan_step(plan, program, placement, s, error));
    if (placement->lane != NULL) {
        IV_TRY(keep_views_on_host(plan, program, placement, error));
        IV_TRY(iv_segments_find(plan, program, error));
    }
    return iv_memory_plan(plan, program, error);
}

iv_status iv_plan_create(iv_program *program, const iv_placement *placement, bool host_outputs,
                         const iv_value *inputs, iv_plan **plan, iv_error *error) {
    iv_plan *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->host_outputs = host_outputs;
    iv_status status = fill_plan(fresh, program, placement, inputs, error);
    if (status != IV_OK) {
        iv_plan_destroy(fresh, program);
        return status;
    }
    *plan = fresh;
    return IV_OK;
}

void iv_plan_destroy(iv_plan *plan, const iv_program *program) {
    if (plan == NULL)
        return;
    for (size_t v = 0; plan->facts != NULL && v < program->graph->value_count; v++)
        iv_fact_clear(&plan->facts[v]);
    for (size_t v = 0; plan->constants != NULL && v < program->graph->value_count; v++)
        iv_tensor_release(plan->constants[v]);
    for (size_t i = 0; plan->steps != NULL && i < program->step_count; i++)
        iv_free(plan->steps[i].why);
    iv_segments_destroy(plan);
    iv_free(plan->constants);
    iv_free(plan->facts);
    iv_free(plan->sides);
    iv_free(plan->offsets);
    iv_free(plan->copied);
    iv_free(plan->steps);
    iv_scope_destroy(plan->scope);
    iv_free(plan);
}
