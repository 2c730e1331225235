/* The inside of a runner, for the sources that make it up. */
#ifndef IV_RUNTIME_RUNNER_INTERNAL_H
#define IV_RUNTIME_RUNNER_INTERNAL_H

#include "runtime/runner.h"

typedef struct iv_scratch_block {
    void *memory;
    size_t bytes;
} iv_scratch_block;

struct iv_runner {
    iv_frame frame; /* first, so that a frame is its runner */
    iv_program *program;
    const iv_run_settings *settings;
    int depth;
    iv_plan *plans; /* most recently used first */
    iv_storage *arenas[IV_SIDES];
    size_t scratch_used, scratch_count, scratch_capacity;
    iv_scratch_block *scratch;
    size_t device_scratch_used, device_scratch_count, device_scratch_capacity;
    iv_storage **device_scratch;
    iv_cuda_pinned *faults; /* a word for each step; NULL without a device */
    size_t nested_count, nested_capacity;
    iv_runner **nested; /* one per graph of a node that has run */
    /* The run in progress. */
    iv_plan *plan;
    iv_value *values; /* by copy: iv_copy_index */
    iv_value *inputs; /* of the graph that this runner is nested for, while its node gives them */
    /* The step in progress; room for the largest. */
    const iv_step *step;
    iv_value *step_values;  /* inputs and, behind them, outputs */
    iv_fact *step_facts;    /* of the outputs; borrowed */
    iv_cuda_target target; /* of the step */
};

/* The functions of a runner's frame: runner_frame.c. */
extern const iv_frame iv_runner_frame;

/** Memory on a side: in the arena at `offset`, or of its own where that is -1. */
iv_status iv_runner_allocate(iv_runner *runner, iv_side side, int64_t offset, size_t bytes,
                             iv_storage **storage, char **data, iv_error *error);

/** Sees to it that `value` lies on `side`, if it is there at all: copies it from the other side when it does not yet.
 * `planned`: a step of the plan needs it now, so that the copy has a place in the arena. */
iv_status iv_runner_bring(iv_runner *runner, iv_value_id value, iv_side side, bool planned, iv_error *error);
/** Runs one step. */
iv_status iv_runner_step(iv_runner *runner, size_t index, iv_error *error);
/** Lets go of a value on both sides. */
void iv_runner_release(iv_runner *runner, iv_value_id value);
/** The value as it lies on `side`, borrowed; nothing if it does not. */
iv_value iv_runner_value(const iv_runner *runner, iv_side side, iv_value_id value);

/** Tells the observer what a call has made; the observer may replace outputs. Times as for iv_node_event. */
iv_status iv_runner_observe(iv_runner *runner, iv_call *call, const char *kernel, int64_t start, int64_t end);
/** Tells the observer of a transfer. */
iv_status iv_runner_observe_transfer(const iv_runner *runner, iv_value_id value, iv_side to, int64_t bytes,
                                     int64_t start, iv_error *error);
/** Where tasks are measured: says that those since the last call were for this node, or with IV_TRANSFER this value. */
iv_status iv_runner_note_tasks(const iv_runner *runner, const char *name, const char *op, iv_error *error);
/** Whether somebody asked for an end. */
bool iv_runner_interrupted(const iv_runner *runner);
/** The monotonic clock. */
int64_t iv_now_ns(void);

#endif
