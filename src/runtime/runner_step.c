/* One step of a run: its inputs are brought to its side, its kernel is launched, and what it makes is kept. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/replay.h"
#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"

/* Brings the step's inputs to where its kernel reads them, and lists them in the call. */
static sb_status bring_inputs(sb_runner *runner, sb_call *call, const sb_kernel *kernel, sb_side side, bool planned) {
    sb_value *inputs = (sb_value *)call->inputs;
    for (int i = 0; i < call->node->input_count; i++) {
        sb_side input_side = sb_input_side(kernel, side, i);
        SB_TRY(sb_runner_bring(runner, call->node->inputs[i], input_side, planned, call->error));
        inputs[i] = sb_runner_value(runner, input_side, call->node->inputs[i]);
    }
    return SB_OK;
}

/* An output that shares memory with an input, without the op having said that it may,
 * would be overwritten while still in use. */
static sb_status check_aliases(const sb_runner *runner, const sb_call *call) {
    if ((call->node->op->flags & (SB_OP_VIEW | SB_OP_KEEPS | SB_OP_CONTROL)) != 0)
        return SB_OK;
    sb_tensor **places = runner->plan->places;
    sb_side side = call->target != NULL ? SB_DEVICE : SB_HOST;
    const sb_storage *arena = runner->arenas[side];
    for (int o = 0; o < call->output_count; o++) {
        if (!sb_call_wants(call, o) || call->outputs[o].kind != SB_KIND_TENSOR)
            continue;
        const sb_tensor *output = call->outputs[o].tensor;
        const sb_tensor *place = places != NULL ? places[call->node->outputs[o]] : NULL;
        if (place != NULL && output->storage == place->storage && output->data == place->data)
            continue;
        int64_t offset = runner->plan->offsets[sb_copy_index(runner->program, side, call->node->outputs[o])];
        bool own = output->storage == arena ? offset >= 0 && output->data == (char *)arena->data + offset : true;
        for (int i = 0; i < call->input_count && own; i++)
            own = output->storage == arena || call->inputs[i].kind != SB_KIND_TENSOR ||
                  call->inputs[i].tensor->storage != output->storage;
        if (!own)
            return sb_call_fail(call, SB_ERROR_INTERNAL, "output %d shares memory with an input", o);
    }
    return SB_OK;
}

/* Makes the call one of the device's. */
static void aim(sb_runner *runner, size_t index, sb_call *call) {
    sb_queue *queue = runner->settings->placement.queue;
    runner->target = (sb_call_target){
        .queue = queue->target,
        .step = (int)index,
        .fault = (uint32_t *)(void *)sb_runner_faults(runner)->data + index,
        .may_fault = &runner->may_fault,
    };
    call->target = &runner->target;
}

static sb_status launch(sb_runner *runner, size_t index, sb_call *call, const sb_kernel *kernel, sb_side side) {
    const sb_run_settings *settings = runner->settings;
    runner->workspace_used = runner->device_workspace_used = 0;
    if (side == SB_DEVICE)
        aim(runner, index, call);
    int64_t start = settings->observer != NULL ? sb_now_ns() : 0;
    SB_TRY(sb_call_run(call, kernel != NULL ? kernel->launch : call->node->op->eval));
    runner->plan->steps[index].way = call->way;
    SB_TRY(sb_runner_note_tasks(runner, call->node->name, call->node->op->name, call->error));
    sb_status status = check_aliases(runner, call);
    if (status != SB_OK || settings->observer == NULL)
        return status;
    if (side == SB_DEVICE)
        SB_TRY(sb_queue_wait(settings->placement.queue, call->error));
    const char *name = kernel == NULL ? "reference" : call->way.name != NULL ? call->way.name : kernel->name;
    return sb_runner_observe(runner, call, name, start, sb_now_ns());
}

/* Output 0 in the variable behind the rows that are there, and over them: see find_append in memory_plan.c. */
static sb_status place_append(const sb_runner *runner, sb_call *call) {
    sb_value_id value = call->node->outputs[0];
    const sb_tensor *home = runner->plan->places[value];
    int64_t dims[SB_MAX_RANK];
    sb_tensor *tensor;
    if (!sb_fact_is_concrete(&runner->plan->facts[value], dims))
        return sb_call_fail(call, SB_ERROR_INTERNAL, "an append of unknown extents");
    SB_TRY(
        sb_tensor_over(home->storage, home->data, home->dtype, home->rank, dims, home->strides, &tensor, call->error));
    call->outputs[0] = sb_value_of_tensor(tensor);
    return SB_OK;
}

/* Runs with the plan's facts, borrowed. */
static sb_status run_static(sb_runner *runner, size_t index, sb_call *call) {
    const sb_planned_step *planned = &runner->plan->steps[index];
    if (runner->plan->open != NULL && runner->plan->open->touched[index] && planned->side == SB_HOST)
        SB_TRY(sb_plan_choose_again(runner->plan, runner->program, index, call->error));
    if (runner->plan->appends != NULL && runner->plan->appends[index])
        SB_TRY(place_append(runner, call));
    for (int i = 0; i < call->node->output_count; i++) {
        sb_value_id value = call->node->outputs[i];
        runner->step_facts[i] = value != SB_NO_VALUE ? runner->plan->facts[value] : (sb_fact){0};
    }
    call->facts = runner->step_facts;
    call->state = planned->prepared.state;
    call->derived = planned->prepared.derived;
    if (planned->side == SB_HOST)
        sb_runner_note_cause(runner, runner->step,
                             sb_binding_updated_there(runner->plan->binding, call->node) != NULL
                                 ? "it runs on the CPU, and updates a variable that lies on the device"
                                 : "it runs on the CPU");
    SB_TRY(bring_inputs(runner, call, planned->kernel, planned->side, true));
    return launch(runner, index, call, planned->kernel, planned->side);
}

/* What inference says of a dynamic step now that its inputs are there. */
typedef struct dynamic_facts {
    sb_scope *scope;
    size_t input_count, output_count;
    sb_fact *inputs, *outputs; /* in one block */
    const sb_fact **pointers;  /* to the inputs; NULL where omitted */
} dynamic_facts;

static sb_status create_facts(const sb_node *node, dynamic_facts *facts, sb_error *error) {
    facts->input_count = (size_t)node->input_count;
    facts->output_count = (size_t)node->output_count;
    size_t count = facts->input_count + facts->output_count;
    facts->inputs = sb_allocate_array(count, sizeof *facts->inputs);
    facts->pointers = sb_allocate_array(facts->input_count, sizeof(sb_fact *));
    if (facts->inputs == NULL || facts->pointers == NULL)
        return sb_fail_memory(error, count * sizeof *facts->inputs);
    facts->outputs = facts->inputs + facts->input_count;
    return sb_scope_create(&facts->scope, error);
}

static void clear_facts(dynamic_facts *facts) {
    for (size_t i = 0; facts->inputs != NULL && i < facts->input_count + facts->output_count; i++)
        sb_fact_clear(&facts->inputs[i]);
}

static void destroy_facts(dynamic_facts *facts) {
    clear_facts(facts);
    sb_free(facts->inputs);
    sb_free(facts->pointers);
    sb_scope_destroy(facts->scope);
}

/* Infers from the inputs: from their elements where these lie on the host. */
static sb_status infer_now(const sb_runner *runner, const sb_node *node, dynamic_facts *facts, sb_error *error) {
    clear_facts(facts);
    for (size_t i = 0; i < facts->input_count; i++) {
        facts->pointers[i] = NULL;
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        sb_value value = sb_runner_value(runner, SB_HOST, node->inputs[i]);
        bool on_host = value.kind != SB_KIND_NONE;
        if (!on_host)
            value = sb_runner_value(runner, SB_DEVICE, node->inputs[i]);
        facts->pointers[i] = &facts->inputs[i];
        SB_TRY(sb_fact_of_value(&facts->inputs[i], facts->scope, value, on_host, error));
    }
    return sb_node_infer(node, facts->scope, facts->pointers, facts->outputs, error);
}

static bool all_concrete(const sb_node *node, const dynamic_facts *facts) {
    bool concrete = true;
    for (size_t i = 0; i < facts->output_count; i++)
        concrete = concrete && (node->outputs[i] == SB_NO_VALUE || sb_fact_is_concrete(&facts->outputs[i], NULL));
    return concrete;
}

/* Whether inference has worked all outputs out, as it does those of Shape. */
static bool all_inferred(const sb_node *node, const dynamic_facts *facts) {
    bool inferred = facts->output_count != 0;
    for (size_t i = 0; i < facts->output_count && inferred; i++)
        inferred = node->outputs[i] == SB_NO_VALUE || facts->outputs[i].constant != NULL;
    return inferred;
}

/* Infers, from elements that have to be brought to the host where nothing else tells the outputs' shapes, and no kernel of the
 * device finds them out by itself. */
static sb_status infer_dynamic(sb_runner *runner, size_t index, dynamic_facts *facts, sb_error *error) {
    const sb_node *node = runner->program->steps[index].node;
    const sb_kernel *kernel;
    char why[SB_WHY_BYTES];
    SB_TRY(infer_now(runner, node, facts, error));
    if (runner->settings->placement.queue == NULL || runner->plan->stays != NULL || all_concrete(node, facts))
        return SB_OK;
    SB_TRY(sb_place(&runner->settings->placement, runner->program, index, facts->pointers, facts->outputs, &kernel, why,
                    error));
    if (kernel != NULL)
        return SB_OK;
    for (int i = 0; i < node->input_count; i++)
        SB_TRY(sb_runner_bring(runner, node->inputs[i], SB_HOST, false, error));
    return infer_now(runner, node, facts, error);
}

/* Chooses side and kernel of a dynamic step, and notes them in the plan for those who ask where things ran. */
static sb_status place_dynamic(sb_runner *runner, size_t index, const dynamic_facts *facts, sb_prepared *prepared,
                               sb_error *error) {
    sb_planned_step *planned = &runner->plan->steps[index];
    const sb_node *node = runner->program->steps[index].node;
    planned->kernel = NULL;
    planned->side = SB_HOST;
    if (runner->plan->stays != NULL)
        SB_TRY(sb_plan_explain(planned, runner->plan->stays, error));
    else if (runner->settings->placement.queue != NULL) {
        char why[SB_WHY_BYTES];
        SB_TRY(sb_place(&runner->settings->placement, runner->program, index, facts->pointers, facts->outputs,
                        &planned->kernel, why, error));
        SB_TRY(sb_plan_explain(planned, planned->kernel == NULL ? why : NULL, error));
        if (planned->kernel != NULL) {
            planned->side = SB_DEVICE;
            return sb_program_prepare(runner->program, index, runner->settings->placement.queue, planned->kernel,
                                      facts->pointers, facts->outputs, prepared, error);
        }
        if (runner->settings->require_device && !all_inferred(node, facts)) {
            const char *variable = sb_binding_updated_there(runner->plan->binding, node);
            return sb_fail(error, SB_ERROR_UNSUPPORTED,
                           "node %s (%s) would run on the CPU, and the device is required: %s%s%.200s%s", node->name,
                           node->op->name, why, variable != NULL ? ", and it updates variable " : "",
                           variable != NULL ? variable : "", variable != NULL ? " on the device" : "");
        }
    }
    int in_place; /* outputs of a dynamic step have no place in the arena */
    return sb_program_choose(runner->program, index, !all_concrete(node, facts), facts->pointers, facts->outputs,
                             &planned->kernel, prepared, &in_place, error);
}

static sb_status take_inferred(sb_runner *runner, sb_call *call, const dynamic_facts *facts) {
    for (size_t i = 0; i < facts->output_count; i++) {
        if (call->node->outputs[i] != SB_NO_VALUE)
            call->outputs[i] = sb_value_of_tensor(sb_tensor_retain(facts->outputs[i].constant));
    }
    if (runner->settings->observer == NULL)
        return SB_OK;
    int64_t now = sb_now_ns();
    return sb_runner_observe(runner, call, "constant", now, now);
}

/* Infers the outputs from the inputs that are there now, then runs. Small results that inference has
 * already worked out are taken from it. */
static sb_status run_dynamic(sb_runner *runner, size_t index, sb_call *call) {
    sb_planned_step *planned = &runner->plan->steps[index];
    dynamic_facts facts = {0};
    sb_prepared prepared = {0};
    sb_runner_note_cause(runner, runner->step, "its shapes follow from data");
    sb_status status = create_facts(call->node, &facts, call->error);
    if (status == SB_OK)
        status = infer_dynamic(runner, index, &facts, call->error);
    if (status == SB_OK)
        status = place_dynamic(runner, index, &facts, &prepared, call->error);
    /* Beside a device such a step does not run on the CPU. */
    planned->inferred = status == SB_OK && runner->settings->placement.queue != NULL && planned->side == SB_HOST &&
                        all_inferred(call->node, &facts);
    if (planned->inferred) {
        status = take_inferred(runner, call, &facts);
        destroy_facts(&facts);
        return status;
    }
    call->state = prepared.state;
    call->derived = prepared.derived;
    if (status == SB_OK)
        status = bring_inputs(runner, call, planned->kernel, planned->side, false);
    if (status == SB_OK) {
        call->facts = facts.outputs;
        status = launch(runner, index, call, planned->kernel, planned->side);
        call->facts = NULL;
    }
    destroy_facts(&facts);
    return status;
}

/* Whether readers take the plan's constant in place of what the host has made of it once more, so that a device has it once, and where
 * recorded tasks expect it. An observer may have replaced it. */
static bool is_known(const sb_runner *runner, sb_value_id value, sb_value made) {
    return runner->plan->facts[value].constant != NULL && sb_value_side(made) == SB_HOST &&
           runner->settings->placement.queue != NULL && runner->settings->observer == NULL;
}

void sb_runner_keep_outputs(sb_runner *runner, sb_call *call, sb_status status) {
    for (int i = 0; i < call->output_count; i++) {
        sb_value_id value = call->node->outputs[i];
        if (status != SB_OK || value == SB_NO_VALUE || is_known(runner, value, call->outputs[i])) {
            sb_value_release(&call->outputs[i]);
            continue;
        }
        sb_runner_hold(runner, sb_value_side(call->outputs[i]), value, call->outputs[i]);
    }
}

sb_status sb_runner_step(sb_runner *runner, size_t index, sb_error *error) {
    const sb_node *node = runner->program->steps[index].node;
    runner->step = &runner->program->steps[index];
    size_t count = (size_t)node->input_count + (size_t)node->output_count;
    sb_value *values = runner->step_values;
    for (size_t i = 0; i < count; i++)
        values[i] = (sb_value){0};
    sb_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = values,
                    .output_count = node->output_count,
                    .outputs = values + node->input_count,
                    .workers = runner->settings->workers,
                    .frame = &runner->frame,
                    .isa = runner->program->isa,
                    .error = error};
    sb_status status = runner->plan->steps[index].mode == SB_STEP_STATIC ? run_static(runner, index, &call)
                                                                         : run_dynamic(runner, index, &call);
    sb_runner_keep_outputs(runner, &call, status);
    runner->untouched = status != SB_OK && call.untouched;
    return status;
}
