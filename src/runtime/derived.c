#include "runtime/derived.h"

#include "base/allocation.h"
#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"

/* ---- what a step takes ---- */

/* One that grows changes with each run, and its extents with it. */
static bool has_capacity(const sb_held_variable *held) {
    for (int d = 0; d < held->tensor->rank; d++) {
        if (held->extents[d] >= 0)
            return true;
    }
    return false;
}

/* The variable of which the value is the version that enters runs, where its home is `side`; NULL: none. */
static sb_held_variable *entering_variable(const sb_plan *plan, const sb_program *program, sb_value_id value,
                                           sb_side side) {
    const sb_state_binding *binding = plan->binding;
    for (size_t i = 0; i < program->enter_count; i++) {
        if (program->enter[i] != value || binding->read[i] < 0)
            continue;
        sb_held_variable *held = &binding->state->variables[binding->read[i]];
        return sb_value_side(sb_value_of_tensor(held->tensor)) == side && !has_capacity(held) ? held : NULL;
    }
    return NULL;
}

static sb_derived_value *find(const sb_held_variable *variable, const sb_kernel *kernel, uint64_t layout) {
    sb_derived_value *value = variable->derived;
    while (value != NULL && (value->kernel->derive != kernel->derive || value->layout != layout))
        value = value->next;
    return value;
}

static sb_status create(const sb_held_variable *variable, const sb_kernel *kernel, const sb_derived_form *form,
                        sb_queue *queue, sb_derived_value **value, sb_error *error) {
    sb_derived_value *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    *fresh = (sb_derived_value){.variable = variable, .kernel = kernel, .layout = form->layout};
    sb_status status = sb_tensor_on_device(variable->tensor)
                           ? sb_queue_storage(queue, form->bytes, &fresh->storage, error)
                           : sb_storage_create(form->bytes, &fresh->storage, error);
    if (status == SB_OK)
        *value = fresh;
    else
        sb_free(fresh);
    return status;
}

/* Charged to the state, whose sessions share it. */
static sb_status add(sb_state *state, sb_held_variable *variable, const sb_kernel *kernel, const sb_derived_form *form,
                     sb_queue *queue, sb_derived_value **value, sb_error *error) {
    sb_memory_budget *outer = sb_memory_budget_enter(state->budget);
    sb_status status = create(variable, kernel, form, queue, value, error);
    sb_memory_budget_enter(outer);
    if (status != SB_OK)
        return sb_fail_within(
            error, status,
            "variable %.200s, of which kernel %s keeps a form of %zu bytes in the state (its memory_limit counts): ",
            variable->name, kernel->name, form->bytes);
    pthread_mutex_lock(&state->lock); /* who counts does not enter */
    (*value)->next = variable->derived;
    variable->derived = *value;
    state->derives = true;
    pthread_mutex_unlock(&state->lock);
    return SB_OK;
}

sb_status sb_derived_plan(sb_plan *plan, sb_program *program, sb_queue *queue, size_t step,
                          const sb_fact *const *inputs, const sb_fact *outputs, sb_error *error) {
    sb_planned_step *planned = &plan->steps[step];
    const sb_node *node = program->steps[step].node;
    planned->derived = NULL;
    if (planned->kernel == NULL)
        return SB_OK;
    sb_kernel_query query = {.node = node, .inputs = inputs, .outputs = outputs, .isa = program->isa};
    if (planned->side == SB_DEVICE) {
        query.device = queue->device;
        query.queue = queue;
    }
    sb_derived_form form;
    SB_TRY(sb_kernel_derives(planned->kernel, &query, &form, error));
    sb_held_variable *variable =
        form.input >= 0 ? entering_variable(plan, program, node->inputs[form.input], planned->side) : NULL;
    if (variable == NULL)
        return SB_OK;
    planned->derived = find(variable, planned->kernel, form.layout);
    if (planned->derived == NULL)
        SB_TRY(add(plan->binding->state, variable, planned->kernel, &form, queue, &planned->derived, error));
    planned->prepared.derived = planned->derived->storage->data;
    plan->derives = true;
    return SB_OK;
}

void sb_derived_find_again(sb_planned_step *planned) {
    if (planned->derived != NULL && planned->kernel != NULL &&
        planned->kernel->derive == planned->derived->kernel->derive)
        planned->prepared.derived = planned->derived->storage->data;
}

/* ---- making them ---- */

static sb_status make(sb_runner *runner, size_t step, sb_derived_value *value, sb_error *error) {
    const sb_planned_step *planned = &runner->plan->steps[step];
    const sb_node *node = runner->program->steps[step].node;
    sb_queue *queue = runner->settings->placement.queue;
    sb_call_target target = {.queue = queue != NULL ? queue->target : NULL, .step = (int)step};
    value->contents = 0;
    SB_TRY(sb_kernel_derive(value->kernel, node, runner->program->isa, runner->settings->workers,
                            planned->side == SB_DEVICE ? &target : NULL, value->variable->tensor, value->storage->data,
                            error));
    value->contents = value->variable->contents;
    runner->plan->binding->run.counters.derivations++;
    return sb_runner_note_tasks(runner, node->name, node->op->name, error);
}

sb_status sb_derived_refresh(sb_runner *runner, sb_error *error) {
    for (size_t s = 0; s < runner->program->step_count && runner->plan->derives; s++) {
        sb_derived_value *value = runner->plan->steps[s].derived;
        if (value != NULL && value->contents != value->variable->contents)
            SB_TRY(make(runner, s, value, error));
    }
    return SB_OK;
}

void sb_derived_forget(sb_state *state) {
    for (size_t i = 0; i < state->count && state->derives; i++) {
        for (sb_derived_value *value = state->variables[i].derived; value != NULL; value = value->next)
            value->contents = 0;
    }
}

void sb_derived_destroy(sb_derived_value *values) {
    while (values != NULL) {
        sb_derived_value *next = values->next;
        sb_storage_release(values->storage);
        sb_free(values);
        values = next;
    }
}

int64_t sb_derived_bytes(const sb_state *state) {
    int64_t bytes = 0;
    for (size_t i = 0; i < state->count; i++) {
        for (const sb_derived_value *value = state->variables[i].derived; value != NULL; value = value->next)
            bytes += (int64_t)value->storage->bytes;
    }
    return bytes;
}
