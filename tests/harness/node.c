/* What all who compute a node have in common, and its definition. */
#include "harness/harness.h"

sb_status harness_facts_make(const harness_node *node, uint64_t known, harness_facts *facts, sb_error *error) {
    *facts = (harness_facts){0};
    for (int i = 0; i < node->node->input_count; i++) {
        facts->pointers[i] = node->inputs[i] != NULL ? &facts->inputs[i] : NULL;
        if (node->inputs[i] != NULL)
            MUST(sb_fact_of_tensor(&facts->inputs[i], node->b->scope, node->inputs[i], (known >> i & 1) != 0, error));
    }
    return sb_node_infer(node->node, node->b->scope, facts->pointers, facts->outputs, error);
}

void harness_facts_clear(harness_facts *facts) {
    for (int i = 0; i < SB_WALK_OPERANDS; i++)
        sb_fact_clear(&facts->inputs[i]);
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        sb_fact_clear(&facts->outputs[i]);
}

harness_outcome harness_define(const harness_node *node, sb_tensor **outputs, char *why) {
    sb_value in[SB_WALK_OPERANDS] = {{0}}, out[HARNESS_OUTPUTS] = {{0}};
    sb_error failure = {SB_OK, ""};
    harness_facts facts;
    for (int i = 0; i < node->node->input_count; i++) {
        if (node->inputs[i] != NULL)
            in[i] = sb_value_of_tensor(node->inputs[i]);
    }
    sb_status status = harness_facts_make(node, UINT64_MAX, &facts, &failure);
    if (status == SB_OK) {
        sb_call call = {.node = node->node,
                        .input_count = node->node->input_count,
                        .inputs = in,
                        .output_count = node->node->output_count,
                        .facts = facts.outputs,
                        .outputs = out,
                        .error = &failure};
        status = sb_call_run(&call, node->node->op->eval);
    }
    for (int i = 0; i < node->node->output_count; i++)
        outputs[i] = status == SB_OK ? out[i].tensor : NULL;
    snprintf(why, SB_WHY_BYTES, "%.200s", failure.message);
    harness_facts_clear(&facts);
    return status == SB_OK ? HARNESS_RAN : HARNESS_REFUSED;
}
