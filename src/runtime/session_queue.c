/* Runs of a session: each is given to the device as a whole, and waits in a ring until its caller fetches what it has
 * made. All share one arena, one set of recordings and one set of words for faults, since the device does one run
 * after the other; what the host reads or gives back afterwards is each run's own: outputs, inputs on the device,
 * faults and the mark behind its work. */
#include <fenv.h>

#include "base/allocation.h"
#include "runtime/leaving_out.h"
#include "runtime/model.h"
#include "runtime/session_internal.h"

/* Each place may keep an outbox in pinned memory. */
#define MOST_RUNS 16

/* ---- the ring ---- */

static sb_status fill_place(sb_session *session, sb_queued_run *place, sb_error *error) {
    size_t inputs = (size_t)session->entry->input_count, outputs = (size_t)session->entry->output_count;
    place->inputs = sb_allocate_array(inputs, sizeof *place->inputs);
    place->outputs = sb_allocate_array(outputs, sizeof *place->outputs);
    if (place->inputs == NULL || place->outputs == NULL)
        return sb_fail_memory(error, (inputs + outputs) * sizeof *place->outputs);
    size_t extents = session->binding != NULL ? session->binding->state->extent_count : 0;
    place->with_state.extents = extents != 0 ? sb_allocate_array(extents, sizeof(int64_t)) : NULL;
    if (extents != 0 && place->with_state.extents == NULL)
        return sb_fail_memory(error, extents * sizeof(int64_t));
    return session->queue != NULL ? sb_mark_create(session->queue, &place->mark, error) : SB_OK;
}

sb_status sb_session_create_ring(sb_session *session, int depth, sb_error *error) {
    if (depth < 1 || depth > MOST_RUNS)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "a queue_depth of %d runs: give 1 to %d", depth, MOST_RUNS);
    session->ring = sb_allocate_array((size_t)depth, sizeof *session->ring);
    if (session->ring == NULL)
        return sb_fail_memory(error, (size_t)depth * sizeof *session->ring);
    session->settings.queue_depth = depth;
    for (int i = 0; i < depth; i++)
        SB_TRY(fill_place(session, &session->ring[i], error));
    return SB_OK;
}

static void release_values(sb_value *values, int count) {
    for (int i = 0; i < count; i++)
        sb_value_release(&values[i]);
}

/* Frees the place, of whose run the device has nothing left to do. */
static void free_place(sb_session *session, sb_queued_run *place) {
    sb_outbox_drop(&place->outbox);
    release_values(place->inputs, session->entry->input_count);
    release_values(place->outputs, session->entry->output_count);
    place->with_state.session = NULL;
    place->number = 0;
}

/* Before the place goes: the state must not look at its run any more. */
static void forget_run(const sb_session *session, sb_queued_run *place) {
    if (place->with_state.session != NULL)
        (void)sb_state_wait_for_run(session->binding->state, &place->with_state, NULL);
}

void sb_session_destroy_ring(sb_session *session) {
    if (session->ring == NULL)
        return;
    if (session->queue != NULL)
        (void)sb_queue_wait(session->queue, NULL);
    for (int i = 0; i < session->settings.queue_depth; i++) {
        sb_queued_run *place = &session->ring[i];
        forget_run(session, place);
        if (place->inputs != NULL && place->outputs != NULL)
            free_place(session, place);
        sb_outbox_destroy(&place->outbox, session->queue);
        if (place->mark != NULL)
            sb_mark_destroy(session->queue, place->mark);
        sb_free(place->with_state.extents);
        sb_free(place->inputs);
        sb_free(place->outputs);
    }
    sb_free(session->ring);
    session->ring = NULL;
}

/* A free place; when there is none, the error says which run to wait for: the oldest. */
static sb_status find_free(sb_session *session, sb_queued_run **free, sb_error *error) {
    uint64_t oldest = UINT64_MAX;
    for (int i = 0; i < session->settings.queue_depth; i++) {
        *free = &session->ring[i];
        if ((*free)->number == 0)
            return SB_OK;
        oldest = (*free)->number < oldest ? (*free)->number : oldest;
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "as many runs are queued as the session's queue_depth allows, %d: wait for run %llu first",
                   session->settings.queue_depth, (unsigned long long)oldest);
}

static sb_status find_run(sb_session *session, uint64_t run, sb_queued_run **found, sb_error *error) {
    for (int i = 0; i < session->settings.queue_depth && run != 0; i++) {
        *found = &session->ring[i];
        if ((*found)->number == run)
            return SB_OK;
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   run != 0 && run <= session->runs
                       ? "run %llu is over: a run can be waited for once"
                       : "there is no run %llu: use the number that sb_session_enqueue gave",
                   (unsigned long long)run);
}

/* ---- enqueueing ---- */

/* What keeps every run of the session from being left to the device; nothing where each run decides by its steps. */
static sb_run_cause standing_cause(const sb_session *session) {
    const char *reason = session->queue == NULL               ? "the session has no device"
                         : session->settings.observer != NULL ? "an observer is called after each node"
                         : session->binding != NULL && session->binding->state->queue == NULL
                             ? "the state lies on the host"
                         : session->task_observer != NULL ? "a task observer is called after each run"
                                                          : NULL;
    return (sb_run_cause){.reason = reason};
}

/* Runs, with the state if there is one. */
static sb_status run_steps(sb_session *session, sb_outbox *outbox, const sb_value *inputs, sb_value *outputs,
                           sb_error *error) {
    bool host_outputs = !session->settings.device_outputs;
    return session->binding == NULL ? sb_runner_start(session->runner, host_outputs, outbox, inputs, outputs, error)
                                    : sb_binding_run(session->binding, session->runner, session->queue, host_outputs,
                                                     outbox, inputs, outputs, error);
}

/* Gives the device everything that the run needs (entered). */
static sb_status give(sb_session *session, sb_queued_run *place, const sb_value *inputs, sb_error *error) {
    int slot = (int)(place - session->ring);
    SB_TRY(sb_runner_clear_faults(session->runner, slot, error));
    SB_TRY(run_steps(session, &place->outbox, inputs, place->outputs, error));
    if (sb_runner_is_on_host(session->runner)) { /* waiting for the device takes longer than what is judged so does */
        place->done = true;
        return SB_OK;
    }
    SB_TRY(sb_runner_collect_faults(session->runner, slot, error));
    return sb_mark_set(session->queue, place->mark, error);
}

/* Waits until the device has done the run, whose faults are its failure. */
static sb_status await(const sb_session *session, const sb_queued_run *place, sb_error *error) {
    sb_status status = sb_mark_wait(session->queue, place->mark, error);
    if (status != SB_OK) {
        (void)sb_queue_wait(session->queue, NULL); /* what the run uses is about to be given back */
        return status;
    }
    return sb_runner_check_faults(session->runner, (int)(place - session->ring), error);
}

/* The same for whoever wants the state: see sb_state_run. */
static sb_status await_with_state(sb_state_run *run, sb_error *error) {
    return await(run->session, (const sb_queued_run *)(const void *)run, error);
}

/* Waits for the run, and fills its outputs on the host. */
static sb_status complete(sb_session *session, sb_queued_run *place, sb_error *error) {
    if (place->done)
        return SB_OK;
    if (place->with_state.session != NULL)
        SB_TRY(sb_state_wait_for_run(session->binding->state, &place->with_state, error));
    else
        SB_TRY(await(session, place, error));
    sb_outbox_deliver(&place->outbox);
    place->done = true;
    return SB_OK;
}

/* A run that is observed, or that the host has waited for already, is complete before it is left. */
static sb_status run_entered(sb_session *session, sb_queued_run *place, const sb_value *inputs, sb_error *error) {
    sb_task_times *times = session->settings.task_times;
    if (times != NULL)
        SB_TRY(sb_task_times_begin(times, error));
    sb_status status = give(session, place, inputs, error);
    if (status == SB_OK && session->control.cause.reason != NULL)
        status = complete(session, place, error);
    if (times != NULL)
        sb_task_times_end(times);
    if (times != NULL && status == SB_OK)
        status = sb_task_times_report(times, session->task_observer, session->task_observer_context, error);
    return status;
}

/* Keeps the inputs that the device has still to read. */
static void keep_inputs(const sb_session *session, sb_queued_run *place, const sb_value *inputs) {
    for (int i = 0; i < session->entry->input_count && !place->done; i++) {
        if (inputs[i].kind == SB_KIND_TENSOR && sb_tensor_on_device(inputs[i].tensor))
            place->inputs[i] = sb_value_retain(inputs[i]);
    }
}

/* Starts a run in a free place. When it fails, the device has nothing of it left to do. */
static sb_status start(sb_session *session, sb_queued_run *place, const sb_value *inputs, sb_error *error) {
    sb_queue *queue = session->queue;
    place->done = queue == NULL;
    session->control.iterations = 0;
    session->control.cause = standing_cause(session);
    if (queue == NULL)
        return run_steps(session, NULL, inputs, place->outputs, error);
    SB_TRY(sb_queue_enter(queue, error));
    sb_status status = sb_queue_leave(queue, run_entered(session, place, inputs, error), error);
    if (status != SB_OK)
        (void)sb_queue_wait(queue, NULL);
    return status;
}

/* With the session's memory and floating-point environment. */
static sb_status start_inside(sb_session *session, sb_queued_run *place, const sb_value *inputs, sb_error *error) {
    sb_memory_budget *outer = sb_memory_budget_enter(session->budget);
    sb_tensor_pool *outer_tensors = sb_tensor_pool_enter(session->tensors);
    sb_capacities *capacities = session->settings.placement.capacities;
    sb_status status = sb_session_check_inputs(session, inputs, error);
    if (status == SB_OK && capacities != NULL)
        status = sb_capacities_choose(
            capacities, &(sb_binding){(int)session->symbol_count, session->symbols, session->values}, error);
    if (status == SB_OK) {
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV);
        status = start(session, place, inputs, error);
        fesetenv(&caller);
    }
    sb_tensor_pool_enter(outer_tensors);
    sb_memory_budget_enter(outer);
    return status;
}

/* The same, with the state's turn if there is one. */
static sb_status start_with_state(sb_session *session, sb_queued_run *place, const sb_value *inputs, sb_error *error) {
    if (session->binding == NULL)
        return start_inside(session, place, inputs, error);
    SB_TRY(sb_binding_enter(session->binding, session, error));
    sb_status status = start_inside(session, place, inputs, error);
    if (status != SB_OK || place->done)
        return sb_binding_leave(session->binding, status, error);
    place->with_state.session = session;
    place->with_state.number = session->runs + 1;
    place->with_state.await = await_with_state;
    sb_binding_leave_queued(session->binding, &place->with_state);
    return SB_OK;
}

static sb_status enqueue(sb_session *session, const sb_value *inputs, sb_queued_run **place, sb_error *error) {
    SB_TRY(find_free(session, place, error));
    sb_status status = start_with_state(session, *place, inputs, error);
    if (status == SB_ERROR_INTERRUPTED)
        sb_session_clear_interrupt(session);
    if (status != SB_OK) {
        free_place(session, *place);
        return status;
    }
    keep_inputs(session, *place, inputs);
    (*place)->number = ++session->runs;
    session->last_cause = session->control.cause;
    return SB_OK;
}

sb_status sb_session_enqueue(sb_session *session, const sb_value *inputs, uint64_t *run, sb_error *error) {
    sb_error unread; /* observers may fill in an error that the caller does not want */
    sb_queued_run *place;
    *run = 0;
    SB_TRY(enqueue(session, inputs, &place, error != NULL ? error : &unread));
    *run = place->number;
    return SB_OK;
}

sb_status sb_session_poll(sb_session *session, uint64_t run, bool *done, sb_error *error) {
    sb_queued_run *place;
    *done = false;
    SB_TRY(find_run(session, run, &place, error));
    *done = place->done;
    return place->done ? SB_OK : sb_mark_ask(session->queue, place->mark, done, error);
}

/* ---- waiting ---- */

/* Ends the run, whatever has become of it, and hands its outputs over. */
static sb_status finish(sb_session *session, sb_queued_run *place, sb_value *outputs, sb_error *error) {
    sb_status status = complete(session, place, error);
    for (int i = 0; i < session->entry->output_count && status == SB_OK; i++) {
        outputs[i] = place->outputs[i];
        place->outputs[i] = (sb_value){0};
    }
    free_place(session, place);
    return status;
}

static void no_outputs(const sb_session *session, sb_value *outputs) {
    for (int i = 0; i < session->entry->output_count; i++)
        outputs[i] = (sb_value){0};
}

sb_status sb_session_wait(sb_session *session, uint64_t run, sb_value *outputs, sb_error *error) {
    sb_queued_run *place;
    no_outputs(session, outputs);
    SB_TRY(find_run(session, run, &place, error));
    sb_status status = finish(session, place, outputs, error);
    return status == SB_OK ? SB_OK : sb_fail_within(error, status, "run %llu: ", (unsigned long long)run);
}

/* ---- what comes out ---- */

void sb_session_leave_out(sb_session *session, uint64_t outputs) {
    sb_runner_leave_out(session->runner, outputs);
}

bool sb_session_has_device(const sb_session *session) {
    return session->queue != NULL;
}

/* ---- runs that are waited for at once ---- */

sb_status sb_session_run(sb_session *session, const sb_value *inputs, sb_value *outputs, sb_error *error) {
    sb_error unread;
    sb_queued_run *place;
    error = error != NULL ? error : &unread;
    no_outputs(session, outputs);
    SB_TRY(enqueue(session, inputs, &place, error));
    return finish(session, place, outputs, error);
}

sb_status sb_session_run_tensors(sb_session *session, sb_tensor *const *inputs, sb_tensor **outputs, sb_error *error) {
    size_t input_count = (size_t)session->entry->input_count;
    size_t output_count = (size_t)session->entry->output_count;
    sb_value *values = session->operands, *results = values + input_count;
    for (size_t i = 0; i < output_count; i++)
        outputs[i] = NULL;
    for (size_t i = 0; i < input_count; i++)
        values[i] = sb_value_of_tensor(inputs[i]);
    sb_status status = sb_session_run(session, values, results, error);
    for (size_t i = 0; i < output_count && status == SB_OK; i++) {
        if (results[i].kind != SB_KIND_TENSOR && !sb_session_keeps(session->binding, i))
            status = sb_fail(error, SB_ERROR_UNSUPPORTED, "output %s is not a tensor: use sb_session_run",
                             session->entry->descriptions[input_count + i].name);
    }
    for (size_t i = 0; i < output_count; i++) {
        if (status == SB_OK)
            outputs[i] = results[i].kind == SB_KIND_TENSOR ? results[i].tensor : NULL;
        else
            sb_value_release(&results[i]);
    }
    return status;
}

/* ---- a report ---- */

void sb_session_last_run(const sb_session *session, sb_run_report *report) {
    const sb_run_cause *cause = &session->last_cause;
    *report = (sb_run_report){.run = session->runs,
                              .synchronous = cause->reason != NULL,
                              .node = cause->node,
                              .op = cause->op,
                              .reason = cause->reason != NULL ? cause->reason : ""};
}
