#include "runtime/runner.h"

#include <string.h>
#include <time.h>

#include "base/allocation.h"
#include "runtime/memory_plan.h"

/* Plans kept per runner; the least recently used one goes. */
#define PLAN_LIMIT 8

typedef struct scratch_block {
    void *memory;
    size_t bytes;
} scratch_block;

struct iv_runner {
    iv_frame frame; /* first, so that a frame is its runner */
    iv_program *program;
    const iv_run_settings *settings;
    int depth;
    iv_plan *plans; /* most recently used first */
    iv_storage *arena;
    size_t scratch_used, scratch_count, scratch_capacity;
    scratch_block *scratch;
    size_t nested_count, nested_capacity;
    iv_runner **nested; /* one per graph of a node that has run */
    /* The run in progress. */
    iv_plan *plan;
    iv_value *values;
    const iv_step *step;
};

/* ---- the frame: memory and nested graphs for calls ---- */

static iv_status allocate_output(iv_frame *frame, const iv_call *call, int index, size_t bytes,
                                 iv_storage **storage, char **data) {
    iv_runner *runner = (iv_runner *)frame;
    iv_value_id value = call->node->outputs[index];
    int64_t offset = value != IV_NO_VALUE ? runner->plan->offsets[value] : -1;
    if (offset >= 0) {
        *storage = iv_storage_retain(runner->arena);
        *data = (char *)runner->arena->data + offset;
        return IV_OK;
    }
    /* A view that is a copy this time gets a place in the arena before the next run. */
    size_t step = (size_t)(runner->step - runner->program->steps);
    if (value != IV_NO_VALUE && (call->node->op->flags & IV_OP_VIEW) != 0 &&
        runner->plan->steps[step].mode == IV_STEP_STATIC && !runner->plan->copied[value])
        runner->plan->copied[value] = runner->plan->outdated = true;
    IV_TRY(iv_storage_create(bytes, storage, call->error));
    *data = (*storage)->data;
    return IV_OK;
}

static iv_status take_scratch(iv_frame *frame, const iv_call *call, size_t bytes, void **memory) {
    iv_runner *runner = (iv_runner *)frame;
    if (!iv_grow((void **)&runner->scratch, &runner->scratch_capacity, runner->scratch_used + 1,
                 sizeof *runner->scratch))
        return iv_fail_memory(call->error, sizeof *runner->scratch);
    if (runner->scratch_used == runner->scratch_count)
        runner->scratch[runner->scratch_count++] = (scratch_block){0};
    scratch_block *block = &runner->scratch[runner->scratch_used];
    if (block->bytes < bytes) {
        void *larger = iv_allocate(bytes);
        if (larger == NULL)
            return iv_fail_memory(call->error, bytes);
        iv_free(block->memory);
        *block = (scratch_block){larger, bytes};
    }
    runner->scratch_used++;
    *memory = block->memory;
    return IV_OK;
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
    iv_value *all = iv_allocate_array(graph->input_count, sizeof *all);
    if (all == NULL)
        return iv_fail_memory(call->error, graph->input_count * sizeof *all);
    if (input_count != 0)
        memcpy(all, inputs, (size_t)input_count * sizeof *all);
    if (captures != 0)
        memcpy(all + input_count, call->inputs + call->input_count - captures,
               (size_t)captures * sizeof *all);
    iv_status status = iv_runner_run(nested, all, outputs, call->error);
    iv_free(all);
    return status;
}

/* ---- ending early ---- */

static bool interrupted(const iv_runner *runner) {
    iv_run_control *control = runner->settings->control;
    return control != NULL && atomic_load_explicit(&control->interrupted, memory_order_relaxed) != 0;
}

static iv_status begin_iteration(iv_frame *frame, const iv_call *call, int64_t iteration) {
    const iv_runner *runner = (iv_runner *)frame;
    iv_run_control *control = runner->settings->control;
    if (interrupted(runner))
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

/* ---- a runner ---- */

iv_status iv_runner_create(iv_program *program, const iv_run_settings *settings, int depth,
                           iv_runner **runner, iv_error *error) {
    iv_runner *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->frame = (iv_frame){allocate_output, take_scratch, run_graph, NULL, begin_iteration};
    fresh->program = program;
    fresh->settings = settings;
    fresh->depth = depth;
    fresh->values = iv_allocate_array(program->graph->value_count, sizeof *fresh->values);
    if (fresh->values == NULL) {
        iv_free(fresh);
        return iv_fail_memory(error, program->graph->value_count * sizeof *fresh->values);
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
    while (runner->plans != NULL) {
        iv_plan *next = runner->plans->next;
        iv_plan_destroy(runner->plans, runner->program);
        runner->plans = next;
    }
    iv_storage_release(runner->arena);
    iv_free(runner->values);
    iv_free(runner);
}

/* The plan for these inputs, made now if there is none, moved to the front of the list. */
static iv_status find_plan(iv_runner *runner, const iv_value *inputs, iv_error *error) {
    iv_plan **link = &runner->plans, *plan;
    int count = 0;
    for (; *link != NULL && !iv_plan_fits(*link, runner->program, inputs); link = &(*link)->next)
        count++;
    if (*link != NULL) {
        plan = *link;
        *link = plan->next;
    } else {
        IV_TRY(iv_plan_create(runner->program, inputs, &plan, error));
        if (count >= PLAN_LIMIT) {
            for (link = &runner->plans; (*link)->next != NULL;)
                link = &(*link)->next;
            iv_plan_destroy(*link, runner->program);
            *link = NULL;
        }
    }
    plan->next = runner->plans;
    runner->plans = plan;
    runner->plan = plan;
    if (plan->outdated) {
        IV_TRY(iv_memory_plan(plan, runner->program, error));
        plan->outdated = false;
    }
    if (runner->arena == NULL || runner->arena->bytes < plan->arena_bytes) {
        iv_storage *larger;
        iv_status status = iv_storage_create(plan->arena_bytes, &larger, error);
        if (status != IV_OK)
            return iv_memory_plan_blame(plan, runner->program, status, error);
        iv_storage_release(runner->arena);
        runner->arena = larger;
    }
    return IV_OK;
}

/* ---- steps ---- */

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* An output that shares memory with an input, without the op having said that it may, would be overwritten while still in use. */
static iv_status check_aliases(const iv_runner *runner, const iv_call *call) {
    if ((call->node->op->flags & (IV_OP_VIEW | IV_OP_KEEPS | IV_OP_CONTROL)) != 0)
        return IV_OK;
    for (int o = 0; o < call->output_count; o++) {
        if (!iv_call_wants(call, o) || call->outputs[o].kind != IV_KIND_TENSOR)
            continue;
        const iv_tensor *output = call->outputs[o].tensor;
        int64_t offset = runner->plan->offsets[call->node->outputs[o]];
        bool own = output->storage == runner->arena
                       ? offset >= 0 && output->data == (char *)runner->arena->data + offset
                       : true;
        for (int i = 0; i < call->input_count && own; i++)
            own = output->storage == runner->arena || call->inputs[i].kind != IV_KIND_TENSOR ||
                  call->inputs[i].tensor->storage != output->storage;
        if (!own)
            return iv_call_fail(call, IV_ERROR_INTERNAL, "output %d shares memory with an input", o);
    }
    return IV_OK;
}

/* Whether a value can stand in for another: the plan has settled kind, dtype and extents. */
static bool same_type(iv_value left, iv_value right) {
    if (left.kind != right.kind)
        return false;
    if (left.kind == IV_KIND_SEQUENCE)
        return left.sequence->dtype == right.sequence->dtype;
    if (left.kind == IV_KIND_NONE)
        return true;
    bool same = left.tensor->dtype == right.tensor->dtype && left.tensor->rank == right.tensor->rank;
    for (int d = 0; same && d < left.tensor->rank; d++)
        same = left.tensor->dims[d] == right.tensor->dims[d];
    return same;
}

/* Tells the observer, which may replace outputs. `before` has room for all outputs. */
static iv_status call_observer(const iv_runner *runner, iv_call *call, iv_node_event *event,
                               iv_value *before) {
    for (int i = 0; i < call->output_count; i++)
        before[i] = iv_value_retain(call->outputs[i]);
    /* What the observer keeps is its own affair. */
    iv_memory_budget *budget = iv_memory_budget_enter(NULL);
    iv_status status =
        runner->settings->observer(runner->settings->observer_context, event, call->error);
    iv_memory_budget_enter(budget);
    for (int i = 0; i < call->output_count; i++) {
        if (status == IV_OK && !same_type(call->outputs[i], before[i]))
            status = iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT,
                                  "the observer replaced output %d by a value of another type or shape", i);
        iv_value_release(&before[i]);
    }
    return status;
}

static iv_status observe(iv_runner *runner, iv_call *call, const char *kernel, int64_t start,
                         int64_t end) {
    const iv_node *node = call->node;
    size_t bytes = (size_t)node->output_count * (sizeof(iv_value) + sizeof(char *));
    iv_value *before = iv_allocate_array(1, bytes);
    if (before == NULL)
        return iv_fail_memory(call->error, bytes);
    const char **names = (const char **)(void *)(before + node->output_count);
    iv_node_event event = {.name = node->name,
                           .op = node->op->name,
                           .kernel = kernel,
                           .depth = runner->depth,
                           .start_ns = start,
                           .end_ns = end,
                           .output_count = node->output_count,
                           .output_names = names,
                           .outputs = call->outputs};
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == IV_NO_VALUE)
            continue;
        names[i] = runner->program->graph->values[node->outputs[i]].name;
        if (call->outputs[i].kind == IV_KIND_TENSOR)
            event.output_bytes += iv_tensor_elements(call->outputs[i].tensor) *
                                  (int64_t)iv_dtype_size(call->outputs[i].tensor->dtype);
    }
    iv_status status = call_observer(runner, call, &event, before);
    iv_free(before);
    return status;
}

static iv_status launch(iv_runner *runner, iv_call *call, const iv_kernel *kernel) {
    runner->scratch_used = 0;
    int64_t start = runner->settings->observer != NULL ? now_ns() : 0;
    IV_TRY(iv_call_run(call, kernel != NULL ? kernel->launch : call->node->op->eval));
    iv_status status = check_aliases(runner, call);
    if (status == IV_OK && runner->settings->observer != NULL)
        status = observe(runner, call, kernel != NULL ? kernel->name : "reference", start, now_ns());
    return status;
}

/* Infers the outputs from the inputs that are there now, then runs. Small results that inference has already worked out are taken from it. */
static iv_status run_dynamic(iv_runner *runner, size_t index, iv_call *call) {
    const iv_node *node = call->node;
    iv_scope *scope;
    IV_TRY(iv_scope_create(&scope, call->error));
    size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
    iv_fact *facts = iv_allocate_array(inputs + outputs, sizeof *facts);
    const iv_fact **pointers = iv_allocate_array(inputs, sizeof *pointers);
    iv_status status = IV_OK;
    if (facts == NULL || pointers == NULL)
        status = iv_fail_memory(call->error, (inputs + outputs) * sizeof *facts);
    for (size_t i = 0; i < inputs && status == IV_OK; i++) {
        if (node->inputs[i] == IV_NO_VALUE)
            continue;
        pointers[i] = &facts[i];
        status = iv_fact_of_value(&facts[i], scope, call->inputs[i], true, call->error);
    }
    if (status == IV_OK)
        status = iv_node_infer(node, scope, pointers, facts + inputs, call->error);
    const iv_kernel *kernel = NULL;
    int in_place; /* outputs of a dynamic step have no place in the arena */
    if (status == IV_OK) {
        bool concrete = true;
        for (size_t i = 0; i < outputs; i++)
            concrete = concrete && (node->outputs[i] == IV_NO_VALUE ||
                                    iv_fact_is_concrete(&facts[inputs + i], NULL));
        if (concrete)
            status = iv_program_choose(runner->program, index, pointers, facts + inputs, &kernel,
                                       &call->state, &in_place, call->error);
    }
    if (status == IV_OK) {
        call->facts = facts + inputs;
        status = launch(runner, call, kernel);
        call->facts = NULL;
    }
    for (size_t i = 0; facts != NULL && i < inputs + outputs; i++)
        iv_fact_clear(&facts[i]);
    iv_free(facts);
    iv_free(pointers);
    iv_scope_destroy(scope);
    return status;
}

/* Runs with the plan's facts, borrowed. */
static iv_status run_static(iv_runner *runner, size_t index, iv_call *call) {
    const iv_planned_step *planned = &runner->plan->steps[index];
    size_t outputs = (size_t)call->node->output_count;
    iv_fact *facts = iv_allocate_array(outputs, sizeof *facts);
    if (facts == NULL)
        return iv_fail_memory(call->error, outputs * sizeof *facts);
    for (size_t i = 0; i < outputs; i++) {
        if (call->node->outputs[i] != IV_NO_VALUE)
            facts[i] = runner->plan->facts[call->node->outputs[i]];
    }
    call->facts = facts;
    call->state = planned->state;
    iv_status status = launch(runner, call, planned->kernel);
    iv_free(facts);
    call->facts = NULL;
    return status;
}

static iv_value current_value(const iv_runner *runner, iv_value_id value) {
    if (value == IV_NO_VALUE)
        return (iv_value){0};
    if (runner->values[value].kind == IV_KIND_NONE && runner->plan->facts[value].constant != NULL)
        return iv_value_of_tensor(runner->plan->facts[value].constant);
    return runner->values[value];
}

static iv_status run_step(iv_runner *runner, size_t index, iv_error *error) {
    const iv_node *node = runner->program->steps[index].node;
    size_t count = (size_t)node->input_count + (size_t)node->output_count;
    iv_value *values = iv_allocate_array(count, sizeof *values);
    if (values == NULL)
        return iv_fail_memory(error, count * sizeof *values);
    iv_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = values,
                    .output_count = node->output_count,
                    .outputs = values + node->input_count,
                    .workers = runner->settings->workers,
                    .frame = &runner->frame,
                    .isa = runner->program->isa,
                    .error = error};
    for (int i = 0; i < node->input_count; i++)
        values[i] = current_value(runner, node->inputs[i]);
    iv_status status = runner->plan->steps[index].mode == IV_STEP_STATIC
                           ? run_static(runner, index, &call)
                           : run_dynamic(runner, index, &call);
    for (int i = 0; i < node->output_count; i++) {
        if (status == IV_OK && node->outputs[i] != IV_NO_VALUE)
            runner->values[node->outputs[i]] = call.outputs[i];
        else
            iv_value_release(&call.outputs[i]);
    }
    iv_free(values);
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
        outputs[i] = iv_value_retain(current_value(runner, node->outputs[i]));
    int64_t now = now_ns();
    iv_status status = observe(runner, &call, "constant", now, now);
    for (size_t i = 0; i < count; i++) {
        if (status == IV_OK && node->outputs[i] != IV_NO_VALUE)
            runner->values[node->outputs[i]] = outputs[i];
        else
            iv_value_release(&outputs[i]);
    }
    iv_free(outputs);
    return status;
}

static iv_status run_steps(iv_runner *runner, const iv_value *inputs, iv_error *error) {
    const iv_program *program = runner->program;
    for (size_t i = 0; i < program->graph->input_count; i++)
        runner->values[program->graph->inputs[i]] = iv_value_retain(inputs[i]);
    for (size_t s = 0; s < program->step_count; s++) {
        const iv_step *step = &program->steps[s];
        runner->step = step;
        if (interrupted(runner))
            return iv_fail(error, IV_ERROR_INTERRUPTED, "interrupted before node %s (%s)", step->node->name,
                           step->node->op->name);
        if (runner->plan->steps[s].mode != IV_STEP_SKIP)
            IV_TRY(run_step(runner, s, error));
        else if (runner->settings->observer != NULL)
            IV_TRY(observe_constants(runner, s, error));
        for (size_t r = 0; r < step->release_count; r++)
            iv_value_release(&runner->values[step->releases[r]]);
    }
    return IV_OK;
}

iv_status iv_runner_run(iv_runner *runner, const iv_value *inputs, iv_value *outputs,
                        iv_error *error) {
    const iv_graph *graph = runner->program->graph;
    for (size_t i = 0; i < graph->output_count; i++)
        outputs[i] = (iv_value){0};
    IV_TRY(find_plan(runner, inputs, error));
    iv_status status = run_steps(runner, inputs, error);
    for (size_t i = 0; i < graph->output_count && status == IV_OK; i++)
        outputs[i] = iv_value_retain(current_value(runner, graph->outputs[i]));
    for (size_t v = 0; v < graph->value_count; v++)
        iv_value_release(&runner->values[v]);
    return status;
}
