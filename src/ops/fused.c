/* Fused: nodes that one kernel may compute together. The definition is the graph inside, so every rounding stays. */
#include "base/allocation.h"
#include "ops/list.h"

static iv_status prepare_fused(iv_node *node, iv_error *error) {
    if (iv_node_graph(node, "body") != NULL)
        return IV_OK;
    return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: Fused has no body", node->name);
}

static iv_status infer_fused(iv_infer *infer) {
    iv_fact *inputs = iv_allocate_array((size_t)infer->input_count, sizeof *inputs);
    if (inputs == NULL)
        return iv_fail_memory(infer->error, (size_t)infer->input_count * sizeof *inputs);
    for (int i = 0; i < infer->input_count; i++) {
        if (infer->inputs[i] != NULL)
            inputs[i] = *infer->inputs[i]; /* borrowed */
    }
    iv_status status = iv_infer_graph(infer, iv_node_graph(infer->node, "body"), infer->input_count,
                                      inputs, infer->outputs);
    iv_free(inputs);
    return status;
}

static iv_status eval_fused(iv_call *call) {
    return iv_call_run_graph(call, iv_node_graph(call->node, "body"), call->input_count,
                             call->inputs, call->outputs);
}

const iv_op iv_ops_fused[] = {
    {.name = "Fused",
     .domain = "invar",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = IV_OP_FUSED,
     .prepare = prepare_fused,
     .infer = infer_fused,
     .eval = eval_fused},
    {0},
};
