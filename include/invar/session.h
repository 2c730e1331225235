/* Sessions: one mutable timeline of runs of a model.
 *
 * A session may be used by one thread at a time (iv_session_interrupt excepted); different sessions of one model may run at
 * the same time. */
#ifndef INVAR_SESSION_H
#define INVAR_SESSION_H

#include <invar/device.h>
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
    iv_value *outputs;    /**< NULL with observer_times_only. The observer may replace a value by one of the same type and extents (release the old
                               one first). Tensors are valid until the observer returns: their memory is used again */
    int64_t output_bytes; /**< of all its outputs, or of a transfer */
    bool on_device;       /**< whether it ran on a device; of a transfer, whether it went there. Its outputs are shown as copies on
                               the host all the same */
} iv_node_event;

/** The `op` of events that are no node's: a value was copied between the host and a device. `name` is the value's, `kernel` is
 * "to device" or "to host", and there are no outputs. */
#define IV_TRANSFER "Transfer"

/** Called after every node. A status other than IV_OK ends the run with that status (the observer fills the error). */
typedef iv_status iv_observer(void *context, iv_node_event *event, iv_error *error);

/** What a device did, for a task observer. */
typedef struct iv_task_span {
    const char *task;  /**< the kernel, or "copy to device", "copy to host", "copy on device", "fill"; lives as long as the device */
    const char *name;  /**< the node that it was for, or with IV_TRANSFER the value; NULL: for none, such as what an observer is shown */
    const char *op;    /**< that node's operator, or IV_TRANSFER; NULL where `name` is. Both live as long as the model */
    int depth;         /**< of the node: 0 in the model's own graph */
    int stream;        /**< counted from 0: tasks of one stream come one after the other */
    int64_t start_ns;  /**< by the clock of iv_node_event, to within some 20 us in all spans of a run alike */
    int64_t end_ns;
} iv_task_span;

/** Called after every run on a device with all that it did, in the order in which it was told to. A status other than IV_OK is
 * that of the run. */
typedef iv_status iv_task_observer(void *context, const iv_task_span *spans, size_t count, iv_error *error);

/** How a device is given the steps of a run. The bits are the same. */
typedef enum iv_graph_mode {
    IV_GRAPHS_AUTO = 0,    /**< as IV_GRAPHS_BUILD */
    IV_GRAPHS_OFF = 1,     /**< one by one */
    IV_GRAPHS_CAPTURE = 2, /**< as graphs that the driver captures from the stream, in the order of the stream */
    IV_GRAPHS_BUILD = 3    /**< as graphs made of the list of tasks, with an edge only where two touch the same memory, so that
                              independent branches run side by side */
} iv_graph_mode;

/** "auto", "off", "capture", "build". Never NULL; static storage. */
IV_API const char *iv_graph_mode_name(iv_graph_mode mode);

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
    /** The device to run on, which the session keeps in use; NULL: the CPU. What has no kernel there runs on the CPU all the
     * same, and iv_session_visit_placement says why. The bits are those of the CPU. */
    iv_device *device;
    /** A CUstream of the device's primary context to work in; NULL: a stream of the session's own. */
    void *stream;
    /** Names, or parts of names, of nodes or operators that stay on the CPU, separated by commas; NULL: none. */
    const char *force_cpu;
    /** Nodes that would run on the CPU are an error (IV_ERROR_UNSUPPORTED) that lists them. */
    bool require_device;
    /** Outputs that are made on the device stay there, and may be inputs of a later run without a copy; otherwise they are
     * copied to the host. */
    bool device_outputs;
    /** Whether steps on the device are recorded in the second run with inputs of some shapes, and replayed from the third on.
     * What cannot be recorded, or fails to be, runs one by one: iv_session_graphs says why. */
    iv_graph_mode graphs;
    /** Whether the device may launch a kernel while those that it waits for are still at work (programmatic dependent launch,
     * compute capability 9.0 and later). Saves about a tenth of the time of small kernels. Off by default: the blocks that wait
     * take the room of those that work, which made whole networks a fifth to two fifths slower on an H200. */
    bool dependent_launch;
    /** The observer wants to know when nodes ran and looks at no output, so that none is copied to the host for it: events have
     * no outputs. */
    bool observer_times_only;
    /** NULL for none. Steps are then given to the device one by one, whatever `graphs` says, with a mark before and behind each
     * task, which takes some microseconds. */
    iv_task_observer *task_observer;
    void *task_observer_context;
} iv_session_options;

#define IV_SESSION_OPTIONS_DEFAULT                                                                 \
    { sizeof(iv_session_options), 0, NULL, NULL, 0, 0, NULL, NULL, NULL, false, false, IV_GRAPHS_AUTO, false, false, NULL, NULL }

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

/** Where a node of the session's most recent run was computed. */
typedef struct iv_placed_node {
    const char *name;   /**< the node's, or of a transfer the value's */
    const char *op;     /**< its operator, or IV_TRANSFER */
    int depth;          /**< 0 in the model's own graph, more inside If, Loop and Scan */
    bool on_device;     /**< of a transfer: whether it goes there */
    bool by_data;       /**< where it runs was settled in the run, since only the data say what shapes it has */
    const char *kernel; /**< what computes it; "reference" for its definition */
    const char *why;    /**< why it does not run on the device; NULL where it does */
} iv_placed_node;

/** Calls `visit` for every node of the most recent run's plan, nested graphs' after those of the graph around them, and for the
 * transfers that the plan needs, in the order of the run. Nodes whose results are known before the run are left out. Strings are
 * valid until `visit` returns. Returns the number of nodes that did not run on the device; 0 as well when there was no run, or no
 * device. */
IV_API int iv_session_visit_placement(iv_session *session,
                                      void (*visit)(void *context, const iv_placed_node *node),
                                      void *context);

/** What has become of the graphs of the session's most recent run's plan. */
typedef struct iv_graph_report {
    int segments;        /**< groups of steps that the device is given at once */
    int recorded;        /**< those with a graph */
    int failed;          /**< those that run one by one since recording failed */
    int64_t tasks;       /**< in all recorded graphs: kernels, copies, fills */
    int64_t edges;       /**< in graphs that were built */
    const char *reason;  /**< why the first failed one did; "" when none did. Valid until the next run */
} iv_graph_report;

IV_API void iv_session_graphs(const iv_session *session, iv_graph_report *report);

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
