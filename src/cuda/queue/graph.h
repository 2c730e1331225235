/* Graphs: many tasks that are given to a stream at once. One comes from capturing a stream, or is built from a list of
 * tasks with edges where tasks conflict, so that independent ones may run side by side. */
#ifndef SB_CUDA_QUEUE_GRAPH_H
#define SB_CUDA_QUEUE_GRAPH_H

#include "cuda/queue/task.h"

/* Keeps its device alive; the memory and the modules that its tasks use are its maker's to keep.
 * One owner, and one launch at a time. */
typedef struct sb_cuda_graph {
    sb_cuda_device *device;
    CUgraphExec executable;
    int task_count;
    int edge_count;    /* of a built graph … */
    int settled_count; /* … and its kernels that read something before those ahead have ended (sb_cuda_settled) */
    sb_cuda_counters tasks; /* what one launch adds to the device's counters */
} sb_cuda_graph;

/* Capturing. Between begin and end the tasks given to the queue are not carried out but become
 * nodes. Until then this thread must not allocate or free memory of the device or of the host
 * (pinned), load kernels, or wait for the stream: the driver forbids it and gives up the capture.
 * Other threads may. */

/** Begins to capture the queue's stream, which is not the legacy one, between sb_cuda_enter and
 * sb_cuda_leave. The queue has a list, which is cleared, and no trace. */
sb_status sb_cuda_capture_begin(const sb_cuda_queue *queue, sb_error *error);
/** Ends what begin began, within the same enter and leave. `status` is how giving the tasks went:
 * if it is not SB_OK, what was captured is thrown away and `status` given back with the error as it
 * is. INTERNAL when the driver has captured another number of tasks than were recorded. Whatever
 * happens, the stream can be used again. */
sb_status sb_cuda_capture_end(const sb_cuda_queue *queue, sb_status status, sb_cuda_graph **graph, sb_error *error);

/** Builds a graph of the tasks of a list: a task waits for every earlier one that it conflicts with, by way of as few
 * edges as that takes. With `dependent_launch`, kernels wait for kernels as common/kernel.cuh says, and are told where no kernel before
 * them in the list writes what they may read ahead. */
sb_status sb_cuda_graph_build(sb_cuda_device *device, const sb_cuda_task_list *list, bool dependent_launch,
                              sb_cuda_graph **graph, sb_error *error);

/** Gives all tasks of the graph to a stream of its device, between sb_cuda_enter and sb_cuda_leave. */
sb_status sb_cuda_graph_launch(const sb_cuda_graph *graph, sb_cuda_stream *stream, sb_error *error);
/** The stream must have done what was launched. NULL is allowed. */
void sb_cuda_graph_destroy(sb_cuda_graph *graph);

#endif
