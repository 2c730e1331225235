/* Showing an observer what nodes have made. */
#include <time.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"
#include "runtime/task_times.h"

int64_t iv_now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

iv_status iv_runner_note_tasks(const iv_runner *runner, const char *name, const char *op, iv_error *error) {
    iv_task_times *times = runner->settings->task_times;
    return times != NULL ? iv_task_times_note(times, name, op, runner->depth, error) : IV_OK;
}

/* Whether a value can stand in for another: the plan has settled kind, dtype and extents. */
static bool same_type(iv_value left, iv_value right) {
    if (left.kind != right.kind)
        return false;
    if (left.kind == IV_KIND_SEQUENCE)
        return left.sequence->dtype == right.sequence->dtype;
    if (left.kind == IV_KIND_NONE)
        return true;
    bool same = left.tensor->dtype == right.tensor->dtype && left.tensor->rank == right.tensor->rank;
    for (int d = 0; same && d < left.tensor->rank; d++)
        same = left.tensor->dims[d] == right.tensor->dims[d];
    return same && !iv_tensor_on_device(left.tensor);
}

/* The value on the host, retained: a copy of what lies on a device. */
static iv_status on_host(const iv_runner *runner, iv_value value, iv_value *shown, iv_error *error) {
    if (iv_value_side(value) == IV_HOST) {
        *shown = iv_value_retain(value);
        return IV_OK;
    }
    iv_tensor *copy;
    IV_TRY(iv_tensor_create_uninitialised(value.tensor->dtype, value.tensor->rank, value.tensor->dims, &copy,
                                          error));
    iv_status status = iv_lane_download(runner->settings->placement.lane, copy, value.tensor, error);
    if (status != IV_OK) {
        iv_tensor_release(copy);
        return status;
    }
    *shown = iv_value_of_tensor(copy);
    return iv_runner_note_tasks(runner, NULL, NULL, error);
}

/* Whether both are the same object. */
static bool is_same(iv_value left, iv_value right) {
    return left.kind == right.kind &&
           (left.kind == IV_KIND_NONE ||
            (left.kind == IV_KIND_TENSOR ? left.tensor == right.tensor : left.sequence == right.sequence));
}

/* Gives the observer the event. `before` are the outputs as they are shown, `shown` the same, which it may replace. */
static iv_status call_observer(const iv_runner *runner, iv_call *call, iv_node_event *event,
                               const iv_value *before, iv_value *shown) {
    event->outputs = shown;
    /* What the observer keeps is its own affair. */
    iv_memory_budget *budget = iv_memory_budget_enter(NULL);
    iv_status status =
        runner->settings->observer(runner->settings->observer_context, event, call->error);
    iv_memory_budget_enter(budget);
    for (int i = 0; shown != NULL && i < call->output_count && status == IV_OK; i++) {
        if (!same_type(shown[i], before[i]))
            status = iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT,
                                  "the observer replaced output %d by a value of another type or shape", i);
        else if (!is_same(shown[i], before[i])) {
            iv_value_release(&call->outputs[i]);
            call->outputs[i] = iv_value_retain(shown[i]);
        }
    }
    return status;
}

static void describe_outputs(const iv_runner *runner, const iv_call *call, iv_node_event *event,
                             const char **names) {
    const iv_node *node = call->node;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == IV_NO_VALUE)
            continue;
        if (names != NULL)
            names[i] = runner->program->graph->values[node->outputs[i]].name;
        if (call->outputs[i].kind == IV_KIND_TENSOR)
            event->output_bytes += iv_tensor_elements(call->outputs[i].tensor) *
                                   (int64_t)iv_dtype_size(call->outputs[i].tensor->dtype);
    }
}

static iv_node_event node_event(const iv_runner *runner, const iv_call *call, const char *kernel, int64_t start,
                                int64_t end) {
    return (iv_node_event){.name = call->node->name,
                           .op = call->node->op->name,
                           .kernel = kernel,
                           .depth = runner->depth,
                           .start_ns = start,
                           .end_ns = end,
                           .on_device = call->target != NULL};
}

/* For an observer that looks at no output. */
static iv_status observe_times(iv_runner *runner, iv_call *call, iv_node_event *event) {
    describe_outputs(runner, call, event, NULL);
    return call_observer(runner, call, event, call->outputs, NULL);
}

iv_status iv_runner_observe(iv_runner *runner, iv_call *call, const char *kernel, int64_t start, int64_t end) {
    const iv_node *node = call->node;
    iv_node_event event = node_event(runner, call, kernel, start, end);
    if (runner->settings->observer_times_only)
        return observe_times(runner, call, &event);
    size_t count = (size_t)node->output_count;
    iv_value *before = iv_allocate_array(2 * count, sizeof *before);
    const char **names = iv_allocate_array(count, sizeof *names);
    iv_status status = IV_OK;
    if (before == NULL || names == NULL)
        status = iv_fail_memory(call->error, 2 * count * sizeof *before);
    iv_value *shown = before + count;
    for (size_t i = 0; i < count && status == IV_OK; i++) {
        status = on_host(runner, call->outputs[i], &before[i], call->error);
        shown[i] = iv_value_retain(before[i]);
    }
    if (status == IV_OK) {
        event.output_count = node->output_count;
        event.output_names = names;
        describe_outputs(runner, call, &event, names);
        status = call_observer(runner, call, &event, before, shown);
    }
    for (size_t i = 0; before != NULL && i < 2 * count; i++)
        iv_value_release(&before[i]);
    iv_free(before);
    iv_free(names);
    return status;
}

iv_status iv_runner_observe_transfer(const iv_runner *runner, iv_value_id value, iv_side to, int64_t bytes,
                                     int64_t start, iv_error *error) {
    if (runner->settings->observer == NULL)
        return IV_OK;
    iv_node_event event = {.name = runner->program->graph->values[value].name,
                           .op = IV_TRANSFER,
                           .kernel = to == IV_DEVICE ? "to device" : "to host",
                           .depth = runner->depth,
                           .start_ns = start,
                           .end_ns = iv_now_ns(),
                           .output_bytes = bytes,
                           .on_device = to == IV_DEVICE};
    iv_memory_budget *budget = iv_memory_budget_enter(NULL);
    iv_status status = runner->settings->observer(runner->settings->observer_context, &event, error);
    iv_memory_budget_enter(budget);
    return status;
}
