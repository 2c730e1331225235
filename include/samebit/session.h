/* Sessions: one mutable timeline of runs of a model.
 *
 * A session may be used by one thread at a time (sb_session_interrupt excepted); different sessions of one model may
 * run at the same time. */
#ifndef SAMEBIT_SESSION_H
#define SAMEBIT_SESSION_H

#include <samebit/device.h>
#include <samebit/model.h>
#include <samebit/state.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sb_session sb_session;

/** What a node did, for an observer. */
typedef struct sb_node_event {
    const char *name; /**< the node's name */
    const char *op;   /**< its operator */
    /** What computed it: "reference", "constant" (known before the run), or the name of the kernel or of its way. */
    const char *kernel;
    int depth;        /**< 0 in the model's own graph, more inside If, Loop and Scan */
    int64_t start_ns; /**< when it began, by the monotonic clock */
    int64_t end_ns;
    int output_count;
    const char *const *output_names; /**< NULL for an output that nobody wants */
    /** NULL with observer_times_only. The observer may replace a value by one of the same type and extents (release the
     * old one first). Tensors are valid until the observer returns: their memory is used again. */
    sb_value *outputs;
    int64_t output_bytes; /**< of all its outputs, or of a transfer */
    /** Whether it ran on a device; of a transfer, whether it went there.
     * Its outputs are shown as copies on the host all the same. */
    bool on_device;
} sb_node_event;

/** The `op` of events that are no node's: a value was copied between the host and a device. `name` is the value's,
 * `kernel` is "to device" or "to host", and there are no outputs. */
#define SB_TRANSFER "Transfer"

/** Called after every node. A status other than SB_OK ends the run with that status (the observer fills the error). */
typedef sb_status sb_observer(void *context, sb_node_event *event, sb_error *error);

/** What a device did, for a task observer. */
typedef struct sb_task_span {
    /** The kernel, or "copy to device", "copy to host", "copy on device", "fill"; lives as long as the device. */
    const char *task;
    /** The node that it was for, or with SB_TRANSFER the value; NULL: for none, such as what an observer is shown. */
    const char *name;
    const char *op;   /**< that node's operator, or SB_TRANSFER; NULL where `name` is. Both live as long as the model */
    int depth;        /**< of the node: 0 in the model's own graph */
    int stream;       /**< counted from 0: tasks of one stream come one after the other */
    int64_t start_ns; /**< by the clock of sb_node_event, to within some 20 us in all spans of a run alike */
    int64_t end_ns;
} sb_task_span;

/** Called after every run on a device with all that it did, in the order in which it was told to. A status other than
 * SB_OK is that of the run. */
typedef sb_status sb_task_observer(void *context, const sb_task_span *spans, size_t count, sb_error *error);

/** How a device is given the steps of a run. The bits are the same. */
typedef enum sb_graph_mode {
    SB_GRAPHS_AUTO = 0,    /**< as SB_GRAPHS_BUILD */
    SB_GRAPHS_OFF = 1,     /**< one by one */
    SB_GRAPHS_CAPTURE = 2, /**< as graphs that the driver captures from the stream, in the order of the stream */
    /** As graphs made of the list of tasks, with an edge only where two touch the same memory, so that independent
     * branches run side by side. */
    SB_GRAPHS_BUILD = 3
} sb_graph_mode;

/** "auto", "off", "capture", "build". Never NULL; static storage. */
SB_API const char *sb_graph_mode_name(sb_graph_mode mode);

/** How a session runs. Start from SB_SESSION_OPTIONS_DEFAULT. None of it changes a result. */
typedef struct sb_session_options {
    size_t struct_bytes;   /**< sizeof(sb_session_options): lets the struct grow */
    int threads;           /**< worker threads, the caller's included; 0: one per processor */
    sb_observer *observer; /**< NULL for none */
    void *observer_context;
    /** The most iterations that all Loop and Scan nodes of one run may do together; the run ends with SB_ERROR_LIMIT
     * before the next one. 0, the default: any number. No number tells a long loop from an endless one (exporters
     * write the largest integer where a condition ends the loop), so who runs models of strangers sets one, or
     * interrupts. */
    int64_t iteration_limit;
    /** The most bytes that the session may hold at any time: plans, memory of values, workspace, weights packed on
     * its behalf, and outputs until their caller releases them. No tensor in a run may be larger either, even where
     * it only shows a smaller one repeatedly, which bounds the work of a node. What would exceed it ends the run
     * with SB_ERROR_OUT_OF_MEMORY. 0, the default: the memory of the machine, or of the process's control group
     * where that is less, so that no single tensor can call for the system's out-of-memory killer. */
    int64_t memory_limit;
    /** The device to run on, which the session keeps in use; NULL: the CPU. What has no kernel there runs on the CPU
     * all the same, and sb_session_visit_placement says why. The bits are those of the CPU. */
    sb_device *device;
    /** A CUstream of the device's primary context to work in; NULL: a stream of the session's own. */
    void *stream;
    /** Names, or parts of names, of nodes or operators that stay on the CPU, separated by commas; NULL: none. */
    const char *force_cpu;
    /** Nodes that would run on the CPU are an error (SB_ERROR_UNSUPPORTED) that lists them. */
    bool require_device;
    /** Outputs that are made on the device stay there, and may be inputs of a later run without a copy; otherwise
     * they are copied to the host. */
    bool device_outputs;
    /** Whether steps on the device are recorded in the second run with inputs of some shapes, and replayed from the
     * third on. What cannot be recorded, or fails to be, runs one by one: sb_session_graphs says why. */
    sb_graph_mode graphs;
    /** Whether the device may launch a kernel while those that it waits for are still at work (programmatic dependent
     * launch, compute capability 9.0 and later), so that it begins when they end. On by default: networks in 16 bits take
     * 2 to 13 % less time on an H200. Kernels of products and convolutions in f32 are launched when the others have
     * ended all the same, since their blocks would share multiprocessors while others are idle. */
    bool dependent_launch;
    /** The observer wants to know when nodes ran and looks at no output, so that none is copied to the host for it:
     * events have no outputs. */
    bool observer_times_only;
    /** NULL for none. Steps are then given to the device one by one, whatever `graphs` says, with a mark before and
     * behind each task, which takes some microseconds. */
    sb_task_observer *task_observer;
    void *task_observer_context;
    /** The most runs that may be queued and not yet waited for: 1 to 16, 4 by default. Each takes what its outputs
     * take on the device, or in pinned memory of the host (up to 64 MiB a run). */
    int queue_depth;
    /** What the runs read and update (<samebit/state.h>), which the session keeps alive; of the same model. A state
     * on a device needs a session on that device. Needed by entry graphs with variables. Inputs that are variables
     * are left out of a run (SB_KIND_NONE), and outputs that are come out as nothing: sb_state_get copies them. */
    sb_state *state;
    /** The entry graph to run; NULL: the model's first. */
    const char *entry;
    /** Symbols that are planned by their capacities, beside those of the state. Runs with other extents of them then
     * share plans and, on a device, recordings. Where a node does not allow that, a run is planned for its exact extents,
     * and sb_session_exact_plans says why. */
    int capacity_count;
    const sb_capacity *capacities;
    /** A run is left to the device only if it is estimated to end sooner there than on the CPU with the session's threads:
     * launches take longer than small networks. The estimate follows from the extents and the threads alone
     * (sb_session_estimate), so that the same run is always placed alike. Whoever wants something of the device is given
     * it: this has no effect with require_device, device_outputs, a state, capacities, or an input on the device. */
    bool device_if_quicker;
} sb_session_options;

#define SB_SESSION_OPTIONS_DEFAULT                                                                                     \
    {                                                                                                                  \
        sizeof(sb_session_options), 0, NULL, NULL, 0, 0, NULL, NULL, NULL, false, false, SB_GRAPHS_AUTO, true, false,  \
            NULL, NULL, 4, NULL, NULL, 0, NULL, false                                                                  \
    }

/** Creates a session, which keeps the model alive. `options` may be NULL. */
SB_API SB_MUST_CHECK sb_status sb_session_create(sb_model *model, const sb_session_options *options,
                                                 sb_session **session, sb_error *error);
/** Destroys a session, and waits for the runs that it has queued, whose outputs are lost. NULL is allowed. */
SB_API void sb_session_destroy(sb_session *session);

/** Runs the session's entry graph once, behind the runs that are queued. INVALID_ARGUMENT when the queue is full: see
 * sb_session_enqueue.
 *
 * `inputs` has one value per input, in the graph's order (SB_KIND_NONE where an optional one is left out); they are
 * borrowed. `outputs` has room for one value per output, all released by the caller; on failure they are nothing.
 * Symbolic extents take their values from the inputs. Errors: SHAPE when an input does not fit the model, and
 * whatever a node reports, with its name. */
SB_API SB_MUST_CHECK sb_status sb_session_run(sb_session *session, const sb_value *inputs, sb_value *outputs,
                                              sb_error *error);

/* Runs can also be queued, so that the device goes from one to the next while the host prepares inputs and looks at
 * outputs. The device does them in their order, and the bits are those of sb_session_run, which is the first and the
 * last of these calls. */

/** Gives a run to the device and returns without waiting for it; `*run` becomes its number, from 1 in the order of
 * the calls (sb_session_run takes numbers too), or 0 on failure.
 *
 * `inputs` as in sb_session_run. Those on the host have been read when this returns; those on the device are kept
 * until the run is done, and must not be written before. (An output that is nothing but an input seen through a view
 * shares its memory, queued or not.)
 *
 * A run whose steps the host takes part in cannot be left to the device: it is complete when this returns, and what
 * it reports is reported here. Those are runs with a node on the CPU or of a shape that follows from data, with an
 * observer or a task observer, with more than 64 MiB of outputs for the host, with a state whose home is the host, and
 * without a device; sb_session_last_run says which it was.
 *
 * Runs with a state on the session's device are queued like others, and each reads what the one before it leaves. When
 * another session's runs with that state are queued, this waits for them first. See <samebit/state.h> for what becomes
 * of runs behind one that fails.
 *
 * Errors: those of sb_session_run, after which the run is not queued and runs before it are as they were;
 * INVALID_ARGUMENT when queue_depth runs have not been waited for, with the number of the oldest. An interrupt ends
 * a run that is being enqueued; runs that the device has are done to their end. */
SB_API SB_MUST_CHECK sb_status sb_session_enqueue(sb_session *session, const sb_value *inputs, uint64_t *run,
                                                  sb_error *error);

/** Whether sb_session_wait would return at once, in `*done`. The run stays in the queue. Errors: INVALID_ARGUMENT for
 * a run that is not queued; DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_session_poll(sb_session *session, uint64_t run, bool *done, sb_error *error);

/** Waits for a run, and for those before it, but for none behind it. `outputs` as in sb_session_run.
 *
 * Runs may be waited for in any order, each once: it is over then, also when this fails. Faults are a run's own: a
 * division by zero in one leaves those around it as they are, and its error names run and node; only where it tears a
 * state, the runs behind it fail too. Errors:
 * INVALID_ARGUMENT for a run that is not queued; whatever the run reports. */
SB_API SB_MUST_CHECK sb_status sb_session_wait(sb_session *session, uint64_t run, sb_value *outputs, sb_error *error);

/** How the run that was enqueued last, sb_session_run included, was done. */
typedef struct sb_run_report {
    uint64_t run;       /**< its number; 0: there was none */
    bool synchronous;   /**< whether it was complete when it had been enqueued … */
    const char *reason; /**< … and why; "" otherwise. Static storage */
    /** The first node that made it so; NULL when the reason is no node's. Lives as long as the model. */
    const char *node;
    const char *op; /**< its operator, likewise */
} sb_run_report;

SB_API void sb_session_last_run(const sb_session *session, sb_run_report *report);

/** Why the most recent run was planned for exact extents although some symbols have capacities: the node, the axis and
 * the rule that does not hold for it; "" when it was not, or no symbol has one. Runs with other inputs may be planned by
 * the capacities all the same. Valid until the next run. */
SB_API const char *sb_session_exact_plans(const sb_session *session);

/** Runs a model of tensors only: `inputs` and `outputs` as above, each a tensor. */
SB_API SB_MUST_CHECK sb_status sb_session_run_tensors(sb_session *session, sb_tensor *const *inputs,
                                                      sb_tensor **outputs, sb_error *error);

/** Memory of the host as an array: an input of sb_session_run_arrays, which is looked at where it lies, or an output. */
typedef struct sb_array {
    sb_dtype
        dtype; /**< SB_DTYPE_NONE: nothing, such as an optional input that is left out or a variable of the state */
    int rank;  /**< at most SB_MAX_RANK */
    bool contiguous;           /**< of an output: row-major without gaps. Not read of an input */
    void *data;                /**< where the element lies whose indices are all 0. That of an input is not written */
    sb_tensor *tensor;         /**< of an output: whose memory this is; the caller releases it. Not read of an input */
    int64_t dims[SB_MAX_RANK]; /**< `rank` extents */
    int64_t strides[SB_MAX_RANK]; /**< in elements; negative and 0 too */
} sb_array;

/** As sb_session_run, on memory without tensors: for bindings to other languages, where each call costs.
 *
 * `inputs` has one array per input and `outputs` room for one per output, in the graph's order. The inputs' memory is the
 * caller's to write again when this returns: an output that would show it, as that of an Identity does, gets memory of its
 * own. With device_outputs, outputs that are made on a device have their address there. On failure all outputs are
 * nothing. Errors: those of sb_tensor_wrap, with the input's name, and of sb_session_run; UNSUPPORTED for an input that is
 * text and an output that is a sequence. */
SB_API SB_MUST_CHECK sb_status sb_session_run_arrays(sb_session *session, const sb_array *inputs, sb_array *outputs,
                                                     sb_error *error);

/** Where a node of the session's most recent run was computed. */
typedef struct sb_placed_node {
    const char *name;   /**< the node's, or of a transfer the value's */
    const char *op;     /**< its operator, or SB_TRANSFER */
    int depth;          /**< 0 in the model's own graph, more inside If, Loop and Scan */
    bool on_device;     /**< of a transfer: whether it goes there */
    bool by_data;       /**< where it runs was settled in the run, since only the data say what shapes it has */
    const char *kernel; /**< what computes it; "reference" for its definition */
    const char *why;    /**< why it does not run on the device; NULL where it does, or where there is none */
    const char *way;    /**< which of several ways the kernel took when it last gave its work; NULL where it has one */
    const char *slow;   /**< why it took none of the quicker ones; NULL where it did, or none would have been quicker */
} sb_placed_node;

/** Calls `visit` for every node of the most recent run's plan, nested graphs' after those of the graph around them,
 * and for the transfers that the plan needs, in the order of the run. Nodes whose results are known before the run
 * are left out. Strings are valid until `visit` returns. Returns the number of nodes that did not run on a device:
 * all of them where the session has none, and 0 when there was no run. */
SB_API int sb_session_visit_placement(sb_session *session, void (*visit)(void *context, const sb_placed_node *node),
                                      void *context);

/** What has become of the graphs of the session's most recent run's plan. */
typedef struct sb_graph_report {
    int segments;       /**< groups of steps that the device is given at once */
    int recorded;       /**< those with a graph */
    int failed;         /**< those that run one by one since recording failed */
    int64_t tasks;      /**< in all recorded graphs: kernels, copies, fills */
    int64_t edges;      /**< in graphs that were built */
    const char *reason; /**< why the first failed one did; "" when none did. Valid until the next run */
} sb_graph_report;

SB_API void sb_session_graphs(const sb_session *session, sb_graph_report *report);

/** What a run of the session's most recent plan was estimated to take, and where it is left to for that reason. Estimates
 * are rough: the device is chosen where the CPU's is more by a quarter. */
typedef struct sb_estimate {
    bool made;      /**< whether the choice was made by an estimate: only with device_if_quicker */
    bool on_device; /**< what it was; single nodes may stay on the CPU all the same */
    int nodes;    /**< views not counted; of nodes with graphs of their own the turns are counted, not what is inside */
    int threads;  /**< that the CPU would have */
    double flops; /**< as sb_model_inspect counts, where that is known */
    double bytes; /**< likewise */
    double host_us;   /**< on the CPU */
    double device_us; /**< on the device, with the copies of inputs and outputs */
} sb_estimate;

SB_API void sb_session_estimate(const sb_session *session, sb_estimate *estimate);

/** Ends the run in progress, or else the next one, with SB_ERROR_INTERRUPTED and a message that names the node.
 *
 * May be called from any thread and from a signal handler, at any time in the session's life. The run ends before
 * its next node or iteration: a node that has begun is finished first. The run that reports the interrupt has used
 * it up, and the session is ready for further runs; several interrupts before that count as one. */
SB_API void sb_session_interrupt(sb_session *session);
/** Takes back an interrupt that no run has reported yet: for interrupts (a timer's, say) that may come too late for
 * the run that they were meant for. Callable like sb_session_interrupt. */
SB_API void sb_session_clear_interrupt(sb_session *session);

#ifdef __cplusplus
}
#endif
#endif
