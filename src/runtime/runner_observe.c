/* Showing an observer what nodes have made. */
#include <time.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"
#include "runtime/task_times.h"

int64_t sb_now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

sb_status sb_runner_note_tasks(const sb_runner *runner, const char *name, const char *op, sb_error *error) {
    sb_task_times *times = runner->settings->task_times;
    return times != NULL ? sb_task_times_note(times, name, op, runner->depth, error) : SB_OK;
}

/* Whether a value can stand in for another: the plan has settled kind, dtype and extents. */
static bool same_type(sb_value left, sb_value right) {
    if (left.kind != right.kind)
        return false;
    if (left.kind == SB_KIND_SEQUENCE)
        return left.sequence->dtype == right.sequence->dtype;
    if (left.kind == SB_KIND_NONE)
        return true;
    bool same = left.tensor->dtype == right.tensor->dtype && left.tensor->rank == right.tensor->rank;
    for (int d = 0; same && d < left.tensor->rank; d++)
        same = left.tensor->dims[d] == right.tensor->dims[d];
    return same && !sb_tensor_on_device(left.tensor);
}

/* The value on the host, retained: a copy of what lies on a device. */
static sb_status on_host(const sb_runner *runner, sb_value value, sb_value *shown, sb_error *error) {
    if (sb_value_side(value) == SB_HOST) {
        *shown = sb_value_retain(value);
        return SB_OK;
    }
    sb_tensor *copy;
    SB_TRY(sb_tensor_create_uninitialised(value.tensor->dtype, value.tensor->rank, value.tensor->dims, &copy, error));
    sb_status status = sb_queue_download(runner->settings->placement.queue, copy, value.tensor, error);
    if (status != SB_OK) {
        sb_tensor_release(copy);
        return status;
    }
    *shown = sb_value_of_tensor(copy);
    return sb_runner_note_tasks(runner, NULL, NULL, error);
}

/* Whether both are the same object. */
static bool is_same(sb_value left, sb_value right) {
    return left.kind == right.kind &&
           (left.kind == SB_KIND_NONE ||
            (left.kind == SB_KIND_TENSOR ? left.tensor == right.tensor : left.sequence == right.sequence));
}

/* Gives the observer the event. `before` are the outputs as they are shown, `shown` the same, which it may replace. */
static sb_status call_observer(const sb_runner *runner, sb_call *call, sb_node_event *event, const sb_value *before,
                               sb_value *shown) {
    event->outputs = shown;
    /* What the observer keeps is its own affair. */
    sb_memory_budget *budget = sb_memory_budget_enter(NULL);
    sb_status status = runner->settings->observer(runner->settings->observer_context, event, call->error);
    sb_memory_budget_enter(budget);
    for (int i = 0; shown != NULL && i < call->output_count && status == SB_OK; i++) {
        if (!same_type(shown[i], before[i]))
            status = sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT,
                                  "the observer replaced output %d by a value of another type or shape", i);
        else if (!is_same(shown[i], before[i])) {
            sb_value_release(&call->outputs[i]);
            call->outputs[i] = sb_value_retain(shown[i]);
        }
    }
    return status;
}

static void describe_outputs(const sb_runner *runner, const sb_call *call, sb_node_event *event, const char **names) {
    const sb_node *node = call->node;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == SB_NO_VALUE)
            continue;
        if (names != NULL)
            names[i] = runner->program->graph->values[node->outputs[i]].name;
        if (call->outputs[i].kind == SB_KIND_TENSOR)
            event->output_bytes +=
                sb_tensor_elements(call->outputs[i].tensor) * (int64_t)sb_dtype_size(call->outputs[i].tensor->dtype);
    }
}

static sb_node_event node_event(const sb_runner *runner, const sb_call *call, const char *kernel, int64_t start,
                                int64_t end) {
    return (sb_node_event){.name = call->node->name,
                           .op = call->node->op->name,
                           .kernel = kernel,
                           .depth = runner->depth,
                           .start_ns = start,
                           .end_ns = end,
                           .on_device = call->target != NULL};
}

/* For an observer that looks at no output. */
static sb_status observe_times(sb_runner *runner, sb_call *call, sb_node_event *event) {
    describe_outputs(runner, call, event, NULL);
    return call_observer(runner, call, event, call->outputs, NULL);
}

sb_status sb_runner_observe(sb_runner *runner, sb_call *call, const char *kernel, int64_t start, int64_t end) {
    const sb_node *node = call->node;
    sb_node_event event = node_event(runner, call, kernel, start, end);
    if (runner->settings->observer_times_only)
        return observe_times(runner, call, &event);
    size_t count = (size_t)node->output_count;
    sb_value *before = sb_allocate_array(2 * count, sizeof *before);
    const char **names = sb_allocate_array(count, sizeof *names);
    sb_status status = SB_OK;
    if (before == NULL || names == NULL)
        status = sb_fail_memory(call->error, 2 * count * sizeof *before);
    sb_value *shown = before + count;
    for (size_t i = 0; i < count && status == SB_OK; i++) {
        status = on_host(runner, call->outputs[i], &before[i], call->error);
        shown[i] = sb_value_retain(before[i]);
    }
    if (status == SB_OK) {
        event.output_count = node->output_count;
        event.output_names = names;
        describe_outputs(runner, call, &event, names);
        status = call_observer(runner, call, &event, before, shown);
    }
    for (size_t i = 0; before != NULL && i < 2 * count; i++)
        sb_value_release(&before[i]);
    sb_free(before);
    sb_free(names);
    return status;
}

sb_status sb_runner_observe_transfer(const sb_runner *runner, sb_value_id value, sb_side to, int64_t bytes,
                                     int64_t start, sb_error *error) {
    if (runner->settings->observer == NULL)
        return SB_OK;
    sb_node_event event = {.name = runner->program->graph->values[value].name,
                           .op = SB_TRANSFER,
                           .kernel = to == SB_DEVICE ? "to device" : "to host",
                           .depth = runner->depth,
                           .start_ns = start,
                           .end_ns = sb_now_ns(),
                           .output_bytes = bytes,
                           .on_device = to == SB_DEVICE};
    sb_memory_budget *budget = sb_memory_budget_enter(NULL);
    sb_status status = runner->settings->observer(runner->settings->observer_context, &event, error);
    sb_memory_budget_enter(budget);
    return status;
}
