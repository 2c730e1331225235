/* Values with open extents: with room for the planned ones on a device, as many rows as are used on the host. */
#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"

static bool is_open(const sb_runner *runner, sb_value_id value) {
    return runner->plan->open != NULL && sb_open_extents_has(runner->plan->open, value);
}

/* The extents that the plan gives a value. */
static sb_status planned_dims(const sb_runner *runner, sb_value_id value, int64_t *dims, sb_error *error) {
    if (sb_fact_is_concrete(&runner->plan->facts[value], dims))
        return SB_OK;
    return sb_fail(error, SB_ERROR_INTERNAL, "value %s has no planned extents",
                   runner->program->graph->values[value].name);
}

sb_status sb_runner_used(const sb_runner *runner, sb_value_id value, sb_tensor *tensor, sb_tensor **used,
                         sb_error *error) {
    if (!is_open(runner, value) || !sb_tensor_on_device(tensor)) {
        *used = sb_tensor_retain(tensor);
        return SB_OK;
    }
    int64_t dims[SB_MAX_RANK];
    sb_open_extents_used(runner->plan->open, value, tensor, dims);
    return sb_tensor_over(tensor->storage, tensor->data, tensor->dtype, tensor->rank, dims, tensor->strides, used,
                          error);
}

/* ---- to the device ---- */

/* Copies the elements to the first rows of the tensor there: from the host through memory of their own where these rows
 * do not lie one behind the other. */
static sb_status copy_rows(sb_queue *queue, const sb_tensor *rows, sb_tensor *source, sb_error *error) {
    if (sb_tensor_on_device(source))
        return sb_queue_copy(queue, 0, rows, source, error);
    if (sb_tensor_is_contiguous(rows))
        return sb_queue_upload(queue, rows, source, error);
    sb_tensor *staged;
    SB_TRY(sb_queue_to_device(queue, source, &staged, error));
    sb_status status = sb_queue_copy(queue, 0, rows, staged, error);
    sb_tensor_release(staged);
    return status;
}

sb_status sb_runner_make_room(sb_runner *runner, sb_value_id value, sb_tensor *source, bool planned, sb_tensor **tensor,
                              sb_error *error) {
    int64_t dims[SB_MAX_RANK], elements;
    SB_TRY(planned_dims(runner, value, dims, error));
    SB_TRY(sb_count_elements(source->dtype, source->rank, dims, &elements, error));
    int64_t offset = planned ? runner->plan->offsets[sb_copy_index(runner->program, SB_DEVICE, value)] : -1;
    sb_storage *storage;
    char *data;
    SB_TRY(sb_runner_allocate(runner, SB_DEVICE, value, offset, (size_t)elements * sb_dtype_size(source->dtype),
                              &storage, &data, error));
    sb_tensor *room = NULL, *rows = NULL;
    sb_status status = sb_tensor_over(storage, data, source->dtype, source->rank, dims, NULL, &room, error);
    if (status == SB_OK)
        status = sb_tensor_over(storage, data, source->dtype, source->rank, source->dims, room->strides, &rows, error);
    sb_storage_release(storage);
    if (status == SB_OK)
        status = copy_rows(runner->settings->placement.queue, rows, source, error);
    sb_tensor_release(rows);
    if (status == SB_OK)
        *tensor = room;
    else
        sb_tensor_release(room);
    return status;
}

/* ---- what enters ---- */

/* A variable has the room that the plan reckons with, and never moves; anybody else's memory may end behind the last
 * row. */
static sb_status enter_on_device(sb_runner *runner, size_t index, sb_tensor *tensor, sb_tensor **entering,
                                 sb_error *error) {
    const sb_state_binding *binding = runner->plan->binding;
    sb_value_id value = runner->program->enter[index];
    sb_tensor **entered = &runner->plan->open->entered[index];
    int64_t dims[SB_MAX_RANK];
    if (binding == NULL || binding->read[index] < 0)
        return sb_runner_make_room(runner, value, tensor, false, entering, error);
    if (*entered == NULL) {
        SB_TRY(planned_dims(runner, value, dims, error));
        SB_TRY(sb_tensor_over(tensor->storage, tensor->data, tensor->dtype, tensor->rank, dims, tensor->strides,
                              entered, error));
    }
    *entering = sb_tensor_retain(*entered);
    return SB_OK;
}

/* With a device, and updates where the variables lie, inputs on the host become dense now, as they are on their way to the
 * device: behind the first update there would be no memory for it. */
static bool wants_dense(const sb_runner *runner) {
    const sb_plan *plan = runner->plan;
    return runner->settings->placement.queue != NULL && plan->binding != NULL &&
           plan->first_update < runner->program->step_count;
}

static sb_status enter(sb_runner *runner, size_t index, sb_value input, sb_value *entering, sb_error *error) {
    sb_value_id value = runner->program->enter[index];
    bool on_host = sb_value_side(input) == SB_HOST;
    sb_tensor *tensor;
    if (input.kind == SB_KIND_TENSOR && on_host && wants_dense(runner))
        SB_TRY(sb_tensor_contiguous(input.tensor, &tensor, error));
    else if (!on_host && is_open(runner, value))
        SB_TRY(enter_on_device(runner, index, input.tensor, &tensor, error));
    else {
        *entering = sb_value_retain(input);
        return SB_OK;
    }
    *entering = sb_value_of_tensor(tensor);
    return SB_OK;
}

/* What follows from the extents, and, on a device, the inputs that the table has taken there. */
static void enter_from_table(sb_runner *runner, const sb_run_table *table) {
    sb_side side = table->there != NULL ? SB_DEVICE : SB_HOST;
    size_t count =
        runner->settings->observer != NULL ? table->shown_count : table->read_count; /* who wants to see all */
    for (size_t i = 0; i < count; i++) {
        sb_value_id value = table->shown[i];
        sb_tensor *known = side == SB_DEVICE ? table->there_shown[i] : table->known[value];
        sb_runner_hold(runner, side, value, sb_value_of_tensor(sb_tensor_retain(known)));
    }
    for (size_t i = 0; i < table->sent_count; i++)
        sb_runner_hold(runner, SB_DEVICE, table->sent[i].value,
                       sb_value_of_tensor(sb_tensor_retain(table->sent[i].there)));
}

sb_status sb_runner_enter(sb_runner *runner, const sb_value *inputs, sb_error *error) {
    const sb_program *program = runner->program;
    const sb_open_extents *open = runner->plan->open;
    for (size_t i = 0; i < program->enter_count; i++) {
        sb_value_id value = program->enter[i];
        sb_value entering;
        SB_TRY(enter(runner, i, inputs[i], &entering, error));
        sb_runner_hold(runner, sb_value_side(inputs[i]), value, entering);
    }
    if (open != NULL)
        enter_from_table(runner, &open->table);
    return SB_OK;
}

/* ---- what leaves ---- */

/* A copy of what the table shows, which is another run's soon. */
static sb_status copy_shown(const sb_tensor *shown, sb_tensor **copy, sb_error *error) {
    SB_TRY(sb_tensor_create_uninitialised(shown->dtype, shown->rank, shown->dims, copy, error));
    sb_tensor_copy_elements(*copy, shown);
    return SB_OK;
}

bool sb_runner_knows(const sb_runner *runner, sb_value_id value) {
    return runner->plan->open != NULL && runner->plan->open->table.known[value] != NULL;
}

sb_status sb_runner_leave(const sb_runner *runner, size_t index, sb_value found, sb_value *leaving, sb_error *error) {
    const sb_open_extents *open = runner->plan->open;
    sb_value_id value = runner->program->leave[index];
    sb_tensor *tensor;
    if (open == NULL || found.kind != SB_KIND_TENSOR) {
        *leaving = sb_value_retain(found);
        return SB_OK;
    }
    if (open->table.known[value] != NULL)
        SB_TRY(copy_shown(open->table.known[value], &tensor, error));
    else if (found.tensor->storage == open->table.here->storage)
        SB_TRY(copy_shown(found.tensor, &tensor, error));
    else
        SB_TRY(sb_runner_used(runner, value, found.tensor, &tensor, error));
    *leaving = sb_value_of_tensor(tensor);
    return SB_OK;
}
