#include "runtime/task_times.h"

#include "base/allocation.h"
#include "cuda/trace.h"
#include "runtime/runner_internal.h"

/* The clocks are read together until the two readings of the host's are this close, which bounds the error, or so often. */
#define CLOSE_NS 20000
#define MOST_READINGS 8

/* What the tasks before `end` were for, from the end of the entry before. */
typedef struct purpose {
    const char *name, *op;
    int depth, end;
} purpose;

struct iv_task_times {
    iv_lane *lane;
    iv_cuda_trace *trace;
    int64_t origin_ns; /* of the trace, by the monotonic clock */
    purpose *purposes;
    size_t count, capacity;
};

iv_status iv_task_times_create(iv_lane *lane, iv_task_times **times, iv_error *error) {
    iv_task_times *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    created->lane = lane;
    iv_status status = iv_cuda_trace_create(lane->device, &created->trace, error);
    if (status != IV_OK) {
        iv_free(created);
        return status;
    }
    *times = created;
    return IV_OK;
}

void iv_task_times_destroy(iv_task_times *times) {
    if (times == NULL)
        return;
    iv_task_times_end(times);
    iv_cuda_trace_destroy(times->trace);
    iv_free(times->purposes);
    iv_free(times);
}

iv_status iv_task_times_begin(iv_task_times *times, iv_error *error) {
    times->count = 0;
    int64_t before = 0, after = CLOSE_NS;
    for (int i = 0; i < MOST_READINGS && after - before >= CLOSE_NS; i++) {
        before = iv_now_ns();
        IV_TRY(iv_cuda_trace_restart(times->trace, times->lane->queue.stream, error));
        after = iv_now_ns();
    }
    times->origin_ns = before + (after - before) / 2;
    times->lane->queue.trace = times->trace;
    return IV_OK;
}

iv_status iv_task_times_note(iv_task_times *times, const char *name, const char *op, int depth, iv_error *error) {
    int end = iv_cuda_trace_count(times->trace);
    if (end == (times->count > 0 ? times->purposes[times->count - 1].end : 0))
        return IV_OK;
    if (!iv_grow((void **)&times->purposes, &times->capacity, times->count + 1, sizeof *times->purposes))
        return iv_fail_memory(error, (times->count + 1) * sizeof *times->purposes);
    times->purposes[times->count++] = (purpose){name, op, depth, end};
    return IV_OK;
}

void iv_task_times_end(iv_task_times *times) {
    times->lane->queue.trace = NULL;
}

static iv_status fill_spans(const iv_task_times *times, iv_task_span *spans, size_t count, iv_error *error) {
    size_t p = 0;
    for (size_t i = 0; i < count; i++) {
        iv_cuda_span span;
        IV_TRY(iv_cuda_trace_span(times->trace, (int)i, &span, error));
        while (p < times->count && times->purposes[p].end <= (int)i)
            p++;
        const purpose *purpose = p < times->count ? &times->purposes[p] : NULL;
        spans[i] = (iv_task_span){.task = span.name,
                                  .name = purpose != NULL ? purpose->name : NULL,
                                  .op = purpose != NULL ? purpose->op : NULL,
                                  .depth = purpose != NULL ? purpose->depth : 0,
                                  .start_ns = times->origin_ns + (int64_t)span.start_ns,
                                  .end_ns = times->origin_ns + (int64_t)span.end_ns};
    }
    return IV_OK;
}

iv_status iv_task_times_report(const iv_task_times *times, iv_task_observer *observer, void *context,
                               iv_error *error) {
    size_t count = (size_t)iv_cuda_trace_count(times->trace);
    iv_task_span *spans = iv_allocate_array(count, sizeof *spans);
    if (spans == NULL)
        return iv_fail_memory(error, count * sizeof *spans);
    iv_status status = fill_spans(times, spans, count, error);
    if (status == IV_OK) {
        /* What the observer keeps is its own affair. */
        iv_memory_budget *budget = iv_memory_budget_enter(NULL);
        status = observer(context, spans, count, error);
        iv_memory_budget_enter(budget);
    }
    iv_free(spans);
    return status;
}
