/* What a program keeps for all its runs, on each device, besides constants: kernels' prepared states, and what they derive
 * of constants. */
#include "base/allocation.h"
#include "runtime/program_constants.h"
#include "runtime/program_elements.h"

static void destroy_state(sb_kernel_state *state) {
    if (state->state != NULL && state->kernel->release != NULL)
        state->kernel->release(state->state);
    sb_storage_release(state->derived);
    sb_free(state);
}

void sb_step_destroy_states(sb_step *step) {
    while (step->states != NULL) {
        sb_kernel_state *next = step->states->next;
        destroy_state(step->states);
        step->states = next;
    }
}

/* Facts of a step's inputs without the constants that pass: those of a run in which the step was inferred, or of a plan's
 * extents. What is prepared stays with the model, for other runs and plans. */
typedef struct lasting_facts {
    const sb_fact *const *inputs;
    sb_fact *copies; /* NULL where nothing passes, and the facts are those given */
} lasting_facts;

static bool passes(const sb_program *program, const sb_node *node, const sb_fact *const *inputs, int index) {
    return inputs[index] != NULL && inputs[index]->constant != NULL &&
           inputs[index]->constant != program->graph->values[node->inputs[index]].fact.constant;
}

static sb_status find_lasting(const sb_program *program, const sb_node *node, const sb_fact *const *inputs,
                              lasting_facts *lasting, sb_error *error) {
    size_t count = (size_t)node->input_count;
    bool any = false;
    for (int i = 0; i < node->input_count; i++)
        any = any || passes(program, node, inputs, i);
    *lasting = (lasting_facts){.inputs = inputs};
    if (!any)
        return SB_OK;
    lasting->copies = sb_allocate_array(count, sizeof(sb_fact) + sizeof(sb_fact *));
    if (lasting->copies == NULL)
        return sb_fail_memory(error, count * sizeof(sb_fact));
    const sb_fact **pointers = (const sb_fact **)(void *)(lasting->copies + count);
    for (int i = 0; i < node->input_count; i++) {
        pointers[i] = inputs[i];
        if (!passes(program, node, inputs, i))
            continue;
        lasting->copies[i] = *inputs[i]; /* borrows what that owns */
        lasting->copies[i].constant = NULL;
        pointers[i] = &lasting->copies[i];
    }
    lasting->inputs = pointers;
    return SB_OK;
}

/* Memory on the queue's device, or (NULL) the host. */
static sb_status allocate_derived(sb_queue *queue, size_t bytes, sb_storage **storage, sb_error *error) {
    if (queue != NULL)
        return sb_queue_storage(queue, bytes, storage, error);
    SB_TRY(sb_storage_create(bytes, storage, error));
    sb_allocation_wants_large_pages((*storage)->data);
    return SB_OK;
}

/* On a device: waits, since sessions with other queues use it from now on. */
static sb_status fill_derived(const sb_program *program, size_t step, const sb_kernel *kernel, sb_queue *queue,
                              const sb_tensor *from, void *derived, sb_error *error) {
    const sb_node *node = program->steps[step].node;
    if (queue == NULL)
        return sb_kernel_derive(kernel, node, program->isa, NULL, NULL, from, derived, error);
    sb_call_target target = {.queue = queue->target, .step = (int)step};
    SB_TRY(sb_kernel_derive(kernel, node, program->isa, NULL, &target, from, derived, error));
    return sb_queue_wait(queue, error);
}

/* Under the lock: the form of a constant that another step has made, on the same side, or NULL. Where a file has written a
 * recurrence out, each of its steps reads the same weights: forms of their own would come from memory, where one stays in a
 * cache. */
static sb_storage *find_derived(const sb_program *program, const sb_kernel_state *wanted) {
    for (size_t s = 0; s < program->step_count; s++) {
        for (const sb_kernel_state *state = program->steps[s].states; state != NULL; state = state->next) {
            if (state->derived != NULL && state->constant == wanted->constant && state->layout == wanted->layout &&
                state->device == wanted->device && state->kernel->derive == wanted->kernel->derive)
                return state->derived;
        }
    }
    return NULL;
}

/* Under the lock. Constants that only this plan or this run knows are none here: what is derived stays with the model. */
static sb_status derive_constant(sb_program *program, size_t step, const sb_kernel_query *query, sb_kernel_state *state,
                                 sb_error *error) {
    sb_derived_form form;
    SB_TRY(sb_kernel_derives(state->kernel, query, &form, error));
    sb_value_id value = form.input >= 0 ? program->steps[step].node->inputs[form.input] : SB_NO_VALUE;
    if (value == SB_NO_VALUE || program->graph->values[value].fact.constant == NULL)
        return SB_OK;
    state->constant = value;
    state->layout = form.layout;
    sb_storage *derived = find_derived(program, state);
    if (derived != NULL) {
        state->derived = sb_storage_retain(derived);
        return SB_OK;
    }
    sb_tensor *from = program->graph->values[value].fact.constant;
    if (query->queue != NULL)
        SB_TRY(sb_constant_on(program, value, query->queue, &from, error));
    SB_TRY(allocate_derived(query->queue, form.bytes, &derived, error));
    sb_status status = fill_derived(program, step, state->kernel, query->queue, from, derived->data, error);
    if (status == SB_OK)
        state->derived = derived;
    else
        sb_storage_release(derived);
    return status;
}

/* Under the lock: what `kernel` keeps for the step, prepared now if this is the first time. */
static sb_status find_prepared(sb_program *program, size_t step, const sb_kernel *kernel, const sb_kernel_query *query,
                               sb_prepared *prepared, sb_error *error) {
    sb_kernel_state *state = program->steps[step].states;
    while (state != NULL && (state->kernel != kernel || state->device != query->device))
        state = state->next;
    if (state == NULL) {
        SB_TRY(sb_elements_bring_back_inputs(program, step, error));
        if (query->queue != NULL && kernel->wants_gaps != NULL)
            SB_TRY(sb_constants_leave_gaps(program, kernel, query, error));
        state = sb_allocate_array(1, sizeof *state);
        if (state == NULL)
            return sb_fail_memory(error, sizeof *state);
        state->kernel = kernel;
        state->device = query->device;
        sb_status status = kernel->prepare != NULL ? kernel->prepare(query, &state->state, error) : SB_OK;
        if (status == SB_OK)
            status = derive_constant(program, step, query, state, error);
        if (status != SB_OK) {
            destroy_state(state);
            return status;
        }
        state->next = program->steps[step].states;
        program->steps[step].states = state;
        if (state->derived != NULL && query->queue == NULL)
            sb_elements_let_go(program, step, state);
    }
    if (state->derived == NULL)
        program->steps[step].reads_elements = true;
    *prepared = (sb_prepared){state->state, state->derived != NULL ? state->derived->data : NULL};
    return SB_OK;
}

/* The host's kernel by what lasts; else one that prepares nothing, by all that is known. */
static sb_status find_host_kernel(const sb_program *program, const sb_kernel_query *query, const sb_kernel **kernel,
                                  sb_error *error) {
    char why[SB_WHY_BYTES];
    lasting_facts lasting;
    SB_TRY(find_lasting(program, query->node, query->inputs, &lasting, error));
    sb_kernel_query asked = *query;
    asked.inputs = lasting.inputs;
    sb_status status = sb_find_host_kernel(&asked, kernel, why, error);
    if (status == SB_OK && *kernel == NULL && lasting.copies != NULL) {
        status = sb_find_host_kernel(query, kernel, why, error);
        if (status == SB_OK && *kernel != NULL && (*kernel)->prepare != NULL)
            *kernel = NULL;
    }
    sb_free(lasting.copies);
    return status;
}

sb_status sb_program_choose(sb_program *program, size_t step, bool open, const sb_fact *const *inputs,
                            const sb_fact *outputs, const sb_kernel **kernel, sb_prepared *prepared, int *in_place,
                            sb_error *error) {
    sb_kernel_query query = {
        .node = program->steps[step].node, .inputs = inputs, .outputs = outputs, .isa = program->isa, .open = open};
    *kernel = NULL;
    *prepared = (sb_prepared){0};
    if (!program->reference_only)
        SB_TRY(find_host_kernel(program, &query, kernel, error));
    *in_place = *kernel != NULL && (*kernel)->in_place != NULL ? (*kernel)->in_place(&query) : -1;
    if (*kernel == NULL)
        return sb_program_read_elements(program, step, error);
    return sb_program_prepare(program, step, NULL, *kernel, inputs, outputs, prepared, error);
}

sb_status sb_program_prepare(sb_program *program, size_t step, sb_queue *queue, const sb_kernel *kernel,
                             const sb_fact *const *inputs, const sb_fact *outputs, sb_prepared *prepared,
                             sb_error *error) {
    sb_kernel_query query = {.node = program->steps[step].node,
                             .inputs = inputs,
                             .outputs = outputs,
                             .isa = program->isa,
                             .device = queue != NULL ? queue->device : NULL,
                             .queue = queue};
    lasting_facts lasting;
    *prepared = (sb_prepared){0};
    if (kernel->prepare == NULL && kernel->derives == NULL && kernel->wants_gaps == NULL)
        return sb_program_read_elements(program, step, error);
    SB_TRY(find_lasting(program, query.node, inputs, &lasting, error));
    query.inputs = lasting.inputs;
    pthread_mutex_lock(&program->lock);
    sb_status status = find_prepared(program, step, kernel, &query, prepared, error);
    pthread_mutex_unlock(&program->lock);
    sb_free(lasting.copies);
    return status;
}
