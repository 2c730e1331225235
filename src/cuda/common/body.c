/* Fused nodes that no kernel computes in one piece: node by node on the device, by the kernels of the nodes inside. */
#include "cuda/common/body.h"

#include <stdio.h>

#include "base/allocation.h"
#include "cuda/common/call.h"
#include "cuda/list.h"

/* What is known of the values inside: as much as a run of the body will know, which has its inputs on the device and so
 * without their elements. */
static sb_status infer_body(const sb_graph *body, const sb_fact *const *inputs, sb_scope *scope, sb_fact *facts,
                            sb_error *error) {
    for (size_t i = 0; i < body->input_count; i++) {
        const sb_fact *given = inputs[i];
        int64_t extents[SB_MAX_RANK];
        sb_dim dims[SB_MAX_RANK];
        if (given == NULL || !sb_fact_is_concrete(given, extents))
            continue;
        for (int d = 0; d < given->rank; d++)
            dims[d] = sb_dim_constant(scope, extents[d]);
        sb_fact_set_tensor(&facts[body->inputs[i]], given->dtype, given->rank, dims);
    }
    return sb_graph_infer(body, scope, facts, error);
}

/* Whether its outputs are known without running it, as what Shape gives is. */
static bool is_known(const sb_node *node, const sb_fact *facts) {
    bool known = true;
    for (int i = 0; i < node->output_count; i++)
        known = known && (node->outputs[i] == SB_NO_VALUE || facts[node->outputs[i]].constant != NULL);
    return known;
}

/* Whether a node inside has a kernel that reads nothing on the host but constants. */
static bool node_fits(const sb_kernel_query *query, const sb_node *node, const sb_fact *facts, char *why) {
    const sb_fact *inputs[SB_WALK_OPERANDS + 8] = {NULL};
    sb_fact outputs[4];
    const sb_kernel *kernel = NULL;
    char reason[SB_WHY_BYTES] = "it has too many inputs or outputs";
    bool fits = node->input_count <= (int)(sizeof inputs / sizeof inputs[0]) && node->output_count <= 4;
    if ((node->op->flags & SB_OP_CONTROL) != 0) {
        snprintf(reason, sizeof reason, "it has graphs of its own");
        fits = false;
    }
    for (int i = 0; i < node->output_count && fits; i++) {
        fits = node->outputs[i] == SB_NO_VALUE || sb_fact_is_concrete(&facts[node->outputs[i]], NULL);
        if (!fits)
            snprintf(reason, sizeof reason, "the data decide the shape of what it makes");
    }
    for (int i = 0; i < node->input_count && fits; i++)
        inputs[i] = node->inputs[i] != SB_NO_VALUE ? &facts[node->inputs[i]] : NULL;
    for (int i = 0; i < node->output_count && fits; i++)
        outputs[i] = node->outputs[i] != SB_NO_VALUE ? facts[node->outputs[i]] : (sb_fact){0}; /* borrowed */
    sb_kernel_query inner = *query;
    inner.node = node;
    inner.inputs = inputs;
    inner.outputs = outputs;
    inner.exhausted = NULL;
    if (fits && sb_cuda_find_kernel(&inner, &kernel, reason, NULL) != SB_OK)
        *query->exhausted = true;
    for (int i = 0; i < node->input_count && kernel != NULL; i++) {
        if ((kernel->host_inputs >> i & 1) == 0 || inputs[i] == NULL || inputs[i]->constant != NULL)
            continue;
        kernel = NULL;
        snprintf(reason, sizeof reason, "its kernel reads input %d on the host", i);
    }
    if (kernel == NULL)
        snprintf(why, SB_WHY_BYTES, "node %.60s (%s): %.160s", node->name, node->op->name, reason);
    return kernel != NULL;
}

bool sb_cuda_graph_fits(const sb_kernel_query *query, const sb_graph *body, const sb_fact *const *inputs, char *why) {
    sb_fact *facts = sb_allocate_array(body->value_count, sizeof *facts);
    sb_scope *scope = NULL;
    sb_error error = {SB_OK, ""};
    sb_status status = facts != NULL ? sb_scope_create(&scope, &error) : SB_ERROR_OUT_OF_MEMORY;
    if (status == SB_OK)
        status = infer_body(body, inputs, scope, facts, &error);
    bool fits = status == SB_OK;
    if (status == SB_ERROR_OUT_OF_MEMORY)
        *query->exhausted = true;
    else if (status != SB_OK)
        snprintf(why, SB_WHY_BYTES, "%.240s", error.message);
    for (size_t i = 0; i < body->node_count && fits; i++)
        fits = is_known(body->nodes[i], facts) || node_fits(query, body->nodes[i], facts, why);
    for (size_t o = 0; o < body->output_count && fits; o++) {
        fits = facts[body->outputs[o]].constant == NULL;
        if (!fits)
            snprintf(why, SB_WHY_BYTES, "what its graph gives is known on the host");
    }
    for (size_t v = 0; facts != NULL && v < body->value_count; v++)
        sb_fact_clear(&facts[v]);
    sb_free(facts);
    sb_scope_destroy(scope);
    return fits;
}

static bool supports_body(const sb_kernel_query *query, char *why) {
    return sb_cuda_graph_fits(query, sb_node_graph(query->node, "body"), query->inputs, why);
}

static sb_status launch_body(sb_call *call) {
    return call->node->op->eval(call);
}

const sb_kernel sb_cuda_kernels_body[] = {
    {.op = "Fused", .domain = "samebit", .name = "node by node", .supports = supports_body, .launch = launch_body},
    {0},
};
