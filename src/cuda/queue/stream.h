/* Streams, in which tasks run in order, and events, which are places in them. */
#ifndef SB_CUDA_QUEUE_STREAM_H
#define SB_CUDA_QUEUE_STREAM_H

#include "cuda/driver/device.h"

/* One owner; one thread at a time. Keeps its device alive. */
typedef struct sb_cuda_stream {
    sb_cuda_device *device;
    CUstream handle;
    bool owned;     /* whether Samebit made it */
    bool capturing; /* between sb_cuda_capture_begin and _end: tasks are not carried out */
} sb_cuda_stream;

/** Makes a stream that does not wait for the legacy stream, nor lets it wait. */
sb_status sb_cuda_stream_create(sb_cuda_device *device, sb_cuda_stream **stream, sb_error *error);
/** Uses a stream that somebody else made in the device's primary context, and who keeps it until
 * this one is destroyed. NULL stands for the legacy stream, which cannot be captured. Errors:
 * INVALID_ARGUMENT when it belongs to another context. */
sb_status sb_cuda_stream_wrap(sb_cuda_device *device, CUstream handle, sb_cuda_stream **stream, sb_error *error);
/** Ends a stream; what was given to it still runs. NULL is allowed. */
void sb_cuda_stream_destroy(sb_cuda_stream *stream);
/** Waits until everything in the stream is done, and reports what failed in it. */
sb_status sb_cuda_stream_synchronize(sb_cuda_stream *stream, sb_error *error);

/* One owner. Keeps its device alive. */
typedef struct sb_cuda_event {
    sb_cuda_device *device;
    CUevent handle;
} sb_cuda_event;

/** Makes an event; only a `timed` one can be asked when it happened (which makes it slower). */
sb_status sb_cuda_event_create(sb_cuda_device *device, bool timed, sb_cuda_event **event, sb_error *error);
/** NULL is allowed. */
void sb_cuda_event_destroy(sb_cuda_event *event);
/** Whether the event has happened, without waiting; an event that was never recorded has.
 * Reports what failed before it. */
sb_status sb_cuda_event_reached(const sb_cuda_event *event, bool *reached, sb_error *error);
/** Waits until the event has happened; an event that was never recorded has. */
sb_status sb_cuda_event_synchronize(const sb_cuda_event *event, sb_error *error);
/** The time from one recorded event to another, in ns; both must be timed and have happened. */
sb_status sb_cuda_event_elapsed(const sb_cuda_event *start, const sb_cuda_event *end, double *nanoseconds,
                                sb_error *error);

/* The next two are for between sb_cuda_enter and sb_cuda_leave. */

/** Moves the event to the end of what is in the stream now. */
sb_status sb_cuda_event_record(sb_cuda_event *event, sb_cuda_stream *stream, sb_error *error);
/** Lets everything given to the stream from now on wait for the event. */
sb_status sb_cuda_stream_wait(sb_cuda_stream *stream, const sb_cuda_event *event, sb_error *error);

#endif
