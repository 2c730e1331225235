#include "kernel/contraction/contraction_node.h"

#include <string.h>

sb_contraction_node sb_contraction_node_of(const sb_node *node) {
    const sb_graph *body = (node->op->flags & SB_OP_FUSED) != 0 ? sb_node_graph(node, "body") : NULL;
    if (body == NULL || body->node_count == 0)
        return (sb_contraction_node){node, NULL};
    return (sb_contraction_node){body->nodes[0], body};
}

bool sb_contraction_node_is_matmul(const sb_contraction_node *contraction) {
    const sb_op *op = contraction->node->op;
    if (strcmp(op->domain, "samebit") == 0)
        return contraction->body == NULL && strcmp(op->name, "MatMulF32") == 0;
    return op->domain[0] == '\0' && (strcmp(op->name, "MatMul") == 0 || strcmp(op->name, "Gemm") == 0);
}

/* The body's value behind an input of the contraction, and which input of the Fused node it is (-1:
 * a constant of the body). */
static sb_value_id body_value(const sb_contraction_node *contraction, int input, int *outer) {
    sb_value_id value = input < contraction->node->input_count ? contraction->node->inputs[input] : SB_NO_VALUE;
    *outer = -1;
    for (size_t i = 0; i < contraction->body->input_count; i++) {
        if (contraction->body->inputs[i] == value)
            *outer = (int)i;
    }
    return value;
}

int sb_contraction_node_input(const sb_contraction_node *contraction, int input) {
    int outer = input;
    if (contraction->body != NULL)
        body_value(contraction, input, &outer);
    else if (input >= contraction->node->input_count || contraction->node->inputs[input] == SB_NO_VALUE)
        outer = -1;
    return outer;
}

const sb_fact *sb_contraction_node_fact(const sb_contraction_node *contraction, const sb_kernel_query *query,
                                        int input) {
    if (contraction->body == NULL)
        return input < contraction->node->input_count ? query->inputs[input] : NULL;
    int outer;
    sb_value_id value = body_value(contraction, input, &outer);
    if (value == SB_NO_VALUE)
        return NULL;
    return outer >= 0 ? query->inputs[outer] : &contraction->body->values[value].fact;
}

sb_tensor *sb_contraction_node_tensor(const sb_contraction_node *contraction, const sb_call *call, int input) {
    if (contraction->body == NULL)
        return sb_call_input(call, input);
    int outer;
    sb_value_id value = body_value(contraction, input, &outer);
    if (value == SB_NO_VALUE)
        return NULL;
    return outer >= 0 ? call->inputs[outer].tensor : contraction->body->values[value].fact.constant;
}

int sb_contraction_node_addend(const sb_contraction_node *contraction, const sb_kernel_query *query) {
    if (contraction->body == NULL || query->outputs[0].dtype != SB_F32)
        return -1;
    for (size_t i = 0; i < contraction->body->input_count; i++) {
        int uses = 0, sums = 0;
        for (size_t n = 0; n < contraction->body->node_count; n++) {
            const sb_node *node = contraction->body->nodes[n];
            for (int j = 0; j < node->input_count; j++) {
                bool used = node->inputs[j] == contraction->body->inputs[i];
                uses += used;
                sums += used && n > 0 && strcmp(node->op->name, "Add") == 0;
            }
        }
        if (uses == 1 && sums == 1 && sb_fact_same_shape(query->inputs[i], &query->outputs[0]))
            return (int)i;
    }
    return -1;
}
