/* Constant folding. */
#include "base/allocation.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* A folded result may be this large even when its inputs are small; beyond that it must not be larger than they are, so that a
 * file of a few bytes cannot fill the memory. */
#define FREE_BYTES (1 << 20)

static int64_t tensor_bytes(const iv_tensor *tensor) {
    return iv_tensor_elements(tensor) * (int64_t)iv_dtype_size(tensor->dtype);
}

static bool foldable(const iv_graph *graph, const iv_node *node) {
    if ((node->op->flags & (IV_OP_RANDOM | IV_OP_CONTROL)) != 0)
        return false;
    int64_t input_bytes = 0, output_bytes = 0, dims[IV_MAX_RANK], elements;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == IV_NO_VALUE)
            continue;
        if (!iv_is_constant(graph, node->inputs[i]))
            return false;
        input_bytes += tensor_bytes(graph->values[node->inputs[i]].fact.constant);
    }
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == IV_NO_VALUE)
            continue;
        const iv_fact *fact = &graph->values[node->outputs[i]].fact;
        if (!iv_fact_is_concrete(fact, dims) ||
            iv_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != IV_OK ||
            __builtin_add_overflow(output_bytes, elements * (int64_t)iv_dtype_size(fact->dtype),
                                   &output_bytes))
            return false;
    }
    return output_bytes <= FREE_BYTES || output_bytes <= input_bytes;
}

/* Evaluates a node whose inputs are constants and makes its outputs constants. */
static iv_status fold_node(iv_graph *graph, const iv_node *node, iv_error *error) {
    size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
    iv_value *values = iv_allocate_array(inputs + outputs, sizeof *values);
    iv_fact *facts = iv_allocate_array(outputs, sizeof *facts);
    iv_status status = IV_OK;
    if (values == NULL || facts == NULL)
        status = iv_fail_memory(error, (inputs + outputs) * sizeof *values);
    for (size_t i = 0; i < inputs && status == IV_OK; i++) {
        if (node->inputs[i] != IV_NO_VALUE)
            values[i] = iv_value_of_tensor(graph->values[node->inputs[i]].fact.constant);
    }
    for (size_t i = 0; i < outputs && status == IV_OK; i++) {
        if (node->outputs[i] != IV_NO_VALUE)
            facts[i] = graph->values[node->outputs[i]].fact; /* borrowed */
    }
    if (status == IV_OK) {
        iv_call call = {.node = node,
                        .input_count = node->input_count,
                        .inputs = values,
                        .output_count = node->output_count,
                        .facts = facts,
                        .outputs = values + inputs,
                        .error = error};
        status = iv_call_run(&call, node->op->eval);
    }
    for (size_t i = 0; i < outputs && values != NULL; i++) {
        iv_value *result = &values[inputs + i];
        if (status == IV_OK && node->outputs[i] != IV_NO_VALUE && result->kind == IV_KIND_TENSOR) {
            iv_value_id value = node->outputs[i];
            iv_fact *fact = &graph->values[value].fact;
            iv_tensor_release(fact->constant);
            fact->constant = iv_tensor_retain(result->tensor);
            iv_detach_value(graph, value);
        }
        iv_value_release(result);
    }
    iv_free(values);
    iv_free(facts);
    return status;
}

iv_status iv_pass_fold(iv_graph *graph, iv_scope *scope, iv_error *error) {
    (void)scope;
    for (size_t n = 0; n < graph->node_count; n++) {
        iv_node *node = graph->nodes[n];
        bool settled = (node->op->flags & IV_OP_RANDOM) == 0;
        for (int i = 0; i < node->output_count; i++)
            settled = settled && (node->outputs[i] == IV_NO_VALUE ||
                                  graph->values[node->outputs[i]].fact.constant != NULL);
        if (settled) { /* inference has worked it out already */
            for (int i = 0; i < node->output_count; i++) {
                if (node->outputs[i] != IV_NO_VALUE)
                    iv_detach_value(graph, node->outputs[i]);
            }
        } else if (foldable(graph, node)) {
            IV_TRY(fold_node(graph, node, error));
        }
    }
    return IV_OK;
}
