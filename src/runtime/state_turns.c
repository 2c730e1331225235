/* Turns: who works on a state, and the runs that sessions have left to a device with it.
 *
 * Such runs are in a list, oldest first, all of one session and so of one queue, in which one run comes behind the
 * other without anybody's waiting. What has become of them is found out in their order, by whoever asks first: a
 * thread that waits for one of them, or one that wants the state for something outside of that queue. */
#include <stdio.h>

#include "runtime/derived.h"
#include "runtime/state.h"

/* ---- a torn state ---- */

static sb_status fail_torn(const sb_state *state, sb_error *error) {
    char run[32] = "a run";
    if (state->torn_by != 0)
        snprintf(run, sizeof run, "run %llu", (unsigned long long)state->torn_by);
    return sb_fail(error, state->reason.status,
                   "the state is torn, since %s failed after it had changed a variable (reset, restore or copy it): "
                   "%.1800s",
                   run, state->reason.message);
}

static void tear(sb_state *state, uint64_t run, const sb_error *reason) {
    state->torn = true;
    state->torn_by = run;
    state->reason = *reason;
}

void sb_state_set_torn(sb_state *state, const sb_error *error) {
    pthread_mutex_lock(&state->lock);
    state->torn = false;
    if (error != NULL)
        tear(state, 0, error);
    pthread_mutex_unlock(&state->lock);
}

/* ---- runs ---- */

/* The variables that the run has updated have their next version. */
static void count(sb_state *state, const sb_state_run *run) {
    sb_state_counters *total = &state->counters;
    for (size_t i = 0; i < run->update_count; i++) {
        if (run->update[i] < 0)
            continue;
        state->variables[run->update[i]].version++;
        total->updates++;
    }
    total->runs++;
    total->derivations += run->counters.derivations;
    total->updates_in_place += run->counters.updates_in_place;
    total->copies += run->counters.copies;
    total->bytes_copied += run->counters.bytes_copied;
}

/* A run that has only appended to variables has changed nothing that was there. */
static void take_back(sb_state *state, const sb_state_run *run) {
    for (size_t e = 0; e < state->extent_count && run->resizes; e++)
        sb_state_put_extent(state, e, run->extents[e]);
}

/* Under the lock, when all runs before have been judged: what the run's end means for it and for the state. A run on a
 * state that one before it has torn has computed with anything, as have those that were queued behind one that was to
 * make an extent larger and failed. */
static sb_status judge(sb_state *state, const sb_state_run *run, sb_status status, sb_error *error) {
    if (state->torn)
        return fail_torn(state, error);
    if (status == SB_OK)
        count(state, run);
    else if (run->began || (run->resizes && (run->next != NULL || state->is_followed)))
        tear(state, run->number, error);
    else
        take_back(state, run);
    return status;
}

/* Under the lock, which is free while the device is waited for. */
static void judge_oldest(sb_state *state) {
    sb_state_run *run = state->oldest;
    if (run->is_awaited) {
        pthread_cond_wait(&state->changed, &state->lock);
        return;
    }
    run->is_awaited = true;
    pthread_mutex_unlock(&state->lock);
    run->outcome.status = SB_OK;
    run->outcome.message[0] = '\0';
    sb_status status = run->await(run, &run->outcome);
    pthread_mutex_lock(&state->lock);
    run->outcome.status = judge(state, run, status, &run->outcome);
    state->oldest = run->next;
    run->is_queued = false;
    pthread_cond_broadcast(&state->changed);
}

/* Under the lock. */
static void judge_all(sb_state *state) {
    while (state->oldest != NULL)
        judge_oldest(state);
}

void sb_state_queue_run(sb_state *state, sb_state_run *run) {
    run->next = NULL;
    run->is_queued = true;
    run->is_awaited = false;
    pthread_mutex_lock(&state->lock);
    sb_state_run **link = &state->oldest;
    while (*link != NULL)
        link = &(*link)->next;
    *link = run;
    pthread_mutex_unlock(&state->lock);
}

sb_status sb_state_wait_for_run(sb_state *state, sb_state_run *run, sb_error *error) {
    pthread_mutex_lock(&state->lock);
    while (run->is_queued)
        judge_oldest(state);
    pthread_mutex_unlock(&state->lock);
    if (run->outcome.status != SB_OK && error != NULL)
        *error = run->outcome;
    return run->outcome.status;
}

sb_status sb_state_end_run(sb_state *state, const sb_state_run *run, sb_status status, sb_error *error) {
    pthread_mutex_lock(&state->lock);
    state->is_followed = status == SB_OK;
    judge_all(state);
    state->is_followed = false;
    if (status != SB_ERROR_INTERRUPTED || !state->torn) /* else it is the interrupt's */
        status = judge(state, run, status, error);
    pthread_mutex_unlock(&state->lock);
    return status;
}

/* ---- turns ---- */

sb_status sb_state_enter(sb_state *state, bool whole, const void *session, sb_error *error) {
    sb_status status = SB_OK;
    pthread_mutex_lock(&state->lock);
    while (state->busy && !pthread_equal(state->owner, pthread_self()))
        pthread_cond_wait(&state->changed, &state->lock);
    if (state->busy) {
        status = sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                         "the state is in use by a run of this thread: wait until the run has returned");
        pthread_mutex_unlock(&state->lock);
        return status;
    }
    state->busy = true;
    state->owner = pthread_self();
    if (state->oldest != NULL && state->oldest->session != session)
        judge_all(state);
    if (state->torn && whole) {
        status = fail_torn(state, error);
        state->busy = false;
        pthread_cond_broadcast(&state->changed);
    }
    pthread_mutex_unlock(&state->lock);
    return status;
}

void sb_state_leave(sb_state *state) {
    pthread_mutex_lock(&state->lock);
    state->busy = false;
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
}

void sb_state_mend(sb_state *state) {
    sb_error unread;
    if (sb_state_enter(state, false, NULL, &unread) != SB_OK)
        return; /* (a run of this thread is in it, and will say what has become of it) */
    sb_state_set_torn(state, NULL);
    sb_state_leave(state);
}

/* ---- looking at it ---- */

void sb_state_set_version(sb_state *state, sb_held_variable *variable, int64_t version) {
    pthread_mutex_lock(&state->lock);
    variable->version = version;
    variable->contents++;
    pthread_mutex_unlock(&state->lock);
}

void sb_state_count(sb_state *state, sb_state_counters *counters) {
    sb_error unread;
    bool entered = sb_state_enter(state, false, NULL, &unread) == SB_OK;
    pthread_mutex_lock(&state->lock);
    *counters = state->counters;
    counters->derived_bytes = sb_derived_bytes(state);
    pthread_mutex_unlock(&state->lock);
    if (entered)
        sb_state_leave(state);
}
