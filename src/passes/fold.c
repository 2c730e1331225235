/* Constant folding. */
#include "base/allocation.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* A folded result may be this large even when its inputs are small; beyond that it must not be larger than they are, so
 * that a file of a few bytes cannot fill the memory. */
#define FREE_BYTES (1 << 20)

static int64_t tensor_bytes(const sb_tensor *tensor) {
    return sb_tensor_elements(tensor) * (int64_t)sb_dtype_size(tensor->dtype);
}

static bool foldable(const sb_graph *graph, const sb_node *node) {
    if ((node->op->flags & (SB_OP_RANDOM | SB_OP_CONTROL)) != 0)
        return false;
    int64_t input_bytes = 0, output_bytes = 0, dims[SB_MAX_RANK], elements;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        if (!sb_is_constant(graph, node->inputs[i]))
            return false;
        input_bytes += tensor_bytes(graph->values[node->inputs[i]].fact.constant);
    }
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == SB_NO_VALUE)
            continue;
        const sb_fact *fact = &graph->values[node->outputs[i]].fact;
        if (!sb_fact_is_concrete(fact, dims) ||
            sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != SB_OK ||
            __builtin_add_overflow(output_bytes, elements * (int64_t)sb_dtype_size(fact->dtype), &output_bytes))
            return false;
    }
    return output_bytes <= FREE_BYTES || output_bytes <= input_bytes;
}

/* Evaluates a node whose inputs are constants and makes its outputs constants. */
static sb_status fold_node(sb_graph *graph, const sb_node *node, sb_error *error) {
    size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
    sb_value *values = sb_allocate_array(inputs + outputs, sizeof *values);
    sb_fact *facts = sb_allocate_array(outputs, sizeof *facts);
    sb_status status = SB_OK;
    if (values == NULL || facts == NULL)
        status = sb_fail_memory(error, (inputs + outputs) * sizeof *values);
    for (size_t i = 0; i < inputs && status == SB_OK; i++) {
        if (node->inputs[i] != SB_NO_VALUE)
            values[i] = sb_value_of_tensor(graph->values[node->inputs[i]].fact.constant);
    }
    for (size_t i = 0; i < outputs && status == SB_OK; i++) {
        if (node->outputs[i] != SB_NO_VALUE)
            facts[i] = graph->values[node->outputs[i]].fact; /* borrowed */
    }
    if (status == SB_OK) {
        sb_call call = {.node = node,
                        .input_count = node->input_count,
                        .inputs = values,
                        .output_count = node->output_count,
                        .facts = facts,
                        .outputs = values + inputs,
                        .error = error};
        status = sb_call_run(&call, node->op->eval);
    }
    for (size_t i = 0; i < outputs && values != NULL; i++) {
        sb_value *result = &values[inputs + i];
        if (status == SB_OK && node->outputs[i] != SB_NO_VALUE && result->kind == SB_KIND_TENSOR) {
            sb_value_id value = node->outputs[i];
            sb_fact *fact = &graph->values[value].fact;
            sb_tensor_release(fact->constant);
            fact->constant = sb_tensor_retain(result->tensor);
            sb_detach_value(graph, value);
        }
        sb_value_release(result);
    }
    sb_free(values);
    sb_free(facts);
    return status;
}

sb_status sb_pass_fold(sb_graph *graph, sb_scope *scope, sb_error *error) {
    (void)scope;
    for (size_t n = 0; n < graph->node_count; n++) {
        sb_node *node = graph->nodes[n];
        bool settled = (node->op->flags & SB_OP_RANDOM) == 0;
        for (int i = 0; i < node->output_count; i++)
            settled =
                settled && (node->outputs[i] == SB_NO_VALUE || graph->values[node->outputs[i]].fact.constant != NULL);
        if (settled) { /* inference has worked it out already */
            for (int i = 0; i < node->output_count; i++) {
                if (node->outputs[i] != SB_NO_VALUE)
                    sb_detach_value(graph, node->outputs[i]);
            }
        } else if (foldable(graph, node)) {
            SB_TRY(fold_node(graph, node, error));
        }
    }
    return SB_OK;
}
