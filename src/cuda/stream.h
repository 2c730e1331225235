/* Streams, in which tasks run in order, and events, which are places in them. */
#ifndef IV_CUDA_STREAM_H
#define IV_CUDA_STREAM_H

#include "cuda/device.h"

/* One owner; one thread at a time. Keeps its device alive. */
typedef struct iv_cuda_stream {
    iv_cuda_device *device;
    CUstream handle;
    bool owned;     /* whether Invar made it */
    bool capturing; /* between iv_cuda_capture_begin and _end: tasks are not carried out */
} iv_cuda_stream;

/** Makes a stream that does not wait for the legacy stream, nor lets it wait. */
iv_status iv_cuda_stream_create(iv_cuda_device *device, iv_cuda_stream **stream, iv_error *error);
/** Uses a stream that somebody else made in the device's primary context, and who keeps it until
 * this one is destroyed. NULL stands for the legacy stream, which cannot be captured. Errors:
 * INVALID_ARGUMENT when it belongs to another context. */
iv_status iv_cuda_stream_wrap(iv_cuda_device *device, CUstream handle, iv_cuda_stream **stream,
                              iv_error *error);
/** Ends a stream; what was given to it still runs. NULL is allowed. */
void iv_cuda_stream_destroy(iv_cuda_stream *stream);
/** Waits until everything in the stream is done, and reports what failed in it. */
iv_status iv_cuda_stream_synchronize(iv_cuda_stream *stream, iv_error *error);

/* One owner. Keeps its device alive. */
typedef struct iv_cuda_event {
    iv_cuda_device *device;
    CUevent handle;
} iv_cuda_event;

/** Makes an event; only a `timed` one can be asked when it happened (which makes it slower). */
iv_status iv_cuda_event_create(iv_cuda_device *device, bool timed, iv_cuda_event **event,
                               iv_error *error);
/** NULL is allowed. */
void iv_cuda_event_destroy(iv_cuda_event *event);
/** Waits until the event has happened; an event that was never recorded has. */
iv_status iv_cuda_event_synchronize(iv_cuda_event *event, iv_error *error);
/** The time from one recorded event to another, in ns; both must be timed and have happened. */
iv_status iv_cuda_event_elapsed(const iv_cuda_event *start, const iv_cuda_event *end,
                                double *nanoseconds, iv_error *error);

/* The next two are for between iv_cuda_enter and iv_cuda_leave. */

/** Moves the event to the end of what is in the stream now. */
iv_status iv_cuda_event_record(iv_cuda_event *event, iv_cuda_stream *stream, iv_error *error);
/** Lets everything given to the stream from now on wait for the event. */
iv_status iv_cuda_stream_wait(iv_cuda_stream *stream, const iv_cuda_event *event, iv_error *error);

#endif
