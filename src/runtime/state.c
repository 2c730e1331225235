/* Making states: which variables they hold, and with which extents. */
#include "runtime/state.h"

#include <string.h>

#include "base/allocation.h"
#include "runtime/capacity.h"
#include "runtime/derived.h"
#include "runtime/memory_limit.h"

/* ---- references ---- */

sb_state *sb_state_retain(sb_state *state) {
    atomic_fetch_add_explicit(&state->references, 1, memory_order_relaxed);
    return state;
}

void sb_state_release(sb_state *state) {
    if (state == NULL || atomic_fetch_sub_explicit(&state->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < state->count; i++) {
        sb_held_variable *held = &state->variables[i];
        sb_free(held->name);
        sb_free(held->output);
        sb_tensor_release(held->tensor);
        sb_tensor_release(held->initial);
        sb_derived_destroy(held->derived);
    }
    sb_free(state->variables);
    for (size_t i = 0; i < state->extent_count; i++) {
        sb_free(state->extents[i].symbol);
        sb_free(state->extents[i].places);
    }
    sb_free(state->storages);
    sb_free(state->extents);
    sb_queue_destroy(state->queue);
    sb_memory_budget_release(state->budget);
    pthread_mutex_destroy(&state->lock);
    pthread_cond_destroy(&state->changed);
    sb_model_release(state->model);
    sb_free(state);
}

bool sb_state_holds(const sb_state *state, const sb_tensor *tensor) {
    for (size_t i = 0; i < state->count; i++) {
        if (state->storages[i] == tensor->storage)
            return true;
    }
    return false;
}

/* ---- options ---- */

static sb_status read_options(const sb_state_options *given, sb_state_options *options, sb_error *error) {
    *options = (sb_state_options)SB_STATE_OPTIONS_DEFAULT;
    if (given == NULL)
        return SB_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_state_options has %zu bytes where this library knows %zu: start from "
                       "SB_STATE_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    for (int i = 0; i < options->symbol_count; i++) {
        if (options->symbol_values[i] < 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "extent %.200s is to be %lld, and extents are at least 0",
                           options->symbols[i], (long long)options->symbol_values[i]);
    }
    return SB_OK;
}

static sb_status find_entry(const sb_model *model, const char *name, int *entry, sb_error *error) {
    *entry = name == NULL ? 0 : sb_model_entry_index(model, name);
    if (*entry >= 0)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the model has no entry graph '%.200s'; its first is '%.200s'",
                   name, model->entries[0].name);
}

/* ---- extents with a capacity ---- */

/* The value of a symbol in the options, or 0. */
static int64_t initial_extent(const sb_state_options *options, const char *symbol) {
    for (int i = 0; i < options->symbol_count; i++) {
        if (strcmp(options->symbols[i], symbol) == 0)
            return options->symbol_values[i];
    }
    return 0;
}

static sb_status hold_extent(sb_state *state, const sb_capacity *capacity, const sb_state_options *options,
                             sb_error *error) {
    int64_t initial = initial_extent(options, capacity->symbol);
    SB_TRY(sb_capacity_check(capacity, error));
    if (sb_state_extent_index(state, capacity->symbol) >= 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "extent %.200s is given two capacities", capacity->symbol);
    if (initial > capacity->capacity)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "extent %.200s is to begin with %lld, and its capacity is %lld", capacity->symbol,
                       (long long)initial, (long long)capacity->capacity);
    char *symbol = sb_duplicate_string(capacity->symbol);
    if (symbol == NULL)
        return sb_fail_memory(error, strlen(capacity->symbol) + 1);
    state->extents[state->extent_count++] =
        (sb_held_extent){symbol, capacity->capacity, capacity->least, initial, initial, 0, NULL};
    return SB_OK;
}

static sb_status hold_extents(sb_state *state, const sb_state_options *options, sb_error *error) {
    size_t count = options->capacity_count > 0 ? (size_t)options->capacity_count : 0;
    state->extents = sb_allocate_array(count, sizeof *state->extents);
    if (state->extents == NULL)
        return sb_fail_memory(error, count * sizeof *state->extents);
    for (size_t i = 0; i < count; i++)
        SB_TRY(hold_extent(state, &options->capacities[i], options, error));
    return SB_OK;
}

/* Which extents of the variable have a capacity: those that are such a symbol and nothing more. */
static sb_status find_room(const sb_state *state, sb_held_variable *held, const sb_fact *fact, sb_error *error) {
    for (int d = 0; d < fact->rank; d++) {
        const char *symbol = sb_dim_symbol_name(fact->dims[d]);
        held->extents[d] = symbol != NULL ? sb_state_extent_index(state, symbol) : -1;
        if (held->extents[d] >= 0)
            held->room[d] = state->extents[held->extents[d]].capacity;
        for (size_t e = 0; e < state->extent_count && held->extents[d] < 0; e++) {
            char text[SB_FACT_TEXT_BYTES];
            if (sb_dim_mentions(fact->dims[d], state->extents[e].symbol))
                return sb_fail(
                    error, SB_ERROR_UNSUPPORTED,
                    "variable %.200s is %s: extent %d is a formula of %.200s, and only an extent that is the "
                    "symbol itself may have a capacity",
                    held->name, sb_fact_text(fact, text, sizeof text), d, state->extents[e].symbol);
        }
    }
    return SB_OK;
}

/* ---- a variable ---- */

/* The extents that a variable has to begin with: those with a capacity may change, the others have them for good. */
static sb_status bind_extents(const sb_state *state, const char *name, const sb_fact *fact,
                              const sb_state_options *options, int64_t *dims, sb_error *error) {
    char text[SB_FACT_TEXT_BYTES];
    sb_binding binding = {options->symbol_count, options->symbols, options->symbol_values};
    if (fact->kind != SB_KIND_TENSOR || fact->rank == SB_RANK_UNKNOWN)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "variable %.200s is %s: a state holds tensors of known rank", name,
                       fact->kind == SB_KIND_TENSOR ? "a tensor of unknown rank" : "not a tensor");
    if (fact->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "variable %.200s is text: a state holds numbers and bool", name);
    for (int d = 0; d < fact->rank; d++) {
        const char *symbol = sb_dim_symbol_name(fact->dims[d]);
        int extent = symbol != NULL ? sb_state_extent_index(state, symbol) : -1;
        if (extent >= 0)
            dims[d] = state->extents[extent].used;
        else if (!sb_dim_evaluate(fact->dims[d], &binding, &dims[d]))
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "variable %.200s is %s: give extent %d a value (the symbols of sb_state_options, or --set), "
                           "or a capacity if runs change it (its capacities, or --capacity)",
                           name, sb_fact_text(fact, text, sizeof text), d);
        if (dims[d] < 0)
            return sb_fail(error, SB_ERROR_SHAPE, "variable %.200s is %s, of which extent %d would be %lld", name,
                           sb_fact_text(fact, text, sizeof text), d, (long long)dims[d]);
    }
    int64_t elements;
    sb_status status = sb_count_elements(fact->dtype, fact->rank, dims, &elements, error);
    return status == SB_OK ? SB_OK : sb_fail_within(error, status, "variable %.200s: ", name);
}

/* The initial contents: of the variable's dtype, and repeated by numpy's rule of its extents. */
static sb_status keep_initial(sb_held_variable *held, sb_tensor *initial, sb_error *error) {
    const sb_tensor *tensor = held->tensor;
    if (initial == NULL)
        return sb_tensor_create(tensor->dtype, 0, NULL, &held->initial, error);
    SB_TRY(sb_tensor_check_on_host(initial, "an initial value", error));
    sb_tensor *view = NULL;
    sb_status status = initial->dtype == tensor->dtype
                           ? sb_tensor_broadcast(initial, tensor->rank, tensor->dims, &view, error)
                           : SB_ERROR_SHAPE;
    if (status != SB_OK && status != SB_ERROR_OUT_OF_MEMORY) {
        char given[SB_DIMS_TEXT_BYTES], wanted[SB_DIMS_TEXT_BYTES];
        return sb_fail(error, SB_ERROR_SHAPE, "variable %.200s is %s%s and its initial tensor %s%s", held->name,
                       sb_dtype_name(tensor->dtype), sb_dims_text(tensor->rank, tensor->dims, wanted),
                       sb_dtype_name(initial->dtype), sb_dims_text(initial->rank, initial->dims, given));
    }
    SB_TRY(status);
    sb_tensor_release(view);
    held->initial = sb_tensor_retain(initial);
    return SB_OK;
}

/* The variable's tensor with the extents that it has room for. */
static sb_status make_room(sb_state *state, sb_held_variable *held, const sb_fact *fact, sb_error *error) {
    int64_t elements;
    sb_storage *storage;
    sb_status status = sb_count_elements(fact->dtype, fact->rank, held->room, &elements, error);
    if (status != SB_OK)
        return sb_fail_within(error, status, "variable %.200s: ", held->name);
    if (state->queue == NULL)
        return sb_tensor_create(fact->dtype, fact->rank, held->room, &held->tensor, error);
    SB_TRY(sb_queue_storage(state->queue, (size_t)elements * sb_dtype_size(fact->dtype), &storage, error));
    status = sb_tensor_over(storage, storage->data, fact->dtype, fact->rank, held->room, NULL, &held->tensor, error);
    sb_storage_release(storage);
    return status;
}

static sb_status hold(sb_state *state, const char *name, const sb_fact *fact, sb_tensor *initial,
                      const sb_state_options *options, sb_held_variable **added, sb_error *error) {
    int64_t dims[SB_MAX_RANK];
    if (sb_state_variable_index(state, name) >= 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the state has two variables of the name '%.200s'", name);
    SB_TRY(bind_extents(state, name, fact, options, dims, error));
    sb_held_variable *held = &state->variables[state->count];
    *held = (sb_held_variable){.name = sb_duplicate_string(name), .slot_axis = -1};
    if (held->name == NULL)
        return sb_fail_memory(error, strlen(name) + 1);
    state->count++;
    *added = held;
    memcpy(held->room, dims, sizeof held->room);
    SB_TRY(find_room(state, held, fact, error));
    SB_TRY(make_room(state, held, fact, error));
    memcpy(held->tensor->dims, dims, sizeof held->tensor->dims);
    return keep_initial(held, initial, error);
}

/* ---- pairs ---- */

static sb_status find_value(const sb_model_entry *entry, bool input, const char *name, const sb_value_info **info,
                            sb_error *error) {
    const sb_graph *graph = entry->graph;
    size_t count = input ? graph->input_count : graph->output_count;
    for (size_t i = 0; i < count; i++) {
        *info = &graph->values[input ? graph->inputs[i] : graph->outputs[i]];
        int index = (int)i + (input ? 0 : entry->input_count);
        if (strcmp(entry->descriptions[index].name, name) == 0)
            return SB_OK;
    }
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the model has no %s '%.200s' to keep in a state",
                   input ? "input" : "output", name);
}

/* Whether a run makes the extent larger than it was: a formula of the old one. */
static bool grows(sb_dim before, sb_dim after) {
    const char *symbol = sb_dim_symbol_name(before);
    return symbol != NULL && !sb_dim_equal(before, after) && sb_dim_mentions(after, symbol);
}

/* Extents that the model leaves open, and those with a capacity, are checked when a run is to make them. */
static sb_status check_agreement(const sb_state *state, const sb_state_pair *pair, const sb_fact *input,
                                 const sb_fact *output, const sb_state_options *options, sb_error *error) {
    char left[SB_FACT_TEXT_BYTES], right[SB_FACT_TEXT_BYTES];
    sb_binding binding = {options->symbol_count, options->symbols, options->symbol_values};
    bool agree = output->kind == SB_KIND_TENSOR && input->dtype == output->dtype &&
                 (output->rank == SB_RANK_UNKNOWN || input->rank == output->rank);
    for (int d = 0; d < output->rank && agree; d++) {
        int64_t before, after;
        const char *symbol = sb_dim_symbol_name(input->dims[d]);
        if (symbol != NULL && sb_state_extent_index(state, symbol) >= 0)
            continue;
        if (grows(input->dims[d], output->dims[d]))
            return sb_fail(
                error, SB_ERROR_UNSUPPORTED,
                "output %.200s is %s and input %.200s %s: extent %d grows in every run. Give it a capacity (the "
                "capacities of sb_state_options, or --capacity %.200s=N), or pass the value from run to run",
                pair->output, sb_fact_text(output, left, sizeof left), pair->input,
                sb_fact_text(input, right, sizeof right), d, symbol);
        agree = !sb_dim_evaluate(input->dims[d], &binding, &before) ||
                !sb_dim_evaluate(output->dims[d], &binding, &after) || before == after;
    }
    if (agree)
        return SB_OK;
    return sb_fail(error, SB_ERROR_SHAPE,
                   "output %.200s is %s, and input %.200s, which it is to be in the next run, %s", pair->output,
                   sb_fact_text(output, left, sizeof left), pair->input, sb_fact_text(input, right, sizeof right));
}

static sb_status hold_pair(sb_state *state, const sb_state_pair *pair, const sb_state_options *options,
                           sb_error *error) {
    const sb_model_entry *entry = &state->model->entries[state->entry];
    const sb_value_info *input, *output;
    SB_TRY(find_value(entry, true, pair->input, &input, error));
    SB_TRY(find_value(entry, false, pair->output, &output, error));
    for (size_t i = 0; i < state->count; i++) {
        if (state->variables[i].output != NULL && strcmp(state->variables[i].output, pair->output) == 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "output '%.200s' is paired with two inputs", pair->output);
    }
    if (pair->slot_axis < -1 || pair->slot_axis >= (input->fact.rank > 0 ? input->fact.rank : 0))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "input %.200s has no axis %d to be one of slots", pair->input,
                       pair->slot_axis);
    if (input->fact.kind == SB_KIND_TENSOR && input->fact.rank != SB_RANK_UNKNOWN)
        SB_TRY(check_agreement(state, pair, &input->fact, &output->fact, options, error));
    sb_held_variable *held;
    SB_TRY(hold(state, pair->input, &input->fact, pair->initial, options, &held, error));
    held->slot_axis = pair->slot_axis;
    held->output = sb_duplicate_string(pair->output);
    return held->output != NULL ? SB_OK : sb_fail_memory(error, strlen(pair->output) + 1);
}

/* ---- a state ---- */

static sb_status hold_variables(sb_state *state, const sb_state_options *options, sb_error *error) {
    const sb_graphs *graphs = &state->model->graphs;
    for (size_t i = 0; i < graphs->variables.count; i++) {
        const sb_variable *variable = &graphs->variables.items[i];
        if (!sb_graphs_update(graphs, (int)i))
            continue;
        sb_held_variable *held;
        SB_TRY(hold(state, variable->name, &variable->fact, variable->initial, options, &held, error));
        held->variable = (int)i;
        held->slot_axis = variable->slots ? 0 : -1;
    }
    for (int i = 0; i < options->pair_count; i++)
        SB_TRY(hold_pair(state, &options->pairs[i], options, error));
    if (state->count == 0)
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "the model was built without variables that change: name pairs of an input and an output to keep "
            "in the state");
    return SB_OK;
}

/* Lists where each extent with a capacity stands in the variables' tensors, which they keep for good, and their memory. */
static sb_status list_places(sb_state *state, sb_error *error) {
    state->storages = sb_allocate_array(state->count, sizeof *state->storages);
    if (state->storages == NULL)
        return sb_fail_memory(error, state->count * sizeof *state->storages);
    for (size_t v = 0; v < state->count; v++)
        state->storages[v] = state->variables[v].tensor->storage;
    for (size_t e = 0; e < state->extent_count; e++) {
        sb_held_extent *extent = &state->extents[e];
        extent->places = sb_allocate_array(state->count, SB_MAX_RANK * sizeof(int64_t *));
        if (extent->places == NULL)
            return sb_fail_memory(error, state->count * SB_MAX_RANK * sizeof(int64_t *));
        for (size_t v = 0; v < state->count; v++) {
            sb_held_variable *held = &state->variables[v];
            for (int d = 0; d < held->tensor->rank; d++) {
                if (held->extents[d] == (int)e)
                    extent->places[extent->place_count++] = &held->tensor->dims[d];
            }
        }
    }
    return SB_OK;
}

static sb_status fill_state(sb_state *state, const sb_state_options *options, sb_error *error) {
    SB_TRY(find_entry(state->model, options->entry, &state->entry, error));
    SB_TRY(hold_extents(state, options, error));
    size_t most = state->model->graphs.variables.count + (size_t)(options->pair_count > 0 ? options->pair_count : 0);
    state->variables = sb_allocate_array(most, sizeof *state->variables);
    if (state->variables == NULL)
        return sb_fail_memory(error, most * sizeof *state->variables);
    if (options->device != NULL)
        SB_TRY(sb_queue_create(options->device, NULL, false, &state->queue, error));
    SB_TRY(sb_state_enter_queue(state, error));
    SB_TRY(sb_state_leave_queue(state, hold_variables(state, options, error), error));
    SB_TRY(list_places(state, error));
    return sb_state_reset(state, error);
}

sb_status sb_state_create(sb_model *model, const sb_state_options *given, sb_state **state, sb_error *error) {
    sb_state_options options;
    SB_TRY(read_options(given, &options, error));
    sb_state *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->references = 1;
    fresh->model = sb_model_retain(model);
    pthread_mutex_init(&fresh->lock, NULL);
    pthread_cond_init(&fresh->changed, NULL);
    sb_status status = sb_memory_limit_begin(options.memory_limit, &fresh->budget, error);
    if (status == SB_OK) {
        sb_memory_budget *outer = sb_memory_budget_enter(fresh->budget);
        status = fill_state(fresh, &options, error);
        sb_memory_budget_enter(outer);
    }
    if (status != SB_OK) {
        sb_state_release(fresh);
        return status;
    }
    *state = fresh;
    return SB_OK;
}

/* ---- looking at it ---- */

int sb_state_variable_count(const sb_state *state) {
    return (int)state->count;
}

int sb_state_variable_index(const sb_state *state, const char *name) {
    for (size_t i = 0; i < state->count; i++) {
        if (strcmp(state->variables[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

void sb_state_describe(sb_state *state, int index, sb_state_variable *variable) {
    const sb_held_variable *held = &state->variables[index];
    const sb_tensor *tensor = held->tensor;
    pthread_mutex_lock(&state->lock);
    *variable = (sb_state_variable){.name = held->name,
                                    .dtype = tensor->dtype,
                                    .rank = tensor->rank,
                                    .dims = tensor->dims,
                                    .slot_axis = held->slot_axis,
                                    .slots = held->slot_axis >= 0 ? tensor->dims[held->slot_axis] : 0,
                                    .on_device = sb_tensor_on_device(tensor),
                                    .version = held->version};
    pthread_mutex_unlock(&state->lock);
}
