#include "runtime/program.h"

#include "base/allocation.h"

static size_t count_graphs(const iv_node *node) {
    size_t count = 0;
    for (size_t i = 0; i < node->attributes.count; i++)
        count += node->attributes.items[i].kind == IV_ATTRIBUTE_GRAPH;
    return count;
}

static iv_status create_nested(iv_program *program, iv_step *step, iv_error *error) {
    step->graphs = iv_allocate_array(count_graphs(step->node), sizeof *step->graphs);
    if (step->graphs == NULL)
        return iv_fail_memory(error, sizeof *step->graphs);
    const iv_attributes *attributes = &step->node->attributes;
    for (size_t i = 0; i < attributes->count; i++) {
        if (attributes->items[i].kind != IV_ATTRIBUTE_GRAPH)
            continue;
        IV_TRY(iv_program_create(attributes->items[i].graph, program->isa, program->reference_only,
                                 &step->graphs[step->graph_count], error));
        step->graph_count++;
    }
    return IV_OK;
}

/* Finds for each value the last step that reads (or else makes) it. Graph outputs are never released by a step. */
static iv_status find_last_uses(iv_program *program, iv_error *error) {
    const iv_graph *graph = program->graph;
    int64_t *last = iv_allocate_array(graph->value_count, sizeof *last);
    size_t *counts = iv_allocate_array(graph->node_count, sizeof *counts);
    iv_status status = IV_OK;
    if (last == NULL || counts == NULL)
        status = iv_fail_memory(error, graph->value_count * sizeof *last);
    for (size_t v = 0; status == IV_OK && v < graph->value_count; v++)
        last[v] = graph->values[v].producer;
    for (size_t s = 0; status == IV_OK && s < graph->node_count; s++) {
        const iv_node *node = graph->nodes[s];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != IV_NO_VALUE)
                last[node->inputs[i]] = (int64_t)s;
        }
    }
    for (size_t o = 0; status == IV_OK && o < graph->output_count; o++)
        last[graph->outputs[o]] = -1;
    for (size_t v = 0; status == IV_OK && v < graph->value_count; v++) {
        if (last[v] >= 0)
            counts[last[v]]++;
    }
    for (size_t s = 0; status == IV_OK && s < graph->node_count; s++) {
        program->steps[s].releases = iv_allocate_array(counts[s], sizeof(iv_value_id));
        if (program->steps[s].releases == NULL)
            status = iv_fail_memory(error, counts[s] * sizeof(iv_value_id));
    }
    for (size_t v = 0; status == IV_OK && v < graph->value_count; v++) {
        if (last[v] >= 0) {
            iv_step *step = &program->steps[last[v]];
            step->releases[step->release_count++] = (iv_value_id)v;
        }
    }
    iv_free(last);
    iv_free(counts);
    return status;
}

iv_status iv_program_create(const iv_graph *graph, iv_isa isa, bool reference_only,
                            iv_program **program, iv_error *error) {
    iv_program *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    fresh->graph = graph;
    fresh->isa = isa;
    fresh->reference_only = reference_only;
    pthread_mutex_init(&fresh->lock, NULL);
    fresh->steps = iv_allocate_array(graph->node_count, sizeof *fresh->steps);
    iv_status status = IV_OK;
    if (fresh->steps == NULL)
        status = iv_fail_memory(error, graph->node_count * sizeof *fresh->steps);
    for (size_t i = 0; i < graph->node_count && status == IV_OK; i++) {
        fresh->step_count++;
        fresh->steps[i].node = graph->nodes[i];
        status = create_nested(fresh, &fresh->steps[i], error);
    }
    if (status == IV_OK)
        status = find_last_uses(fresh, error);
    if (status != IV_OK) {
        iv_program_destroy(fresh);
        return status;
    }
    *program = fresh;
    return IV_OK;
}

static void destroy_step(iv_step *step) {
    for (iv_kernel_state *state = step->states; state != NULL;) {
        iv_kernel_state *next = state->next;
        if (state->state != NULL && state->kernel->release != NULL)
            state->kernel->release(state->state);
        iv_free(state);
        state = next;
    }
    for (size_t i = 0; i < step->graph_count; i++)
        iv_program_destroy(step->graphs[i]);
    iv_free(step->graphs);
    iv_free(step->releases);
}

void iv_program_destroy(iv_program *program) {
    if (program == NULL)
        return;
    while (program->constants != NULL) {
        iv_program_constants *next = program->constants->next;
        for (size_t v = 0; v < program->graph->value_count; v++)
            iv_tensor_release(program->constants->tensors[v]);
        iv_free(program->constants->tensors);
        iv_free(program->constants);
        program->constants = next;
    }
    for (size_t i = 0; i < program->step_count; i++)
        destroy_step(&program->steps[i]);
    iv_free(program->steps);
    pthread_mutex_destroy(&program->lock);
    iv_free(program);
}

const iv_program *iv_step_program(const iv_step *step, const iv_graph *graph) {
    for (size_t i = 0; i < step->graph_count; i++) {
        if (step->graphs[i]->graph == graph)
            return step->graphs[i];
    }
    return NULL;
}

/* Under the lock: the state that `kernel` keeps for the step, prepared now if this is the first time. */
static iv_status prepared_state(iv_step *step, const iv_kernel *kernel, const iv_kernel_query *query,
                                void **state, iv_error *error) {
    for (iv_kernel_state *known = step->states; known != NULL; known = known->next) {
        if (known->kernel == kernel) {
            *state = known->state;
            return IV_OK;
        }
    }
    iv_kernel_state *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    iv_status status = kernel->prepare(query, &fresh->state, error);
    if (status != IV_OK) {
        iv_free(fresh);
        return status;
    }
    fresh->kernel = kernel;
    fresh->next = step->states;
    step->states = fresh;
    *state = fresh->state;
    return IV_OK;
}

iv_status iv_program_choose(iv_program *program, size_t step, const iv_fact *const *inputs,
                            const iv_fact *outputs, const iv_kernel **kernel, void **state,
                            int *in_place, iv_error *error) {
    char why[IV_WHY_BYTES];
    iv_kernel_query query = {.node = program->steps[step].node,
                             .inputs = inputs,
                             .outputs = outputs,
                             .isa = program->isa};
    *kernel = NULL;
    *state = NULL;
    if (!program->reference_only)
        IV_TRY(iv_cpu_find_kernel(&query, kernel, why, error));
    *in_place = *kernel != NULL && (*kernel)->in_place != NULL ? (*kernel)->in_place(&query) : -1;
    return *kernel != NULL ? iv_program_prepare(program, step, *kernel, inputs, outputs, state, error) : IV_OK;
}

iv_status iv_program_prepare(iv_program *program, size_t step, const iv_kernel *kernel, const iv_fact *const *inputs,
                             const iv_fact *outputs, void **state, iv_error *error) {
    iv_kernel_query query = {.node = program->steps[step].node,
                             .inputs = inputs,
                             .outputs = outputs,
                             .isa = program->isa};
    *state = NULL;
    if (kernel->prepare == NULL)
        return IV_OK;
    pthread_mutex_lock(&program->lock);
    iv_status status = prepared_state(&program->steps[step], kernel, &query, state, error);
    pthread_mutex_unlock(&program->lock);
    return status;
}

/* ---- constants on devices ---- */

/* Under the lock. */
static iv_status constants_on(iv_program *program, const iv_cuda_device *device,
                              iv_program_constants **constants, iv_error *error) {
    for (iv_program_constants *known = program->constants; known != NULL; known = known->next) {
        if (known->device == device) {
            *constants = known;
            return IV_OK;
        }
    }
    size_t values = program->graph->value_count;
    iv_program_constants *fresh = iv_allocate_array(1, sizeof *fresh);
    iv_tensor **tensors = iv_allocate_array(values, sizeof(iv_tensor *));
    if (fresh == NULL || tensors == NULL) {
        iv_free(fresh);
        iv_free(tensors);
        return iv_fail_memory(error, values * sizeof(iv_tensor *));
    }
    *fresh = (iv_program_constants){device, tensors, program->constants};
    program->constants = *constants = fresh;
    return IV_OK;
}

iv_status iv_program_constant(iv_program *program, iv_value_id value, iv_lane *lane, iv_tensor **constant,
                              iv_error *error) {
    iv_program_constants *constants;
    pthread_mutex_lock(&program->lock);
    iv_status status = constants_on(program, lane->device, &constants, error);
    if (status == IV_OK && constants->tensors[value] == NULL)
        status = iv_lane_to_device(lane, program->graph->values[value].fact.constant,
                                   &constants->tensors[value], error);
    if (status == IV_OK)
        *constant = iv_tensor_retain(constants->tensors[value]);
    pthread_mutex_unlock(&program->lock);
    return status;
}
