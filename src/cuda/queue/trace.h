/* How long each task of a queue took on the device. */
#ifndef SB_CUDA_QUEUE_TRACE_H
#define SB_CUDA_QUEUE_TRACE_H

#include "cuda/queue/task.h"

/* A measured task. */
typedef struct sb_cuda_span {
    const char *name; /* of the task; belongs to the device */
    int step;
    double start_ns; /* since the trace was restarted, or if it never was, since its first task began */
    double end_ns;
} sb_cuda_span;

/** An empty trace for streams of `device`. The caller destroys it, after the streams have done its tasks. */
sb_status sb_cuda_trace_create(sb_cuda_device *device, sb_cuda_trace **trace, sb_error *error);
/** NULL is allowed. */
void sb_cuda_trace_destroy(sb_cuda_trace *trace);
/** Forgets all tasks, which the stream must have done, and waits for the stream: times count from then. Between
 * sb_cuda_enter and sb_cuda_leave. */
sb_status sb_cuda_trace_restart(sb_cuda_trace *trace, sb_cuda_stream *stream, sb_error *error);
int sb_cuda_trace_count(const sb_cuda_trace *trace);
/** Task `index` in the order of launching; the stream must have done it. */
sb_status sb_cuda_trace_span(const sb_cuda_trace *trace, int index, sb_cuda_span *span, sb_error *error);

/* For sb_cuda_launch, around the task: begin makes room and marks the start, end marks the end. A
 * task that failed has no end and is forgotten. */
sb_status sb_cuda_trace_begin(sb_cuda_trace *trace, sb_cuda_stream *stream, const sb_cuda_task *task, sb_error *error);
sb_status sb_cuda_trace_end(sb_cuda_trace *trace, sb_cuda_stream *stream, sb_error *error);

#endif
