#include "runtime/plan.h"


#include "base/allocation.h"
#include "runtime/memory_plan.h"

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

bool iv_plan_fits(const iv_plan *plan, const iv_program *program, const iv_value *inputs) {
    for (size_t i = 0; i < program->graph->input_count; i++) {
        if (!input_fits(&plan->facts[program->graph->inputs[i]], inputs[i]))
            return false;
    }
    return true;
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

static iv_status choose_kernel(iv_plan *plan, iv_program *program, size_t step, iv_error *error) {
    const iv_node *node = program->steps[step].node;
    size_t bytes = (size_t)node->input_count * sizeof(iv_fact *) +
                   (size_t)node->output_count * sizeof(iv_fact);
    iv_fact *outputs = iv_allocate_array(1, bytes);
    if (outputs == NULL)
        return iv_fail_memory(error, bytes);
    const iv_fact **inputs = (const iv_fact **)(void *)(outputs + node->output_count);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != IV_NO_VALUE ? &plan->facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != IV_NO_VALUE)
            outputs[i] = plan->facts[node->outputs[i]]; /* borrowed for the query */
    }
    iv_status status = iv_program_choose(program, step, inputs, outputs, &plan->steps[step].kernel,
                                         &plan->steps[step].state, &plan->steps[step].in_place,
                                         error);
    iv_free(outputs);
    return status;
}

/* ---- a plan ---- */

static iv_status infer_facts(iv_plan *plan, iv_program *program, const iv_value *inputs,
                             iv_error *error) {
    const iv_graph *graph = program->graph;
    for (size_t i = 0; i < graph->input_count; i++)
        IV_TRY(iv_fact_of_value(&plan->facts[graph->inputs[i]], plan->scope, inputs[i], false, error));
    return iv_graph_infer(graph, plan->scope, plan->facts, error);
}

static iv_status fill_plan(iv_plan *plan, iv_program *program, const iv_value *inputs,
                           iv_error *error) {
    const iv_graph *graph = program->graph;
    IV_TRY(iv_scope_create(&plan->scope, error));
    plan->facts = iv_allocate_array(graph->value_count, sizeof *plan->facts);
    plan->offsets = iv_allocate_array(graph->value_count, sizeof *plan->offsets);
    plan->copied = iv_allocate_array(graph->value_count, sizeof *plan->copied);
    plan->steps = iv_allocate_array(program->step_count, sizeof *plan->steps);
    if (plan->facts == NULL || plan->offsets == NULL || plan->copied == NULL || plan->steps == NULL)
        return iv_fail_memory(error, graph->value_count * sizeof *plan->facts);
    IV_TRY(infer_facts(plan, program, inputs, error));
    for (size_t s = 0; s < program->step_count; s++) {
        plan->steps[s].mode = step_mode(program->steps[s].node, plan->facts);
        if (plan->steps[s].mode == IV_STEP_STATIC)
            IV_TRY(choose_kernel(plan, program, s, error));
    }
    return iv_memory_plan(plan, program, error);
}

iv_status iv_plan_create(iv_program *program, const iv_value *inputs, iv_plan **plan, iv_error *error) {
    iv_plan *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    iv_status status = fill_plan(fresh, program, inputs, error);
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
    iv_free(plan->facts);
    iv_free(plan->offsets);
    iv_free(plan->copied);
    iv_free(plan->steps);
    iv_scope_destroy(plan->scope);
    iv_free(plan);
}
