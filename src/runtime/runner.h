/* Runners: the mutable side of running a program: plans, arena, workspace, and a runner per nested graph. */
#ifndef SB_RUNTIME_RUNNER_H
#define SB_RUNTIME_RUNNER_H

#include <stdatomic.h>

#include <samebit/session.h>

#include "runtime/plan.h"

typedef struct sb_runner sb_runner;

/* What may end a session's runs early. */
typedef struct sb_run_control {
    atomic_int interrupted;  /* set from any thread or signal handler */
    int64_t iteration_limit; /* of all loops of a run together */
    int64_t iterations;      /* done in the run in progress */
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
} sb_run_settings;

/** `settings` must outlive the runner. */
sb_status sb_runner_create(sb_program *program, const sb_run_settings *settings, int depth, sb_runner **runner,
                           sb_error *error);
void sb_runner_destroy(sb_runner *runner);

/** Runs once. `inputs` (as many as the graph has) are borrowed, `outputs` (likewise) the caller's; nothing on failure.
 * `host_outputs`: outputs are wanted on the host; else they stay where they are made, and a device may still be at work on
 * them. With a device, between sb_queue_enter and sb_queue_leave. */
sb_status sb_runner_run(sb_runner *runner, bool host_outputs, const sb_value *inputs, sb_value *outputs,
                        sb_error *error);

/** As sb_session_visit_placement. */
int sb_runner_visit_placement(const sb_runner *runner, void (*visit)(void *context, const sb_placed_node *node),
                              void *context);

/** As sb_session_graphs. */
void sb_runner_report_graphs(const sb_runner *runner, sb_graph_report *report);

/** After the device has done everything: reports what its kernels found wrong with their data, by the first such step. */
sb_status sb_runner_check_faults(sb_runner *runner, sb_error *error);

#endif
