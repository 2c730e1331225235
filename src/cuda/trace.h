/* How long each task of a queue took on the device. */
#ifndef IV_CUDA_TRACE_H
#define IV_CUDA_TRACE_H

#include "cuda/task.h"

/* A measured task. */
typedef struct iv_cuda_span {
    const char *name; /* of the task; belongs to the device */
    int step;
    double start_ns; /* since the trace was restarted, or if it never was, since its first task began */
    double end_ns;
} iv_cuda_span;

/** An empty trace for streams of `device`. The caller destroys it, after the streams have done its
 * tasks. */
iv_status iv_cuda_trace_create(iv_cuda_device *device, iv_cuda_trace **trace, iv_error *error);
/** NULL is allowed. */
void iv_cuda_trace_destroy(iv_cuda_trace *trace);
/** Forgets all tasks, which the stream must have done, and waits for the stream: times count from then. Between iv_cuda_enter
 * and iv_cuda_leave. */
iv_status iv_cuda_trace_restart(iv_cuda_trace *trace, iv_cuda_stream *stream, iv_error *error);
int iv_cuda_trace_count(const iv_cuda_trace *trace);
/** Task `index` in the order of launching; the stream must have done it. */
iv_status iv_cuda_trace_span(const iv_cuda_trace *trace, int index, iv_cuda_span *span,
                             iv_error *error);

/* For iv_cuda_launch, around the task: begin makes room and marks the start, end marks the end. A
 * task that failed has no end and is forgotten. */
iv_status iv_cuda_trace_begin(iv_cuda_trace *trace, iv_cuda_stream *stream,
                              const iv_cuda_task *task, iv_error *error);
iv_status iv_cuda_trace_end(iv_cuda_trace *trace, iv_cuda_stream *stream, iv_error *error);

#endif
