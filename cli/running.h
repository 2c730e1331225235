/* A loaded model with a session and the values of its runs. */
#ifndef CLI_RUNNING_H
#define CLI_RUNNING_H

#include "support.h"

typedef struct running {
    sb_device *device; /* NULL: the CPU */
    sb_model *model;
    sb_state *state; /* NULL: none */
    sb_session *session;
    sb_value *inputs, *outputs; /* one per input and output of the model */
    sb_session_options options; /* the session's, with the device */
    sb_capacity *capacities;    /* those of --capacity; NULL: none */
    int capacity_count;
    double load_ms;
} running;

/** Opens the device, loads the model, the first operand, and creates a session. Until
 * `close_running`, Ctrl-C interrupts its runs; a second one ends the process. Returns EXIT_RIGHT,
 * or prints what is wrong and returns another exit code; `close_running` in both cases. */
int open_running(const arguments *arguments, const sb_model_options *model, const sb_session_options *session,
                 running *running);
/** The same on the CPU, whatever the arguments say of devices. */
int open_running_on_cpu(const arguments *arguments, const sb_model_options *model, const sb_session_options *session,
                        running *running);
void close_running(running *running);

/** Replaces the session by a fresh one without observers. Exit codes as above. */
int renew_session(running *running);

/** Runs once, replacing the outputs; `*nanoseconds` (may be NULL) is how long it took. Exit codes as above. */
int run_once(running *running, double *nanoseconds);

/** Enqueues a run; `*run` is its number. Exit codes as above. */
int enqueue_run(running *running, uint64_t *run);
/** Waits for a run, whose outputs replace those before. Exit codes as above. */
int wait_for_run(running *running, uint64_t run);

/** The monotonic clock. */
double now_ns(void);

/** The snapshot of the model with the extents that --set gives. Exit codes as above. */
int inspect_with_settings(const arguments *arguments, const sb_model *model, sb_inspection **inspection);
/** The same with the extents of `inputs`. */
int inspect_with_inputs(const sb_model *model, const sb_value *inputs, sb_inspection **inspection);

#endif
