#include "runtime/state_binding.h"

#include <string.h>

#include "runtime/derived.h"
#include "runtime/staying.h"

/* ---- binding ---- */

static int64_t held_index(const sb_state *state, int variable) {
    for (size_t i = 0; i < state->count; i++) {
        if (state->variables[i].output == NULL && state->variables[i].variable == variable)
            return (int64_t)i;
    }
    return -1;
}

static sb_status bind_variables(sb_state_binding *binding, const sb_model_entry *entry, sb_error *error) {
    const sb_graph *graph = entry->graph;
    const sb_variable *variables = binding->state->model->graphs.variables.items;
    for (size_t i = 0; i < graph->read_count + graph->update_count; i++) {
        bool reads = i < graph->read_count;
        int variable = reads ? graph->reads[i].variable : graph->updates[i - graph->read_count].variable;
        int64_t held = held_index(binding->state, variable);
        if (held < 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "the state does not hold variable '%.200s' of graph '%.200s'", variables[variable].name,
                           entry->name);
        if (reads)
            binding->read[graph->input_count + i] = held;
        else
            binding->update[graph->output_count + i - graph->read_count] = held;
    }
    return SB_OK;
}

/* An entry graph may have a pair's input alone, which it then reads, or its output, which it then updates. */
static void bind_pairs(sb_state_binding *binding, const sb_model_entry *entry) {
    for (size_t v = 0; v < binding->state->count; v++) {
        const sb_held_variable *held = &binding->state->variables[v];
        for (int i = 0; i < entry->input_count && held->output != NULL; i++) {
            if (strcmp(entry->descriptions[i].name, held->name) == 0)
                binding->read[i] = (int64_t)v;
        }
        for (int i = 0; i < entry->output_count && held->output != NULL; i++) {
            if (strcmp(entry->descriptions[entry->input_count + i].name, held->output) == 0)
                binding->update[i] = (int64_t)v;
        }
    }
}

/* Whether axis `axis` of a variable is what it is called at another's: their symbol is one, and so is what decides it. */
static bool is_said_before(const sb_state_binding *binding, size_t index, int axis) {
    const sb_program *program = binding->program;
    const sb_held_variable *variables = binding->state->variables, *held = &variables[binding->read[index]];
    const char *symbol = sb_dim_symbol_name(program->graph->values[program->enter[index]].fact.dims[axis]);
    for (size_t i = 0; i < index && symbol != NULL; i++) {
        const sb_fact *fact = &program->graph->values[program->enter[i]].fact;
        const sb_held_variable *other = binding->read[i] >= 0 ? &variables[binding->read[i]] : NULL;
        for (int d = 0; other != NULL && d < fact->rank && d < other->tensor->rank; d++) {
            const char *name = sb_dim_symbol_name(fact->dims[d]);
            if (name != NULL && strcmp(name, symbol) == 0 && other->extents[d] == held->extents[axis] &&
                (held->extents[axis] >= 0 || other->tensor->dims[d] == held->tensor->dims[axis]))
                return true;
        }
    }
    return false;
}

/* Dtype and rank of a variable stay, and so do extents without a capacity: what the model calls a symbol has to agree
 * with other inputs in each run, but once is enough. */
static bool follows_others(const sb_state_binding *binding, size_t index) {
    const sb_fact *fact = &binding->program->graph->values[binding->program->enter[index]].fact;
    const sb_held_variable *held = binding->read[index] >= 0 ? &binding->state->variables[binding->read[index]] : NULL;
    int64_t extent;
    if (held == NULL || held->tensor->dtype != fact->dtype || held->tensor->rank != fact->rank)
        return false;
    for (int d = 0; d < fact->rank; d++) {
        bool constant = sb_dim_is_constant(fact->dims[d], &extent);
        bool fixed = constant && held->extents[d] < 0 && extent == held->tensor->dims[d];
        if (!fixed && !is_said_before(binding, index, d))
            return false;
    }
    return true;
}

static bool is_updated(const sb_state_binding *binding, size_t variable) {
    for (size_t i = 0; i < binding->program->leave_count; i++) {
        if (binding->update[i] == (int64_t)variable)
            return true;
    }
    return false;
}

static int64_t find_left_behind(const sb_state_binding *binding, size_t extent) {
    const sb_state *state = binding->state;
    for (size_t v = 0; v < state->count; v++) {
        for (int d = 0; d < state->variables[v].tensor->rank; d++) {
            if (state->variables[v].extents[d] == (int)extent && !is_updated(binding, v))
                return (int64_t)v;
        }
    }
    return -1;
}

static bool uses_any(const sb_state_binding *binding) {
    for (size_t i = 0; i < binding->program->enter_count; i++) {
        if (binding->read[i] >= 0)
            return true;
    }
    for (size_t i = 0; i < binding->program->leave_count; i++) {
        if (binding->update[i] >= 0)
            return true;
    }
    return false;
}

/* What is the caller's, and what the state's. */
static void sort_by_side(sb_state_binding *binding) {
    for (size_t i = 0; i < binding->program->enter_count; i++) {
        if (binding->read[i] < 0)
            binding->given[binding->given_count++] = i;
        else
            binding->entering[i] = sb_value_of_tensor(binding->state->variables[binding->read[i]].tensor);
    }
    for (size_t i = 0; i < binding->program->leave_count; i++) {
        if (binding->update[i] < 0)
            binding->handed[binding->handed_count++] = i;
    }
}

static sb_status fill_binding(sb_state_binding *binding, const sb_model_entry *entry, const sb_device *device,
                              sb_error *error) {
    const sb_program *program = binding->program;
    const sb_state *state = binding->state;
    if (state->queue != NULL && (device == NULL || state->queue->device != device->handle))
        return sb_fail(
            error, SB_ERROR_INVALID_ARGUMENT,
            "the state lies on device %d, and the session runs on %s: make a state for it and fill that with "
            "sb_state_copy",
            state->queue->device_index, device == NULL ? "the CPU" : "another one");
    binding->read = sb_allocate_array(program->enter_count, sizeof *binding->read);
    binding->update = sb_allocate_array(program->leave_count, sizeof *binding->update);
    binding->entering = sb_allocate_array(program->enter_count, sizeof *binding->entering);
    binding->leaving = sb_allocate_array(program->leave_count, sizeof *binding->leaving);
    binding->extents = sb_allocate_array(state->extent_count, sizeof *binding->extents);
    binding->targets = sb_allocate_array(program->leave_count, sizeof *binding->targets);
    binding->in_place = sb_allocate_array(program->leave_count, sizeof *binding->in_place);
    binding->follows = sb_allocate_array(program->enter_count, sizeof *binding->follows);
    binding->left_behind = sb_allocate_array(state->extent_count, sizeof *binding->left_behind);
    binding->given = sb_allocate_array(program->enter_count, sizeof *binding->given);
    binding->handed = sb_allocate_array(program->leave_count, sizeof *binding->handed);
    if (binding->given == NULL || binding->handed == NULL || binding->targets == NULL || binding->extents == NULL ||
        binding->read == NULL || binding->update == NULL || binding->entering == NULL || binding->leaving == NULL ||
        binding->follows == NULL || binding->left_behind == NULL || binding->in_place == NULL)
        return sb_fail_memory(error, (program->enter_count + program->leave_count) * sizeof *binding->entering);
    for (size_t i = 0; i < program->enter_count; i++)
        binding->read[i] = -1;
    for (size_t i = 0; i < program->leave_count; i++)
        binding->update[i] = -1;
    SB_TRY(bind_variables(binding, entry, error));
    bind_pairs(binding, entry);
    sort_by_side(binding);
    for (size_t i = 0; i < program->enter_count; i++)
        binding->follows[i] = follows_others(binding, i);
    for (size_t e = 0; e < state->extent_count; e++)
        binding->left_behind[e] = find_left_behind(binding, e);
    if (uses_any(binding))
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "graph '%.200s' uses no variable of the state", entry->name);
}

sb_status sb_binding_create(sb_state *state, int entry, const sb_device *device, sb_state_binding **binding,
                            sb_error *error) {
    const sb_model_entry *bound = &state->model->entries[entry];
    sb_state_binding *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->state = sb_state_retain(state);
    fresh->program = bound->program;
    fresh->input_count = (size_t)bound->input_count;
    fresh->output_count = (size_t)bound->output_count;
    sb_status status = fill_binding(fresh, bound, device, error);
    if (status != SB_OK) {
        sb_binding_destroy(fresh);
        return status;
    }
    *binding = fresh;
    return SB_OK;
}

void sb_binding_destroy(sb_state_binding *binding) {
    if (binding == NULL)
        return;
    sb_free(binding->given);
    sb_free(binding->handed);
    sb_free(binding->read);
    sb_free(binding->update);
    sb_free(binding->in_place);
    sb_free(binding->follows);
    sb_free(binding->left_behind);
    sb_free(binding->extents);
    sb_free(binding->targets);
    sb_free(binding->entering);
    sb_free(binding->leaving);
    sb_state_release(binding->state);
    sb_free(binding);
}

sb_tensor *sb_binding_tensor(const sb_state_binding *binding, size_t index) {
    return binding->read[index] >= 0 ? binding->state->variables[binding->read[index]].tensor : NULL;
}

const char *sb_binding_updated_there(const sb_state_binding *binding, const sb_node *node) {
    for (size_t i = 0; binding != NULL && i < binding->program->leave_count; i++) {
        if (binding->update[i] < 0)
            continue;
        const sb_held_variable *held = &binding->state->variables[binding->update[i]];
        int64_t producer = binding->program->graph->values[binding->program->leave[i]].producer;
        if (producer >= 0 && binding->program->steps[producer].node == node && sb_tensor_on_device(held->tensor))
            return held->name;
    }
    return NULL;
}

/* ---- turns ---- */

sb_status sb_binding_enter(sb_state_binding *binding, const void *session, sb_error *error) {
    SB_TRY(sb_state_enter(binding->state, true, session, error));
    sb_state_run *run = &binding->run; /* member by member: a whole one has room for an error's text */
    run->update = binding->update;
    run->update_count = binding->program->leave_count;
    run->session = NULL;
    run->next = NULL;
    run->number = 0;
    run->began = run->resizes = false;
    run->counters = (sb_state_counters){0};
    return SB_OK;
}

/* The extents that the run makes; *before, where it is not NULL, becomes those that were. Whether one has changed. */
static bool set_extents(const sb_state_binding *binding, int64_t *before) {
    bool changed = false;
    for (size_t e = 0; e < binding->state->extent_count; e++) {
        int64_t used = binding->state->extents[e].used;
        if (before != NULL)
            before[e] = used;
        changed = changed || binding->extents[e] != used;
        sb_state_set_extent(binding->state, e, binding->extents[e]);
    }
    return changed;
}

sb_status sb_binding_leave(sb_state_binding *binding, sb_status status, sb_error *error) {
    status = sb_state_end_run(binding->state, &binding->run, status, error);
    if (status == SB_OK)
        (void)set_extents(binding, NULL);
    sb_state_leave(binding->state);
    return status;
}

void sb_binding_leave_queued(sb_state_binding *binding, sb_state_run *run) {
    run->update = binding->run.update;
    run->update_count = binding->run.update_count;
    run->began = binding->run.began;
    run->counters = binding->run.counters;
    run->resizes = set_extents(binding, run->extents);
    sb_state_queue_run(binding->state, run);
    sb_state_leave(binding->state);
}

/* ---- copies of versions ---- */

static size_t tensor_bytes(const sb_tensor *tensor) {
    return (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype);
}

static void count_copy(sb_state_binding *binding, const sb_tensor *tensor) {
    binding->run.counters.copies++;
    binding->run.counters.bytes_copied += (int64_t)tensor_bytes(tensor);
}

void sb_binding_note_transfer(sb_state_binding *binding, sb_value_id value, const sb_tensor *copy) {
    for (size_t i = 0; i < binding->program->enter_count; i++) {
        if (binding->program->enter[i] == value && binding->read[i] >= 0)
            count_copy(binding, copy);
    }
}

/* A copy on the side of `tensor`, in memory of its own. */
static sb_status copy_beside(sb_queue *queue, const sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    if (!sb_tensor_on_device(tensor)) {
        SB_TRY(sb_tensor_create_uninitialised(tensor->dtype, tensor->rank, tensor->dims, copy, error));
        sb_tensor_copy_elements(*copy, tensor);
        return SB_OK;
    }
    sb_storage *storage;
    SB_TRY(sb_queue_storage(queue, tensor_bytes(tensor), &storage, error));
    sb_status status =
        sb_tensor_over(storage, storage->data, tensor->dtype, tensor->rank, tensor->dims, NULL, copy, error);
    sb_storage_release(storage);
    if (status != SB_OK)
        return status;
    status = sb_queue_copy(queue, 0, *copy, tensor, error);
    if (status != SB_OK) {
        sb_tensor_release(*copy);
        *copy = NULL;
    }
    return status;
}

static bool shows_state(const sb_state_binding *binding, const sb_value *value) {
    if (value->kind == SB_KIND_TENSOR)
        return sb_state_holds(binding->state, value->tensor);
    for (int64_t i = 0; value->kind == SB_KIND_SEQUENCE && i < value->sequence->count; i++) {
        if (shows_state(binding, &value->sequence->items[i]))
            return true;
    }
    return false;
}

/* Makes the value one that shares no memory with the state. Takes none where it is one already. */
static sb_status detach(sb_state_binding *binding, sb_queue *queue, sb_value *value, sb_error *error) {
    if (!shows_state(binding, value))
        return SB_OK;
    if (value->kind == SB_KIND_TENSOR) {
        sb_tensor *copy;
        SB_TRY(copy_beside(queue, value->tensor, &copy, error));
        count_copy(binding, copy);
        sb_value_release(value);
        *value = sb_value_of_tensor(copy);
    } else {
        sb_sequence *copies;
        SB_TRY(sb_sequence_create(value->sequence->dtype, value->sequence->count, &copies, error));
        sb_status status = SB_OK;
        for (int64_t i = 0; i < copies->count; i++) {
            copies->items[i] = sb_value_retain(value->sequence->items[i]);
            if (status == SB_OK)
                status = detach(binding, queue, &copies->items[i], error);
        }
        sb_value_release(value);
        *value = (sb_value){.kind = SB_KIND_SEQUENCE, .sequence = copies};
        return status;
    }
    return SB_OK;
}

/* ---- updates ---- */

/* Whether the value is where the variable's next version belongs. */
static bool is_in_place(const sb_held_variable *held, const sb_tensor *value) {
    bool same = value->storage == held->tensor->storage && value->data == held->tensor->data;
    for (int d = 0; d < value->rank && same; d++)
        same = value->dims[d] <= 1 || value->strides[d] == held->tensor->strides[d];
    return same;
}

/* Takes over what a value says an extent with a capacity is to be: all that lie along it have to say the same. */
static sb_status take_extent(const sb_state_binding *binding, const sb_held_variable *held, int axis, int64_t given,
                             sb_error *error) {
    const sb_held_extent *extent = &binding->state->extents[held->extents[axis]];
    int64_t *next = &binding->extents[held->extents[axis]];
    if (given > extent->capacity)
        return sb_fail(
            error, SB_ERROR_SHAPE,
            "variable %.200s: extent %.200s would be %lld, and its capacity is %lld: trim or reset the state, "
            "or give a larger capacity",
            held->name, extent->symbol, (long long)given, (long long)extent->capacity);
    if (*next >= 0 && *next != given)
        return sb_fail(error, SB_ERROR_SHAPE,
                       "variable %.200s: extent %.200s would be %lld, and of another variable %lld", held->name,
                       extent->symbol, (long long)given, (long long)*next);
    *next = given;
    return SB_OK;
}

/* Variables along an extent that changes have to be updated, all of them. */
static sb_status check_extents(sb_state_binding *binding, sb_error *error) {
    const sb_state *state = binding->state;
    for (size_t e = 0; e < state->extent_count; e++) {
        if (binding->extents[e] < 0)
            binding->extents[e] = state->extents[e].used;
        if (binding->extents[e] != state->extents[e].used && binding->left_behind[e] >= 0)
            return sb_fail(error, SB_ERROR_SHAPE,
                           "the run makes extent %.200s %lld, and does not update variable %.200s, of which it is an "
                           "extent",
                           state->extents[e].symbol, (long long)binding->extents[e],
                           state->variables[binding->left_behind[e]].name);
    }
    return SB_OK;
}

static sb_status check_update(const sb_state_binding *binding, size_t index, sb_value value, sb_error *error) {
    const sb_held_variable *held = &binding->state->variables[binding->update[index]];
    const sb_tensor *wanted = held->tensor;
    const char *name = binding->program->graph->values[binding->program->leave[index]].name;
    char text[SB_DIMS_TEXT_BYTES], given[SB_DIMS_TEXT_BYTES];
    if (value.kind != SB_KIND_TENSOR)
        return sb_fail(error, SB_ERROR_SHAPE, "variable %.200s: its next version, %.200s, is no tensor", held->name,
                       name);
    bool same = value.tensor->dtype == wanted->dtype && value.tensor->rank == wanted->rank;
    for (int d = 0; d < wanted->rank && same; d++) {
        if (held->extents[d] >= 0)
            SB_TRY(take_extent(binding, held, d, value.tensor->dims[d], error));
        else
            same = value.tensor->dims[d] == wanted->dims[d];
    }
    if (same)
        return SB_OK;
    return sb_fail(error, SB_ERROR_SHAPE,
                   "variable %.200s is %s%s, and its next version, %.200s, would be %s%s: a variable keeps its extents",
                   held->name, sb_dtype_name(wanted->dtype), sb_dims_text(wanted->rank, wanted->dims, text), name,
                   sb_dtype_name(value.tensor->dtype), sb_dims_text(value.tensor->rank, value.tensor->dims, given));
}

/* Where updates go that are copied. Uploads need rows that lie one behind the other: others go to the device first. */
static sb_status find_targets(sb_state_binding *binding, sb_queue *queue, sb_error *error) {
    for (size_t i = 0; i < binding->program->leave_count; i++) {
        const sb_held_variable *held = binding->update[i] >= 0 ? &binding->state->variables[binding->update[i]] : NULL;
        sb_value *value = &binding->leaving[i];
        sb_tensor *staged;
        if (held == NULL || binding->in_place[i])
            continue;
        SB_TRY(sb_state_view(held, binding->extents, &binding->targets[i], error));
        if (!sb_tensor_on_device(held->tensor) || sb_tensor_on_device(value->tensor) ||
            sb_tensor_is_contiguous(binding->targets[i]))
            continue;
        SB_TRY(sb_queue_to_device(queue, value->tensor, &staged, error));
        sb_value_release(value);
        *value = sb_value_of_tensor(staged);
    }
    return SB_OK;
}

/* What each variable is to become, and whether it is that already. */
static sb_status inspect_updates(sb_state_binding *binding, sb_error *error) {
    for (size_t e = 0; e < binding->state->extent_count; e++)
        binding->extents[e] = -1;
    for (size_t i = 0; i < binding->program->leave_count; i++) {
        binding->in_place[i] = false;
        if (binding->update[i] < 0)
            continue;
        SB_TRY(check_update(binding, i, binding->leaving[i], error));
        binding->in_place[i] = is_in_place(&binding->state->variables[binding->update[i]], binding->leaving[i].tensor);
    }
    return SB_OK;
}

/* Everything that takes memory or may fail before the first variable is overwritten. What lies in a variable and goes
 * elsewhere gets memory of its own: variables may swap. */
static sb_status prepare_updates(sb_state_binding *binding, const sb_runner *runner, sb_queue *queue, sb_error *error) {
    if (binding->stay)
        sb_staying_extents(runner, binding->extents);
    else
        SB_TRY(inspect_updates(binding, error));
    for (size_t i = 0; i < binding->handed_count; i++)
        SB_TRY(detach(binding, queue, &binding->leaving[binding->handed[i]], error));
    for (size_t i = 0; i < binding->program->leave_count && !binding->stay; i++) {
        if (binding->update[i] >= 0 && !binding->in_place[i])
            SB_TRY(detach(binding, queue, &binding->leaving[i], error));
    }
    SB_TRY(check_extents(binding, error));
    return binding->stay ? SB_OK : find_targets(binding, queue, error);
}

static sb_status copy_update(sb_queue *queue, const sb_tensor *target, sb_tensor *source, sb_error *error) {
    bool to_device = sb_tensor_on_device(target), from_device = sb_tensor_on_device(source);
    if (to_device)
        return from_device ? sb_queue_copy(queue, 0, target, source, error)
                           : sb_queue_upload(queue, target, source, error);
    if (from_device)
        return sb_queue_download(queue, target, source, error);
    sb_tensor_copy_elements((sb_tensor *)target, source);
    return SB_OK;
}

/* All readers of the old versions are done, or, on the device, in the queue before. */
static sb_status carry_out_updates(sb_state_binding *binding, sb_queue *queue, sb_error *error) {
    if (binding->stay) {
        binding->run.counters.updates_in_place += (int64_t)(binding->program->leave_count - binding->handed_count);
        return SB_OK;
    }
    for (size_t i = 0; i < binding->program->leave_count; i++) {
        if (binding->update[i] < 0)
            continue;
        sb_tensor *value = binding->leaving[i].tensor;
        if (binding->in_place[i]) {
            binding->run.counters.updates_in_place++;
            continue;
        }
        binding->run.began = true;
        SB_TRY(copy_update(queue, binding->targets[i], value, error));
        count_copy(binding, value);
    }
    return SB_OK;
}

/* ---- runs ---- */

static void hand_out(sb_state_binding *binding, sb_status status, sb_value *outputs) {
    for (size_t i = 0; i < binding->handed_count; i++) {
        size_t index = binding->handed[i];
        if (status == SB_OK && index < binding->output_count)
            outputs[index] = binding->leaving[index];
        else
            sb_value_release(&binding->leaving[index]);
        binding->leaving[index] = (sb_value){0};
    }
    /* Next versions that stay are neither handed over nor copied. */
    for (size_t i = 0; i < binding->program->leave_count && !(binding->stay && status == SB_OK); i++) {
        sb_value_release(&binding->leaving[i]);
        binding->leaving[i] = (sb_value){0};
        sb_tensor_release(binding->targets[i]);
        binding->targets[i] = NULL;
    }
}

/* The next run asks whether contents have changed when it begins, by when this one may only have been given to a device:
 * so they count here, and not where versions do. */
static void note_contents(sb_state_binding *binding, sb_status status) {
    for (size_t i = 0; i < binding->program->leave_count && binding->state->derives; i++) {
        if (binding->update[i] >= 0)
            binding->state->variables[binding->update[i]].contents++;
    }
    if (status != SB_OK)
        sb_derived_forget(binding->state);
}

sb_status sb_binding_run(sb_state_binding *binding, sb_runner *runner, sb_queue *queue, bool host_outputs,
                         sb_outbox *outbox, const sb_value *inputs, sb_value *outputs, sb_error *error) {
    for (size_t i = 0; i < binding->given_count; i++)
        binding->entering[binding->given[i]] = inputs[binding->given[i]];
    sb_status status = sb_runner_start(runner, host_outputs, outbox, binding->entering, binding->leaving, error);
    if (status == SB_OK)
        status = prepare_updates(binding, runner, queue, error);
    if (status == SB_OK)
        status = carry_out_updates(binding, queue, error);
    if (status == SB_OK && !binding->stay)
        sb_staying_note(runner);
    note_contents(binding, status);
    hand_out(binding, status, outputs);
    return status;
}
