/* Sessions: one mutable timeline of runs of a model.
 *
 * A session may be used by one thread at a time (iv_session_interrupt excepted); different sessions of one model may run at
 * the same time. */
#ifndef INVAR_SESSION_H
#define INVAR_SESSION_H

#include <invar/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct iv_session iv_session;

/** What a node did, for an observer. */
typedef struct iv_node_event {
    const char *name;     /**< the node's name */
    const char *op;       /**< its operator */
    const char *kernel;   /**< what computed it: "reference", "constant" (known before the run), or the kernel's name */
    int depth;            /**< 0 in the model's own graph, more inside If, Loop and Scan */
    int64_t start_ns;     /**< when it began, by the monotonic clock */
    int64_t end_ns;
    int output_count;
    const char *const *output_names; /**< NULL for an output that nobody wants */
    iv_value *outputs;    /**< the observer may replace a value by one of the same type and extents (release the old
                               one first). Tensors are valid until the observer returns: their memory is used again */
    int64_t output_bytes; /**< of all its outputs */
} iv_node_event;

/** Called after every node. A status other than IV_OK ends the run with that status (the observer fills the error). */
typedef iv_status iv_observer(void *context, iv_node_event *event, iv_error *error);

/** How a session runs. Start from IV_SESSION_OPTIONS_DEFAULT. None of it changes a result. */
typedef struct iv_session_options {
    size_t struct_bytes; /**< sizeof(iv_session_options): lets the struct grow */
    int threads;         /**< worker threads, the caller's included; 0: one per processor */
    iv_observer *observer; /**< NULL for none */
    void *observer_context;
    /** The most iterations that all Loop and Scan nodes of one run may do together; the run ends with IV_ERROR_LIMIT before
     * the next one. 0, the default: any number. No number tells a long loop from an endless one (exporters write the
     * largest integer where a condition ends the loop), so who runs models of strangers sets one, or interrupts. */
    int64_t iteration_limit;
    /** The most bytes that the session may hold at any time: plans, memory of values, scratch memory, weights packed on its
     * behalf, and outputs until their caller releases them. No tensor in a run may be larger either, even where it only
     * shows a smaller one repeatedly, which bounds the work of a node. What would exceed it ends the run with
     * IV_ERROR_OUT_OF_MEMORY. 0, the default: the memory of the machine, or of the process's control group where that is
     * less, so that no single tensor can call for the system's out-of-memory killer. */
    int64_t memory_limit;
} iv_session_options;

#define IV_SESSION_OPTIONS_DEFAULT                                                                 \
    { sizeof(iv_session_options), 0, NULL, NULL, 0, 0 }

/** Creates a session, which keeps the model alive. `options` may be NULL. */
IV_API IV_MUST_CHECK iv_status iv_session_create(iv_model *model, const iv_session_options *options,
                                                 iv_session **session, iv_error *error);
/** Destroys a session. NULL is allowed. */
IV_API void iv_session_destroy(iv_session *session);

/** Runs the model once.
 *
 * `inputs` has one value per model input, in the model's order (IV_KIND_NONE where an optional one is left out); they are borrowed.
 * `outputs` has room for one value per model output, all released by the caller; on failure they are nothing.
 * Symbolic extents take their values from the inputs. Errors: SHAPE when an input does not fit the model, and
 * whatever a node reports, with its name. */
IV_API IV_MUST_CHECK iv_status iv_session_run(iv_session *session, const iv_value *inputs,
                                              iv_value *outputs, iv_error *error);

/** Runs a model of tensors only: `inputs` and `outputs` as above, each a tensor. */
IV_API IV_MUST_CHECK iv_status iv_session_run_tensors(iv_session *session,
                                                      iv_tensor *const *inputs,
                                                      iv_tensor **outputs, iv_error *error);

/** Ends the run in progress, or else the next one, with IV_ERROR_INTERRUPTED and a message that names the node.
 *
 * May be called from any thread and from a signal handler, at any time in the session's life. The run ends before its next
 * node or iteration: a node that has begun is finished first. The run that reports the interrupt has used it up, and
 * the session is ready for further runs; several interrupts before that count as one. */
IV_API void iv_session_interrupt(iv_session *session);
/** Takes back an interrupt that no run has reported yet: for interrupts (a timer's, say) that may come too late for the run that
 * they were meant for. Callable like iv_session_interrupt. */
IV_API void iv_session_clear_interrupt(iv_session *session);

#ifdef __cplusplus
}
#endif
#endif
