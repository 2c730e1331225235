#include "runtime/again.h"

#include "base/allocation.h"
#include "runtime/replay.h"
#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"
#include "tensor/tensor_pool.h"

void sb_again_clear(sb_again *again) {
    sb_free(again->leaving);
    sb_free(again->made);
    *again = (sb_again){0};
}

/* ---- what is known ---- */

/* Whether the segment is all that the plan's runs do. */
static bool is_everything(const sb_plan *plan, const sb_program *program, const sb_segment *segment) {
    for (size_t s = 0; s < program->step_count; s++) {
        bool inside = s >= segment->first && s < segment->end;
        if (!inside && plan->steps[s].mode != SB_STEP_SKIP)
            return false;
    }
    return true;
}

static bool is_sent(const sb_run_table *table, sb_value_id value) {
    for (size_t i = 0; i < table->sent_count; i++) {
        if (table->sent[i].value == value)
            return true;
    }
    return false;
}

/* A variable there, where each run finds it. */
static bool is_variable_there(const sb_plan *plan, const sb_program *program, sb_value_id value) {
    for (size_t i = 0; i < program->enter_count; i++) {
        if (program->enter[i] != value)
            continue;
        const sb_tensor *tensor = sb_binding_tensor(plan->binding, i);
        return tensor != NULL && sb_tensor_on_device(tensor);
    }
    return false;
}

/* Whether whatever the segment reads lies where it lay, once the run's table has been sent. */
static bool finds_inputs(const sb_plan *plan, const sb_program *program, const sb_segment *segment) {
    const sb_run_table *table = &plan->open->table;
    for (size_t i = 0; i < segment->input_count; i++) {
        sb_value_id value = segment->inputs[i];
        if (table->known[value] == NULL && !is_sent(table, value) && !is_variable_there(plan, program, value))
            return false;
    }
    return true;
}

/* The index of a value in the segment's outputs, or their count. */
static size_t output_index(const sb_segment *segment, sb_value_id value) {
    size_t i = 0;
    while (i < segment->output_count && segment->outputs[i] != value)
        i++;
    return i;
}

/* Lists what leaves; *all says whether the segment makes all of it that does not follow from extents. */
static sb_status list_leaving(sb_again *again, const sb_plan *plan, const sb_program *program,
                              const sb_segment *segment, bool *all, sb_error *error) {
    again->leaving = sb_allocate_array(program->leave_count, sizeof *again->leaving);
    again->made = sb_allocate_array(program->leave_count, sizeof *again->made);
    if (again->leaving == NULL || again->made == NULL)
        return sb_fail_memory(error, program->leave_count * sizeof *again->leaving);
    *all = true;
    for (size_t i = 0; i < program->leave_count && *all; i++) {
        if (plan->binding->update[i] >= 0)
            continue;
        again->leaving[again->count++] = i;
        if (plan->open->table.known[program->leave[i]] != NULL)
            continue;
        size_t made = output_index(segment, program->leave[i]);
        *all = made < segment->output_count;
        again->made[again->made_count++] = made;
    }
    return SB_OK;
}

static bool may_be_known(const sb_plan *plan) {
    return plan->binding != NULL && plan->open != NULL && plan->open->table.there != NULL && plan->stays == NULL &&
           !plan->derives && plan->together_count == 0 && plan->segment_count == 1;
}

static sb_status find(sb_runner *runner, sb_again *again, sb_error *error) {
    sb_plan *plan = runner->plan;
    const sb_program *program = runner->program;
    sb_segment *segment = may_be_known(plan) ? &plan->segments[0] : NULL;
    if (segment == NULL || !is_everything(plan, program, segment) || !finds_inputs(plan, program, segment))
        return SB_OK;
    bool all;
    SB_TRY(list_leaving(again, plan, program, segment, &all, error));
    if (!all)
        return SB_OK;
    again->segment = segment;
    return sb_run_table_open_mailbox(&plan->open->table, runner->settings->placement.queue,
                                     (size_t)runner->settings->queue_depth, error);
}

sb_status sb_again_find(sb_runner *runner, sb_error *error) {
    sb_again *again = &runner->plan->again;
    if (again->asked || !sb_runner_may_replay(runner))
        return SB_OK;
    sb_status status = find(runner, again, error);
    if (status != SB_OK)
        sb_again_clear(again);
    again->asked = status == SB_OK;
    return status;
}

void sb_again_note(sb_runner *runner) {
    if (runner->plan->again.segment != NULL)
        sb_segment_note(runner->plan->again.segment);
}

/* ---- the run ---- */

/* Tensors that handing one value over makes: the rows that are used of it, its copy, and what is in the outbox. */
#define MOST_TENSORS 5

sb_status sb_again_run(sb_runner *runner, sb_outbox *outbox, bool *done, sb_error *error) {
    const sb_plan *plan = runner->plan;
    const sb_again *again = &plan->again;
    *done = false;
    if (again->segment == NULL || !plan->open->staying.noted || !sb_runner_may_replay(runner) ||
        sb_runner_interrupted(runner))
        return SB_OK;
    size_t tensors = MOST_TENSORS * again->count;
    if (plan->open->table.mailbox == NULL)
        SB_TRY(sb_run_table_send(&plan->open->table, runner->settings->placement.queue, error));
    SB_TRY(sb_runner_reserve_outputs(runner, outbox, error));
    if (!sb_tensor_pool_reserve(tensors))
        return sb_fail_memory(error, tensors * sizeof(sb_tensor));
    return sb_segment_again(runner, again->segment, again->made, again->made_count, done, error);
}
