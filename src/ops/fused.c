/* Fused: nodes that one kernel may compute together. The definition is the graph inside, so every rounding stays. */
#include "base/allocation.h"
#include "ops/list.h"

static sb_status prepare_fused(sb_node *node, sb_error *error) {
    if (sb_node_graph(node, "body") != NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: Fused has no body", node->name);
}

static sb_status infer_fused(sb_infer *infer) {
    sb_fact *inputs = sb_allocate_array((size_t)infer->input_count, sizeof *inputs);
    if (inputs == NULL)
        return sb_fail_memory(infer->error, (size_t)infer->input_count * sizeof *inputs);
    for (int i = 0; i < infer->input_count; i++) {
        if (infer->inputs[i] != NULL)
            inputs[i] = *infer->inputs[i]; /* borrowed */
    }
    sb_status status =
        sb_infer_graph(infer, sb_node_graph(infer->node, "body"), infer->input_count, inputs, infer->outputs);
    sb_free(inputs);
    return status;
}

static sb_status eval_fused(sb_call *call) {
    return sb_call_run_graph(call, sb_node_graph(call->node, "body"), call->input_count, call->inputs, call->outputs);
}

const sb_op sb_ops_fused[] = {
    {.name = "Fused",
     .domain = "samebit",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_FUSED,
     .prepare = prepare_fused,
     .infer = infer_fused,
     .eval = eval_fused},
    {0},
};
