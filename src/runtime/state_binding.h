/* Bindings: where the variables of a state enter and leave the runs of a program. */
#ifndef SB_RUNTIME_STATE_BINDING_H
#define SB_RUNTIME_STATE_BINDING_H

#include "runtime/plan.h"
#include "runtime/runner.h"
#include "runtime/state.h"

typedef struct sb_state_binding {
    sb_state *state; /* retained */
    const sb_program *program;
    size_t input_count, output_count; /* of the graph; reads and updates stand behind them */
    int64_t *read;                    /* by sb_program::enter: the variable that enters there, or -1 */
    int64_t *update;                  /* by sb_program::leave: the variable that leaves there, or -1 */
    /* By sb_program::enter: a variable whose extents need no look in a run, since they follow from those of one that
     * enters before. */
    bool *follows;
    int64_t *left_behind; /* by the state's extents: a variable along it that the program does not update, or -1 */
    sb_value *entering, *leaving; /* of the run in progress; variables enter as the same tensors for good */
    size_t given_count, handed_count;
    size_t *given;  /* of sb_program::enter, what the caller gives: indices */
    size_t *handed; /* of sb_program::leave, what is no variable's next version */
    bool stay; /* the run has made all next versions where it was known that it does: none is handed over (staying.h) */
    bool *in_place;      /* by sb_program::leave: the run has made it where the variable's next version belongs */
    sb_tensor **targets; /* by sb_program::leave: where what is not there yet is to be copied; of the run */
    int64_t *extents;    /* what the run in progress makes of the state's extents */
    sb_state_run run;    /* the one in progress */
} sb_state_binding;

/** Binds a state to an entry graph of its model. Errors: INVALID_ARGUMENT when the graph uses a variable that the state
 * does not hold, or none that it holds, or `device` (NULL: the host) cannot reach the state's home. */
sb_status sb_binding_create(sb_state *state, int entry, const sb_device *device, sb_state_binding **binding,
                            sb_error *error);
/** NULL is allowed. */
void sb_binding_destroy(sb_state_binding *binding);

/** The tensor that enters at sb_program::enter[index], borrowed, or NULL where an input is the caller's to give. */
sb_tensor *sb_binding_tensor(const sb_state_binding *binding, size_t index);

/** The name of the variable at home on a device whose next version the node makes, or NULL. `binding` may be NULL. */
const char *sb_binding_updated_there(const sb_state_binding *binding, const sb_node *node);

/** Before a run: waits for others that use the state, but for none that `session` has queued. Fails when it is torn. */
sb_status sb_binding_enter(sb_state_binding *binding, const void *session, sb_error *error);
/** After it, when a device has done everything. `status` and `error` (not NULL) are how the run went: variables get
 * their next versions, or, when the run has failed too late, the state is torn. Returns what has become of the run:
 * sb_state_end_run. */
sb_status sb_binding_leave(sb_state_binding *binding, sb_status status, sb_error *error);
/** After it, when it is left to a device: `run` stays with the state until sb_state_wait_for_run has returned for it.
 * Its `session`, `number` and `await` are the caller's to set, the rest is set here. */
void sb_binding_leave_queued(sb_state_binding *binding, sb_state_run *run);

/** Runs the program with the caller's inputs (nothing at bound ones) and the state's variables, and gives these their
 * next contents. `outputs` has a value for each output of the graph, nothing at bound ones. (Entered, with the queue of
 * the runner as well; as sb_runner_start, a device may still be at work, and outputs on their way to the outbox.) */
sb_status sb_binding_run(sb_state_binding *binding, sb_runner *runner, sb_queue *queue, bool host_outputs,
                         sb_outbox *outbox, const sb_value *inputs, sb_value *outputs, sb_error *error);

/** Counts a copy of a variable's version for readers on the other side: `value` has been brought there as `copy`. */
void sb_binding_note_transfer(sb_state_binding *binding, sb_value_id value, const sb_tensor *copy);

/** Whether the value of sb_program::leave[index] is wanted on the host, or wherever it is made. */
static inline bool sb_is_wanted_on_host(const sb_plan *plan, size_t index) {
    return plan->host_outputs && (plan->binding == NULL || plan->binding->update[index] < 0);
}

#endif
