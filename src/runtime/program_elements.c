/* A network's weights are read packed, so that keeping them as the file has them doubles its memory: BERT-base took 789 MB
 * for 438 of weights. What is packed has all bits, in another order. So where a constant has one reader, which reads the
 * packed form, its elements are freed as soon as they are packed; and where somebody else turns up (a device, a kernel or a
 * definition that takes the step at other extents, a digest, who looks at the model), they are made again of what is
 * packed.
 *
 * Steps of plans that exist do not look: a step that reads elements has said so when its kernel was chosen, under the same
 * lock. */
#include "runtime/program_elements.h"

#include "base/allocation.h"

/* Below this nothing is gained. */
#define LEAST_BYTES ((size_t)1 << 16)

static size_t count_uses(const sb_graph *graph, sb_value_id value) {
    size_t uses = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n]->input_count; i++)
            uses += graph->nodes[n]->inputs[i] == value;
    }
    for (size_t o = 0; o < graph->output_count; o++)
        uses += graph->outputs[o] == value;
    for (size_t u = 0; u < graph->update_count; u++)
        uses += graph->updates[u].value == value;
    return uses;
}

/* Whether the node reads the value once; if it is a fused one, its body too. */
static bool reads_once(const sb_graph *graph, const sb_node *node, sb_value_id value) {
    if (count_uses(graph, value) != 1)
        return false;
    const sb_graph *body = (node->op->flags & SB_OP_FUSED) != 0 ? sb_node_graph(node, "body") : NULL;
    for (int i = 0; body != NULL && i < node->input_count; i++) {
        if (node->inputs[i] == value && count_uses(body, body->inputs[i]) != 1)
            return false;
    }
    return true;
}

static bool is_dispensable(const sb_tensor *tensor) {
    const sb_storage *storage = tensor->storage;
    return storage->dispensable && !storage->embedded && storage->device == NULL && storage->bytes >= LEAST_BYTES &&
           storage->release != NULL && tensor->data == storage->data && sb_tensor_is_contiguous(tensor) &&
           atomic_load_explicit(&storage->references, memory_order_relaxed) == 1;
}

void sb_elements_let_go(sb_program *program, size_t step, const sb_kernel_state *state) {
    sb_step *reader = &program->steps[step];
    sb_value_id value = state->constant;
    sb_tensor *tensor = program->graph->values[value].fact.constant;
    if (program->keeps_elements || program->constants != NULL || reader->reads_elements || reader->holder != NULL ||
        state->kernel->restore == NULL || !is_dispensable(tensor) || !reads_once(program->graph, reader->node, value))
        return;
    tensor->storage->release(tensor->storage->context);
    tensor->storage->release = NULL;
    tensor->storage->data = NULL;
    tensor->data = NULL;
    reader->holder = state;
    reader->gone = value;
}

static void free_elements(void *context) {
    sb_free(context);
}

sb_status sb_elements_bring_back_inputs(sb_program *program, size_t step, sb_error *error) {
    sb_step *reader = &program->steps[step];
    if (reader->holder == NULL)
        return SB_OK;
    sb_tensor *tensor = program->graph->values[reader->gone].fact.constant;
    sb_storage *storage = tensor->storage;
    void *elements = sb_allocate(storage->bytes);
    if (elements == NULL)
        return sb_fail_memory(error, storage->bytes);
    storage->data = storage->context = elements;
    storage->release = free_elements;
    tensor->data = elements;
    reader->holder->kernel->restore(reader->node, program->isa, reader->holder->derived->data, tensor);
    reader->holder = NULL;
    reader->reads_elements = true;
    return SB_OK;
}

sb_status sb_elements_bring_back(sb_program *program, sb_value_id value, sb_error *error) {
    for (size_t s = 0; s < program->step_count; s++) {
        if (program->steps[s].holder != NULL && program->steps[s].gone == value)
            return sb_elements_bring_back_inputs(program, s, error);
    }
    return SB_OK;
}

sb_status sb_program_read_elements(sb_program *program, size_t step, sb_error *error) {
    pthread_mutex_lock(&program->lock);
    sb_status status = sb_elements_bring_back_inputs(program, step, error);
    if (status == SB_OK)
        program->steps[step].reads_elements = true;
    pthread_mutex_unlock(&program->lock);
    return status;
}

sb_status sb_program_keep_elements(sb_program *program, sb_error *error) {
    sb_status status = SB_OK;
    pthread_mutex_lock(&program->lock);
    for (size_t s = 0; s < program->step_count && status == SB_OK; s++)
        status = sb_elements_bring_back_inputs(program, s, error);
    program->keeps_elements = program->keeps_elements || status == SB_OK;
    pthread_mutex_unlock(&program->lock);
    for (size_t s = 0; s < program->step_count; s++) {
        for (size_t g = 0; g < program->steps[s].graph_count && status == SB_OK; g++)
            status = sb_program_keep_elements(program->steps[s].graphs[g], error);
    }
    return status;
}
