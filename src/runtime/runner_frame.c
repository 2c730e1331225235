/* What a runner gives to calls: memory, nested graphs, iterations. */
#include <string.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"

/* ---- the frame: memory and nested graphs for calls ---- */

iv_status iv_runner_allocate(iv_runner *runner, iv_side side, int64_t offset, size_t bytes,
                             iv_storage **storage, char **data, iv_error *error) {
    if (offset >= 0) {
        *storage = iv_storage_retain(runner->arenas[side]);
        *data = (char *)runner->arenas[side]->data + offset;
        return IV_OK;
    }
    if (side == IV_DEVICE)
        IV_TRY(iv_lane_storage(runner->settings->placement.lane, bytes, storage, error));
    else
        IV_TRY(iv_storage_create(bytes, storage, error));
    *data = (*storage)->data;
    return IV_OK;
}

static iv_status allocate_output(iv_frame *frame, const iv_call *call, int index, size_t bytes,
                                 iv_storage **storage, char **data) {
    iv_runner *runner = (iv_runner *)frame;
    iv_value_id value = call->node->outputs[index];
    iv_side side = call->target != NULL ? IV_DEVICE : IV_HOST;
    int64_t offset = value != IV_NO_VALUE ? runner->plan->offsets[iv_copy_index(runner->program, side, value)] : -1;
    /* A view that is a copy this time gets a place in the arena before the next run. */
    size_t step = (size_t)(runner->step - runner->program->steps);
    if (offset < 0 && value != IV_NO_VALUE && (call->node->op->flags & IV_OP_VIEW) != 0 &&
        runner->plan->steps[step].mode == IV_STEP_STATIC && !runner->plan->copied[value])
        runner->plan->copied[value] = runner->plan->outdated = true;
    return iv_runner_allocate(runner, side, offset, bytes, storage, data, call->error);
}

/* Blocks stay with the runner, so that a recorded step finds the addresses that it had. */
static iv_status take_device_scratch(iv_runner *runner, size_t bytes, void **memory, iv_error *error) {
    if (!iv_grow((void **)&runner->device_scratch, &runner->device_scratch_capacity,
                 runner->device_scratch_used + 1, sizeof(iv_storage *)))
        return iv_fail_memory(error, sizeof(iv_storage *));
    if (runner->device_scratch_used == runner->device_scratch_count)
        runner->device_scratch[runner->device_scratch_count++] = NULL;
    iv_storage **block = &runner->device_scratch[runner->device_scratch_used];
    if (*block == NULL || (*block)->bytes < bytes) {
        iv_storage *larger;
        IV_TRY(iv_lane_storage(runner->settings->placement.lane, bytes, &larger, error));
        iv_storage_release(*block);
        *block = larger;
        runner->settings->placement.lane->moves++;
    }
    runner->device_scratch_used++;
    *memory = (*block)->data;
    return IV_OK;
}

static iv_status take_scratch(iv_frame *frame, const iv_call *call, size_t bytes, void **memory) {
    iv_runner *runner = (iv_runner *)frame;
    if (call->target != NULL)
        return take_device_scratch(runner, bytes, memory, call->error);
    if (!iv_grow((void **)&runner->scratch, &runner->scratch_capacity, runner->scratch_used + 1,
                 sizeof *runner->scratch))
        return iv_fail_memory(call->error, sizeof *runner->scratch);
    if (runner->scratch_used == runner->scratch_count)
        runner->scratch[runner->scratch_count++] = (iv_scratch_block){0};
    iv_scratch_block *block = &runner->scratch[runner->scratch_used];
    if (block->bytes < bytes) {
        void *larger = iv_allocate(bytes);
        if (larger == NULL)
            return iv_fail_memory(call->error, bytes);
        iv_free(block->memory);
        *block = (iv_scratch_block){larger, bytes};
    }
    runner->scratch_used++;
    *memory = block->memory;
    return IV_OK;
}

static iv_status copy_on_device(iv_frame *frame, const iv_call *call, iv_tensor *to, const iv_tensor *from) {
    return iv_lane_copy(((iv_runner *)frame)->settings->placement.lane, call->target->step, to, from,
                        call->error);
}

static iv_status nested_runner(iv_runner *runner, const iv_graph *graph, iv_runner **nested,
                               iv_error *error) {
    for (size_t i = 0; i < runner->nested_count; i++) {
        if (runner->nested[i]->program->graph == graph) {
            *nested = runner->nested[i];
            return IV_OK;
        }
    }
    iv_program *program = (iv_program *)iv_step_program(runner->step, graph);
    if (program == NULL)
        return iv_fail(error, IV_ERROR_INTERNAL, "node %s: graph %s is not its own",
                       runner->step->node->name, graph->name);
    if (!iv_grow((void **)&runner->nested, &runner->nested_capacity, runner->nested_count + 1,
                 sizeof *runner->nested))
        return iv_fail_memory(error, sizeof *runner->nested);
    IV_TRY(iv_runner_create(program, runner->settings, runner->depth + 1, nested, error));
    runner->nested[runner->nested_count++] = *nested;
    return IV_OK;
}

static iv_status run_graph(iv_frame *frame, const iv_call *call, const iv_graph *graph,
                           int input_count, const iv_value *inputs, iv_value *outputs) {
    iv_runner *runner = (iv_runner *)frame, *nested;
    int captures = call->node->capture_count;
    if (graph->input_count != (size_t)(input_count + captures))
        return iv_call_fail(call, IV_ERROR_INVALID_MODEL, "graph %s takes %zu inputs where %d are given",
                            graph->name, graph->input_count - (size_t)captures, input_count);
    IV_TRY(nested_runner(runner, graph, &nested, call->error));
    iv_value *all = nested->inputs;
    if (input_count != 0)
        memcpy(all, inputs, (size_t)input_count * sizeof *all);
    if (captures != 0)
        memcpy(all + input_count, call->inputs + call->input_count - captures,
               (size_t)captures * sizeof *all);
    return iv_runner_run(nested, call->target == NULL, all, outputs, call->error);
}

/* ---- ending early ---- */

bool iv_runner_interrupted(const iv_runner *runner) {
    iv_run_control *control = runner->settings->control;
    return control != NULL && atomic_load_explicit(&control->interrupted, memory_order_relaxed) != 0;
}

static iv_status begin_iteration(iv_frame *frame, const iv_call *call, int64_t iteration) {
    const iv_runner *runner = (iv_runner *)frame;
    iv_run_control *control = runner->settings->control;
    if (iv_runner_interrupted(runner))
        return iv_call_fail(call, IV_ERROR_INTERRUPTED, "interrupted before iteration %lld",
                            (long long)iteration);
    if (control == NULL)
        return IV_OK;
    if (control->iterations >= control->iteration_limit)
        return iv_call_fail(call, IV_ERROR_LIMIT,
                            "iteration %lld would be one more than the %lld that the loops of a run may do "
                            "together: a higher iteration limit allows it",
                            (long long)iteration, (long long)control->iteration_limit);
    control->iterations++;
    return IV_OK;
}

const iv_frame iv_runner_frame = {allocate_output, take_scratch, run_graph, copy_on_device, begin_iteration};
