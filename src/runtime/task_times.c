#include "runtime/task_times.h"

#include "base/allocation.h"
#include "runtime/runner_internal.h"

/* The clocks are read together until the two readings of the host's are this close,
 * which bounds the error, or so often. */
#define CLOSE_NS 20000
#define MOST_READINGS 8

/* What the tasks before `end` were for, from the end of the entry before. */
typedef struct purpose {
    const char *name, *op;
    int depth, end;
} purpose;

struct sb_task_times {
    sb_queue *queue;
    sb_trace *trace;
    int64_t origin_ns; /* of the trace, by the monotonic clock */
    purpose *purposes;
    size_t count, capacity;
};

sb_status sb_task_times_create(sb_queue *queue, sb_task_times **times, sb_error *error) {
    sb_task_times *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->queue = queue;
    sb_status status = sb_trace_create(queue, &created->trace, error);
    if (status != SB_OK) {
        sb_free(created);
        return status;
    }
    *times = created;
    return SB_OK;
}

void sb_task_times_destroy(sb_task_times *times) {
    if (times == NULL)
        return;
    sb_task_times_end(times);
    sb_trace_destroy(times->queue, times->trace);
    sb_free(times->purposes);
    sb_free(times);
}

sb_status sb_task_times_begin(sb_task_times *times, sb_error *error) {
    times->count = 0;
    int64_t before = 0, after = CLOSE_NS;
    for (int i = 0; i < MOST_READINGS && after - before >= CLOSE_NS; i++) {
        before = sb_now_ns();
        SB_TRY(sb_trace_restart(times->queue, times->trace, error));
        after = sb_now_ns();
    }
    times->origin_ns = before + (after - before) / 2;
    sb_queue_measure(times->queue, times->trace);
    return SB_OK;
}

sb_status sb_task_times_note(sb_task_times *times, const char *name, const char *op, int depth, sb_error *error) {
    int end = sb_trace_count(times->queue, times->trace);
    if (end == (times->count > 0 ? times->purposes[times->count - 1].end : 0))
        return SB_OK;
    if (!sb_grow((void **)&times->purposes, &times->capacity, times->count + 1, sizeof *times->purposes))
        return sb_fail_memory(error, (times->count + 1) * sizeof *times->purposes);
    times->purposes[times->count++] = (purpose){name, op, depth, end};
    return SB_OK;
}

void sb_task_times_end(sb_task_times *times) {
    sb_queue_measure(times->queue, NULL);
}

static sb_status fill_spans(const sb_task_times *times, sb_task_span *spans, size_t count, sb_error *error) {
    size_t p = 0;
    for (size_t i = 0; i < count; i++) {
        sb_measured_task span;
        SB_TRY(sb_trace_task(times->queue, times->trace, (int)i, &span, error));
        while (p < times->count && times->purposes[p].end <= (int)i)
            p++;
        const purpose *purpose = p < times->count ? &times->purposes[p] : NULL;
        spans[i] = (sb_task_span){.task = span.name,
                                  .name = purpose != NULL ? purpose->name : NULL,
                                  .op = purpose != NULL ? purpose->op : NULL,
                                  .depth = purpose != NULL ? purpose->depth : 0,
                                  .start_ns = times->origin_ns + (int64_t)span.start_ns,
                                  .end_ns = times->origin_ns + (int64_t)span.end_ns};
    }
    return SB_OK;
}

sb_status sb_task_times_report(const sb_task_times *times, sb_task_observer *observer, void *context, sb_error *error) {
    size_t count = (size_t)sb_trace_count(times->queue, times->trace);
    sb_task_span *spans = sb_allocate_array(count, sizeof *spans);
    if (spans == NULL)
        return sb_fail_memory(error, count * sizeof *spans);
    sb_status status = fill_spans(times, spans, count, error);
    if (status == SB_OK) {
        /* What the observer keeps is its own affair. */
        sb_memory_budget *budget = sb_memory_budget_enter(NULL);
        status = observer(context, spans, count, error);
        sb_memory_budget_enter(budget);
    }
    sb_free(spans);
    return status;
}
