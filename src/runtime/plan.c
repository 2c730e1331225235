#include "runtime/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/again.h"
#include "runtime/derived.h"
#include "runtime/judgement.h"
#include "runtime/memory_plan.h"
#include "runtime/replay.h"
#include "runtime/state_binding.h"

/* ---- the binding ---- */

static bool input_fits(const sb_fact *fact, sb_value value) {
    if (fact->kind != value.kind)
        return false;
    if (value.kind == SB_KIND_SEQUENCE)
        return fact->dtype == value.sequence->dtype;
    if (value.kind == SB_KIND_NONE)
        return true;
    if (fact->dtype != value.tensor->dtype || fact->rank != value.tensor->rank)
        return false;
    for (int d = 0; d < fact->rank; d++) {
        int64_t extent;
        if (!sb_dim_is_constant(fact->dims[d], &extent) || extent != value.tensor->dims[d])
            return false;
    }
    return true;
}

bool sb_plans_are_open(const sb_program *program, const sb_placement *placement) {
    const sb_capacities *capacities = placement->capacities;
    return capacities != NULL && capacities->program == program && capacities->refused == NULL;
}

static bool same_buckets(const sb_open_extents *open) {
    size_t bytes = (size_t)open->capacities->count * sizeof *open->buckets;
    return memcmp(open->buckets, open->capacities->buckets, bytes) == 0;
}

bool sb_plan_fits(const sb_plan *plan, const sb_program *program, const sb_placement *placement, bool host_outputs,
                  const sb_value *inputs) {
    if (plan->host_outputs != host_outputs || (plan->open != NULL && !same_buckets(plan->open)))
        return false;
    for (size_t i = 0; i < program->enter_count; i++) {
        if (plan->binding != NULL && plan->binding->follows[i])
            continue;
        sb_value_id input = program->enter[i];
        bool open = plan->open != NULL && inputs[i].kind == SB_KIND_TENSOR;
        if (plan->sides[input] != sb_value_side(inputs[i]) ||
            !(open ? sb_open_extents_match(plan->open, input, inputs[i].tensor)
                   : input_fits(&plan->facts[input], inputs[i])))
            return false;
    }
    return true;
}

/* ---- steps ---- */

static sb_step_mode step_mode(const sb_plan *plan, const sb_node *node) {
    bool known = (node->op->flags & SB_OP_RANDOM) == 0, concrete = true;
    for (int i = 0; i < node->output_count; i++) {
        sb_value_id value = node->outputs[i];
        if (value == SB_NO_VALUE)
            continue;
        const sb_fact *fact = &plan->facts[value];
        known = known && (fact->constant != NULL || (plan->open != NULL && plan->open->elements[value] >= 0));
        concrete = concrete && sb_fact_is_concrete(fact, NULL);
    }
    return known ? SB_STEP_SKIP : concrete ? SB_STEP_STATIC : SB_STEP_DYNAMIC;
}

/* What the step knows: facts of its inputs, then of its outputs, all borrowed. */
typedef struct step_facts {
    sb_fact *outputs;
    const sb_fact **inputs;
} step_facts;

static sb_status gather_facts(const sb_plan *plan, const sb_node *node, step_facts *facts, sb_error *error) {
    size_t bytes = (size_t)node->input_count * sizeof(sb_fact *) + (size_t)node->output_count * sizeof(sb_fact);
    facts->outputs = sb_allocate_array(1, bytes);
    if (facts->outputs == NULL)
        return sb_fail_memory(error, bytes);
    facts->inputs = (const sb_fact **)(void *)(facts->outputs + node->output_count);
    for (int i = 0; i < node->input_count; i++)
        facts->inputs[i] = node->inputs[i] != SB_NO_VALUE ? &plan->facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE)
            facts->outputs[i] = plan->facts[node->outputs[i]];
    }
    return SB_OK;
}

sb_status sb_plan_explain(sb_planned_step *step, const char *why, sb_error *error) {
    if (why == NULL || step->why == NULL || strcmp(step->why, why) != 0) {
        sb_free(step->why);
        step->why = NULL;
    }
    if (why == NULL || step->why != NULL)
        return SB_OK;
    size_t bytes = strlen(why) + 1;
    step->why = sb_allocate(bytes);
    if (step->why == NULL)
        return sb_fail_memory(error, bytes);
    memcpy(step->why, why, bytes);
    return SB_OK;
}

/* Whether the step only shows what a node on the CPU has made: it stays there, since a copy to the device would only be
 * copied back if nobody needs it there. */
static bool shows_host_value(const sb_plan *plan, const sb_program *program, const sb_node *node) {
    if ((node->op->flags & SB_OP_VIEW) == 0 || node->inputs[0] == SB_NO_VALUE)
        return false;
    return program->graph->values[node->inputs[0]].producer >= 0 && plan->sides[node->inputs[0]] == SB_HOST &&
           plan->facts[node->inputs[0]].constant == NULL;
}

/* `stays`: why the step is not for the device to begin with; NULL if it may be. */
static sb_status choose_kernel(sb_planned_step *planned, sb_program *program, const sb_placement *placement,
                               size_t step, const step_facts *facts, const char *stays, sb_error *error) {
    char why[SB_WHY_BYTES];
    planned->in_place = -1;
    planned->lingering = 0;
    if (placement->queue != NULL) {
        if (stays != NULL)
            snprintf(why, sizeof why, "%s", stays);
        else
            SB_TRY(sb_place(placement, program, step, facts->inputs, facts->outputs, &planned->kernel, why, error));
        planned->side = planned->kernel != NULL ? SB_DEVICE : SB_HOST;
        if (planned->side == SB_DEVICE) {
            const sb_kernel_query query = {.node = program->steps[step].node,
                                           .inputs = facts->inputs,
                                           .outputs = facts->outputs,
                                           .isa = program->isa};
            if (planned->kernel->in_place != NULL)
                planned->in_place = planned->kernel->in_place(&query);
            for (int i = 0; i < query.node->input_count && planned->kernel->lingers != NULL; i++)
                planned->lingering |= (uint64_t)planned->kernel->lingers(&query, i) << i;
            return sb_program_prepare(program, step, placement->queue, planned->kernel, facts->inputs, facts->outputs,
                                      &planned->prepared, error);
        }
        SB_TRY(sb_plan_explain(planned, why, error));
    }
    return sb_program_choose(program, step, false, facts->inputs, facts->outputs, &planned->kernel, &planned->prepared,
                             &planned->in_place, error);
}

sb_status sb_plan_choose_again(sb_plan *plan, sb_program *program, size_t step, sb_error *error) {
    const sb_node *node = program->steps[step].node;
    const sb_fact **inputs = plan->open->inputs;
    sb_fact *outputs = plan->open->outputs;
    sb_planned_step *planned = &plan->steps[step];
    int in_place; /* none: see place_step */
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != SB_NO_VALUE ? &plan->facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count; i++)
        outputs[i] = node->outputs[i] != SB_NO_VALUE ? plan->facts[node->outputs[i]] : (sb_fact){0};
    SB_TRY(sb_program_choose(program, step, false, inputs, outputs, &planned->kernel, &planned->prepared, &in_place,
                             error));
    sb_derived_find_again(planned);
    return SB_OK;
}

static sb_status place_step(sb_plan *plan, sb_program *program, const sb_placement *placement, size_t step,
                            const char *stays, sb_error *error) {
    const sb_node *node = program->steps[step].node;
    sb_planned_step *planned = &plan->steps[step];
    step_facts facts;
    SB_TRY(gather_facts(plan, node, &facts, error));
    planned->kernel = NULL;
    planned->prepared = (sb_prepared){0};
    sb_status status = choose_kernel(planned, program, placement, step, &facts, stays, error);
    if (status == SB_OK && plan->binding != NULL)
        status = sb_derived_plan(plan, program, placement->queue, step, facts.inputs, facts.outputs, error);
    sb_free(facts.outputs);
    /* Another kernel may take the step at other extents, and extents that are equal here may differ there. */
    if (plan->open != NULL && plan->open->touched[step])
        planned->in_place = -1;
    for (int i = 0; i < node->output_count && status == SB_OK; i++) {
        if (node->outputs[i] != SB_NO_VALUE)
            plan->sides[node->outputs[i]] = planned->side;
    }
    return status;
}

/* Chooses where and by which kernel a static step runs. With a device, a step that reads what only the data shape
 * becomes dynamic: it is placed when its inputs are there. */
static sb_status plan_step(sb_plan *plan, sb_program *program, const sb_placement *placement, size_t step,
                           sb_error *error) {
    const sb_node *node = program->steps[step].node;
    sb_planned_step *planned = &plan->steps[step];
    planned->mode = step_mode(plan, node);
    for (int i = 0; i < node->input_count && placement->queue != NULL && planned->mode == SB_STEP_STATIC; i++) {
        const sb_fact *fact = node->inputs[i] != SB_NO_VALUE ? &plan->facts[node->inputs[i]] : NULL;
        if (fact != NULL && fact->kind == SB_KIND_TENSOR && !sb_fact_is_concrete(fact, NULL))
            planned->mode = SB_STEP_DYNAMIC;
    }
    if (planned->mode != SB_STEP_STATIC)
        return SB_OK;
    const char *stays = plan->stays != NULL                     ? plan->stays
                        : shows_host_value(plan, program, node) ? "it shows what a node on the CPU has made"
                                                                : NULL;
    return place_step(plan, program, placement, step, stays, error);
}

/* ---- views of what lies on the host ---- */

/* The value whose memory a view shows, through the views between. */
static sb_value_id shown_value(const sb_program *program, sb_value_id view) {
    for (;;) {
        int64_t producer = program->graph->values[view].producer;
        const sb_node *node = producer >= 0 ? program->graph->nodes[producer] : NULL;
        if (node == NULL || (node->op->flags & SB_OP_VIEW) == 0 || node->inputs[0] == SB_NO_VALUE)
            return view;
        view = node->inputs[0];
    }
}

/* Whether somebody reads the value, and everybody who does reads it on the host. */
static bool is_for_host(const sb_plan *plan, const sb_program *program, sb_value_id value) {
    bool read = false;
    for (size_t o = 0; o < program->leave_count; o++) {
        if (program->leave[o] == value)
            return false;
    }
    for (size_t s = 0; s < program->step_count; s++) {
        const sb_planned_step *reader = &plan->steps[s];
        const sb_node *node = program->steps[s].node;
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != value || reader->mode == SB_STEP_SKIP)
                continue;
            if (reader->mode == SB_STEP_DYNAMIC || sb_input_side(reader->kernel, reader->side, i) == SB_DEVICE)
                return false;
            read = true;
        }
    }
    return read;
}

/* A view of an input that lies on the host belongs there if it is for steps on the CPU alone: on the device, the input
 * would go there only to come back. From the last step to the first, since views may be for views. */
static sb_status keep_views_on_host(sb_plan *plan, sb_program *program, const sb_placement *placement,
                                    sb_error *error) {
    for (size_t s = program->step_count; s-- > 0;) {
        const sb_node *node = program->steps[s].node;
        const sb_planned_step *planned = &plan->steps[s];
        if (planned->mode != SB_STEP_STATIC || planned->side != SB_DEVICE || (node->op->flags & SB_OP_VIEW) == 0 ||
            node->output_count != 1 || node->inputs[0] == SB_NO_VALUE)
            continue;
        sb_value_id shown = shown_value(program, node->inputs[0]);
        if (program->graph->values[shown].producer >= 0 || plan->sides[shown] != SB_HOST ||
            plan->facts[shown].constant != NULL || !is_for_host(plan, program, node->outputs[0]))
            continue;
        SB_TRY(place_step(plan, program, placement, s, "it shows an input on the host to nodes on the CPU", error));
    }
    return SB_OK;
}

/* ---- a plan ---- */

static sb_status infer_facts(sb_plan *plan, sb_program *program, const sb_placement *placement, const sb_value *inputs,
                             sb_error *error) {
    if (plan->exact == NULL && sb_plans_are_open(program, placement)) {
        SB_TRY(sb_open_extents_create(plan, program, placement, inputs, error));
        if (plan->open != NULL)
            return SB_OK;
    }
    for (size_t i = 0; i < program->enter_count; i++)
        SB_TRY(sb_fact_of_value(&plan->facts[program->enter[i]], plan->scope, inputs[i], false, error));
    return sb_graph_infer(program->graph, plan->scope, plan->facts, error);
}

/* On a device, every step that open extents touch has to give used rows the bits that they have alone. */
static sb_status check_open(sb_plan *plan, const sb_program *program, const sb_placement *placement, sb_error *error) {
    char why[SB_WHY_BYTES];
    bool allowed = true;
    for (size_t s = 0; s < program->step_count && plan->open != NULL && allowed; s++) {
        SB_TRY(sb_open_extents_allow(plan, program, s, placement->queue, &allowed, why, error));
        if (!allowed)
            SB_TRY(sb_open_extents_refuse(plan, why, error));
    }
    return SB_OK;
}

static sb_status fill_plan(sb_plan *plan, sb_program *program, const sb_placement *placement, const sb_value *inputs,
                           sb_error *error) {
    const sb_graph *graph = program->graph;
    size_t values = graph->value_count;
    SB_TRY(sb_scope_create(&plan->scope, error));
    plan->facts = sb_allocate_array(values, sizeof *plan->facts);
    plan->sides = sb_allocate_array(values, sizeof *plan->sides);
    plan->offsets = sb_allocate_array(values, SB_SIDES * sizeof *plan->offsets);
    plan->copied = sb_allocate_array(values, sizeof *plan->copied);
    plan->steps = sb_allocate_array(program->step_count, sizeof *plan->steps);
    plan->binding = placement->binding != NULL && placement->binding->program == program ? placement->binding : NULL;
    if (plan->binding != NULL) {
        plan->places = sb_allocate_array(values, sizeof(sb_tensor *));
        plan->appends = sb_allocate_array(program->step_count, sizeof *plan->appends);
    }
    if (placement->queue != NULL)
        plan->constants = sb_allocate_array(values, sizeof(sb_tensor *));
    if (plan->facts == NULL || plan->sides == NULL || plan->offsets == NULL || plan->copied == NULL ||
        plan->steps == NULL || (plan->binding != NULL && (plan->places == NULL || plan->appends == NULL)) ||
        (placement->queue != NULL && plan->constants == NULL))
        return sb_fail_memory(error, values * sizeof *plan->facts);
    for (size_t i = 0; i < program->enter_count; i++)
        plan->sides[program->enter[i]] = sb_value_side(inputs[i]);
    SB_TRY(infer_facts(plan, program, placement, inputs, error));
    if (placement->judges)
        SB_TRY(sb_plan_judge(plan, program, placement, inputs, error));
    for (size_t s = 0; s < program->step_count; s++)
        SB_TRY(plan_step(plan, program, placement, s, error));
    if (plan->open != NULL)
        sb_run_table_sort(&plan->open->table, program, plan);
    if (placement->queue != NULL) {
        SB_TRY(keep_views_on_host(plan, program, placement, error));
        SB_TRY(check_open(plan, program, placement, error));
        if (plan->open != NULL && plan->exact != NULL)
            return SB_OK;
        SB_TRY(sb_segments_find(plan, program, error));
    }
    return sb_memory_plan(plan, program, error);
}

/* Takes over the reason why the plan is to be for exact extents; NULL: it may have open ones. */
static sb_status create_plan(sb_program *program, const sb_placement *placement, bool host_outputs,
                             const sb_value *inputs, char *exact, sb_plan **plan, sb_error *error) {
    sb_plan *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL) {
        sb_free(exact);
        return sb_fail_memory(error, sizeof *fresh);
    }
    fresh->host_outputs = host_outputs;
    fresh->exact = exact;
    sb_status status = fill_plan(fresh, program, placement, inputs, error);
    if (status != SB_OK) {
        sb_plan_destroy(fresh, program);
        return status;
    }
    *plan = fresh;
    return SB_OK;
}

sb_status sb_plan_create(sb_program *program, const sb_placement *placement, bool host_outputs, const sb_value *inputs,
                         sb_plan **plan, sb_error *error) {
    sb_plan *fresh;
    SB_TRY(create_plan(program, placement, host_outputs, inputs, NULL, &fresh, error));
    if (fresh->open == NULL || fresh->exact == NULL) {
        *plan = fresh;
        return SB_OK;
    }
    char *exact = fresh->exact;
    fresh->exact = NULL;
    sb_plan_destroy(fresh, program);
    return create_plan(program, placement, host_outputs, inputs, exact, plan, error);
}

void sb_plan_destroy(sb_plan *plan, const sb_program *program) {
    if (plan == NULL)
        return;
    for (size_t v = 0; plan->facts != NULL && v < program->graph->value_count; v++)
        sb_fact_clear(&plan->facts[v]);
    for (size_t v = 0; plan->constants != NULL && v < program->graph->value_count; v++)
        sb_tensor_release(plan->constants[v]);
    for (size_t i = 0; plan->steps != NULL && i < program->step_count; i++)
        sb_free(plan->steps[i].why);
    sb_free(plan->together);
    sb_tensor_release(plan->packed);
    sb_again_clear(&plan->again);
    sb_segments_destroy(plan);
    sb_open_extents_destroy(plan->open, program);
    sb_free(plan->appends);
    sb_free(plan->exact);
    sb_free(plan->stays);
    sb_free(plan->constants);
    sb_free(plan->facts);
    sb_free(plan->sides);
    sb_free(plan->offsets);
    sb_free(plan->copied);
    sb_free(plan->places);
    sb_free(plan->steps);
    sb_scope_destroy(plan->scope);
    sb_free(plan);
}
