#include "cuda/trace.h"

#include "base/allocation.h"

typedef struct mark {
    const char *name;
    int step;
    iv_cuda_event *start, *end;
} mark;

struct iv_cuda_trace {
    iv_cuda_device *device;
    iv_cuda_event *origin; /* NULL: the start of the first task */
    mark *marks;
    size_t count, capacity; /* marks[count] is the task between begin and end; those from there on keep events for later */
};

iv_status iv_cuda_trace_create(iv_cuda_device *device, iv_cuda_trace **trace, iv_error *error) {
    iv_cuda_trace *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    created->device = iv_cuda_device_retain(device);
    *trace = created;
    return IV_OK;
}

static void clear(mark *mark) {
    iv_cuda_event_destroy(mark->start);
    iv_cuda_event_destroy(mark->end);
    *mark = (struct mark){0};
}

void iv_cuda_trace_destroy(iv_cuda_trace *trace) {
    if (trace == NULL)
        return;
    for (size_t i = 0; i < trace->capacity; i++)
        clear(&trace->marks[i]);
    iv_cuda_event_destroy(trace->origin);
    iv_free(trace->marks);
    iv_cuda_device_release(trace->device);
    iv_free(trace);
}

iv_status iv_cuda_trace_restart(iv_cuda_trace *trace, iv_cuda_stream *stream, iv_error *error) {
    trace->count = 0;
    if (trace->origin == NULL)
        IV_TRY(iv_cuda_event_create(trace->device, true, &trace->origin, error));
    IV_TRY(iv_cuda_event_record(trace->origin, stream, error));
    return iv_cuda_event_synchronize(trace->origin, error);
}

int iv_cuda_trace_count(const iv_cuda_trace *trace) {
    return (int)trace->count;
}

iv_status iv_cuda_trace_span(const iv_cuda_trace *trace, int index, iv_cuda_span *span,
                             iv_error *error) {
    const mark *mark = &trace->marks[index];
    *span = (iv_cuda_span){.name = mark->name, .step = mark->step};
    const iv_cuda_event *origin = trace->origin != NULL ? trace->origin : trace->marks[0].start;
    IV_TRY(iv_cuda_event_elapsed(origin, mark->start, &span->start_ns, error));
    return iv_cuda_event_elapsed(origin, mark->end, &span->end_ns, error);
}

iv_status iv_cuda_trace_begin(iv_cuda_trace *trace, iv_cuda_stream *stream,
                              const iv_cuda_task *task, iv_error *error) {
    size_t before = trace->capacity;
    if (!iv_grow((void **)&trace->marks, &trace->capacity, trace->count + 1, sizeof *trace->marks))
        return iv_fail_memory(error, (trace->count + 1) * sizeof *trace->marks);
    for (size_t i = before; i < trace->capacity; i++)
        trace->marks[i] = (mark){0};
    mark *mark = &trace->marks[trace->count];
    mark->name = iv_cuda_task_name(task);
    mark->step = task->step;
    /* What a task that failed has left is used by the next one. */
    if (mark->start == NULL)
        IV_TRY(iv_cuda_event_create(trace->device, true, &mark->start, error));
    if (mark->end == NULL)
        IV_TRY(iv_cuda_event_create(trace->device, true, &mark->end, error));
    return iv_cuda_event_record(mark->start, stream, error);
}

iv_status iv_cuda_trace_end(iv_cuda_trace *trace, iv_cuda_stream *stream, iv_error *error) {
    IV_TRY(iv_cuda_event_record(trace->marks[trace->count].end, stream, error));
    trace->count++;
    return IV_OK;
}
