/* The contents of states: reading, writing, and slots. */
#include <string.h>

#include "base/allocation.h"
#include "runtime/state.h"

/* ---- the device ---- */

sb_status sb_state_enter_queue(sb_state *state, sb_error *error) {
    return state->queue != NULL ? sb_queue_enter(state->queue, error) : SB_OK;
}

sb_status sb_state_leave_queue(sb_state *state, sb_status status, sb_error *error) {
    if (state->queue == NULL)
        return status;
    sb_status waited = sb_queue_wait(state->queue, status == SB_OK ? error : NULL);
    return sb_queue_leave(state->queue, status == SB_OK ? waited : status, error);
}

/* Makes the thread the one that works on the contents, on the device as well. */
static sb_status begin(sb_state *state, bool whole, sb_error *error) {
    SB_TRY(sb_state_enter(state, whole, NULL, error));
    sb_status status = sb_state_enter_queue(state, error);
    if (status != SB_OK)
        sb_state_leave(state);
    return status;
}

static sb_status end(sb_state *state, sb_status status, sb_error *error) {
    status = sb_state_leave_queue(state, status, error);
    sb_state_leave(state);
    return status;
}

/* ---- writing ---- */

sb_status sb_state_writes_create(const sb_state *state, sb_state_writes *writes, sb_error *error) {
    writes->count = 0;
    writes->items = sb_allocate_array(state->count, sizeof *writes->items);
    writes->extents = sb_allocate_array(state->extent_count, sizeof *writes->extents);
    if (writes->items == NULL || writes->extents == NULL)
        return sb_fail_memory(error, state->count * sizeof *writes->items);
    for (size_t e = 0; e < state->extent_count; e++)
        writes->extents[e] = state->extents[e].used;
    return SB_OK;
}

void sb_state_writes_clear(sb_state_writes *writes) {
    for (size_t i = 0; i < writes->count; i++) {
        sb_tensor_release(writes->items[i].target);
        sb_tensor_release(writes->items[i].source);
    }
    sb_free(writes->items);
    sb_free(writes->extents);
    *writes = (sb_state_writes){0};
}

/* Elements that are repeated so often go to the device once, and are repeated there: the cache of a language model, of some gigabytes,
 * begins as one zero. */
#define LEAST_REPEATED 16

/* The elements for `target`, where and as the copy takes them: an upload needs a contiguous target,
 * and a slot may be none. */
static sb_status stage(const sb_state *state, const sb_tensor *target, sb_tensor *source, sb_tensor **staged,
                       sb_error *error) {
    sb_tensor *view, *host;
    bool goes = state->queue != NULL && !sb_tensor_on_device(source);
    int64_t few = sb_tensor_elements(source);
    if (goes && few > 0 && few <= sb_tensor_elements(target) / LEAST_REPEATED) {
        SB_TRY(sb_queue_to_device(state->queue, source, &host, error));
        sb_status status = sb_tensor_broadcast(host, target->rank, target->dims, staged, error);
        sb_tensor_release(host);
        return status;
    }
    SB_TRY(sb_tensor_broadcast(source, target->rank, target->dims, &view, error));
    if (!goes || sb_tensor_is_contiguous(target)) {
        *staged = view;
        return SB_OK;
    }
    sb_status status = sb_tensor_contiguous(view, &host, error);
    sb_tensor_release(view);
    if (status != SB_OK)
        return status;
    status = sb_queue_to_device(state->queue, host, staged, error);
    sb_tensor_release(host);
    return status;
}

sb_status sb_state_writes_add(sb_state *state, sb_state_writes *writes, size_t variable, int64_t slot,
                              sb_tensor *source, int64_t version, sb_error *error) {
    const sb_held_variable *held = &state->variables[variable];
    sb_state_write *write = &writes->items[writes->count];
    *write = (sb_state_write){.variable = variable, .version = version};
    writes->count++;
    if (slot == SB_ALL_SLOTS)
        SB_TRY(sb_state_view(held, writes->extents, &write->target, error));
    else
        SB_TRY(sb_state_slot_view(held, slot, &write->target, error));
    return stage(state, write->target, source, &write->source, error);
}

static sb_status write_elements(sb_state *state, const sb_state_write *write, sb_error *error) {
    if (state->queue == NULL) {
        sb_tensor_copy_elements(write->target, write->source);
        return SB_OK;
    }
    return sb_tensor_on_device(write->source) ? sb_queue_copy(state->queue, 0, write->target, write->source, error)
                                              : sb_queue_upload(state->queue, write->target, write->source, error);
}

sb_status sb_state_writes_apply(sb_state *state, const sb_state_writes *writes, sb_error *error) {
    sb_error unread;
    error = error != NULL ? error : &unread;
    sb_status status = SB_OK;
    for (size_t i = 0; i < writes->count && status == SB_OK; i++) {
        const sb_state_write *write = &writes->items[i];
        status = write_elements(state, write, error);
        sb_state_set_version(state, &state->variables[write->variable], write->version);
    }
    for (size_t e = 0; e < state->extent_count; e++)
        sb_state_set_extent(state, e, writes->extents[e]);
    if (status == SB_OK && state->queue != NULL)
        status = sb_queue_wait(state->queue, error);
    if (status != SB_OK)
        sb_state_set_torn(state, error);
    return status;
}

/* ---- reading ---- */

sb_status sb_state_read(sb_state *state, sb_tensor *source, sb_tensor **host, sb_error *error) {
    if (state->queue == NULL)
        return sb_tensor_contiguous(source, host, error);
    SB_TRY(sb_tensor_create_uninitialised(source->dtype, source->rank, source->dims, host, error));
    sb_status status = sb_queue_download(state->queue, *host, source, error);
    if (status != SB_OK) {
        sb_tensor_release(*host);
        *host = NULL;
    }
    return status;
}

/* ---- whole variables ---- */

static sb_status check_index(const sb_state *state, int index, sb_error *error) {
    if (index >= 0 && (size_t)index < state->count)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the state has %zu variables, and none of index %d", state->count,
                   index);
}

/* A copy that later runs do not reach. */
static sb_status copy_out(sb_state *state, const sb_held_variable *held, sb_tensor **tensor, sb_error *error) {
    if (state->queue != NULL)
        return sb_state_read(state, held->tensor, tensor, error);
    const sb_tensor *source = held->tensor;
    SB_TRY(sb_tensor_create_uninitialised(source->dtype, source->rank, source->dims, tensor, error));
    sb_tensor_copy_elements(*tensor, source);
    return SB_OK;
}

sb_status sb_state_get(sb_state *state, int index, sb_tensor **tensor, sb_error *error) {
    sb_tensor *copy = NULL;
    *tensor = NULL;
    SB_TRY(check_index(state, index, error));
    SB_TRY(begin(state, true, error));
    sb_status status = end(state, copy_out(state, &state->variables[index], &copy, error), error);
    if (status != SB_OK)
        sb_tensor_release(copy);
    else
        *tensor = copy;
    return status;
}

/* Carries the writes out, if `status` says that they are complete, and ends what `begin` began.
 * With `all` they make a torn state whole. */
static sb_status end_of_writing(sb_state *state, sb_state_writes *writes, sb_status status, bool all, sb_error *error) {
    if (status == SB_OK)
        status = sb_state_writes_apply(state, writes, error);
    if (status == SB_OK && all)
        sb_state_set_torn(state, NULL);
    sb_state_writes_clear(writes);
    return end(state, status, error);
}

static bool same_type(const sb_tensor *left, const sb_tensor *right) {
    bool same = left->dtype == right->dtype && left->rank == right->rank;
    for (int d = 0; d < left->rank && same; d++)
        same = left->dims[d] == right->dims[d];
    return same;
}

sb_status sb_state_set(sb_state *state, int index, sb_tensor *tensor, sb_error *error) {
    char given[SB_DIMS_TEXT_BYTES], wanted[SB_DIMS_TEXT_BYTES];
    SB_TRY(check_index(state, index, error));
    SB_TRY(sb_tensor_check_on_host(tensor, "put into a state", error));
    sb_held_variable *held = &state->variables[index];
    const sb_tensor *target = held->tensor;
    if (!same_type(target, tensor))
        return sb_fail(error, SB_ERROR_SHAPE, "variable %.200s is %s%s, and the tensor %s%s", held->name,
                       sb_dtype_name(target->dtype), sb_dims_text(target->rank, target->dims, wanted),
                       sb_dtype_name(tensor->dtype), sb_dims_text(tensor->rank, tensor->dims, given));
    sb_state_writes writes = {0};
    SB_TRY(begin(state, true, error));
    sb_status status = sb_state_writes_create(state, &writes, error);
    if (status == SB_OK)
        status = sb_state_writes_add(state, &writes, (size_t)index, SB_ALL_SLOTS, tensor, held->version + 1, error);
    return end_of_writing(state, &writes, status, false, error);
}

sb_status sb_state_reset(sb_state *state, sb_error *error) {
    sb_state_writes writes = {0};
    SB_TRY(begin(state, false, error));
    sb_status status = sb_state_writes_create(state, &writes, error);
    for (size_t e = 0; e < state->extent_count && status == SB_OK; e++)
        writes.extents[e] = state->extents[e].initial;
    for (size_t i = 0; i < state->count && status == SB_OK; i++)
        status = sb_state_writes_add(state, &writes, i, SB_ALL_SLOTS, state->variables[i].initial, 0, error);
    return end_of_writing(state, &writes, status, true, error);
}

/* ---- copying states ---- */

/* Whether both hold the same, each with room for as many rows as it likes where there is a capacity. */
static bool same_variable(const sb_held_variable *left, const sb_held_variable *right) {
    bool same = left->tensor->dtype == right->tensor->dtype && left->tensor->rank == right->tensor->rank;
    for (int d = 0; d < left->tensor->rank && same; d++)
        same = left->extents[d] == right->extents[d] &&
               (left->extents[d] >= 0 || left->tensor->dims[d] == right->tensor->dims[d]);
    return same;
}

static sb_status check_alike(const sb_state *target, const sb_state *source, sb_error *error) {
    bool alike = target->model == source->model && target->count == source->count;
    for (size_t i = 0; i < target->count && alike; i++) {
        int other = sb_state_variable_index(source, target->variables[i].name);
        alike = other == (int)i && same_variable(&target->variables[i], &source->variables[i]);
    }
    alike = alike && target->extent_count == source->extent_count;
    for (size_t e = 0; e < target->extent_count && alike; e++)
        alike = strcmp(target->extents[e].symbol, source->extents[e].symbol) == 0;
    if (alike)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "the states are of different models, or hold different variables: make both with the same options");
}

/* The source's contents and versions as they are now, on the host. */
static sb_status take_contents(sb_state *source, sb_tensor **contents, int64_t *versions, int64_t *extents,
                               sb_error *error) {
    sb_status status = SB_OK;
    SB_TRY(begin(source, true, error));
    for (size_t e = 0; e < source->extent_count; e++)
        extents[e] = source->extents[e].used;
    for (size_t i = 0; i < source->count && status == SB_OK; i++) {
        status = copy_out(source, &source->variables[i], &contents[i], error);
        versions[i] = source->variables[i].version;
    }
    return end(source, status, error);
}

static sb_status put_contents(sb_state *target, sb_tensor **contents, const int64_t *versions, const int64_t *extents,
                              sb_error *error) {
    sb_state_writes writes = {0};
    SB_TRY(begin(target, false, error));
    sb_status status = sb_state_writes_create(target, &writes, error);
    for (size_t e = 0; e < target->extent_count && status == SB_OK; e++) {
        writes.extents[e] = extents[e];
        if (extents[e] > target->extents[e].capacity)
            status = sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                             "extent %.200s is %lld in one state, and has a capacity of %lld in the other",
                             target->extents[e].symbol, (long long)extents[e], (long long)target->extents[e].capacity);
    }
    for (size_t i = 0; i < target->count && status == SB_OK; i++)
        status = sb_state_writes_add(target, &writes, i, SB_ALL_SLOTS, contents[i], versions[i], error);
    return end_of_writing(target, &writes, status, true, error);
}

/* By way of the host, one state after the other: two threads that copy in opposite
 * directions never wait for each other. */
sb_status sb_state_copy(sb_state *target, sb_state *source, sb_error *error) {
    if (target == source)
        return SB_OK;
    SB_TRY(check_alike(target, source, error));
    sb_tensor **contents = sb_allocate_array(source->count, sizeof(sb_tensor *));
    int64_t *versions = sb_allocate_array(source->count, sizeof *versions);
    int64_t *extents = sb_allocate_array(source->extent_count, sizeof *extents);
    sb_status status = contents != NULL && versions != NULL && extents != NULL
                           ? SB_OK
                           : sb_fail_memory(error, source->count * sizeof(sb_tensor *));
    if (status == SB_OK)
        status = take_contents(source, contents, versions, extents, error);
    if (status == SB_OK)
        status = put_contents(target, contents, versions, extents, error);
    for (size_t i = 0; i < source->count && contents != NULL; i++)
        sb_tensor_release(contents[i]);
    sb_free(contents);
    sb_free(versions);
    sb_free(extents);
    return status;
}

/* ---- slots ---- */

sb_status sb_state_slot_view(const sb_held_variable *variable, int64_t slot, sb_tensor **view, sb_error *error) {
    return sb_tensor_slice(variable->tensor, variable->slot_axis, slot, 1, 1, view, error);
}

sb_status sb_state_check_slot(const sb_state *state, int64_t slot, sb_error *error) {
    bool any = false;
    for (size_t i = 0; i < state->count; i++) {
        const sb_held_variable *held = &state->variables[i];
        if (held->slot_axis < 0)
            continue;
        any = true;
        if (slot < 0 || slot >= held->tensor->dims[held->slot_axis])
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "there is no slot %lld: variable %.200s has %lld of them",
                           (long long)slot, held->name, (long long)held->tensor->dims[held->slot_axis]);
    }
    return any ? SB_OK : sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no variable of the state has an axis of slots");
}

/* What slot `to` of a variable is to be: what slot `from` is, or what it was at first. */
static sb_status source_of_slot(const sb_held_variable *held, int64_t from, int64_t to, sb_tensor **source,
                                sb_error *error) {
    if (from != SB_ALL_SLOTS)
        return sb_state_slot_view(held, from, source, error);
    sb_tensor *whole;
    SB_TRY(sb_tensor_broadcast(held->initial, held->tensor->rank, held->tensor->dims, &whole, error));
    sb_status status = sb_tensor_slice(whole, held->slot_axis, to, 1, 1, source, error);
    sb_tensor_release(whole);
    return status;
}

/* Resets slot `to`, or with `from` makes it a copy of that one. */
static sb_status write_slots(sb_state *state, int64_t from, int64_t to, sb_error *error) {
    sb_state_writes writes = {0};
    SB_TRY(begin(state, true, error));
    sb_status status = sb_state_writes_create(state, &writes, error);
    for (size_t i = 0; i < state->count && status == SB_OK; i++) {
        const sb_held_variable *held = &state->variables[i];
        sb_tensor *source;
        if (held->slot_axis < 0)
            continue;
        status = source_of_slot(held, from, to, &source, error);
        if (status != SB_OK)
            break;
        status = sb_state_writes_add(state, &writes, i, to, source, held->version + 1, error);
        sb_tensor_release(source);
    }
    return end_of_writing(state, &writes, status, false, error);
}

sb_status sb_state_reset_slot(sb_state *state, int64_t slot, sb_error *error) {
    SB_TRY(sb_state_check_slot(state, slot, error));
    return write_slots(state, SB_ALL_SLOTS, slot, error);
}

sb_status sb_state_copy_slot(sb_state *state, int64_t from, int64_t to, sb_error *error) {
    SB_TRY(sb_state_check_slot(state, from, error));
    SB_TRY(sb_state_check_slot(state, to, error));
    return from != to ? write_slots(state, from, to, error) : SB_OK;
}
