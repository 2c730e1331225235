/* Fused nodes that no kernel computes in one piece: node by node on the device, by the kernels of the nodes inside. */
#include <stdio.h>

#include "base/allocation.h"
#include "cuda/call.h"
#include "cuda/list.h"

/* What is known of the values inside: as much as a run of the body will know, which has its inputs on the device and so without
 * their elements. */
static iv_status infer_body(const iv_kernel_query *query, const iv_graph *body, iv_scope *scope,
                            iv_fact *facts, iv_error *error) {
    for (size_t i = 0; i < body->input_count; i++) {
        const iv_fact *given = query->inputs[i];
        int64_t extents[IV_MAX_RANK];
        iv_dim dims[IV_MAX_RANK];
        if (given == NULL || !iv_fact_is_concrete(given, extents))
            continue;
        for (int d = 0; d < given->rank; d++)
            dims[d] = iv_dim_constant(scope, extents[d]);
        iv_fact_set_tensor(&facts[body->inputs[i]], given->dtype, given->rank, dims);
    }
    return iv_graph_infer(body, scope, facts, error);
}

/* Whether a node inside has a kernel that reads nothing on the host but constants. */
static bool node_fits(const iv_kernel_query *query, const iv_node *node, const iv_fact *facts, char *why) {
    const iv_fact *inputs[IV_WALK_OPERANDS + 8] = {NULL};
    iv_fact outputs[4];
    const iv_kernel *kernel = NULL;
    char reason[IV_WHY_BYTES] = "it has too many inputs or outputs";
    bool fits = node->input_count <= (int)(sizeof inputs / sizeof inputs[0]) && node->output_count <= 4;
    for (int i = 0; i < node->input_count && fits; i++)
        inputs[i] = node->inputs[i] != IV_NO_VALUE ? &facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count && fits; i++)
        outputs[i] = node->outputs[i] != IV_NO_VALUE ? facts[node->outputs[i]] : (iv_fact){0}; /* borrowed */
    iv_kernel_query inner = {.node = node, .inputs = inputs, .outputs = outputs, .isa = query->isa};
    if (fits && iv_cuda_find_op(&inner, &kernel, reason, NULL) != IV_OK)
        *query->exhausted = true;
    for (int i = 0; i < node->input_count && kernel != NULL; i++) {
        if ((kernel->host_inputs >> i & 1) == 0 || inputs[i] == NULL || inputs[i]->constant != NULL)
            continue;
        kernel = NULL;
        snprintf(reason, sizeof reason, "its kernel reads input %d on the host", i);
    }
    if (kernel == NULL)
        snprintf(why, IV_WHY_BYTES, "node %.60s (%s): %.160s", node->name, node->op->name, reason);
    return kernel != NULL;
}

static bool supports_body(const iv_kernel_query *query, char *why) {
    const iv_graph *body = iv_node_graph(query->node, "body");
    iv_fact *facts = iv_allocate_array(body->value_count, sizeof *facts);
    iv_scope *scope = NULL;
    iv_error error = {IV_OK, ""};
    iv_status status = facts != NULL ? iv_scope_create(&scope, &error) : IV_ERROR_OUT_OF_MEMORY;
    if (status == IV_OK)
        status = infer_body(query, body, scope, facts, &error);
    bool fits = status == IV_OK;
    if (status == IV_ERROR_OUT_OF_MEMORY)
        *query->exhausted = true;
    else if (status != IV_OK)
        snprintf(why, IV_WHY_BYTES, "%.240s", error.message);
    for (size_t i = 0; i < body->node_count && fits; i++)
        fits = node_fits(query, body->nodes[i], facts, why);
    for (size_t v = 0; facts != NULL && v < body->value_count; v++)
        iv_fact_clear(&facts[v]);
    iv_free(facts);
    iv_scope_destroy(scope);
    return fits;
}

static iv_status launch_body(iv_call *call) {
    return call->node->op->eval(call);
}

const iv_kernel iv_cuda_kernels_body[] = {
    {.op = "Fused", .domain = "invar", .name = "node by node", .supports = supports_body, .launch = launch_body},
    {0},
};
