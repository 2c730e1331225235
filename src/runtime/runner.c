#include "runtime/runner_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/memory_plan.h"
#include "runtime/replay.h"

/* Plans kept per runner; the least recently used one goes. */
#define PLAN_LIMIT 8

/* ---- a runner ---- */

static size_t larger_of(size_t left, size_t right) {
    return left > right ? left : right;
}

/* Everything that a step needs room for is here from the start, so that runs allocate nothing. */
static iv_status fill_runner(iv_runner *runner, iv_error *error) {
    size_t values = runner->program->graph->value_count, operands = 0, outputs = 0;
    const iv_lane *lane = runner->settings->placement.lane;
    for (size_t s = 0; s < runner->program->step_count; s++) {
        const iv_node *node = runner->program->steps[s].node;
        operands = larger_of(operands, (size_t)node->input_count + (size_t)node->output_count);
        outputs = larger_of(outputs, (size_t)node->output_count);
    }
    runner->values = iv_allocate_array(values, IV_SIDES * sizeof *runner->values);
    runner->inputs = iv_allocate_array(runner->program->graph->input_count, sizeof *runner->inputs);
    runner->step_values = iv_allocate_array(operands, sizeof *runner->step_values);
    runner->step_facts = iv_allocate_array(outputs, sizeof *runner->step_facts);
    if (runner->values == NULL || runner->inputs == NULL || runner->step_values == NULL || runner->step_facts == NULL)
        return iv_fail_memory(error, values * sizeof *runner->values);
    if (lane == NULL || runner->program->step_count == 0)
        return IV_OK;
    size_t bytes = runner->program->step_count * sizeof(uint32_t);
    IV_TRY(iv_cuda_pinned_create(lane->device, bytes, &runner->faults, error));
    memset(runner->faults->data, 0, bytes);
    return IV_OK;
}

iv_status iv_runner_create(iv_program *program, const iv_run_settings *settings, int depth,
                           iv_runner **runner, iv_error *error) {
    iv_runner *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->frame = iv_runner_frame;
    fresh->program = program;
    fresh->settings = settings;
    fresh->depth = depth;
    iv_status status = fill_runner(fresh, error);
    if (status != IV_OK) {
        iv_runner_destroy(fresh);
        return status;
    }
    *runner = fresh;
    return IV_OK;
}

void iv_runner_destroy(iv_runner *runner) {
    if (runner == NULL)
        return;
    for (size_t i = 0; i < runner->nested_count; i++)
        iv_runner_destroy(runner->nested[i]);
    iv_free(runner->nested);
    for (size_t i = 0; i < runner->scratch_count; i++)
        iv_free(runner->scratch[i].memory);
    iv_free(runner->scratch);
    for (size_t i = 0; i < runner->device_scratch_count; i++)
        iv_storage_release(runner->device_scratch[i]);
    iv_free(runner->device_scratch);
    while (runner->plans != NULL) {
        iv_plan *next = runner->plans->next;
        iv_plan_destroy(runner->plans, runner->program);
        runner->plans = next;
    }
    for (iv_side side = IV_HOST; side < IV_SIDES; side++)
        iv_storage_release(runner->arenas[side]);
    iv_cuda_pinned_destroy(runner->faults);
    iv_free(runner->values);
    iv_free(runner->inputs);
    iv_free(runner->step_values);
    iv_free(runner->step_facts);
    iv_free(runner);
}

/* Before memory of the device moves: waits for what uses it, and forgets the graphs that know its address. */
static iv_status forget_graphs(iv_runner *runner, iv_error *error) {
    iv_lane *lane = runner->settings->placement.lane;
    iv_status status = lane->queue.stream->capturing ? IV_OK : iv_lane_wait(lane, error);
    for (iv_plan *plan = runner->plans; plan != NULL; plan = plan->next)
        iv_segments_forget(plan);
    lane->moves++;
    return status;
}

/* Makes the arena of a side as large as the plan needs it. */
static iv_status fit_arena(iv_runner *runner, iv_side side, iv_error *error) {
    const iv_plan *plan = runner->plan;
    iv_storage **arena = &runner->arenas[side], *larger;
    size_t bytes = plan->arena_bytes[side];
    bool wanted = side == IV_HOST || bytes != 0;
    if (!wanted || (*arena != NULL && (*arena)->bytes >= bytes))
        return IV_OK;
    iv_status status = side == IV_HOST
                           ? iv_storage_create(bytes, &larger, error)
                           : iv_lane_storage(runner->settings->placement.lane, bytes, &larger, error);
    if (status != IV_OK)
        return iv_memory_plan_blame(plan, runner->program, status, error);
    if (side == IV_DEVICE)
        status = forget_graphs(runner, error);
    iv_storage_release(*arena);
    *arena = larger;
    return status;
}

/* The plan for these inputs, made now if there is none, moved to the front of the list. */
/* Lists the steps that would not run on the device, as an error. */
static iv_status refuse_cpu_steps(const iv_runner *runner, const iv_plan *plan, iv_error *error) {
    char list[IV_ERROR_MESSAGE_BYTES - 256];
    size_t used = 0, count = 0;
    for (size_t s = 0; s < runner->program->step_count; s++) {
        const iv_planned_step *planned = &plan->steps[s];
        const iv_node *node = runner->program->steps[s].node;
        bool refused = planned->mode == IV_STEP_STATIC && planned->side == IV_HOST;
        if (!refused)
            continue;
        count++;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s (%s): %s", used > 0 ? "; " : "", node->name,
                                     node->op->name, planned->why);
    }
    if (count == 0)
        return IV_OK;
    return iv_fail(error, IV_ERROR_UNSUPPORTED, "%zu node%s would run on the CPU, and the device is required: %s", count,
                   count == 1 ? "" : "s", list);
}

static iv_status find_plan(iv_runner *runner, bool host_outputs, const iv_value *inputs, iv_error *error) {
    iv_plan **link = &runner->plans, *plan;
    int count = 0;
    for (; *link != NULL && !iv_plan_fits(*link, runner->program, host_outputs, inputs); link = &(*link)->next)
        count++;
    if (*link != NULL) {
        plan = *link;
        *link = plan->next;
    } else {
        IV_TRY(iv_plan_create(runner->program, &runner->settings->placement, host_outputs, inputs, &plan, error));
        iv_status status =
            runner->settings->require_device ? refuse_cpu_steps(runner, plan, error) : IV_OK;
        if (status != IV_OK) {
            iv_plan_destroy(plan, runner->program);
            return status;
        }
        if (count >= PLAN_LIMIT) {
            for (link = &runner->plans; (*link)->next != NULL;)
                link = &(*link)->next;
            if (runner->settings->placement.lane != NULL && !runner->settings->placement.lane->queue.stream->capturing)
                (void)iv_lane_wait(runner->settings->placement.lane, NULL);
            iv_plan_destroy(*link, runner->program);
            *link = NULL;
        }
    }
    plan->next = runner->plans;
    runner->plans = plan;
    runner->plan = plan;
    if (plan->outdated) {
        IV_TRY(iv_memory_plan(plan, runner->program, error));
        iv_segments_forget(plan);
        plan->outdated = false;
    }
    for (iv_side side = IV_HOST; side < IV_SIDES; side++)
        IV_TRY(fit_arena(runner, side, error));
    return IV_OK;
}

/* ---- values on their sides ---- */

iv_value iv_runner_value(const iv_runner *runner, iv_side side, iv_value_id value) {
    if (value == IV_NO_VALUE)
        return (iv_value){0};
    iv_value found = runner->values[iv_copy_index(runner->program, side, value)];
    if (found.kind != IV_KIND_NONE)
        return found;
    iv_tensor *constant = side == IV_HOST                   ? runner->plan->facts[value].constant
                          : runner->plan->constants != NULL ? runner->plan->constants[value]
                                                            : NULL;
    return constant != NULL ? iv_value_of_tensor(constant) : found;
}

/* Constants of the model are uploaded once for all its sessions on the device, those that follow from extents once for each
 * plan. */
static iv_status bring_constant(iv_runner *runner, iv_value_id value, iv_error *error) {
    iv_tensor *constant = runner->plan->facts[value].constant;
    iv_lane *lane = runner->settings->placement.lane;
    if (constant == runner->program->graph->values[value].fact.constant)
        IV_TRY(iv_program_constant(runner->program, value, lane, &runner->plan->constants[value], error));
    else
        IV_TRY(iv_lane_to_device(lane, constant, &runner->plan->constants[value], error));
    return iv_runner_note_tasks(runner, runner->program->graph->values[value].name, IV_TRANSFER, error);
}

static iv_status make_copy(iv_runner *runner, iv_value_id value, iv_side side, bool planned,
                           const iv_tensor *source, iv_tensor **tensor, iv_error *error) {
    size_t bytes = (size_t)iv_tensor_elements(source) * iv_dtype_size(source->dtype);
    int64_t offset = planned ? runner->plan->offsets[iv_copy_index(runner->program, side, value)] : -1;
    iv_storage *storage;
    char *data;
    IV_TRY(iv_runner_allocate(runner, side, offset, bytes, &storage, &data, error));
    iv_status status = iv_tensor_over(storage, data, source->dtype, source->rank, source->dims, NULL, tensor, error);
    iv_storage_release(storage);
    return status;
}

iv_status iv_runner_bring(iv_runner *runner, iv_value_id value, iv_side side, bool planned, iv_error *error) {
    if (value == IV_NO_VALUE || iv_runner_value(runner, side, value).kind != IV_KIND_NONE)
        return IV_OK;
    iv_lane *lane = runner->settings->placement.lane;
    iv_value source = runner->values[iv_copy_index(runner->program, side == IV_HOST ? IV_DEVICE : IV_HOST, value)];
    if (side == IV_DEVICE && source.kind == IV_KIND_NONE && runner->plan->facts[value].constant != NULL)
        return bring_constant(runner, value, error);
    if (source.kind == IV_KIND_NONE)
        return IV_OK;
    if (source.kind != IV_KIND_TENSOR)
        return iv_fail(error, IV_ERROR_INTERNAL, "value %s is a sequence, which has no place on a device",
                       runner->program->graph->values[value].name);
    iv_tensor *tensor;
    int64_t start = runner->settings->observer != NULL ? iv_now_ns() : 0;
    IV_TRY(make_copy(runner, value, side, planned, source.tensor, &tensor, error));
    iv_status status = side == IV_DEVICE ? iv_lane_upload(lane, tensor, source.tensor, error)
                                         : iv_lane_download(lane, tensor, source.tensor, error);
    if (status != IV_OK) {
        iv_tensor_release(tensor);
        return iv_fail_within(error, status, "value %s on its way to the %s: ",
                              runner->program->graph->values[value].name, side == IV_DEVICE ? "device" : "host");
    }
    runner->values[iv_copy_index(runner->program, side, value)] = iv_value_of_tensor(tensor);
    IV_TRY(iv_runner_note_tasks(runner, runner->program->graph->values[value].name, IV_TRANSFER, error));
    return iv_runner_observe_transfer(runner, value, side,
                                      iv_tensor_elements(tensor) * (int64_t)iv_dtype_size(tensor->dtype), start,
                                      error);
}

/* Brings the step's inputs to where its kernel reads them, and lists them in the call. */
static iv_status bring_inputs(iv_runner *runner, iv_call *call, const iv_kernel *kernel, iv_side side, bool planned) {
    iv_value *inputs = (iv_value *)call->inputs;
    for (int i = 0; i < call->node->input_count; i++) {
        iv_side input_side = iv_input_side(kernel, side, i);
        IV_TRY(iv_runner_bring(runner, call->node->inputs[i], input_side, planned, call->error));
        inputs[i] = iv_runner_value(runner, input_side, call->node->inputs[i]);
    }
    return IV_OK;
}

/* ---- steps ---- */

/* An output that shares memory with an input, without the op having said that it may, would be overwritten while still in use. */
static iv_status check_aliases(const iv_runner *runner, const iv_call *call) {
    if ((call->node->op->flags & (IV_OP_VIEW | IV_OP_KEEPS | IV_OP_CONTROL)) != 0)
        return IV_OK;
    iv_side side = call->target != NULL ? IV_DEVICE : IV_HOST;
    const iv_storage *arena = runner->arenas[side];
    for (int o = 0; o < call->output_count; o++) {
        if (!iv_call_wants(call, o) || call->outputs[o].kind != IV_KIND_TENSOR)
            continue;
        const iv_tensor *output = call->outputs[o].tensor;
        int64_t offset = runner->plan->offsets[iv_copy_index(runner->program, side, call->node->outputs[o])];
        bool own = output->storage == arena ? offset >= 0 && output->data == (char *)arena->data + offset : true;
        for (int i = 0; i < call->input_count && own; i++)
            own = output->storage == arena || call->inputs[i].kind != IV_KIND_TENSOR ||
                  call->inputs[i].tensor->storage != output->storage;
        if (!own)
            return iv_call_fail(call, IV_ERROR_INTERNAL, "output %d shares memory with an input", o);
    }
    return IV_OK;
}

/* Makes the call one of the device's. */
static void aim(iv_runner *runner, size_t index, iv_call *call) {
    const iv_lane *lane = runner->settings->placement.lane;
    runner->target = (iv_cuda_target){
        .queue = &lane->queue,
        .step = (int)index,
        .fault = (CUdeviceptr)(uintptr_t)((uint32_t *)runner->faults->data + index),
    };
    call->target = &runner->target;
}

static iv_status launch(iv_runner *runner, size_t index, iv_call *call, const iv_kernel *kernel, iv_side side) {
    const iv_run_settings *settings = runner->settings;
    runner->scratch_used = runner->device_scratch_used = 0;
    if (side == IV_DEVICE)
        aim(runner, index, call);
    int64_t start = settings->observer != NULL ? iv_now_ns() : 0;
    IV_TRY(iv_call_run(call, kernel != NULL ? kernel->launch : call->node->op->eval));
    IV_TRY(iv_runner_note_tasks(runner, call->node->name, call->node->op->name, call->error));
    iv_status status = check_aliases(runner, call);
    if (status != IV_OK || settings->observer == NULL)
        return status;
    if (side == IV_DEVICE)
        IV_TRY(iv_lane_wait(settings->placement.lane, call->error));
    return iv_runner_observe(runner, call, kernel != NULL ? kernel->name : "reference", start, iv_now_ns());
}

/* Runs with the plan's facts, borrowed. */
static iv_status run_static(iv_runner *runner, size_t index, iv_call *call) {
    const iv_planned_step *planned = &runner->plan->steps[index];
    for (int i = 0; i < call->node->output_count; i++) {
        iv_value_id value = call->node->outputs[i];
        runner->step_facts[i] = value != IV_NO_VALUE ? runner->plan->facts[value] : (iv_fact){0};
    }
    call->facts = runner->step_facts;
    call->state = planned->state;
    IV_TRY(bring_inputs(runner, call, planned->kernel, planned->side, true));
    return launch(runner, index, call, planned->kernel, planned->side);
}

/* What inference says of a dynamic step now that its inputs are there. */
typedef struct dynamic_facts {
    iv_scope *scope;
    size_t input_count, output_count;
    iv_fact *inputs, *outputs; /* in one block */
    const iv_fact **pointers;  /* to the inputs; NULL where omitted */
} dynamic_facts;

static iv_status create_facts(const iv_node *node, dynamic_facts *facts, iv_error *error) {
    facts->input_count = (size_t)node->input_count;
    facts->output_count = (size_t)node->output_count;
    size_t count = facts->input_count + facts->output_count;
    facts->inputs = iv_allocate_array(count, sizeof *facts->inputs);
    facts->pointers = iv_allocate_array(facts->input_count, sizeof(iv_fact *));
    if (facts->inputs == NULL || facts->pointers == NULL)
        return iv_fail_memory(error, count * sizeof *facts->inputs);
    facts->outputs = facts->inputs + facts->input_count;
    return iv_scope_create(&facts->scope, error);
}

static void clear_facts(dynamic_facts *facts) {
    for (size_t i = 0; facts->inputs != NULL && i < facts->input_count + facts->output_count; i++)
        iv_fact_clear(&facts->inputs[i]);
}

static void destroy_facts(dynamic_facts *facts) {
    clear_facts(facts);
    iv_free(facts->inputs);
    iv_free(facts->pointers);
    iv_scope_destroy(facts->scope);
}

/* Infers from the inputs: from their elements where these lie on the host. */
static iv_status infer_now(const iv_runner *runner, const iv_node *node, dynamic_facts *facts, iv_error *error) {
    clear_facts(facts);
    for (size_t i = 0; i < facts->input_count; i++) {
        facts->pointers[i] = NULL;
        if (node->inputs[i] == IV_NO_VALUE)
            continue;
        iv_value value = iv_runner_value(runner, IV_HOST, node->inputs[i]);
        bool on_host = value.kind != IV_KIND_NONE;
        if (!on_host)
            value = iv_runner_value(runner, IV_DEVICE, node->inputs[i]);
        facts->pointers[i] = &facts->inputs[i];
        IV_TRY(iv_fact_of_value(&facts->inputs[i], facts->scope, value, on_host, error));
    }
    return iv_node_infer(node, facts->scope, facts->pointers, facts->outputs, error);
}

static bool all_concrete(const iv_node *node, const dynamic_facts *facts) {
    bool concrete = true;
    for (size_t i = 0; i < facts->output_count; i++)
        concrete = concrete && (node->outputs[i] == IV_NO_VALUE || iv_fact_is_concrete(&facts->outputs[i], NULL));
    return concrete;
}

/* Infers, from elements that have to be brought to the host where nothing else tells the outputs' shapes. */
static iv_status infer_dynamic(iv_runner *runner, const iv_node *node, dynamic_facts *facts, iv_error *error) {
    IV_TRY(infer_now(runner, node, facts, error));
    if (runner->settings->placement.lane == NULL || all_concrete(node, facts))
        return IV_OK;
    for (int i = 0; i < node->input_count; i++)
        IV_TRY(iv_runner_bring(runner, node->inputs[i], IV_HOST, false, error));
    return infer_now(runner, node, facts, error);
}

/* Chooses side and kernel of a dynamic step, and notes them in the plan for those who ask where things ran. */
static iv_status place_dynamic(iv_runner *runner, size_t index, const dynamic_facts *facts, void **state,
                               iv_error *error) {
    iv_planned_step *planned = &runner->plan->steps[index];
    const iv_node *node = runner->program->steps[index].node;
    planned->kernel = NULL;
    planned->side = IV_HOST;
    if (runner->settings->placement.lane != NULL) {
        char why[IV_WHY_BYTES];
        IV_TRY(iv_place(&runner->settings->placement, runner->program, index, facts->pointers, facts->outputs,
                        &planned->kernel, why, error));
        IV_TRY(iv_plan_explain(planned, planned->kernel == NULL ? why : NULL, error));
        if (planned->kernel != NULL) {
            planned->side = IV_DEVICE;
            return iv_program_prepare(runner->program, index, planned->kernel, facts->pointers, facts->outputs, state,
                                      error);
        }
        if (runner->settings->require_device)
            return iv_fail(error, IV_ERROR_UNSUPPORTED,
                           "node %s (%s) would run on the CPU, and the device is required: %s", node->name,
                           node->op->name, why);
    }
    int in_place; /* outputs of a dynamic step have no place in the arena */
    if (!all_concrete(node, facts))
        return IV_OK;
    return iv_program_choose(runner->program, index, facts->pointers, facts->outputs, &planned->kernel, state,
                             &in_place, error);
}

/* Infers the outputs from the inputs that are there now, then runs. Small results that inference has already worked out are taken from it. */
static iv_status run_dynamic(iv_runner *runner, size_t index, iv_call *call) {
    const iv_planned_step *planned = &runner->plan->steps[index];
    dynamic_facts facts = {0};
    iv_status status = create_facts(call->node, &facts, call->error);
    if (status == IV_OK)
        status = infer_dynamic(runner, call->node, &facts, call->error);
    if (status == IV_OK)
        status = place_dynamic(runner, index, &facts, &call->state, call->error);
    if (status == IV_OK)
        status = bring_inputs(runner, call, planned->kernel, planned->side, false);
    if (status == IV_OK) {
        call->facts = facts.outputs;
        status = launch(runner, index, call, planned->kernel, planned->side);
        call->facts = NULL;
    }
    destroy_facts(&facts);
    return status;
}

/* Keeps what a call has made, each output on the side where it is. */
static void keep_outputs(iv_runner *runner, iv_call *call, iv_status status) {
    for (int i = 0; i < call->output_count; i++) {
        iv_value_id value = call->node->outputs[i];
        if (status != IV_OK || value == IV_NO_VALUE) {
            iv_value_release(&call->outputs[i]);
            continue;
        }
        runner->values[iv_copy_index(runner->program, iv_value_side(call->outputs[i]), value)] = call->outputs[i];
    }
}

iv_status iv_runner_step(iv_runner *runner, size_t index, iv_error *error) {
    const iv_node *node = runner->program->steps[index].node;
    runner->step = &runner->program->steps[index];
    size_t count = (size_t)node->input_count + (size_t)node->output_count;
    iv_value *values = runner->step_values;
    for (size_t i = 0; i < count; i++)
        values[i] = (iv_value){0};
    iv_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = values,
                    .output_count = node->output_count,
                    .outputs = values + node->input_count,
                    .workers = runner->settings->workers,
                    .frame = &runner->frame,
                    .isa = runner->program->isa,
                    .error = error};
    iv_status status = runner->plan->steps[index].mode == IV_STEP_STATIC
                           ? run_static(runner, index, &call)
                           : run_dynamic(runner, index, &call);
    keep_outputs(runner, &call, status);
    return status;
}

/* Shows the observer a step whose outputs are constants, as if it ran now. */
static iv_status observe_constants(iv_runner *runner, size_t index, iv_error *error) {
    const iv_node *node = runner->program->steps[index].node;
    size_t count = (size_t)node->output_count;
    iv_value *outputs = iv_allocate_array(count, sizeof *outputs);
    if (outputs == NULL)
        return iv_fail_memory(error, count * sizeof *outputs);
    iv_call call = {
        .node = node, .output_count = node->output_count, .outputs = outputs, .error = error};
    for (size_t i = 0; i < count; i++)
        outputs[i] = iv_value_retain(iv_runner_value(runner, IV_HOST, node->outputs[i]));
    int64_t now = iv_now_ns();
    iv_status status = iv_runner_observe(runner, &call, "constant", now, now);
    keep_outputs(runner, &call, status);
    iv_free(outputs);
    return status;
}

void iv_runner_release(iv_runner *runner, iv_value_id value) {
    for (iv_side side = IV_HOST; side < IV_SIDES; side++)
        iv_value_release(&runner->values[iv_copy_index(runner->program, side, value)]);
}

static iv_status check_interrupt(const iv_runner *runner, const iv_step *step, iv_error *error) {
    if (!iv_runner_interrupted(runner))
        return IV_OK;
    return iv_fail(error, IV_ERROR_INTERRUPTED, "interrupted before node %s (%s)", step->node->name,
                   step->node->op->name);
}

/* Whether tasks can be recorded here: an observer wants each node for itself, or each task measured, and what is inside a recorded step is recorded
 * with it. */
static bool may_replay(const iv_runner *runner) {
    const iv_lane *lane = runner->settings->placement.lane;
    return runner->settings->graphs != IV_GRAPHS_OFF && runner->settings->observer == NULL && lane != NULL &&
           runner->settings->task_times == NULL && lane->queue.record == NULL;
}

static iv_status run_steps(iv_runner *runner, const iv_value *inputs, iv_error *error) {
    const iv_program *program = runner->program;
    bool replays = may_replay(runner);
    for (size_t i = 0; i < program->graph->input_count; i++)
        runner->values[iv_copy_index(program, iv_value_side(inputs[i]), program->graph->inputs[i])] =
            iv_value_retain(inputs[i]);
    for (size_t s = 0; s < program->step_count; s++) {
        const iv_step *step = &program->steps[s];
        iv_segment *segment = replays ? runner->plan->segment_of[s] : NULL;
        IV_TRY(check_interrupt(runner, step, error));
        if (segment != NULL) {
            IV_TRY(iv_segment_run(runner, segment, error));
            s = segment->end - 1;
            continue;
        }
        if (runner->plan->steps[s].mode != IV_STEP_SKIP)
            IV_TRY(iv_runner_step(runner, s, error));
        else if (runner->settings->observer != NULL)
            IV_TRY(observe_constants(runner, s, error));
        for (size_t r = 0; r < step->release_count; r++)
            iv_runner_release(runner, step->releases[r]);
    }
    return IV_OK;
}

/* Hands over output `index`: from the host when it is wanted there, else from where it is. */
static iv_status hand_over(iv_runner *runner, size_t index, bool host_outputs, iv_value *output, iv_error *error) {
    iv_value_id value = runner->program->graph->outputs[index];
    if (host_outputs)
        IV_TRY(iv_runner_bring(runner, value, IV_HOST, true, error));
    iv_value found = host_outputs ? (iv_value){0} : iv_runner_value(runner, IV_DEVICE, value);
    if (found.kind == IV_KIND_NONE)
        found = iv_runner_value(runner, IV_HOST, value);
    *output = iv_value_retain(found);
    return IV_OK;
}

iv_status iv_runner_run(iv_runner *runner, bool host_outputs, const iv_value *inputs, iv_value *outputs,
                        iv_error *error) {
    const iv_graph *graph = runner->program->graph;
    for (size_t i = 0; i < graph->output_count; i++)
        outputs[i] = (iv_value){0};
    IV_TRY(find_plan(runner, host_outputs, inputs, error));
    iv_status status = run_steps(runner, inputs, error);
    for (size_t i = 0; i < graph->output_count && status == IV_OK; i++)
        status = hand_over(runner, i, host_outputs, &outputs[i], error);
    for (size_t i = 0; i < graph->output_count && status != IV_OK; i++)
        iv_value_release(&outputs[i]);
    for (size_t v = 0; v < graph->value_count; v++)
        iv_runner_release(runner, (iv_value_id)v);
    return status;
}

iv_status iv_runner_check_faults(iv_runner *runner, iv_error *error) {
    iv_status status = IV_OK;
    for (size_t s = 0; runner->faults != NULL && s < runner->program->step_count; s++) {
        uint32_t *fault = (uint32_t *)runner->faults->data + s;
        const iv_node *node = runner->program->steps[s].node;
        if (*fault != IV_CUDA_FAULT_NONE && status == IV_OK)
            status = iv_fail(error, iv_cuda_fault_status(*fault), "node %s (%s): %s", node->name, node->op->name,
                             iv_cuda_fault_text(*fault));
        *fault = IV_CUDA_FAULT_NONE;
    }
    for (size_t i = 0; i < runner->nested_count; i++) {
        iv_status nested = iv_runner_check_faults(runner->nested[i], status == IV_OK ? error : NULL);
        status = status == IV_OK ? nested : status;
    }
    return status;
}
