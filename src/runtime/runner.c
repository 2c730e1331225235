#include "runtime/runner_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/again.h"
#include "runtime/derived.h"
#include "runtime/memory_plan.h"
#include "runtime/replay.h"
#include "runtime/state_binding.h"
#include "runtime/staying.h"

/* Plans kept per runner; the least recently used one goes. Making one takes as long as a run of 0.1 ms and more, and lines of text,
 * seconds of speech or steps of a queue have any extents. On a device each has recordings, which take its memory: up to 56 more of them,
 * with the 130 kernels of Llama-3.2-1B's shape, took 4 and 22 MB (docs/results/2026-11-29-queues.md). */
#define MOST_PLANS 128

/* ---- a runner ---- */

static size_t larger_of(size_t left, size_t right) {
    return left > right ? left : right;
}

/* Everything that a step needs room for is here from the start, so that runs allocate nothing. */
static sb_status fill_runner(sb_runner *runner, sb_error *error) {
    size_t values = runner->program->graph->value_count, operands = 0, outputs = 0;
    for (size_t s = 0; s < runner->program->step_count; s++) {
        const sb_node *node = runner->program->steps[s].node;
        operands = larger_of(operands, (size_t)node->input_count + (size_t)node->output_count);
        outputs = larger_of(outputs, (size_t)node->output_count);
    }
    runner->values = sb_allocate_array(values, SB_SIDES * sizeof *runner->values);
    runner->held = sb_allocate_array(values, 2 * SB_SIDES * sizeof *runner->held);
    runner->inputs = sb_allocate_array(runner->program->enter_count, sizeof *runner->inputs);
    runner->step_values = sb_allocate_array(operands, sizeof *runner->step_values);
    runner->step_facts = sb_allocate_array(outputs, sizeof *runner->step_facts);
    if (runner->values == NULL || runner->held == NULL || runner->inputs == NULL || runner->step_values == NULL ||
        runner->step_facts == NULL)
        return sb_fail_memory(error, values * sizeof *runner->values);
    const sb_state_binding *binding = runner->settings->placement.binding;
    if (binding != NULL && binding->program == runner->program) {
        runner->reserved = sb_allocate_array(values, SB_SIDES * sizeof(sb_storage *));
        runner->reserved_copies = sb_allocate_array(values, SB_SIDES * sizeof *runner->reserved_copies);
        if (runner->reserved == NULL || runner->reserved_copies == NULL)
            return sb_fail_memory(error, values * sizeof(sb_storage *));
    }
    return sb_runner_create_faults(runner, error);
}

sb_status sb_runner_create(sb_program *program, const sb_run_settings *settings, int depth, sb_runner **runner,
                           sb_error *error) {
    sb_runner *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->frame = sb_runner_frame;
    fresh->program = program;
    fresh->settings = settings;
    fresh->depth = depth;
    fresh->arenas = fresh->own_arenas;
    sb_status status = fill_runner(fresh, error);
    if (status != SB_OK) {
        sb_runner_destroy(fresh);
        return status;
    }
    *runner = fresh;
    return SB_OK;
}

void sb_runner_destroy(sb_runner *runner) {
    if (runner == NULL)
        return;
    for (size_t i = 0; i < runner->nested_count; i++)
        sb_runner_destroy(runner->nested[i]);
    sb_free(runner->nested);
    for (size_t i = 0; i < runner->workspace_count; i++)
        sb_free(runner->workspace[i].memory);
    sb_free(runner->workspace);
    for (size_t i = 0; i < runner->device_workspace_count; i++)
        sb_storage_release(runner->device_workspace[i]);
    sb_free(runner->device_workspace);
    while (runner->plans != NULL) {
        sb_plan *next = runner->plans->next;
        sb_plan_destroy(runner->plans, runner->program);
        runner->plans = next;
    }
    for (sb_side side = SB_HOST; side < SB_SIDES; side++) {
        sb_storage_release(runner->own_arenas[side]);
        sb_storage_release(runner->body_arenas[side]);
    }
    sb_runner_destroy_faults(runner);
    sb_free(runner->values);
    sb_free(runner->held);
    sb_free(runner->reserved);
    sb_free(runner->reserved_copies);
    sb_free(runner->inputs);
    sb_free(runner->step_values);
    sb_free(runner->step_facts);
    sb_free(runner);
}

/* Waits for runs before this one, of which something is about to go. */
static sb_status wait_for_device(const sb_runner *runner, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    return queue == NULL || queue->is_capturing ? SB_OK : sb_queue_wait(queue, error);
}

/* Before memory of the device moves: waits for what uses it, and forgets the graphs that know its address. */
static sb_status forget_graphs(sb_runner *runner, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    sb_status status = wait_for_device(runner, error);
    for (sb_plan *plan = runner->plans; plan != NULL; plan = plan->next)
        sb_segments_forget(plan);
    queue->moves++;
    return status;
}

/* Makes the arena of a side as large as the plan needs it. */
static sb_status fit_arena(sb_runner *runner, sb_side side, sb_error *error) {
    const sb_plan *plan = runner->plan;
    sb_storage **arena = &runner->arenas[side], *larger;
    size_t bytes = plan->arena_bytes[side];
    bool wanted = side == SB_HOST || bytes != 0;
    if (!wanted || (*arena != NULL && (*arena)->bytes >= bytes))
        return SB_OK;
    sb_status status = side == SB_HOST ? sb_storage_create(bytes, &larger, error)
                                       : sb_queue_storage(runner->settings->placement.queue, bytes, &larger, error);
    if (status != SB_OK)
        return sb_memory_plan_blame(plan, runner->program, status, error);
    if (side == SB_DEVICE)
        status = forget_graphs(runner, error);
    sb_storage_release(*arena);
    *arena = larger;
    return status;
}

/* Lists the steps that would not run on the device, as an error. */
static sb_status refuse_cpu_steps(const sb_runner *runner, const sb_plan *plan, sb_error *error) {
    char list[SB_ERROR_MESSAGE_BYTES - 256];
    size_t used = 0, count = 0;
    for (size_t s = 0; s < runner->program->step_count; s++) {
        const sb_planned_step *planned = &plan->steps[s];
        const sb_node *node = runner->program->steps[s].node;
        bool refused = planned->mode == SB_STEP_STATIC && planned->side == SB_HOST;
        if (!refused)
            continue;
        count++;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s (%s): %s", used > 0 ? "; " : "", node->name,
                                     node->op->name, planned->why);
        const char *variable = sb_binding_updated_there(plan->binding, node);
        if (variable != NULL && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, ", and it updates variable %.200s on the device",
                                     variable);
    }
    if (count == 0)
        return SB_OK;
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "%zu node%s would run on the CPU, and the device is required: %s",
                   count, count == 1 ? "" : "s", list);
}

/* The plan for these inputs, made now if there is none, moved to the front of the list. */
static sb_status find_plan(sb_runner *runner, bool host_outputs, const sb_value *inputs, sb_error *error) {
    const sb_placement *placement = &runner->settings->placement;
    sb_plan **link = &runner->plans, *plan;
    int count = 0;
    for (; *link != NULL && !sb_plan_fits(*link, runner->program, placement, host_outputs, inputs);
         link = &(*link)->next)
        count++;
    if (*link != NULL) {
        plan = *link;
        *link = plan->next;
    } else {
        SB_TRY(sb_plan_create(runner->program, placement, host_outputs, inputs, &plan, error));
        sb_status status = runner->settings->require_device ? refuse_cpu_steps(runner, plan, error) : SB_OK;
        if (status != SB_OK) {
            sb_plan_destroy(plan, runner->program);
            return status;
        }
        if (count >= MOST_PLANS) {
            for (link = &runner->plans; (*link)->next != NULL;)
                link = &(*link)->next;
            (void)wait_for_device(runner, NULL);
            sb_plan_destroy(*link, runner->program);
            *link = NULL;
        }
    }
    plan->next = runner->plans;
    runner->plans = plan;
    runner->plan = plan;
    if (plan->outdated) {
        SB_TRY(wait_for_device(runner, error));
        SB_TRY(sb_memory_plan(plan, runner->program, error));
        sb_segments_forget(plan);
        sb_again_clear(&plan->again);
        plan->outdated = false;
    }
    for (sb_side side = SB_HOST; side < SB_SIDES; side++)
        SB_TRY(fit_arena(runner, side, error));
    return SB_OK;
}

/* The plan for a run whose extents are open: when it turns out to hold less than the run needs, because a variable
 * grows, the next larger one. */
static sb_status find_open_plan(sb_runner *runner, bool host_outputs, const sb_value *inputs, sb_error *error) {
    sb_capacities *capacities = runner->settings->placement.capacities;
    for (;;) {
        bool fits = true;
        SB_TRY(find_plan(runner, host_outputs, inputs, error));
        if (runner->plan->open == NULL)
            return SB_OK;
        sb_open_extents_fill(runner->plan->open, runner->settings->placement.queue, inputs, &fits);
        if (fits)
            return SB_OK;
        SB_TRY(sb_capacities_enlarge(capacities, runner->plan->open->planned, runner->plan->open->add, error));
    }
}

/* ---- values on their sides ---- */

/* Constants of the model are uploaded once for all its sessions on the device,
 * those that follow from extents once for each plan. */
static sb_status bring_constant(sb_runner *runner, sb_value_id value, sb_error *error) {
    sb_tensor *constant = runner->plan->facts[value].constant;
    sb_queue *queue = runner->settings->placement.queue;
    if (constant == runner->program->graph->values[value].fact.constant)
        SB_TRY(sb_program_constant(runner->program, value, queue, &runner->plan->constants[value], error));
    else
        SB_TRY(sb_queue_to_device(queue, constant, &runner->plan->constants[value], error));
    return sb_runner_note_tasks(runner, runner->program->graph->values[value].name, SB_TRANSFER, error);
}

sb_status sb_runner_make_copy(sb_runner *runner, sb_value_id value, sb_side side, bool planned, const sb_tensor *source,
                              sb_tensor **tensor, sb_error *error) {
    size_t bytes = (size_t)sb_tensor_elements(source) * sb_dtype_size(source->dtype);
    int64_t offset = planned ? runner->plan->offsets[sb_copy_index(runner->program, side, value)] : -1;
    sb_storage *storage;
    char *data;
    SB_TRY(sb_runner_allocate(runner, side, value, offset, bytes, &storage, &data, error));
    sb_status status = sb_tensor_over(storage, data, source->dtype, source->rank, source->dims, NULL, tensor, error);
    sb_storage_release(storage);
    return status;
}

static sb_status upload(sb_runner *runner, sb_value_id value, bool planned, sb_tensor *source, sb_tensor **tensor,
                        sb_error *error) {
    if (runner->plan->open != NULL && sb_open_extents_has(runner->plan->open, value))
        return sb_runner_make_room(runner, value, source, planned, tensor, error);
    SB_TRY(sb_runner_make_copy(runner, value, SB_DEVICE, planned, source, tensor, error));
    sb_status status = sb_queue_upload(runner->settings->placement.queue, *tensor, source, error);
    if (status != SB_OK)
        sb_tensor_release(*tensor);
    return status;
}

static sb_status download(sb_runner *runner, sb_value_id value, bool planned, sb_tensor *source, sb_tensor **tensor,
                          sb_error *error) {
    sb_tensor *used;
    SB_TRY(sb_runner_used(runner, value, source, &used, error));
    sb_status status = sb_runner_make_copy(runner, value, SB_HOST, planned, used, tensor, error);
    if (status == SB_OK) {
        status = sb_queue_download(runner->settings->placement.queue, *tensor, used, error);
        if (status != SB_OK)
            sb_tensor_release(*tensor);
    }
    sb_tensor_release(used);
    return status;
}

sb_status sb_runner_bring(sb_runner *runner, sb_value_id value, sb_side side, bool planned, sb_error *error) {
    if (value == SB_NO_VALUE || sb_runner_value(runner, side, value).kind != SB_KIND_NONE)
        return SB_OK;
    sb_value source = runner->values[sb_copy_index(runner->program, side == SB_HOST ? SB_DEVICE : SB_HOST, value)];
    if (side == SB_DEVICE && source.kind == SB_KIND_NONE && runner->plan->facts[value].constant != NULL)
        return bring_constant(runner, value, error);
    if (source.kind == SB_KIND_NONE)
        return SB_OK;
    if (source.kind != SB_KIND_TENSOR)
        return sb_fail(error, SB_ERROR_INTERNAL, "value %s is a sequence, which has no place on a device",
                       runner->program->graph->values[value].name);
    sb_tensor *tensor;
    int64_t start = runner->settings->observer != NULL ? sb_now_ns() : 0;
    if (side == SB_HOST)
        sb_runner_note_cause(runner, runner->step, "it needs what the device has made on the host");
    sb_status status = side == SB_DEVICE ? upload(runner, value, planned, source.tensor, &tensor, error)
                                         : download(runner, value, planned, source.tensor, &tensor, error);
    if (status != SB_OK)
        return sb_fail_within(error, status,
                              "value %s on its way to the %s: ", runner->program->graph->values[value].name,
                              side == SB_DEVICE ? "device" : "host");
    sb_runner_hold(runner, side, value, sb_value_of_tensor(tensor));
    if (runner->plan->binding != NULL)
        sb_binding_note_transfer(runner->plan->binding, value, tensor);
    SB_TRY(sb_runner_note_tasks(runner, runner->program->graph->values[value].name, SB_TRANSFER, error));
    return sb_runner_observe_transfer(runner, value, side,
                                      sb_tensor_elements(tensor) * (int64_t)sb_dtype_size(tensor->dtype), start, error);
}

/* ---- all steps ---- */

/* A step that may write a variable. One that fails before it has written anything leaves the state as it was. */
static sb_status run_updating_step(sb_runner *runner, size_t index, sb_error *error) {
    bool *began = &runner->plan->binding->run.began, before = *began;
    *began = true;
    sb_status status = sb_runner_step(runner, index, error);
    *began = before || status == SB_OK || !runner->untouched;
    return status;
}

/* Shows the observer a step whose outputs are constants, as if it ran now. */
static sb_status observe_constants(sb_runner *runner, size_t index, sb_error *error) {
    const sb_node *node = runner->program->steps[index].node;
    size_t count = (size_t)node->output_count;
    sb_value *outputs = sb_allocate_array(count, sizeof *outputs);
    if (outputs == NULL)
        return sb_fail_memory(error, count * sizeof *outputs);
    sb_call call = {.node = node, .output_count = node->output_count, .outputs = outputs, .error = error};
    for (size_t i = 0; i < count; i++)
        outputs[i] = sb_value_retain(sb_runner_value(runner, SB_HOST, node->outputs[i]));
    int64_t now = sb_now_ns();
    sb_status status = sb_runner_observe(runner, &call, "constant", now, now);
    sb_runner_keep_outputs(runner, &call, status);
    sb_free(outputs);
    return status;
}

/* A step that runs again, since recording it failed, makes its values once more: the list is long enough for twice. */
void sb_runner_hold(sb_runner *runner, sb_side side, sb_value_id value, sb_value held) {
    size_t copy = sb_copy_index(runner->program, side, value);
    runner->values[copy] = held;
    runner->held[runner->held_count++] = copy;
}

/* Most have nothing to let go of: a run asks this of every value of the graph. */
void sb_runner_release(sb_runner *runner, sb_value_id value) {
    for (sb_side side = SB_HOST; side < SB_SIDES; side++) {
        sb_value *copy = &runner->values[sb_copy_index(runner->program, side, value)];
        if (copy->kind != SB_KIND_NONE)
            sb_value_release(copy);
    }
}

static sb_status check_interrupt(const sb_runner *runner, const sb_step *step, sb_error *error) {
    if (!sb_runner_interrupted(runner))
        return SB_OK;
    return sb_fail(error, SB_ERROR_INTERRUPTED, "interrupted before node %s (%s)", step->node->name,
                   step->node->op->name);
}

bool sb_runner_may_replay(const sb_runner *runner) {
    sb_queue *queue = runner->settings->placement.queue;
    return runner->settings->graphs != SB_GRAPHS_OFF && runner->settings->observer == NULL && queue != NULL &&
           runner->settings->task_times == NULL && !queue->is_recording;
}

static sb_status run_steps(sb_runner *runner, const sb_value *inputs, sb_error *error) {
    const sb_program *program = runner->program;
    bool replays = sb_runner_may_replay(runner);
    SB_TRY(sb_runner_enter(runner, inputs, error));
    SB_TRY(sb_runner_bring_together(runner, error));
    for (size_t s = 0; s < program->step_count; s++) {
        const sb_step *step = &program->steps[s];
        sb_segment *segment = replays ? runner->plan->segment_of[s] : NULL;
        SB_TRY(check_interrupt(runner, step, error));
        bool updates =
            runner->plan->binding != NULL && (segment != NULL ? segment->end : s + 1) > runner->plan->first_update;
        if (segment != NULL) {
            if (updates)
                runner->plan->binding->run.began = true;
            SB_TRY(sb_segment_run(runner, segment, error));
            s = segment->end - 1;
            continue;
        }
        if (runner->plan->steps[s].mode != SB_STEP_SKIP)
            SB_TRY(updates ? run_updating_step(runner, s, error) : sb_runner_step(runner, s, error));
        else if (runner->settings->observer != NULL)
            SB_TRY(observe_constants(runner, s, error));
        for (size_t r = 0; r < step->release_count; r++)
            sb_runner_release(runner, step->releases[r]);
    }
    return SB_OK;
}

void sb_runner_note_cause(const sb_runner *runner, const sb_step *step, const char *reason) {
    sb_run_control *control = runner->settings->control;
    if (control == NULL || control->cause.reason != NULL)
        return;
    control->cause.reason = reason;
    if (step != NULL) {
        control->cause.node = step->node->name;
        control->cause.op = step->node->op->name;
    }
}

sb_estimate sb_runner_estimate(const sb_runner *runner) {
    return runner->plan != NULL ? runner->plan->estimate : (sb_estimate){0};
}

bool sb_runner_is_on_host(const sb_runner *runner) {
    return runner->plan != NULL && runner->plan->stays != NULL && runner->nested_count == 0;
}

void sb_runner_leave_out(sb_runner *runner, uint64_t outputs) {
    runner->left_out = outputs;
}

bool sb_runner_leaves_out(const sb_runner *runner, size_t index) {
    return index < 64 && (runner->left_out >> index & 1) != 0;
}

/* Bytes of outputs that lie on the device only, as far as they fit into an outbox. */
static size_t bytes_to_fetch(const sb_runner *runner) {
    const sb_program *program = runner->program;
    size_t bytes = 0;
    for (size_t i = 0; i < program->leave_count && bytes <= SB_OUTBOX_BYTES; i++) {
        sb_value there = sb_runner_value(runner, SB_DEVICE, program->leave[i]);
        if (sb_is_wanted_on_host(runner->plan, i) && !sb_runner_leaves_out(runner, i) && there.kind == SB_KIND_TENSOR &&
            sb_runner_value(runner, SB_HOST, program->leave[i]).kind == SB_KIND_NONE)
            bytes += sb_outbox_bytes(there.tensor->dtype, there.tensor->rank, there.tensor->dims);
    }
    return bytes;
}

/* Not where somebody measures each copy. */
static bool may_take_outbox(const sb_runner *runner) {
    return runner->settings->observer == NULL && runner->settings->task_times == NULL;
}

size_t sb_runner_planned_outbox(const sb_runner *runner) {
    const sb_plan *plan = runner->plan;
    size_t bytes = 0;
    for (size_t i = 0; i < runner->program->leave_count && may_take_outbox(runner) && bytes <= SB_OUTBOX_BYTES; i++) {
        sb_value_id value = runner->program->leave[i];
        int64_t dims[SB_MAX_RANK];
        const sb_fact *fact = &plan->facts[value];
        if (sb_is_wanted_on_host(plan, i) && !sb_runner_leaves_out(runner, i) && plan->sides[value] == SB_DEVICE &&
            fact->kind == SB_KIND_TENSOR && fact->constant == NULL && sb_fact_is_concrete(fact, dims))
            bytes += sb_outbox_bytes(fact->dtype, fact->rank, dims);
    }
    return bytes;
}

/* Whether outputs go through the outbox: not where they are larger than what is kept in pinned memory for a run. */
static bool takes_outbox(const sb_runner *runner, const sb_outbox *outbox, bool host_outputs) {
    if (outbox == NULL || !host_outputs || !may_take_outbox(runner))
        return false;
    if (bytes_to_fetch(runner) <= SB_OUTBOX_BYTES)
        return true;
    sb_runner_note_cause(runner, NULL, "its outputs are too large to wait in pinned memory");
    return false;
}

/* Makes the host's copy of an output, whose elements are to come. */
static sb_status fetch(sb_runner *runner, sb_outbox *outbox, sb_value_id value, sb_error *error) {
    sb_value source = sb_runner_value(runner, SB_DEVICE, value);
    sb_tensor *tensor = NULL, *used;
    if (source.kind != SB_KIND_TENSOR || sb_runner_value(runner, SB_HOST, value).kind != SB_KIND_NONE)
        return SB_OK;
    SB_TRY(sb_runner_used(runner, value, source.tensor, &used, error));
    sb_status status = sb_runner_make_copy(runner, value, SB_HOST, true, used, &tensor, error);
    if (status == SB_OK)
        status = sb_outbox_fetch(outbox, runner->settings->placement.queue, tensor, used, error);
    sb_tensor_release(used);
    if (status != SB_OK) {
        sb_tensor_release(tensor);
        return sb_fail_within(error, status,
                              "value %s on its way to the host: ", runner->program->graph->values[value].name);
    }
    sb_runner_hold(runner, SB_HOST, value, sb_value_of_tensor(tensor));
    return SB_OK;
}

/* Hands over the value of sb_program::leave: from the host when it is wanted there, else from where it is. */
static sb_status hand_over(sb_runner *runner, size_t index, sb_outbox *outbox, sb_value *output, sb_error *error) {
    sb_value_id value = runner->program->leave[index];
    if (sb_runner_knows(runner, value))
        return sb_runner_leave(runner, index, sb_value_of_tensor(runner->plan->open->table.known[value]), output,
                               error);
    bool on_host = sb_is_wanted_on_host(runner->plan, index);
    if (on_host && outbox != NULL)
        SB_TRY(fetch(runner, outbox, value, error));
    else if (on_host)
        SB_TRY(sb_runner_bring(runner, value, SB_HOST, true, error));
    sb_value found = on_host ? (sb_value){0} : sb_runner_value(runner, SB_DEVICE, value);
    if (found.kind == SB_KIND_NONE)
        found = sb_runner_value(runner, SB_HOST, value);
    return sb_runner_leave(runner, index, found, output, error);
}

/* All but next versions, which are where they were in the run before. */
static sb_status hand_over_again(sb_runner *runner, sb_outbox *outbox, sb_value *outputs, sb_error *error) {
    const sb_again *again = &runner->plan->again;
    runner->plan->binding->stay = true;
    for (size_t i = 0; i < again->count; i++) {
        size_t index = again->leaving[i];
        if (!sb_runner_leaves_out(runner, index))
            SB_TRY(hand_over(runner, index, outbox, &outputs[index], error));
    }
    return SB_OK;
}

/* `again`: the run was one of those of runtime/again.h. */
static sb_status hand_over_all(sb_runner *runner, bool again, bool host_outputs, sb_outbox *outbox, sb_value *outputs,
                               sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    runner->step = NULL;
    if (!takes_outbox(runner, outbox, host_outputs))
        outbox = NULL;
    else
        SB_TRY(sb_outbox_open(outbox, queue, bytes_to_fetch(runner), runner->program->leave_count, error));
    if (again)
        return hand_over_again(runner, outbox, outputs, error);
    sb_state_binding *binding = runner->plan->binding;
    bool stay = sb_staying_again(runner);
    if (binding != NULL)
        binding->stay = stay;
    if (!stay)
        sb_staying_offer(runner);
    else
        sb_again_note(runner);
    for (size_t i = 0; i < runner->program->leave_count; i++) {
        bool updates = binding != NULL && binding->update[i] >= 0;
        if (updates ? !stay : !sb_runner_leaves_out(runner, i))
            SB_TRY(hand_over(runner, i, outbox, &outputs[i], error));
    }
    return SB_OK;
}

static sb_status run_anew(sb_runner *runner, sb_outbox *outbox, const sb_value *inputs, sb_error *error) {
    const sb_plan *plan = runner->plan;
    if (plan->open != NULL && plan->open->table.there != NULL)
        SB_TRY(sb_run_table_send(&plan->open->table, runner->settings->placement.queue, error));
    SB_TRY(sb_again_find(runner, error));
    if (plan->binding != NULL && plan->first_update < runner->program->step_count)
        SB_TRY(sb_runner_reserve(runner, outbox, error));
    if (plan->binding != NULL)
        SB_TRY(sb_derived_refresh(runner, error));
    return run_steps(runner, inputs, error);
}

sb_status sb_runner_run(sb_runner *runner, bool host_outputs, const sb_value *inputs, sb_value *outputs,
                        sb_error *error) {
    return sb_runner_start(runner, host_outputs, NULL, inputs, outputs, error);
}

sb_status sb_runner_start(sb_runner *runner, bool host_outputs, sb_outbox *outbox, const sb_value *inputs,
                          sb_value *outputs, sb_error *error) {
    const sb_program *program = runner->program;
    for (size_t i = 0; i < program->leave_count; i++)
        outputs[i] = (sb_value){0};
    SB_TRY(find_open_plan(runner, host_outputs, inputs, error));
    if (runner->plan->stays != NULL)
        sb_runner_note_cause(runner, NULL, "the CPU is estimated to be quicker");
    bool again;
    sb_status status = sb_again_run(runner, outbox, &again, error);
    if (status == SB_OK && !again)
        status = run_anew(runner, outbox, inputs, error);
    if (status == SB_OK)
        status = hand_over_all(runner, again, host_outputs, outbox, outputs, error);
    for (size_t i = 0; i < program->leave_count && status != SB_OK; i++)
        sb_value_release(&outputs[i]);
    for (size_t i = 0; i < runner->held_count; i++)
        sb_value_release(&runner->values[runner->held[i]]);
    runner->held_count = 0;
    sb_runner_release_reserved(runner);
    if (runner->plan->binding != NULL && status == SB_OK && !runner->plan->warm)
        runner->plan->warm = runner->plan->outdated = true;
    return status;
}
