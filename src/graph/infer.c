/* Inference over nodes and graphs: facts first, then the values that follow from them.
 *
 * Values are worked out in three ways, each only for small tensors, so that shape arithmetic is settled before anything runs:
 * from constants by evaluation; through element moves (Gather, Concat, Slice, …) by evaluating the op on *tags* that stand
 * for formulas; through integer arithmetic by the op's own `formula`. */
#include "base/allocation.h"
#include "graph/op.h"

/* How many inputs and outputs a node may have for its values to be worked out here. */
#define SMALL_ARITY 64

static int64_t fact_elements(const iv_fact *fact) {
    int64_t dims[IV_MAX_RANK], elements = 1;
    if (!iv_fact_is_concrete(fact, dims))
        return -1;
    for (int i = 0; i < fact->rank; i++) {
        if (__builtin_mul_overflow(elements, dims[i], &elements))
            return -1;
    }
    return elements;
}

static bool small_outputs(const iv_node *node, const iv_fact *outputs) {
    for (int i = 0; i < node->output_count; i++) {
        int64_t elements = fact_elements(&outputs[i]);
        if (elements < 0 || elements > IV_FACT_ELEMENTS)
            return false;
    }
    return node->output_count <= SMALL_ARITY && node->input_count <= SMALL_ARITY;
}

/* Evaluates the node on `inputs` without a runtime. Outputs are the caller's. */
static iv_status evaluate(const iv_node *node, const iv_value *inputs, const iv_fact *facts,
                          iv_value *outputs, iv_error *error) {
    iv_call call = {.node = node,
                    .input_count = node->input_count,
                    .inputs = inputs,
                    .output_count = node->output_count,
                    .facts = facts,
                    .outputs = outputs,
                    .error = error};
    return iv_call_run(&call, node->op->eval);
}

static iv_status fold_constants(const iv_node *node, const iv_fact *const *inputs, iv_fact *outputs,
                                iv_error *error) {
    iv_value values[SMALL_ARITY] = {{0}}, results[SMALL_ARITY] = {{0}};
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] != NULL)
            values[i] = iv_value_of_tensor(inputs[i]->constant);
    }
    IV_TRY(evaluate(node, values, outputs, results, error));
    for (int i = 0; i < node->output_count; i++) {
        if (results[i].kind == IV_KIND_TENSOR && outputs[i].constant == NULL)
            outputs[i].constant = iv_tensor_retain(results[i].tensor);
        iv_value_release(&results[i]);
    }
    return IV_OK;
}

static bool all_constant(const iv_node *node, const iv_fact *const *inputs) {
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] != NULL && inputs[i]->constant == NULL)
            return false;
    }
    return true;
}

/* The formula of element `index` (row-major) of a small s64 fact, from its constant or its elements; NULL if unknown. */
static iv_dim element_formula(iv_scope *scope, const iv_fact *fact, int64_t index) {
    if (fact->elements != NULL)
        return fact->elements[index];
    const iv_tensor *tensor = fact->constant;
    if (tensor == NULL || tensor->dtype != IV_S64)
        return NULL;
    const int64_t *at = (const int64_t *)(const void *)tensor->data;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        at += index % tensor->dims[d] * tensor->strides[d];
        index /= tensor->dims[d];
    }
    return iv_dim_constant(scope, *at);
}

static bool has_formulas(const iv_fact *fact) {
    return fact != NULL && fact->dtype == IV_S64 && (fact->elements != NULL || fact->constant != NULL) &&
           fact_elements(fact) >= 0 && fact_elements(fact) <= IV_FACT_ELEMENTS;
}

/* If every element is a number after all, the fact gets the constant instead. */
static iv_status settle_elements(iv_fact *fact, iv_error *error) {
    int64_t values[IV_FACT_ELEMENTS], dims[IV_MAX_RANK];
    if (fact->elements == NULL || fact->constant != NULL || !iv_fact_is_concrete(fact, dims) ||
        fact->element_count > IV_FACT_ELEMENTS)
        return IV_OK;
    for (int64_t i = 0; i < fact->element_count; i++) {
        if (!iv_dim_is_constant(fact->elements[i], &values[i]))
            return IV_OK;
    }
    IV_TRY(iv_tensor_from_data(IV_S64, fact->rank, dims, values, &fact->constant, error));
    iv_free(fact->elements);
    fact->elements = NULL;
    return IV_OK;
}

/* Formulas on their way through an op that moves elements: the op sees tags, which are indices into `formulas`. */
typedef struct tagging {
    iv_dim *formulas;
    size_t count, capacity;
    iv_value values[SMALL_ARITY];
    bool owned[SMALL_ARITY];
} tagging;

static bool is_moved(const iv_node *node, int input) {
    return (node->op->moved_inputs >> (input < 64 ? input : 63) & 1) != 0;
}

/* Makes input `index` a tensor of fresh tags for the formulas of `fact`. */
static iv_status tag_input(tagging *tags, int index, iv_scope *scope, const iv_fact *fact,
                           iv_error *error) {
    int64_t elements = fact_elements(fact), dims[IV_MAX_RANK];
    iv_fact_is_concrete(fact, dims);
    if (!iv_grow((void **)&tags->formulas, &tags->capacity, tags->count + (size_t)elements + 1,
                 sizeof *tags->formulas))
        return iv_fail_memory(error, (tags->count + (size_t)elements) * sizeof *tags->formulas);
    iv_tensor *tensor;
    IV_TRY(iv_tensor_create(IV_S64, fact->rank, dims, &tensor, error));
    for (int64_t e = 0; e < elements; e++) {
        ((int64_t *)(void *)tensor->data)[e] = (int64_t)tags->count;
        tags->formulas[tags->count++] = element_formula(scope, fact, e);
    }
    tags->values[index] = iv_value_of_tensor(tensor);
    tags->owned[index] = true;
    return IV_OK;
}

/* *usable says whether every input is either tagged or a constant. */
static iv_status tag_inputs(tagging *tags, const iv_node *node, iv_scope *scope,
                            const iv_fact *const *inputs, bool *usable, iv_error *error) {
    *usable = true;
    for (int i = 0; i < node->input_count && *usable; i++) {
        if (inputs[i] == NULL)
            continue;
        if (!is_moved(node, i)) {
            tags->values[i] = iv_value_of_tensor(inputs[i]->constant);
            *usable = inputs[i]->constant != NULL;
        } else {
            *usable = has_formulas(inputs[i]);
            if (*usable)
                IV_TRY(tag_input(tags, i, scope, inputs[i], error));
        }
    }
    return IV_OK;
}

/* Turns the tags in `result` back into the formulas they stand for. */
static iv_status read_tags(const tagging *tags, iv_tensor *result, iv_fact *output, iv_error *error) {
    int64_t elements = fact_elements(output);
    iv_tensor *moved;
    IV_TRY(iv_tensor_contiguous(result, &moved, error));
    iv_dim *found = iv_allocate_array((size_t)elements + 1, sizeof *found);
    bool complete = found != NULL;
    for (int64_t e = 0; e < elements && complete; e++) {
        int64_t tag = ((const int64_t *)(const void *)moved->data)[e];
        complete = tag >= 0 && (size_t)tag < tags->count && tags->formulas[tag] != NULL;
        if (complete)
            found[e] = tags->formulas[tag];
    }
    iv_tensor_release(moved);
    if (found == NULL)
        return iv_fail_memory(error, (size_t)elements * sizeof *found);
    if (!complete) {
        iv_free(found);
        return IV_OK;
    }
    iv_free(output->elements);
    output->elements = found;
    output->element_count = elements;
    return IV_OK;
}

static iv_status move_formulas(const iv_node *node, iv_scope *scope, const iv_fact *const *inputs,
                               iv_fact *outputs, iv_error *error) {
    tagging tags = {0};
    iv_value results[SMALL_ARITY] = {{0}};
    bool usable;
    iv_status status = tag_inputs(&tags, node, scope, inputs, &usable, error);
    if (status == IV_OK && usable)
        status = evaluate(node, tags.values, outputs, results, error);
    for (int i = 0; i < node->output_count && status == IV_OK && usable; i++) {
        if (results[i].kind == IV_KIND_TENSOR)
            status = read_tags(&tags, results[i].tensor, &outputs[i], error);
    }
    for (int i = 0; i < node->input_count; i++) {
        if (tags.owned[i])
            iv_value_release(&tags.values[i]);
    }
    for (int i = 0; i < node->output_count; i++)
        iv_value_release(&results[i]);
    iv_free(tags.formulas);
    return status;
}

/* Element-wise arithmetic on formulas, with broadcasting. */
static iv_status compute_formulas(const iv_node *node, iv_scope *scope, const iv_fact *const *inputs,
                                  iv_fact *output, iv_error *error) {
    int64_t dims[IV_MAX_RANK], elements = fact_elements(output);
    iv_fact_is_concrete(output, dims);
    for (int i = 0; i < node->input_count; i++) {
        if (inputs[i] == NULL || !has_formulas(inputs[i]))
            return IV_OK;
    }
    iv_dim *found = iv_allocate_array((size_t)elements + 1, sizeof *found);
    if (found == NULL)
        return iv_fail_memory(error, (size_t)elements * sizeof *found);
    for (int64_t e = 0; e < elements; e++) {
        iv_dim operands[SMALL_ARITY];
        for (int i = 0; i < node->input_count; i++) {
            int64_t rest = e, index = 0, stride = 1, extent;
            for (int d = output->rank - 1, s = inputs[i]->rank - 1; s >= 0; d--, s--) {
                iv_dim_is_constant(inputs[i]->dims[s], &extent);
                index += (extent == 1 ? 0 : rest % dims[d]) * stride;
                rest /= dims[d];
                stride *= extent;
            }
            operands[i] = element_formula(scope, inputs[i], index);
        }
        found[e] = node->op->formula(node, scope, node->input_count, operands);
        if (found[e] == NULL) {
            iv_free(found);
            iv_error ignored; /* an overflowing formula only means that the value stays unknown */
            (void)iv_scope_check(scope, &ignored);
            return IV_OK;
        }
    }
    iv_free(output->elements);
    output->elements = found;
    output->element_count = elements;
    return IV_OK;
}

static iv_status infer_values(const iv_node *node, iv_scope *scope, const iv_fact *const *inputs,
                              iv_fact *outputs, iv_error *error) {
    const iv_op *op = node->op;
    if ((op->flags & (IV_OP_RANDOM | IV_OP_CONTROL | IV_OP_FUSED)) != 0 || op->eval == NULL ||
        !small_outputs(node, outputs))
        return IV_OK;
    bool settled = node->output_count > 0;
    for (int i = 0; i < node->output_count; i++)
        settled = settled && (outputs[i].constant != NULL || outputs[i].elements != NULL);
    if (!settled && all_constant(node, inputs))
        return fold_constants(node, inputs, outputs, error);
    if (!settled && op->moved_inputs != 0 && outputs[0].dtype == IV_S64)
        IV_TRY(move_formulas(node, scope, inputs, outputs, error));
    else if (!settled && op->formula != NULL && outputs[0].dtype == IV_S64 && node->output_count == 1)
        IV_TRY(compute_formulas(node, scope, inputs, outputs, error));
    for (int i = 0; i < node->output_count; i++)
        IV_TRY(settle_elements(&outputs[i], error));
    return IV_OK;
}

iv_status iv_node_infer(const iv_node *node, iv_scope *scope, const iv_fact *const *inputs,
                        iv_fact *outputs, iv_error *error) {
    iv_infer infer = {.node = node,
                      .scope = scope,
                      .input_count = node->input_count,
                      .inputs = inputs,
                      .output_count = node->output_count,
                      .outputs = outputs,
                      .error = error};
    iv_status status = node->op->infer(&infer);
    if (status == IV_OK) {
        status = iv_scope_check(scope, error);
        if (status != IV_OK)
            iv_fail_within(error, status, "node %s (%s): ", node->name, node->op->name);
    }
    if (status == IV_OK)
        status = infer_values(node, scope, inputs, outputs, error);
    if (status != IV_OK) {
        for (int i = 0; i < node->output_count; i++)
            iv_fact_clear(&outputs[i]);
    }
    return status;
}

static iv_status infer_one(const iv_node *node, iv_scope *scope,
                           iv_fact *facts, iv_error *error) {
    size_t bytes = (size_t)node->input_count * sizeof(iv_fact *) +
                   (size_t)node->output_count * sizeof(iv_fact);
    iv_fact *outputs = iv_allocate_array(1, bytes);
    if (outputs == NULL)
        return iv_fail_memory(error, bytes);
    const iv_fact **inputs = (const iv_fact **)(void *)(outputs + node->output_count);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != IV_NO_VALUE ? &facts[node->inputs[i]] : NULL;
    iv_status status = iv_node_infer(node, scope, inputs, outputs, error);
    for (int i = 0; i < node->output_count && status == IV_OK; i++) {
        if (node->outputs[i] == IV_NO_VALUE) {
            iv_fact_clear(&outputs[i]);
            continue;
        }
        iv_fact_clear(&facts[node->outputs[i]]);
        facts[node->outputs[i]] = outputs[i];
    }
    iv_free(outputs);
    return status;
}

iv_status iv_graph_infer(const iv_graph *graph, iv_scope *scope, iv_fact *facts, iv_error *error) {
    for (size_t i = 0; i < graph->value_count; i++) {
        iv_tensor *constant = graph->values[i].fact.constant;
        if (graph->values[i].producer == -1 && constant != NULL)
            IV_TRY(iv_fact_of_tensor(&facts[i], scope, constant, true, error));
    }
    for (size_t i = 0; i < graph->node_count; i++)
        IV_TRY(infer_one(graph->nodes[i], scope, facts, error));
    return IV_OK;
}
