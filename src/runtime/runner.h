/* Runners: the mutable side of running a program: plans, arena, workspace, and a runner per nested graph. */
#ifndef SB_RUNTIME_RUNNER_H
#define SB_RUNTIME_RUNNER_H

#include <stdatomic.h>

#include <samebit/session.h>

#include "runtime/outbox.h"
#include "runtime/plan.h"

typedef struct sb_runner sb_runner;

/* What made the host wait for the device in a run, so that the run cannot be left to the device. */
typedef struct sb_run_cause {
    const char *reason;    /* static storage; NULL: nothing did */
    const char *node, *op; /* the node that did, in the program's memory; NULL where none is to blame */
} sb_run_cause;

/* What a session and its runners tell each other of the run in progress. */
typedef struct sb_run_control {
    atomic_int interrupted;  /* set from any thread or signal handler */
    int64_t iteration_limit; /* of all loops of a run together */
    int64_t iterations;      /* done so far */
    sb_run_cause cause;      /* the first */
} sb_run_control;

/* What all runners of a session share. */
typedef struct sb_run_settings {
    sb_workers *workers;
    sb_observer *observer;
    void *observer_context;
    sb_run_control *control; /* NULL: runs always go on to their end */
    sb_placement placement;
    sb_graph_mode graphs;
    bool require_device;              /* a step that cannot run on the device is an error */
    bool observer_times_only;         /* events have no outputs */
    struct sb_task_times *task_times; /* measures every task; NULL for none */
    bool device_outputs;              /* outputs of the session's runs stay where they are made */
    int queue_depth;                  /* runs whose faults are kept apart: sb_runner_collect_faults; with a device */
} sb_run_settings;

/** `settings` must outlive the runner. */
sb_status sb_runner_create(sb_program *program, const sb_run_settings *settings, int depth, sb_runner **runner,
                           sb_error *error);
void sb_runner_destroy(sb_runner *runner);

/** Runs once. `inputs` (those of sb_program::enter) are borrowed, `outputs` (those of sb_program::leave) the
 * caller's; nothing on failure. Of a bound state, versions come in and updates go out like others; those stay where
 * they are made. `host_outputs`: outputs are wanted on the host; else they stay where they are made, and a device
 * may still be at work on them. With a device, between sb_queue_enter and sb_queue_leave. */
sb_status sb_runner_run(sb_runner *runner, bool host_outputs, const sb_value *inputs, sb_value *outputs,
                        sb_error *error);
/** The same, and with an outbox (NULL for none) outputs that are wanted on the host may be left on their way there:
 * they are tensors with their elements to come from sb_outbox_deliver. Inputs on a device must live until the device
 * has done the run; those on the host have been read. */
sb_status sb_runner_start(sb_runner *runner, bool host_outputs, sb_outbox *outbox, const sb_value *inputs,
                          sb_value *outputs, sb_error *error);

/** From the next run on, outputs whose bits are set are not handed over: they come out as nothing, and are not copied to the host. Of those
 * from the 64th on all are. */
void sb_runner_leave_out(sb_runner *runner, uint64_t outputs);

/** Notes that the run in progress cannot be left to the device; the first note counts.
 * `step` NULL: no node is to blame. */
void sb_runner_note_cause(const sb_runner *runner, const sb_step *step, const char *reason);

/** As sb_session_estimate. */
sb_estimate sb_runner_estimate(const sb_runner *runner);
/** Whether the run in progress was left to the CPU as a whole by its plan, so that the device has been given nothing. */
bool sb_runner_is_on_host(const sb_runner *runner);

/** As sb_session_visit_placement. */
int sb_runner_visit_placement(const sb_runner *runner, void (*visit)(void *context, const sb_placed_node *node),
                              void *context);

/** Why the plan of the latest run is for exact extents, as sb_session_exact_plans. */
const char *sb_runner_exact_plan(const sb_runner *runner);

/** As sb_session_graphs. */
void sb_runner_report_graphs(const sb_runner *runner, sb_graph_report *report);

/* Faults, with a device: each run's own. `slot` is one of settings->queue_depth places for what runs leave, which a run
 * keeps until its faults have been checked. */

/** Before a run (entered), whose slot it is: the device forgets what a run before has found, also one that failed half-way. */
sb_status sb_runner_clear_faults(sb_runner *runner, int slot, sb_error *error);
/** After a run has been given to the queue (entered): has the device put what its kernels find into the slot, where the run does not do
 * so by itself. */
sb_status sb_runner_collect_faults(sb_runner *runner, int slot, sb_error *error);
/** After the device has done that: reports what is in the slot, by the first such step. */
sb_status sb_runner_check_faults(sb_runner *runner, int slot, sb_error *error);

#endif
