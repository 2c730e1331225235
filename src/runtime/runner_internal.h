/* The inside of a runner, for the sources that make it up. */
#ifndef SB_RUNTIME_RUNNER_INTERNAL_H
#define SB_RUNTIME_RUNNER_INTERNAL_H

#include "runtime/plan.h"
#include "runtime/runner.h"

typedef struct sb_workspace_block {
    void *memory;
    size_t bytes;
} sb_workspace_block;

struct sb_runner {
    sb_frame frame; /* first, so that a frame is its runner */
    sb_program *program;
    const sb_run_settings *settings;
    int depth;
    sb_plan *plans;      /* most recently used first */
    sb_storage **arenas; /* by side: its own, or those that bodies of the outer runner's fused nodes share */
    sb_storage *own_arenas[SB_SIDES];
    /* A body's values are gone when it has run, but for its output, which has memory of its own; and bodies run one behind the
     * other. So one arena does for all of them, where a network of many layers would have one for each. */
    sb_storage *body_arenas[SB_SIDES];
    size_t workspace_used, workspace_count, workspace_capacity;
    sb_workspace_block *workspace;
    size_t device_workspace_used, device_workspace_count, device_workspace_capacity;
    sb_storage **device_workspace;
    /* With a device, and steps: runner_faults.c. */
    sb_tensor *faults;           /* there, a word for each step */
    sb_tensor *fault_turn;       /* there: how often they have been collected … */
    uint64_t fault_turns;        /* … as the host counts it */
    sb_host_block *fault_copies; /* as many words for each slot, and behind them for as many places of collections */
    int *fault_slots;            /* by place: the slot of the run that it is for; -1: none any more */
    bool *clean;                 /* by slot: its words are known to be 0 */
    bool uncollected;            /* a run may have left some on the device: it failed half-way, or is in progress */
    int slot;                    /* of the run in progress … */
    bool faults_left;            /* … which leaves its words there by itself */
    bool may_fault;              /* a step has asked for its word, in any run */
    uint64_t left_out;           /* outputs that are not handed over, a bit each */
    size_t nested_count, nested_capacity;
    sb_runner **nested; /* one per graph of a node that has run */
    /* The run in progress. */
    sb_plan *plan;
    sb_value *values; /* by copy: sb_copy_index; set by sb_runner_hold … */
    size_t held_count;
    size_t *held; /* … which lists them here, for the end of the run */
    /* By copy: memory of the host for what is made behind the first update; NULL without a state. */
    sb_storage **reserved;
    size_t reserved_count;
    size_t *reserved_copies; /* those that may have some */
    sb_value *inputs;        /* of the graph that this runner is nested for, while its node gives them */
    /* The step in progress; room for the largest. */
    const sb_step *step;
    bool untouched;        /* it has failed, and had written nothing */
    sb_value *step_values; /* inputs and, behind them, outputs */
    sb_fact *step_facts;   /* of the outputs; borrowed */
    sb_call_target target; /* of the step */
};

/* The functions of a runner's frame: runner_frame.c. */
extern const sb_frame sb_runner_frame;

/** Makes room for faults, where there is a device, and gives it back. */
sb_status sb_runner_create_faults(sb_runner *runner, sb_error *error);
void sb_runner_destroy_faults(sb_runner *runner);
/** The words on the device in which steps of the run in progress leave faults. */
sb_tensor *sb_runner_faults(const sb_runner *runner);

/** Has the queue collect them, or notes that it does so in a recording. Errors: those of sb_queue_collect_words. */
sb_status sb_runner_give_collection(const sb_runner *runner, sb_error *error);
/** Notes that what was so given, or recorded, is carried out for the run in progress. */
void sb_runner_note_collection(sb_runner *runner);

/** The place in pinned memory for the words of the run in progress, all of which are 0 from now on until the device says otherwise. */
uint32_t *sb_runner_faults_place(sb_runner *runner);

/** Memory on a side for a value (or SB_NO_VALUE): in the arena at `offset`, or of its own where that is -1. */
sb_status sb_runner_allocate(sb_runner *runner, sb_side side, sb_value_id value, int64_t offset, size_t bytes,
                             sb_storage **storage, char **data, sb_error *error);

/** Before a run that updates variables where they lie: takes the memory of what is made or moved behind the first
 * update, with that of the run's outbox (NULL: none). Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_runner_reserve(sb_runner *runner, sb_outbox *outbox, sb_error *error);
/** The part of it for what is handed over: copies on the host of what is made on a device, and the outbox. */
sb_status sb_runner_reserve_outputs(sb_runner *runner, sb_outbox *outbox, sb_error *error);
/** Whether output `index` is not handed over. */
bool sb_runner_leaves_out(const sb_runner *runner, size_t index);
/** Gives back what the run has not used. */
void sb_runner_release_reserved(sb_runner *runner);
/** The bytes of an outbox for what the plan makes on the device and the caller wants on the host; 0: none is used. */
size_t sb_runner_planned_outbox(const sb_runner *runner);

/** Sees to it that `value` lies on `side`, if it is there at all: copies it from the other side when it does not yet.
 * `planned`: a step of the plan needs it now, so that the copy has a place in the arena. */
sb_status sb_runner_bring(sb_runner *runner, sb_value_id value, sb_side side, bool planned, sb_error *error);
/** Memory for a value's copy on `side`, of the extents of `source`: in the arena if it is `planned`. The caller releases it. */
sb_status sb_runner_make_copy(sb_runner *runner, sb_value_id value, sb_side side, bool planned, const sb_tensor *source,
                              sb_tensor **tensor, sb_error *error);
/** Brings the small inputs that the plan has put side by side to the device, by one copy, where all of them are on the host. */
sb_status sb_runner_bring_together(sb_runner *runner, sb_error *error);
/* With open extents: runner_open.c. */

/** Puts the inputs of a run, and what follows from its extents, to where its steps look for them. */
sb_status sb_runner_enter(sb_runner *runner, const sb_value *inputs, sb_error *error);
/** A tensor on the device with the planned extents of a value whose extents are open, and the elements of `source`, from
 * either side, in its first rows. `planned` as in sb_runner_bring. */
sb_status sb_runner_make_room(sb_runner *runner, sb_value_id value, sb_tensor *source, bool planned, sb_tensor **tensor,
                              sb_error *error);
/** The rows that are used of a value that lies on the device as `tensor`; the tensor itself where it has no others. */
sb_status sb_runner_used(const sb_runner *runner, sb_value_id value, sb_tensor *tensor, sb_tensor **used,
                         sb_error *error);
/** Whether the value follows from the extents of the run, and never needs to be brought anywhere. */
bool sb_runner_knows(const sb_runner *runner, sb_value_id value);
/** What the caller of the run gets for the value of sb_program::leave[index], which has been found as `found`. */
sb_status sb_runner_leave(const sb_runner *runner, size_t index, sb_value found, sb_value *leaving, sb_error *error);

/** Runs one step. */
sb_status sb_runner_step(sb_runner *runner, size_t index, sb_error *error);
/** Keeps what a call has made, each output on the side where it is; nothing when it has failed. */
void sb_runner_keep_outputs(sb_runner *runner, sb_call *call, sb_status status);
/** Keeps a value, which the runner takes over, on a side until it is released; there is none yet. */
void sb_runner_hold(sb_runner *runner, sb_side side, sb_value_id value, sb_value held);
/** Lets go of a value on both sides. */
void sb_runner_release(sb_runner *runner, sb_value_id value);
/** The value as it lies on `side`, borrowed; nothing if it does not. */
static inline sb_value sb_runner_value(const sb_runner *runner, sb_side side, sb_value_id value) {
    if (value == SB_NO_VALUE)
        return (sb_value){0};
    sb_value found = runner->values[sb_copy_index(runner->program, side, value)];
    if (found.kind != SB_KIND_NONE)
        return found;
    sb_tensor *constant = side == SB_HOST                   ? runner->plan->facts[value].constant
                          : runner->plan->constants != NULL ? runner->plan->constants[value]
                                                            : NULL;
    return constant != NULL ? sb_value_of_tensor(constant) : found;
}

/** Tells the observer what a call has made; the observer may replace outputs. Times as for sb_node_event. */
sb_status sb_runner_observe(sb_runner *runner, sb_call *call, const char *kernel, int64_t start, int64_t end);
/** Tells the observer of a transfer. */
sb_status sb_runner_observe_transfer(const sb_runner *runner, sb_value_id value, sb_side to, int64_t bytes,
                                     int64_t start, sb_error *error);
/** Where tasks are measured: says that those since the last call were for this node, or with SB_TRANSFER this value. */
sb_status sb_runner_note_tasks(const sb_runner *runner, const char *name, const char *op, sb_error *error);
/** Whether tasks can be recorded here: an observer wants each node for itself, or each task measured, and what is inside a recorded
 * step is recorded with it. */
bool sb_runner_may_replay(const sb_runner *runner);
/** Whether somebody asked for an end. */
bool sb_runner_interrupted(const sb_runner *runner);
/** The monotonic clock. */
int64_t sb_now_ns(void);

#endif
