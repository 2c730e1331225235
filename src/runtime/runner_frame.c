/* What a runner gives to calls: memory, nested graphs, iterations. */
#include <string.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"

/* ---- the frame: memory and nested graphs for calls ---- */

/* What was reserved for a copy, which the caller gets, or NULL. */
static sb_storage *take_reserved(sb_runner *runner, sb_side side, sb_value_id value, size_t bytes) {
    if (runner->reserved == NULL || value == SB_NO_VALUE)
        return NULL;
    sb_storage **reserved = &runner->reserved[sb_copy_index(runner->program, side, value)], *taken = *reserved;
    if (taken == NULL || taken->bytes < bytes)
        return NULL;
    *reserved = NULL;
    return taken;
}

sb_status sb_runner_allocate(sb_runner *runner, sb_side side, sb_value_id value, int64_t offset, size_t bytes,
                             sb_storage **storage, char **data, sb_error *error) {
    if (offset >= 0) {
        *storage = sb_storage_retain(runner->arenas[side]);
        *data = (char *)runner->arenas[side]->data + offset;
        return SB_OK;
    }
    *storage = take_reserved(runner, side, value, bytes);
    if (*storage != NULL) {
        *data = (*storage)->data;
        return SB_OK;
    }
    if (side == SB_DEVICE)
        SB_TRY(sb_queue_storage(runner->settings->placement.queue, bytes, storage, error));
    else
        SB_TRY(sb_storage_create(bytes, storage, error));
    *data = (*storage)->data;
    return SB_OK;
}

static sb_status allocate_output(sb_frame *frame, const sb_call *call, int index, size_t bytes, sb_storage **storage,
                                 char **data) {
    sb_runner *runner = (sb_runner *)frame;
    sb_value_id value = call->node->outputs[index];
    sb_side side = call->target != NULL ? SB_DEVICE : SB_HOST;
    sb_tensor *place = value != SB_NO_VALUE && runner->plan->places != NULL ? runner->plan->places[value] : NULL;
    if (place != NULL) {
        *storage = sb_storage_retain(place->storage);
        *data = place->data;
        return SB_OK;
    }
    int64_t offset = value != SB_NO_VALUE ? runner->plan->offsets[sb_copy_index(runner->program, side, value)] : -1;
    /* A view that is a copy this time gets a place in the arena before the next run. */
    size_t step = (size_t)(runner->step - runner->program->steps);
    if (offset < 0 && value != SB_NO_VALUE && (call->node->op->flags & SB_OP_VIEW) != 0 &&
        runner->plan->steps[step].mode == SB_STEP_STATIC && !runner->plan->copied[value])
        runner->plan->copied[value] = runner->plan->outdated = true;
    return sb_runner_allocate(runner, side, value, offset, bytes, storage, data, call->error);
}

/* Blocks stay with the runner, so that a recorded step finds the addresses that it had. */
static sb_status take_device_workspace(sb_runner *runner, size_t bytes, void **memory, sb_error *error) {
    if (!sb_grow((void **)&runner->device_workspace, &runner->device_workspace_capacity,
                 runner->device_workspace_used + 1, sizeof(sb_storage *)))
        return sb_fail_memory(error, sizeof(sb_storage *));
    if (runner->device_workspace_used == runner->device_workspace_count)
        runner->device_workspace[runner->device_workspace_count++] = NULL;
    sb_storage **block = &runner->device_workspace[runner->device_workspace_used];
    if (*block == NULL || (*block)->bytes < bytes) {
        sb_storage *larger;
        SB_TRY(sb_queue_storage(runner->settings->placement.queue, bytes, &larger, error));
        sb_storage_release(*block);
        *block = larger;
        runner->settings->placement.queue->moves++;
    }
    runner->device_workspace_used++;
    *memory = (*block)->data;
    return SB_OK;
}

static sb_status take_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    sb_runner *runner = (sb_runner *)frame;
    if (call->target != NULL)
        return take_device_workspace(runner, bytes, memory, call->error);
    if (!sb_grow((void **)&runner->workspace, &runner->workspace_capacity, runner->workspace_used + 1,
                 sizeof *runner->workspace))
        return sb_fail_memory(call->error, sizeof *runner->workspace);
    if (runner->workspace_used == runner->workspace_count)
        runner->workspace[runner->workspace_count++] = (sb_workspace_block){0};
    sb_workspace_block *block = &runner->workspace[runner->workspace_used];
    if (block->bytes < bytes) {
        void *larger = sb_allocate(bytes);
        if (larger == NULL)
            return sb_fail_memory(call->error, bytes);
        sb_free(block->memory);
        *block = (sb_workspace_block){larger, bytes};
    }
    runner->workspace_used++;
    *memory = block->memory;
    return SB_OK;
}

static sb_status copy_on_device(sb_frame *frame, const sb_call *call, sb_tensor *to, const sb_tensor *from) {
    return sb_queue_copy(((sb_runner *)frame)->settings->placement.queue, call->target->step, to, from, call->error);
}

static sb_status nested_runner(sb_runner *runner, const sb_graph *graph, sb_runner **nested, sb_error *error) {
    for (size_t i = 0; i < runner->nested_count; i++) {
        if (runner->nested[i]->program->graph == graph) {
            *nested = runner->nested[i];
            return SB_OK;
        }
    }
    sb_program *program = (sb_program *)sb_step_program(runner->step, graph);
    if (program == NULL)
        return sb_fail(error, SB_ERROR_INTERNAL, "node %s: graph %s is not its own", runner->step->node->name,
                       graph->name);
    if (!sb_grow((void **)&runner->nested, &runner->nested_capacity, runner->nested_count + 1, sizeof *runner->nested))
        return sb_fail_memory(error, sizeof *runner->nested);
    SB_TRY(sb_runner_create(program, runner->settings, runner->depth + 1, nested, error));
    if ((runner->step->node->op->flags & SB_OP_FUSED) != 0)
        (*nested)->arenas = runner->body_arenas;
    runner->nested[runner->nested_count++] = *nested;
    return SB_OK;
}

static sb_status run_graph(sb_frame *frame, const sb_call *call, const sb_graph *graph, int input_count,
                           const sb_value *inputs, sb_value *outputs) {
    sb_runner *runner = (sb_runner *)frame, *nested;
    int captures = call->node->capture_count;
    if (graph->input_count != (size_t)(input_count + captures))
        return sb_call_fail(call, SB_ERROR_INVALID_MODEL, "graph %s takes %zu inputs where %d are given", graph->name,
                            graph->input_count - (size_t)captures, input_count);
    SB_TRY(nested_runner(runner, graph, &nested, call->error));
    sb_value *all = nested->inputs;
    if (input_count != 0)
        memcpy(all, inputs, (size_t)input_count * sizeof *all);
    if (captures != 0)
        memcpy(all + input_count, call->inputs + call->input_count - captures, (size_t)captures * sizeof *all);
    return sb_runner_run(nested, call->target == NULL, all, outputs, call->error);
}

/* ---- ending early ---- */

bool sb_runner_interrupted(const sb_runner *runner) {
    sb_run_control *control = runner->settings->control;
    return control != NULL && atomic_load_explicit(&control->interrupted, memory_order_relaxed) != 0;
}

static sb_status begin_iteration(sb_frame *frame, const sb_call *call, int64_t iteration) {
    const sb_runner *runner = (sb_runner *)frame;
    sb_run_control *control = runner->settings->control;
    if (sb_runner_interrupted(runner))
        return sb_call_fail(call, SB_ERROR_INTERRUPTED, "interrupted before iteration %lld", (long long)iteration);
    if (control == NULL)
        return SB_OK;
    if (control->iterations >= control->iteration_limit)
        return sb_call_fail(call, SB_ERROR_LIMIT,
                            "iteration %lld would be one more than the %lld that the loops of a run may do "
                            "together: a higher iteration limit allows it",
                            (long long)iteration, (long long)control->iteration_limit);
    control->iterations++;
    return SB_OK;
}

/* ---- open extents ---- */

static const int64_t *used_extent(sb_frame *frame, const sb_call *call, int input, int axis) {
    const sb_runner *runner = (sb_runner *)frame;
    const sb_open_extents *open = runner->plan->open;
    sb_value_id value = call->node->inputs[input];
    int scalar = open != NULL && value != SB_NO_VALUE ? open->extents[(size_t)value * SB_MAX_RANK + (size_t)axis] : -1;
    return scalar >= 0 ? (const int64_t *)(const void *)open->table.there->data + scalar : NULL;
}

static const int64_t *known_elements(sb_frame *frame, const sb_call *call, int input) {
    const sb_runner *runner = (sb_runner *)frame;
    const sb_open_extents *open = runner->plan->open;
    sb_value_id value = call->node->inputs[input];
    int first = open != NULL && value != SB_NO_VALUE ? open->elements[value] : -1;
    return first >= 0 ? (const int64_t *)(const void *)open->table.there->data + first : NULL;
}

/* ---- what only the data tell ---- */

static sb_status read_workspace(sb_frame *frame, const sb_call *call, void *to, const void *from, size_t bytes) {
    sb_runner *runner = (sb_runner *)frame;
    const int64_t count = (int64_t)bytes;
    sb_storage *block = NULL;
    sb_tensor *there = NULL, *here = NULL;
    for (size_t i = 0; i < runner->device_workspace_used; i++)
        block = runner->device_workspace[i]->data == from ? runner->device_workspace[i] : block;
    if (block == NULL || block->bytes < bytes)
        return sb_call_fail(call, SB_ERROR_INTERNAL, "it reads what is no workspace of its own");
    SB_TRY(sb_tensor_over(block, block->data, SB_U8, 1, &count, NULL, &there, call->error));
    sb_status status = sb_tensor_wrap(SB_U8, 1, &count, NULL, to, NULL, NULL, &here, call->error);
    if (status == SB_OK)
        status = sb_queue_download(runner->settings->placement.queue, here, there, call->error);
    sb_tensor_release(here);
    sb_tensor_release(there);
    return status;
}

const sb_frame sb_runner_frame = {allocate_output, take_workspace, run_graph,      copy_on_device,
                                  begin_iteration, used_extent,    known_elements, read_workspace};
