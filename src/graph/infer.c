/* Inference over nodes and graphs: facts first, then the values that follow from them.
 *
 * Values are worked out in three ways, each only for small tensors, so that shape arithmetic is settled before anything
 * runs: from constants by evaluation; through element moves (Gather, Concat, Slice, …) by evaluating the op on *tags*
 * that stand for formulas; through integer arithmetic by the op's own `formula`, and comparisons of that by `answer`. */
#include "base/allocation.h"
#include "graph/op.h"

/* How many inputs and outputs a node may have for its values to be worked out here. */
#define SMALL_ARITY 64

static int64_t fact_elements(const sb_fact *fact) {
    int64_t dims[SB_MAX_RANK], elements = 1;
    if (!sb_fact_is_concrete(fact, dims))
        return -1;
    for (int i = 0; i < fact->rank; i++) {
        if (__builtin_mul_overflow(elements, dims[i], &elements))
            return -1;
    }
    return elements;
}

static bool small_outputs(const sb_node *node, const sb_fact *outputs) {
    for (int i = 0; i < node->output_count; i++) {
        int64_t elements = fact_elements(&outputs[i]);
        if (elements < 0 || elements > SB_FACT_ELEMENTS)
            return false;
    }
    return node->output_count <= SMALL_ARITY && node->input_count <= SMALL_ARITY;
}

/* Evaluates the node on `inputs` without a runtime. Outputs are the caller's. */
static sb_status evaluate(const sb_node *node, const sb_value *inputs, const sb_fact *facts, sb_value *outputs,
                          sb_error *error) {
    sb_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = inputs,
                    .output_count = node->output_count,
                    .facts = facts,
                    .outputs = outputs,
                    .error = error};
    return sb_call_run(&call, node->op->eval);
}

static sb_status fold_constants(const sb_node *node, const sb_fact *const *inputs, sb_fact *outputs, sb_error *error) {
    sb_value values[SMALL_ARITY] = {{0}}, results[SMALL_ARITY] = {{0}};
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] != NULL)
            values[i] = sb_value_of_tensor(inputs[i]->constant);
    }
    SB_TRY(evaluate(node, values, outputs, results, error));
    for (int i = 0; i < node->output_count; i++) {
        if (results[i].kind == SB_KIND_TENSOR && outputs[i].constant == NULL)
            outputs[i].constant = sb_tensor_retain(results[i].tensor);
        sb_value_release(&results[i]);
    }
    return SB_OK;
}

static bool all_constant(const sb_node *node, const sb_fact *const *inputs) {
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] != NULL && inputs[i]->constant == NULL)
            return false;
    }
    return true;
}

/* The formula of element `index` (row-major) of a small s64 fact,
 * from its constant or its elements; NULL if unknown. */
static sb_dim element_formula(sb_scope *scope, const sb_fact *fact, int64_t index) {
    if (fact->elements != NULL)
        return fact->elements[index];
    const sb_tensor *tensor = fact->constant;
    if (tensor == NULL || tensor->dtype != SB_S64)
        return NULL;
    const int64_t *at = (const int64_t *)(const void *)tensor->data;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        at += index % tensor->dims[d] * tensor->strides[d];
        index /= tensor->dims[d];
    }
    return sb_dim_constant(scope, *at);
}

static bool has_formulas(const sb_fact *fact) {
    return fact != NULL && fact->dtype == SB_S64 && (fact->elements != NULL || fact->constant != NULL) &&
           fact_elements(fact) >= 0 && fact_elements(fact) <= SB_FACT_ELEMENTS;
}

/* If every element is a number after all, the fact gets the constant instead. */
static sb_status settle_elements(sb_fact *fact, sb_error *error) {
    int64_t values[SB_FACT_ELEMENTS], dims[SB_MAX_RANK];
    if (fact->elements == NULL || fact->constant != NULL || !sb_fact_is_concrete(fact, dims) ||
        fact->element_count > SB_FACT_ELEMENTS)
        return SB_OK;
    for (int64_t i = 0; i < fact->element_count; i++) {
        if (!sb_dim_is_constant(fact->elements[i], &values[i]))
            return SB_OK;
    }
    SB_TRY(sb_tensor_from_data(SB_S64, fact->rank, dims, values, &fact->constant, error));
    sb_free(fact->elements);
    fact->elements = NULL;
    return SB_OK;
}

/* Formulas on their way through an op that moves elements: the op sees tags, which are indices into `formulas`. */
typedef struct tagging {
    sb_dim *formulas;
    size_t count, capacity;
    sb_value values[SMALL_ARITY];
    bool owned[SMALL_ARITY];
} tagging;

static bool is_moved(const sb_node *node, int input) {
    return (node->op->moved_inputs >> (input < 64 ? input : 63) & 1) != 0;
}

/* Makes input `index` a tensor of fresh tags for the formulas of `fact`. */
static sb_status tag_input(tagging *tags, int index, sb_scope *scope, const sb_fact *fact, sb_error *error) {
    int64_t elements = fact_elements(fact), dims[SB_MAX_RANK];
    sb_fact_is_concrete(fact, dims);
    if (!sb_grow((void **)&tags->formulas, &tags->capacity, tags->count + (size_t)elements + 1, sizeof *tags->formulas))
        return sb_fail_memory(error, (tags->count + (size_t)elements) * sizeof *tags->formulas);
    sb_tensor *tensor;
    SB_TRY(sb_tensor_create(SB_S64, fact->rank, dims, &tensor, error));
    for (int64_t e = 0; e < elements; e++) {
        ((int64_t *)(void *)tensor->data)[e] = (int64_t)tags->count;
        tags->formulas[tags->count++] = element_formula(scope, fact, e);
    }
    tags->values[index] = sb_value_of_tensor(tensor);
    tags->owned[index] = true;
    return SB_OK;
}

/* *usable says whether every input is either tagged or a constant. */
static sb_status tag_inputs(tagging *tags, const sb_node *node, sb_scope *scope, const sb_fact *const *inputs,
                            bool *usable, sb_error *error) {
    *usable = true;
    for (int i = 0; i < node->input_count && *usable; i++) {
        if (inputs[i] == NULL)
            continue;
        if (!is_moved(node, i)) {
            tags->values[i] = sb_value_of_tensor(inputs[i]->constant);
            *usable = inputs[i]->constant != NULL;
        } else {
            *usable = has_formulas(inputs[i]);
            if (*usable)
                SB_TRY(tag_input(tags, i, scope, inputs[i], error));
        }
    }
    return SB_OK;
}

/* Turns the tags in `result` back into the formulas they stand for. */
static sb_status read_tags(const tagging *tags, sb_tensor *result, sb_fact *output, sb_error *error) {
    int64_t elements = fact_elements(output);
    sb_tensor *moved;
    SB_TRY(sb_tensor_contiguous(result, &moved, error));
    sb_dim *found = sb_allocate_array((size_t)elements + 1, sizeof *found);
    bool complete = found != NULL;
    for (int64_t e = 0; e < elements && complete; e++) {
        int64_t tag = ((const int64_t *)(const void *)moved->data)[e];
        complete = tag >= 0 && (size_t)tag < tags->count && tags->formulas[tag] != NULL;
        if (complete)
            found[e] = tags->formulas[tag];
    }
    sb_tensor_release(moved);
    if (found == NULL)
        return sb_fail_memory(error, (size_t)elements * sizeof *found);
    if (!complete) {
        sb_free(found);
        return SB_OK;
    }
    sb_free(output->elements);
    output->elements = found;
    output->element_count = elements;
    return SB_OK;
}

static sb_status move_formulas(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, sb_fact *outputs,
                               sb_error *error) {
    tagging tags = {0};
    sb_value results[SMALL_ARITY] = {{0}};
    bool usable;
    sb_status status = tag_inputs(&tags, node, scope, inputs, &usable, error);
    if (status == SB_OK && usable)
        status = evaluate(node, tags.values, outputs, results, error);
    for (int i = 0; i < node->output_count && status == SB_OK && usable; i++) {
        if (results[i].kind == SB_KIND_TENSOR)
            status = read_tags(&tags, results[i].tensor, &outputs[i], error);
    }
    for (int i = 0; i < node->input_count; i++) {
        if (tags.owned[i])
            sb_value_release(&tags.values[i]);
    }
    for (int i = 0; i < node->output_count; i++)
        sb_value_release(&results[i]);
    sb_free(tags.formulas);
    return status;
}

/* Whether the node's elements are formulas that meet by numpy's rule: nodes of old models may name an axis instead. */
static bool all_have_formulas(const sb_node *node, const sb_fact *const *inputs) {
    if (node->version < 7 && sb_node_has(node, "axis"))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] == NULL || !has_formulas(inputs[i]))
            return false;
    }
    return true;
}

/* The formulas that meet in element `element` of an element-wise node's output, by broadcasting. */
static void take_operands(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, const sb_fact *output,
                          int64_t element, sb_dim *operands) {
    int64_t dims[SB_MAX_RANK];
    sb_fact_is_concrete(output, dims);
    for (int i = 0; i < node->input_count; i++) {
        int64_t rest = element, index = 0, stride = 1, extent;
        for (int d = output->rank - 1, s = inputs[i]->rank - 1; s >= 0; d--, s--) {
            sb_dim_is_constant(inputs[i]->dims[s], &extent);
            index += (extent == 1 ? 0 : rest % dims[d]) * stride;
            rest /= dims[d];
            stride *= extent;
        }
        operands[i] = element_formula(scope, inputs[i], index);
    }
}

/* A formula that overflows only means that the value stays unknown. */
static sb_status forget_overflow(sb_scope *scope, sb_error *error) {
    sb_error found;
    sb_status status = sb_scope_check(scope, &found);
    if (status == SB_ERROR_OUT_OF_MEMORY && error != NULL)
        *error = found;
    return status == SB_ERROR_OUT_OF_MEMORY ? status : SB_OK;
}

/* Element-wise arithmetic on formulas. */
static sb_status compute_formulas(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, sb_fact *output,
                                  sb_error *error) {
    int64_t elements = fact_elements(output);
    if (!all_have_formulas(node, inputs))
        return SB_OK;
    sb_dim *found = sb_allocate_array((size_t)elements + 1, sizeof *found);
    if (found == NULL)
        return sb_fail_memory(error, (size_t)elements * sizeof *found);
    for (int64_t e = 0; e < elements; e++) {
        sb_dim operands[SMALL_ARITY];
        take_operands(node, scope, inputs, output, e, operands);
        found[e] = node->op->formula(node, scope, node->input_count, operands);
        if (found[e] == NULL) {
            sb_free(found);
            return forget_overflow(scope, error);
        }
    }
    sb_free(output->elements);
    output->elements = found;
    output->element_count = elements;
    return SB_OK;
}

/* Element-wise questions about formulas: a constant where all have an answer. */
static sb_status answer_questions(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, sb_fact *output,
                                  sb_error *error) {
    int64_t dims[SB_MAX_RANK], elements = fact_elements(output);
    sb_tensor *answers;
    if (!all_have_formulas(node, inputs) || !sb_fact_is_concrete(output, dims))
        return SB_OK;
    SB_TRY(sb_tensor_create(SB_BOOL, output->rank, dims, &answers, error));
    for (int64_t e = 0; e < elements; e++) {
        sb_dim operands[SMALL_ARITY];
        take_operands(node, scope, inputs, output, e, operands);
        sb_answer answer = node->op->answer(scope, operands);
        if (answer == SB_ANSWER_OPEN) {
            sb_tensor_release(answers);
            return forget_overflow(scope, error);
        }
        ((uint8_t *)(void *)answers->data)[e] = answer == SB_ANSWER_YES;
    }
    output->constant = answers;
    return SB_OK;
}

static sb_status infer_values(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, sb_fact *outputs,
                              sb_error *error) {
    const sb_op *op = node->op;
    if ((op->flags & (SB_OP_RANDOM | SB_OP_CONTROL | SB_OP_FUSED)) != 0 || op->eval == NULL ||
        !small_outputs(node, outputs))
        return SB_OK;
    bool settled = node->output_count > 0;
    for (int i = 0; i < node->output_count; i++)
        settled = settled && (outputs[i].constant != NULL || outputs[i].elements != NULL);
    if (!settled && all_constant(node, inputs))
        return fold_constants(node, inputs, outputs, error);
    if (!settled && op->moved_inputs != 0 && outputs[0].dtype == SB_S64)
        SB_TRY(move_formulas(node, scope, inputs, outputs, error));
    else if (!settled && op->formula != NULL && outputs[0].dtype == SB_S64 && node->output_count == 1)
        SB_TRY(compute_formulas(node, scope, inputs, outputs, error));
    else if (!settled && op->answer != NULL && node->output_count == 1)
        SB_TRY(answer_questions(node, scope, inputs, outputs, error));
    for (int i = 0; i < node->output_count; i++)
        SB_TRY(settle_elements(&outputs[i], error));
    return SB_OK;
}

sb_status sb_node_infer(const sb_node *node, sb_scope *scope, const sb_fact *const *inputs, sb_fact *outputs,
                        sb_error *error) {
    sb_infer infer = {.node = node,
                      .scope = scope,
                      .input_count = node->input_count,
                      .inputs = inputs,
                      .output_count = node->output_count,
                      .outputs = outputs,
                      .error = error};
    sb_status status = node->op->infer(&infer);
    if (status == SB_OK) {
        status = sb_scope_check(scope, error);
        if (status != SB_OK)
            sb_fail_within(error, status, "node %s (%s): ", node->name, node->op->name);
    }
    if (status == SB_OK)
        status = infer_values(node, scope, inputs, outputs, error);
    if (status != SB_OK) {
        for (int i = 0; i < node->output_count; i++)
            sb_fact_clear(&outputs[i]);
    }
    return status;
}

/* Where a value's fact lies: in an array of facts, or in a graph's own values. */
typedef struct fact_list {
    sb_fact *first;
    size_t stride; /* in bytes */
} fact_list;

static sb_fact *fact_at(const fact_list *facts, sb_value_id value) {
    return (sb_fact *)(void *)((char *)facts->first + (size_t)value * facts->stride);
}

static sb_status infer_one(const sb_node *node, sb_scope *scope, const fact_list *facts, sb_error *error) {
    size_t bytes = (size_t)node->input_count * sizeof(sb_fact *) + (size_t)node->output_count * sizeof(sb_fact);
    sb_fact *outputs = sb_allocate_array(1, bytes);
    if (outputs == NULL)
        return sb_fail_memory(error, bytes);
    const sb_fact **inputs = (const sb_fact **)(void *)(outputs + node->output_count);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != SB_NO_VALUE ? fact_at(facts, node->inputs[i]) : NULL;
    sb_status status = sb_node_infer(node, scope, inputs, outputs, error);
    for (int i = 0; i < node->output_count && status == SB_OK; i++) {
        if (node->outputs[i] == SB_NO_VALUE) {
            sb_fact_clear(&outputs[i]);
            continue;
        }
        sb_fact *fact = fact_at(facts, node->outputs[i]);
        sb_fact_clear(fact);
        *fact = outputs[i];
    }
    sb_free(outputs);
    return status;
}

sb_status sb_graph_infer_node(sb_graph *graph, const sb_node *node, sb_scope *scope, sb_error *error) {
    sb_fact *first = graph->value_count != 0 ? &graph->values->fact : NULL;
    return infer_one(node, scope, &(fact_list){first, sizeof *graph->values}, error);
}

sb_status sb_graph_infer(const sb_graph *graph, sb_scope *scope, sb_fact *facts, sb_error *error) {
    for (size_t i = 0; i < graph->value_count; i++) {
        sb_tensor *constant = graph->values[i].fact.constant;
        if (graph->values[i].producer == -1 && constant != NULL)
            SB_TRY(sb_fact_of_tensor(&facts[i], scope, constant, true, error));
    }
    for (size_t i = 0; i < graph->node_count; i++)
        SB_TRY(infer_one(graph->nodes[i], scope, &(fact_list){facts, sizeof *facts}, error));
    return SB_OK;
}
