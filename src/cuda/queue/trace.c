#include "cuda/queue/trace.h"

#include "base/allocation.h"

typedef struct mark {
    const char *name;
    int step;
    sb_cuda_event *start, *end;
} mark;

struct sb_cuda_trace {
    sb_cuda_device *device;
    sb_cuda_event *origin; /* NULL: the start of the first task */
    mark *marks;
    size_t count,
        capacity; /* marks[count] is the task between begin and end; those from there on keep events for later */
};

sb_status sb_cuda_trace_create(sb_cuda_device *device, sb_cuda_trace **trace, sb_error *error) {
    sb_cuda_trace *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->device = sb_cuda_device_retain(device);
    *trace = created;
    return SB_OK;
}

static void clear(mark *mark) {
    sb_cuda_event_destroy(mark->start);
    sb_cuda_event_destroy(mark->end);
    *mark = (struct mark){0};
}

void sb_cuda_trace_destroy(sb_cuda_trace *trace) {
    if (trace == NULL)
        return;
    for (size_t i = 0; i < trace->capacity; i++)
        clear(&trace->marks[i]);
    sb_cuda_event_destroy(trace->origin);
    sb_free(trace->marks);
    sb_cuda_device_release(trace->device);
    sb_free(trace);
}

sb_status sb_cuda_trace_restart(sb_cuda_trace *trace, sb_cuda_stream *stream, sb_error *error) {
    trace->count = 0;
    if (trace->origin == NULL)
        SB_TRY(sb_cuda_event_create(trace->device, true, &trace->origin, error));
    SB_TRY(sb_cuda_event_record(trace->origin, stream, error));
    return sb_cuda_event_synchronize(trace->origin, error);
}

int sb_cuda_trace_count(const sb_cuda_trace *trace) {
    return (int)trace->count;
}

sb_status sb_cuda_trace_span(const sb_cuda_trace *trace, int index, sb_cuda_span *span, sb_error *error) {
    const mark *mark = &trace->marks[index];
    *span = (sb_cuda_span){.name = mark->name, .step = mark->step};
    const sb_cuda_event *origin = trace->origin != NULL ? trace->origin : trace->marks[0].start;
    SB_TRY(sb_cuda_event_elapsed(origin, mark->start, &span->start_ns, error));
    return sb_cuda_event_elapsed(origin, mark->end, &span->end_ns, error);
}

sb_status sb_cuda_trace_begin(sb_cuda_trace *trace, sb_cuda_stream *stream, const sb_cuda_task *task, sb_error *error) {
    size_t before = trace->capacity;
    if (!sb_grow((void **)&trace->marks, &trace->capacity, trace->count + 1, sizeof *trace->marks))
        return sb_fail_memory(error, (trace->count + 1) * sizeof *trace->marks);
    for (size_t i = before; i < trace->capacity; i++)
        trace->marks[i] = (mark){0};
    mark *mark = &trace->marks[trace->count];
    mark->name = sb_cuda_task_name(task);
    mark->step = task->step;
    /* What a task that failed has left is used by the next one. */
    if (mark->start == NULL)
        SB_TRY(sb_cuda_event_create(trace->device, true, &mark->start, error));
    if (mark->end == NULL)
        SB_TRY(sb_cuda_event_create(trace->device, true, &mark->end, error));
    return sb_cuda_event_record(mark->start, stream, error);
}

sb_status sb_cuda_trace_end(sb_cuda_trace *trace, sb_cuda_stream *stream, sb_error *error) {
    SB_TRY(sb_cuda_event_record(trace->marks[trace->count].end, stream, error));
    trace->count++;
    return SB_OK;
}
