/* Runners: the mutable side of running a program: plans, arena, scratch memory, and a runner per nested graph. */
#ifndef IV_RUNTIME_RUNNER_H
#define IV_RUNTIME_RUNNER_H

#include <stdatomic.h>

#include <invar/session.h>

#include "runtime/plan.h"

typedef struct iv_runner iv_runner;

/* What may end a session's runs early. */
typedef struct iv_run_control {
    atomic_int interrupted;  /* set from any thread or signal handler */
    int64_t iteration_limit; /* of all loops of a run together */
    int64_t iterations;      /* done in the run in progress */
} iv_run_control;

/* What all runners of a session share. */
typedef struct iv_run_settings {
    iv_workers *workers;
    iv_observer *observer;
    void *observer_context;
    iv_run_control *control; /* NULL: runs always go on to their end */
    iv_placement placement;
    iv_graph_mode graphs;
    bool require_device;     /* a step that cannot run on the device is an error */
    bool observer_times_only; /* events have no outputs */
    struct iv_task_times *task_times; /* measures every task; NULL for none */
    bool device_outputs;     /* outputs of the session's runs stay where they are made */
} iv_run_settings;

/** `settings` must outlive the runner. */
iv_status iv_runner_create(iv_program *program, const iv_run_settings *settings, int depth,
                           iv_runner **runner, iv_error *error);
void iv_runner_destroy(iv_runner *runner);

/** Runs once. `inputs` (as many as the graph has) are borrowed, `outputs` (likewise) the caller's; nothing on failure.
 * `host_outputs`: outputs are wanted on the host; else they stay where they are made, and a device may still be at work on
 * them. With a device, between iv_cuda_enter and iv_cuda_leave. */
iv_status iv_runner_run(iv_runner *runner, bool host_outputs, const iv_value *inputs, iv_value *outputs,
                        iv_error *error);

/** As iv_session_visit_placement. */
int iv_runner_visit_placement(const iv_runner *runner, void (*visit)(void *context, const iv_placed_node *node),
                              void *context);

/** As iv_session_graphs. */
void iv_runner_report_graphs(const iv_runner *runner, iv_graph_report *report);

/** After the device has done everything: reports what its kernels found wrong with their data, by the first such step. */
iv_status iv_runner_check_faults(iv_runner *runner, iv_error *error);

#endif
