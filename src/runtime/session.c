#include <invar/session.h>

#include <fenv.h>
#include <string.h>

#include "base/allocation.h"
#include "cuda/device_open.h"
#include "runtime/memory_limit.h"
#include "runtime/model.h"
#include "runtime/runner.h"
#include "runtime/task_times.h"
#include "tensor/tensor_pool.h"

struct iv_session {
    iv_model *model;
    iv_lane *lane;
    char *force_cpu;
    iv_run_settings settings;
    iv_task_observer *task_observer;
    void *task_observer_context;
    iv_run_control control;
    iv_memory_budget *budget;
    iv_runner *runner;
    iv_tensor_pool *tensors; /* of runs */
    iv_value *operands;      /* of a run that is given tensors: inputs and, behind them, outputs */
    /* Symbols met while checking inputs: names (the model's) and values. */
    size_t symbol_capacity;
    const char **symbols;
    size_t value_capacity;
    int64_t *values;
};

static iv_status open_lane(iv_session *session, const iv_session_options *options, iv_error *error) {
    iv_placement *placement = &session->settings.placement;
    if (options->graphs < IV_GRAPHS_AUTO || options->graphs > IV_GRAPHS_BUILD)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "%d is not an iv_graph_mode", (int)options->graphs);
    session->settings.graphs = options->graphs;
    session->settings.require_device = options->require_device;
    session->settings.device_outputs = options->device_outputs;
    if (options->device == NULL) {
        if (options->stream == NULL && !options->require_device && !options->device_outputs)
            return IV_OK;
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "iv_session_options wants something of a device (stream, require_device, device_outputs) and names "
                       "none: open one with iv_device_open");
    }
    if (options->force_cpu != NULL) {
        session->force_cpu = iv_duplicate_string(options->force_cpu);
        if (session->force_cpu == NULL)
            return iv_fail_memory(error, strlen(options->force_cpu) + 1);
        placement->force_cpu = session->force_cpu;
    }
    IV_TRY(iv_lane_create(options->device->cuda, options->stream, &session->lane, error));
    session->lane->queue.dependent_launch = options->dependent_launch;
    placement->lane = session->lane;
    session->task_observer = options->task_observer;
    session->task_observer_context = options->task_observer_context;
    return session->task_observer != NULL
               ? iv_task_times_create(session->lane, &session->settings.task_times, error)
               : IV_OK;
}

static iv_status fill_session(iv_session *session, const iv_session_options *options, iv_error *error) {
    IV_TRY(open_lane(session, options, error));
    /* Threads inherit the floating-point environment: the contract's is the default one (nearest even, subnormals kept). */
    fenv_t caller;
    fegetenv(&caller);
    fesetenv(FE_DFL_ENV);
    iv_status status = iv_workers_create(options->threads, &session->settings.workers, error);
    fesetenv(&caller);
    IV_TRY(status);
    size_t operands = (size_t)session->model->input_count + (size_t)session->model->output_count;
    session->operands = iv_allocate_array(operands, sizeof *session->operands);
    session->tensors = iv_tensor_pool_create();
    if (session->operands == NULL || session->tensors == NULL)
        return iv_fail_memory(error, operands * sizeof *session->operands);
    return iv_runner_create(session->model->program, &session->settings, 0, &session->runner, error);
}

iv_status iv_session_create(iv_model *model, const iv_session_options *given, iv_session **session,
                            iv_error *error) {
    iv_session_options options = IV_SESSION_OPTIONS_DEFAULT;
    if (given != NULL) {
        if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
            return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                           "iv_session_options has %zu bytes where this library knows %zu: start from "
                           "IV_SESSION_OPTIONS_DEFAULT",
                           given->struct_bytes, sizeof *given);
        memcpy(&options, given, given->struct_bytes);
    }
    if (options.iteration_limit < 0)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "a limit of %lld iterations: give a positive number, or 0 for none",
                       (long long)options.iteration_limit);
    iv_session *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->model = iv_model_retain(model);
    fresh->settings.observer = options.observer;
    fresh->settings.observer_context = options.observer_context;
    fresh->settings.observer_times_only = options.observer_times_only;
    fresh->settings.control = &fresh->control;
    fresh->control.iteration_limit = options.iteration_limit != 0 ? options.iteration_limit : INT64_MAX;
    iv_status status = iv_memory_limit_begin(options.memory_limit, &fresh->budget, error);
    if (status == IV_OK) {
        iv_memory_budget *outer = iv_memory_budget_enter(fresh->budget);
        status = fill_session(fresh, &options, error);
        iv_memory_budget_enter(outer);
    }
    if (status != IV_OK) {
        iv_session_destroy(fresh);
        return status;
    }
    *session = fresh;
    return IV_OK;
}

void iv_session_destroy(iv_session *session) {
    if (session == NULL)
        return;
    iv_runner_destroy(session->runner);
    iv_workers_destroy(session->settings.workers);
    iv_task_times_destroy(session->settings.task_times);
    iv_lane_destroy(session->lane);
    iv_tensor_pool_close(session->tensors);
    iv_free(session->operands);
    iv_free(session->force_cpu);
    iv_free(session->symbols);
    iv_free(session->values);
    iv_memory_budget_release(session->budget);
    iv_model_release(session->model);
    iv_free(session);
}

/* ---- inputs against the model ---- */

/* The value of symbol `name`: noted when it is new. False when memory runs out. */
static bool bind_symbol(iv_session *session, size_t *count, const char *name, int64_t *value) {
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(session->symbols[i], name) == 0) {
            *value = session->values[i];
            return true;
        }
    }
    if (!iv_grow((void **)&session->symbols, &session->symbol_capacity, *count + 1,
                 sizeof *session->symbols) ||
        !iv_grow((void **)&session->values, &session->value_capacity, *count + 1,
                 sizeof *session->values))
        return false;
    session->symbols[*count] = name;
    session->values[(*count)++] = *value;
    return true;
}

static iv_status check_tensor(iv_session *session, const iv_value_info *info, const iv_tensor *tensor,
                              size_t *symbols, iv_error *error) {
    const iv_fact *fact = &info->fact;
    char wanted[IV_FACT_TEXT_BYTES], given[IV_DIMS_TEXT_BYTES];
    bool fits = tensor->dtype == fact->dtype &&
                (fact->rank == IV_RANK_UNKNOWN || fact->rank == tensor->rank);
    for (int d = 0; d < fact->rank && fits; d++) {
        int64_t extent = tensor->dims[d];
        const char *symbol = iv_dim_symbol_name(fact->dims[d]);
        if (symbol != NULL && !bind_symbol(session, symbols, symbol, &extent))
            return iv_fail_memory(error, sizeof extent);
        if (symbol == NULL)
            iv_dim_is_constant(fact->dims[d], &extent);
        fits = extent == tensor->dims[d];
        if (!fits && symbol != NULL)
            return iv_fail(error, IV_ERROR_SHAPE,
                           "input %s: extent %lld of dimension %d is called %s, which is %lld elsewhere",
                           info->name, (long long)tensor->dims[d], d, symbol, (long long)extent);
    }
    const iv_cuda_device *lies_on = tensor->storage->device;
    if (fits && lies_on != NULL && (session->lane == NULL || lies_on != session->lane->device))
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "input %s lies on device %d, and the session runs on %s: copy it with iv_tensor_to_host", info->name,
                       lies_on->index, session->lane == NULL ? "the CPU" : "another");
    if (fits)
        return IV_OK;
    return iv_fail(error, IV_ERROR_SHAPE, "input %s is %s%s where the model takes %s", info->name,
                   iv_dtype_name(tensor->dtype), iv_dims_text(tensor->rank, tensor->dims, given),
                   iv_fact_text(fact, wanted, sizeof wanted));
}

static iv_status check_inputs(iv_session *session, const iv_value *inputs, iv_error *error) {
    const iv_graph *graph = session->model->graph;
    size_t symbols = 0;
    for (size_t i = 0; i < graph->input_count; i++) {
        const iv_value_info *info = &graph->values[graph->inputs[i]];
        if (inputs[i].kind == IV_KIND_NONE && info->fact.optional)
            continue;
        if (inputs[i].kind != info->fact.kind)
            return iv_fail(error, IV_ERROR_SHAPE, "input %s is %s where the model takes %s", info->name,
                           inputs[i].kind == IV_KIND_NONE     ? "missing"
                           : inputs[i].kind == IV_KIND_TENSOR ? "a tensor"
                                                              : "a sequence",
                           info->fact.kind == IV_KIND_TENSOR ? "a tensor" : "a sequence");
        if (inputs[i].kind == IV_KIND_TENSOR)
            IV_TRY(check_tensor(session, info, inputs[i].tensor, &symbols, error));
    }
    return IV_OK;
}

/* ---- runs ---- */

/* Runs; on a device, within its context, and waits: what the caller gets is finished, and what kernels found wrong with their
 * data is this run's failure. */
static iv_status run_where_placed(iv_session *session, const iv_value *inputs, iv_value *outputs, iv_error *error) {
    iv_lane *lane = session->settings.placement.lane;
    bool host_outputs = !session->settings.device_outputs;
    if (lane == NULL)
        return iv_runner_run(session->runner, host_outputs, inputs, outputs, error);
    iv_task_times *times = session->settings.task_times;
    IV_TRY(iv_cuda_enter(lane->device, error));
    iv_status status = times != NULL ? iv_task_times_begin(times, error) : IV_OK;
    if (status == IV_OK)
        status = iv_runner_run(session->runner, host_outputs, inputs, outputs, error);
    iv_status waited = iv_lane_wait(lane, status == IV_OK ? error : NULL);
    status = status == IV_OK ? waited : status;
    iv_status faults = iv_runner_check_faults(session->runner, status == IV_OK ? error : NULL);
    status = status == IV_OK ? faults : status;
    if (times != NULL)
        iv_task_times_end(times);
    if (times != NULL && status == IV_OK)
        status = iv_task_times_report(times, session->task_observer, session->task_observer_context, error);
    status = iv_cuda_leave(lane->device, status, error);
    for (int i = 0; i < session->model->output_count && status != IV_OK; i++)
        iv_value_release(&outputs[i]);
    return status;
}

iv_status iv_session_run(iv_session *session, const iv_value *inputs, iv_value *outputs,
                         iv_error *error) {
    iv_error unread; /* observers may fill in an error that the caller does not want */
    error = error != NULL ? error : &unread;
    for (int i = 0; i < session->model->output_count; i++)
        outputs[i] = (iv_value){0};
    iv_memory_budget *outer = iv_memory_budget_enter(session->budget);
    iv_tensor_pool *outer_tensors = iv_tensor_pool_enter(session->tensors);
    iv_status status = check_inputs(session, inputs, error);
    if (status == IV_OK) {
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV);
        session->control.iterations = 0;
        status = run_where_placed(session, inputs, outputs, error);
        fesetenv(&caller);
    }
    iv_tensor_pool_enter(outer_tensors);
    iv_memory_budget_enter(outer);
    if (status == IV_ERROR_INTERRUPTED)
        iv_session_clear_interrupt(session);
    return status;
}

/* Signal handlers may use lock-free atomics, and nothing else happens here. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "interrupts are set from signal handlers");

void iv_session_interrupt(iv_session *session) {
    atomic_store(&session->control.interrupted, 1);
}

void iv_session_clear_interrupt(iv_session *session) {
    atomic_store(&session->control.interrupted, 0);
}

iv_status iv_session_run_tensors(iv_session *session, iv_tensor *const *inputs, iv_tensor **outputs,
                                 iv_error *error) {
    size_t input_count = (size_t)session->model->input_count;
    size_t output_count = (size_t)session->model->output_count;
    iv_value *values = session->operands, *results = values + input_count;
    for (size_t i = 0; i < output_count; i++)
        outputs[i] = NULL;
    for (size_t i = 0; i < input_count; i++)
        values[i] = iv_value_of_tensor(inputs[i]);
    iv_status status = iv_session_run(session, values, results, error);
    for (size_t i = 0; i < output_count && status == IV_OK; i++) {
        if (results[i].kind != IV_KIND_TENSOR)
            status = iv_fail(error, IV_ERROR_UNSUPPORTED, "output %s is not a tensor: use iv_session_run",
                             iv_model_output(session->model, (int)i)->name);
    }
    for (size_t i = 0; i < output_count; i++) {
        if (status == IV_OK)
            outputs[i] = results[i].tensor;
        else
            iv_value_release(&results[i]);
    }
    return status;
}

int iv_session_visit_placement(iv_session *session, void (*visit)(void *context, const iv_placed_node *node),
                               void *context) {
    return iv_runner_visit_placement(session->runner, visit, context);
}

const char *iv_graph_mode_name(iv_graph_mode mode) {
    static const char *const names[] = {"auto", "off", "capture", "build"};
    return mode >= IV_GRAPHS_AUTO && mode <= IV_GRAPHS_BUILD ? names[mode] : "unknown";
}

void iv_session_graphs(const iv_session *session, iv_graph_report *report) {
    iv_runner_report_graphs(session->runner, report);
}
