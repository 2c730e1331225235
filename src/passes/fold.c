/* Constant folding. */
#include "base/allocation.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* A folded result may be this large even when its inputs are small. Larger ones must not be larger than their inputs, or
 * fit into what a graph may grow by in all: so many bytes, and so many times its constants (weights of 4 bits become f32).
 * So a file of a few bytes cannot fill the memory. */
#define FREE_BYTES (1 << 20)
#define GROWTH_BYTES ((int64_t)32 << 20)
#define GROWTH_TIMES 8

static int64_t tensor_bytes(const sb_tensor *tensor) {
    return sb_tensor_elements(tensor) * (int64_t)sb_dtype_size(tensor->dtype);
}

/* Whether nothing but constants decides what the node computes: *bytes is how large they are. */
static bool follows_from_constants(const sb_graph *graph, const sb_node *node, int64_t *bytes) {
    *bytes = 0;
    if ((node->op->flags & (SB_OP_RANDOM | SB_OP_CONTROL)) != 0)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        if (!sb_is_constant(graph, node->inputs[i]))
            return false;
        *bytes += tensor_bytes(graph->values[node->inputs[i]].fact.constant);
    }
    return true;
}

/* What the graph may grow by. */
static int64_t allowed_growth(const sb_graph *graph) {
    int64_t bytes = 0;
    for (size_t i = 0; i < graph->value_count; i++) {
        const sb_fact *fact = &graph->values[i].fact;
        if (fact->constant != NULL && fact->constant->dtype != SB_STRING)
            bytes += tensor_bytes(fact->constant);
    }
    int64_t grown;
    return __builtin_mul_overflow(bytes, (int64_t)GROWTH_TIMES, &grown) || grown > INT64_MAX - GROWTH_BYTES
               ? INT64_MAX
               : grown + GROWTH_BYTES;
}

/* Takes a large result off what is left of the growth. */
static bool is_small_enough(const sb_graph *graph, const sb_node *node, int64_t input_bytes, int64_t *growth) {
    int64_t output_bytes = 0, dims[SB_MAX_RANK], elements;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == SB_NO_VALUE)
            continue;
        const sb_fact *fact = &graph->values[node->outputs[i]].fact;
        if (!sb_fact_is_concrete(fact, dims) ||
            sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != SB_OK ||
            __builtin_add_overflow(output_bytes, elements * (int64_t)sb_dtype_size(fact->dtype), &output_bytes))
            return false;
    }
    if (output_bytes <= FREE_BYTES || output_bytes <= input_bytes)
        return true;
    if (output_bytes > *growth)
        return false;
    *growth -= output_bytes;
    return true;
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

/* Graphs inside of nodes are inferred with their node, for each run's extents, and their values hold no facts; those that
 * follow from constants alone are the same each time. What cannot be inferred or computed there is no error yet: the branch
 * that it is in may never be taken. */
static sb_status fold_unknown(sb_graph *graph, const sb_node *node, int64_t input_bytes, int64_t *growth,
                              sb_scope *scope, sb_error *error) {
    sb_error why;
    sb_status status = sb_graph_infer_node(graph, node, scope, &why);
    if (status == SB_OK && is_small_enough(graph, node, input_bytes, growth))
        status = fold_node(graph, node, &why);
    return status != SB_ERROR_OUT_OF_MEMORY ? SB_OK : sb_fail(error, status, "%s", why.message);
}

static bool has_facts(const sb_graph *graph, const sb_node *node) {
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != SB_NO_VALUE && graph->values[node->outputs[i]].fact.kind == SB_KIND_NONE)
            return false;
    }
    return true;
}

sb_status sb_pass_fold(sb_graph *graph, sb_scope *scope, sb_error *error) {
    int64_t growth = allowed_growth(graph);
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
            continue;
        }
        int64_t input_bytes;
        if (!follows_from_constants(graph, node, &input_bytes))
            continue;
        if (!has_facts(graph, node))
            SB_TRY(fold_unknown(graph, node, input_bytes, &growth, scope, error));
        else if (is_small_enough(graph, node, input_bytes, &growth))
            SB_TRY(fold_node(graph, node, error));
    }
    return SB_OK;
}
