#include <fenv.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/memory_limit.h"
#include "runtime/model.h"
#include "runtime/session_internal.h"
#include "runtime/session_threads.h"

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

/* Those of the options and, behind them, those of the state. */
static sb_status create_capacities(sb_session *session, const sb_session_options *options, sb_error *error) {
    const sb_state *state = options->state;
    size_t given = options->capacity_count > 0 ? (size_t)options->capacity_count : 0, held = 0, count = 0;
    if (state != NULL)
        held = state->extent_count;
    if (given + held == 0)
        return SB_OK;
    sb_capacity *items = sb_allocate_array(given + held, sizeof *items);
    if (items == NULL)
        return sb_fail_memory(error, (given + held) * sizeof *items);
    for (size_t i = 0; i < given; i++)
        items[count++] = options->capacities[i];
    for (size_t i = 0; i < held; i++) {
        const sb_held_extent *extent = &state->extents[i];
        if (sb_capacities_of_program(session->entry->program, extent->symbol))
            items[count++] = (sb_capacity){extent->symbol, extent->capacity, extent->least};
    }
    sb_placement *placement = &session->settings.placement;
    sb_status status = sb_capacities_create(session->entry->program, (int)count, items, &placement->capacities, error);
    sb_free(items);
    if (status == SB_OK && session->queue != NULL && session->settings.observer != NULL)
        placement->capacities->refused = "an observer is shown every node as it is";
    return status;
}

sb_workers *sb_session_workers(const sb_session *session) {
    return session->settings.workers;
}

static sb_status fill_session(sb_session *session, const sb_session_options *options, sb_error *error) {
    SB_TRY(open_queue(session, options, error));
    SB_TRY(sb_session_bind(session->model, options, &session->entry, &session->binding, error));
    session->settings.placement.binding = session->binding;
    SB_TRY(create_capacities(session, options, error));
    SB_TRY(sb_workers_create(options->threads, &session->settings.workers, error));
    session->settings.placement.threads = sb_workers_threads(session->settings.workers);
    session->settings.placement.judges = options->device_if_quicker && session->queue != NULL &&
                                         session->binding == NULL && !options->require_device &&
                                         !options->device_outputs;
    size_t operands = (size_t)session->entry->input_count + (size_t)session->entry->output_count;
    SB_TRY(sb_session_create_ring(session, options->queue_depth, error));
    session->operands = sb_allocate_array(operands, sizeof *session->operands);
    session->tensors = sb_tensor_pool_create();
    if (session->operands == NULL || session->tensors == NULL)
        return sb_fail_memory(error, operands * sizeof *session->operands);
    return sb_runner_create(session->entry->program, &session->settings, 0, &session->runner, error);
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
    sb_session_destroy_ring(session);
    sb_runner_destroy(session->runner);
    sb_workers_destroy(session->settings.workers);
    sb_task_times_destroy(session->settings.task_times);
    sb_queue_destroy(session->queue);
    sb_binding_destroy(session->binding);
    sb_capacities_destroy(session->settings.placement.capacities);
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

/* Nothing that the graph has been simplified by holds any more, so that only loading it otherwise helps. */
static sb_status fail_symbol(const sb_session *session, const char *input, int64_t extent, int axis, const char *symbol,
                             int64_t elsewhere, sb_error *error) {
    bool of_file = sb_model_describe(session->model) != NULL;
    return sb_fail(error, SB_ERROR_SHAPE,
                   "input %s: extent %lld of dimension %d is called %s, which is %lld elsewhere%s", input,
                   (long long)extent, axis, symbol, (long long)elsewhere,
                   of_file ? "; if these need not be equal, load the model with that symbol as an unrelated one" : "");
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
            return fail_symbol(session, info->name, tensor->dims[d], d, symbol, extent, error);
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

sb_status sb_session_check_inputs(sb_session *session, const sb_value *inputs, sb_error *error) {
    const sb_graph *graph = session->entry->graph;
    const sb_program *program = session->entry->program;
    size_t symbols = 0;
    for (size_t i = 0; i < program->enter_count; i++) {
        sb_value value;
        SB_TRY(sb_session_entering(session->binding, graph, inputs, i, &value, error));
        if (session->binding != NULL && session->binding->follows[i])
            continue;
        const sb_value_info *info = &graph->values[program->enter[i]];
        if (value.kind == SB_KIND_NONE && info->fact.optional)
            continue;
        if (value.kind != info->fact.kind)
            return sb_fail(error, SB_ERROR_SHAPE, "input %s is %s where the model takes %s", info->name,
                           value.kind == SB_KIND_NONE     ? "missing"
                           : value.kind == SB_KIND_TENSOR ? "a tensor"
                                                          : "a sequence",
                           info->fact.kind == SB_KIND_TENSOR ? "a tensor" : "a sequence");
        if (value.kind == SB_KIND_TENSOR)
            SB_TRY(check_tensor(session, info, value.tensor, &symbols, error));
    }
    session->symbol_count = symbols;
    return SB_OK;
}

/* ---- interrupts and reports ---- */

/* Signal handlers may use lock-free atomics, and nothing else happens here. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "interrupts are set from signal handlers");

void sb_session_interrupt(sb_session *session) {
    atomic_store(&session->control.interrupted, 1);
}

void sb_session_clear_interrupt(sb_session *session) {
    atomic_store(&session->control.interrupted, 0);
}

int sb_session_visit_placement(sb_session *session, void (*visit)(void *context, const sb_placed_node *node),
                               void *context) {
    return sb_runner_visit_placement(session->runner, visit, context);
}

void sb_session_estimate(const sb_session *session, sb_estimate *estimate) {
    *estimate = sb_runner_estimate(session->runner);
}

const char *sb_graph_mode_name(sb_graph_mode mode) {
    static const char *const names[] = {"auto", "off", "capture", "build"};
    return mode >= SB_GRAPHS_AUTO && mode <= SB_GRAPHS_BUILD ? names[mode] : "unknown";
}

void sb_session_graphs(const sb_session *session, sb_graph_report *report) {
    sb_runner_report_graphs(session->runner, report);
}

const char *sb_session_exact_plans(const sb_session *session) {
    const sb_capacities *capacities = session->settings.placement.capacities;
    if (capacities != NULL && capacities->refused != NULL)
        return capacities->refused;
    return sb_runner_exact_plan(session->runner);
}
