/* The inside of a session, for the sources that make it up. */
#ifndef SB_RUNTIME_SESSION_INTERNAL_H
#define SB_RUNTIME_SESSION_INTERNAL_H

#include <samebit/session.h>

#include "runtime/model.h"
#include "runtime/outbox.h"
#include "runtime/runner.h"
#include "runtime/session_state.h"
#include "runtime/task_times.h"
#include "tensor/tensor_pool.h"

/* A place in the ring: a run from its enqueueing until somebody has waited for it. */
typedef struct sb_queued_run {
    sb_state_run with_state; /* first, so that it is its place; without a session where the state has none of it */
    uint64_t number;         /* of the run; 0: the place is free */
    bool done;               /* nothing is left to wait for */
    sb_mark *mark;           /* behind the run's work; NULL without a device */
    sb_value *inputs;        /* one per input of the model: those on the device, until it has done the run */
    sb_value *outputs;
    sb_outbox outbox;
} sb_queued_run;

struct sb_session {
    sb_model *model;
    const sb_model_entry *entry; /* the one that it runs */
    sb_state_binding *binding;   /* NULL: no state */
    sb_queue *queue;
    char *force_cpu;
    sb_run_settings settings;
    sb_task_observer *task_observer;
    void *task_observer_context;
    sb_run_control control;
    sb_memory_budget *budget;
    sb_runner *runner;
    sb_tensor_pool *tensors; /* of runs */
    sb_value *operands;      /* of a run that is given tensors: inputs and, behind them, outputs */
    sb_queued_run *ring;     /* settings.queue_depth places: session_queue.c */
    uint64_t runs;           /* numbers given so far */
    sb_run_cause last_cause; /* of the run with that number */
    /* Symbols met while checking inputs: names (the model's) and values. */
    size_t symbol_count;
    size_t symbol_capacity;
    const char **symbols;
    size_t value_capacity;
    int64_t *values;
};

/** Makes the ring of `depth` places, once the session has its model and, if any, its queue; what is made when it fails,
 * sb_session_destroy_ring gives back. Errors: INVALID_ARGUMENT for a depth out of range; OUT_OF_MEMORY; DEVICE. */
sb_status sb_session_create_ring(sb_session *session, int depth, sb_error *error);
/** Waits for the device, and gives back what runs hold that nobody has waited for. */
void sb_session_destroy_ring(sb_session *session);

/** Whether the inputs fit the model; SHAPE or INVALID_ARGUMENT if not. */
sb_status sb_session_check_inputs(sb_session *session, const sb_value *inputs, sb_error *error);

#endif
