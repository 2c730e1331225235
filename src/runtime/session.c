#include <samebit/session.h>

#include <fenv.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/memory_limit.h"
#include "runtime/model.h"
#include "runtime/runner.h"
#include "runtime/task_times.h"
#include "tensor/tensor_pool.h"

struct sb_session {
    sb_model *model;
    sb_queue *queue;
    char *force_cpu;
    sb_run_settings settings;
    sb_task_observer *task_observer;
    void *task_observer_context;
    sb_run_control control;
    sb_memory_budget *budget;
    sb_runner *runner;
    sb_tensor_pool *tensors; /* of runs */
    sb_value *operands;      /* of a run that is given tensors: inputs and, behind them, outputs */
    /* Symbols met while checking inputs: names (the model's) and values. */
    size_t symbol_capacity;
    const char **symbols;
    size_t value_capacity;
    int64_t *values;
};

static sb_status open_queue(sb_session *session, const sb_session_options *options, sb_error *error) {
    sb_placement *placement = &session->settings.placement;
    if (options->graphs < SB_GRAPHS_AUTO || options->graphs > SB_GRAPHS_BUILD)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%d is not an sb_graph_mode", (int)options->graphs);
    session->settings.graphs = options->graphs;
    session->settings.require_device = options->require_device;
    session->settings.device_outputs = options->device_outputs;
    if (options->device == NULL) {
        if (options->stream == NULL && !options->require_device && !options->device_outputs)
            return SB_OK;
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "sb_session_options wants something of a device (stream, require_device, device_outputs) and names "
            "none: open one with sb_device_open");
    }
    if (options->force_cpu != NULL) {
        session->force_cpu = sb_duplicate_string(options->force_cpu);
        if (session->force_cpu == NULL)
            return sb_fail_memory(error, strlen(options->force_cpu) + 1);
        placement->force_cpu = session->force_cpu;
    }
    SB_TRY(sb_queue_create(options->device, options->stream, options->dependent_launch, &session->queue, error));
    placement->queue = session->queue;
    session->task_observer = options->task_observer;
    session->task_observer_context = options->task_observer_context;
    return session->task_observer != NULL ? sb_task_times_create(session->queue, &session->settings.task_times, error)
                                          : SB_OK;
}

static sb_status fill_session(sb_session *session, const sb_session_options *options, sb_error *error) {
    SB_TRY(open_queue(session, options, error));
    SB_TRY(sb_workers_create(options->threads, &session->settings.workers, error));
    size_t operands = (size_t)session->model->entries[0].input_count + (size_t)session->model->entries[0].output_count;
    session->operands = sb_allocate_array(operands, sizeof *session->operands);
    session->tensors = sb_tensor_pool_create();
    if (session->operands == NULL || session->tensors == NULL)
        return sb_fail_memory(error, operands * sizeof *session->operands);
    return sb_runner_create(session->model->entries[0].program, &session->settings, 0, &session->runner, error);
}

sb_status sb_session_create(sb_model *model, const sb_session_options *given, sb_session **session, sb_error *error) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    if (given != NULL) {
        if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "sb_session_options has %zu bytes where this library knows %zu: start from "
                           "SB_SESSION_OPTIONS_DEFAULT",
                           given->struct_bytes, sizeof *given);
        memcpy(&options, given, given->struct_bytes);
    }
    if (options.iteration_limit < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a limit of %lld iterations: give a positive number, or 0 for none",
                       (long long)options.iteration_limit);
    if (sb_model_is_stateful(model))
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "the model has variables that its graphs update: bind a state to run it");
    sb_session *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->model = sb_model_retain(model);
    fresh->settings.observer = options.observer;
    fresh->settings.observer_context = options.observer_context;
    fresh->settings.observer_times_only = options.observer_times_only;
    fresh->settings.control = &fresh->control;
    fresh->control.iteration_limit = options.iteration_limit != 0 ? options.iteration_limit : INT64_MAX;
    sb_status status = sb_memory_limit_begin(options.memory_limit, &fresh->budget, error);
    if (status == SB_OK) {
        sb_memory_budget *outer = sb_memory_budget_enter(fresh->budget);
        status = fill_session(fresh, &options, error);
        sb_memory_budget_enter(outer);
    }
    if (status != SB_OK) {
        sb_session_destroy(fresh);
        return status;
    }
    *session = fresh;
    return SB_OK;
}

void sb_session_destroy(sb_session *session) {
    if (session == NULL)
        return;
    sb_runner_destroy(session->runner);
    sb_workers_destroy(session->settings.workers);
    sb_task_times_destroy(session->settings.task_times);
    sb_queue_destroy(session->queue);
    sb_tensor_pool_close(session->tensors);
    sb_free(session->operands);
    sb_free(session->force_cpu);
    sb_free(session->symbols);
    sb_free(session->values);
    sb_memory_budget_release(session->budget);
    sb_model_release(session->model);
    sb_free(session);
}

/* ---- inputs against the model ---- */

/* The value of symbol `name`: noted when it is new. False when memory runs out. */
static bool bind_symbol(sb_session *session, size_t *count, const char *name, int64_t *value) {
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(session->symbols[i], name) == 0) {
            *value = session->values[i];
            return true;
        }
    }
    if (!sb_grow((void **)&session->symbols, &session->symbol_capacity, *count + 1, sizeof *session->symbols) ||
        !sb_grow((void **)&session->values, &session->value_capacity, *count + 1, sizeof *session->values))
        return false;
    session->symbols[*count] = name;
    session->values[(*count)++] = *value;
    return true;
}

static sb_status check_tensor(sb_session *session, const sb_value_info *info, const sb_tensor *tensor, size_t *symbols,
                              sb_error *error) {
    const sb_fact *fact = &info->fact;
    char wanted[SB_FACT_TEXT_BYTES], given[SB_DIMS_TEXT_BYTES];
    bool fits = tensor->dtype == fact->dtype && (fact->rank == SB_RANK_UNKNOWN || fact->rank == tensor->rank);
    for (int d = 0; d < fact->rank && fits; d++) {
        int64_t extent = tensor->dims[d];
        const char *symbol = sb_dim_symbol_name(fact->dims[d]);
        if (symbol != NULL && !bind_symbol(session, symbols, symbol, &extent))
            return sb_fail_memory(error, sizeof extent);
        if (symbol == NULL)
            sb_dim_is_constant(fact->dims[d], &extent);
        fits = extent == tensor->dims[d];
        if (!fits && symbol != NULL)
            return sb_fail(error, SB_ERROR_SHAPE,
                           "input %s: extent %lld of dimension %d is called %s, which is %lld elsewhere", info->name,
                           (long long)tensor->dims[d], d, symbol, (long long)extent);
    }
    const sb_storage *storage = tensor->storage;
    if (fits && storage->device != NULL && (session->queue == NULL || storage->device != session->queue->device))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "input %s lies on device %d, and the session runs on %s: copy it with sb_tensor_to_host",
                       info->name, storage->device_index, session->queue == NULL ? "the CPU" : "another");
    if (fits)
        return SB_OK;
    return sb_fail(error, SB_ERROR_SHAPE, "input %s is %s%s where the model takes %s", info->name,
                   sb_dtype_name(tensor->dtype), sb_dims_text(tensor->rank, tensor->dims, given),
                   sb_fact_text(fact, wanted, sizeof wanted));
}

static sb_status check_inputs(sb_session *session, const sb_value *inputs, sb_error *error) {
    const sb_graph *graph = session->model->entries[0].graph;
    size_t symbols = 0;
    for (size_t i = 0; i < graph->input_count; i++) {
        const sb_value_info *info = &graph->values[graph->inputs[i]];
        if (inputs[i].kind == SB_KIND_NONE && info->fact.optional)
            continue;
        if (inputs[i].kind != info->fact.kind)
            return sb_fail(error, SB_ERROR_SHAPE, "input %s is %s where the model takes %s", info->name,
                           inputs[i].kind == SB_KIND_NONE     ? "missing"
                           : inputs[i].kind == SB_KIND_TENSOR ? "a tensor"
                                                              : "a sequence",
                           info->fact.kind == SB_KIND_TENSOR ? "a tensor" : "a sequence");
        if (inputs[i].kind == SB_KIND_TENSOR)
            SB_TRY(check_tensor(session, info, inputs[i].tensor, &symbols, error));
    }
    return SB_OK;
}

/* ---- runs ---- */

/* Runs; on a device, within its context, and waits: what the caller gets is finished, and what kernels found wrong with their
 * data is this run's failure. */
static sb_status run_where_placed(sb_session *session, const sb_value *inputs, sb_value *outputs, sb_error *error) {
    sb_queue *queue = session->settings.placement.queue;
    bool host_outputs = !session->settings.device_outputs;
    if (queue == NULL)
        return sb_runner_run(session->runner, host_outputs, inputs, outputs, error);
    sb_task_times *times = session->settings.task_times;
    SB_TRY(sb_queue_enter(queue, error));
    sb_status status = times != NULL ? sb_task_times_begin(times, error) : SB_OK;
    if (status == SB_OK)
        status = sb_runner_run(session->runner, host_outputs, inputs, outputs, error);
    sb_status waited = sb_queue_wait(queue, status == SB_OK ? error : NULL);
    status = status == SB_OK ? waited : status;
    sb_status faults = sb_runner_check_faults(session->runner, status == SB_OK ? error : NULL);
    status = status == SB_OK ? faults : status;
    if (times != NULL)
        sb_task_times_end(times);
    if (times != NULL && status == SB_OK)
        status = sb_task_times_report(times, session->task_observer, session->task_observer_context, error);
    status = sb_queue_leave(queue, status, error);
    for (int i = 0; i < session->model->entries[0].output_count && status != SB_OK; i++)
        sb_value_release(&outputs[i]);
    return status;
}

sb_status sb_session_run(sb_session *session, const sb_value *inputs, sb_value *outputs, sb_error *error) {
    sb_error unread; /* observers may fill in an error that the caller does not want */
    error = error != NULL ? error : &unread;
    for (int i = 0; i < session->model->entries[0].output_count; i++)
        outputs[i] = (sb_value){0};
    sb_memory_budget *outer = sb_memory_budget_enter(session->budget);
    sb_tensor_pool *outer_tensors = sb_tensor_pool_enter(session->tensors);
    sb_status status = check_inputs(session, inputs, error);
    if (status == SB_OK) {
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV);
        session->control.iterations = 0;
        status = run_where_placed(session, inputs, outputs, error);
        fesetenv(&caller);
    }
    sb_tensor_pool_enter(outer_tensors);
    sb_memory_budget_enter(outer);
    if (status == SB_ERROR_INTERRUPTED)
        sb_session_clear_interrupt(session);
    return status;
}

/* Signal handlers may use lock-free atomics, and nothing else happens here. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "interrupts are set from signal handlers");

void sb_session_interrupt(sb_session *session) {
    atomic_store(&session->control.interrupted, 1);
}

void sb_session_clear_interrupt(sb_session *session) {
    atomic_store(&session->control.interrupted, 0);
}

sb_status sb_session_run_tensors(sb_session *session, sb_tensor *const *inputs, sb_tensor **outputs, sb_error *error) {
    size_t input_count = (size_t)session->model->entries[0].input_count;
    size_t output_count = (size_t)session->model->entries[0].output_count;
    sb_value *values = session->operands, *results = values + input_count;
    for (size_t i = 0; i < output_count; i++)
        outputs[i] = NULL;
    for (size_t i = 0; i < input_count; i++)
        values[i] = sb_value_of_tensor(inputs[i]);
    sb_status status = sb_session_run(session, values, results, error);
    for (size_t i = 0; i < output_count && status == SB_OK; i++) {
        if (results[i].kind != SB_KIND_TENSOR)
            status = sb_fail(error, SB_ERROR_UNSUPPORTED, "output %s is not a tensor: use sb_session_run",
                             sb_model_output(session->model, (int)i)->name);
    }
    for (size_t i = 0; i < output_count; i++) {
        if (status == SB_OK)
            outputs[i] = results[i].tensor;
        else
            sb_value_release(&results[i]);
    }
    return status;
}

int sb_session_visit_placement(sb_session *session, void (*visit)(void *context, const sb_placed_node *node),
                               void *context) {
    return sb_runner_visit_placement(session->runner, visit, context);
}

const char *sb_graph_mode_name(sb_graph_mode mode) {
    static const char *const names[] = {"auto", "off", "capture", "build"};
    return mode >= SB_GRAPHS_AUTO && mode <= SB_GRAPHS_BUILD ? names[mode] : "unknown";
}

void sb_session_graphs(const sb_session *session, sb_graph_report *report) {
    sb_runner_report_graphs(session->runner, report);
}
