#include "cpu/list.h"

#include <stdio.h>
#include <string.h>

#include "cpu/reason.h"

#define FAMILY_TABLE(name) iv_cpu_kernels_##name,
static const iv_kernel *const families[] = {IV_CPU_FAMILIES(FAMILY_TABLE) NULL};
#undef FAMILY_TABLE

static bool is_named(const iv_kernel *kernel, const iv_op *op) {
    return strcmp(kernel->op, op->name) == 0 &&
           strcmp(kernel->domain != NULL ? kernel->domain : "", op->domain) == 0;
}

static bool is_for(const iv_kernel *kernel, const iv_op *op) {
    return strcmp(kernel->op, IV_ANY_OP) == 0 || is_named(kernel, op);
}

/* The operator whose kernels can tell why a node has none: of fused nodes, the first one. */
static const iv_op *telling_op(const iv_node *node) {
    if ((node->op->flags & IV_OP_FUSED) == 0)
        return node->op;
    return iv_node_graph(node, "body")->nodes[0]->op;
}

static bool has_kernels_for(const iv_kernel *family, const iv_op *op) {
    for (; family->op != NULL; family++) {
        if (is_named(family, op))
            return true;
    }
    return false;
}

/* How well a family's reason explains why a node has no kernel. */
static int weight(const iv_kernel *family, const iv_node *node) {
    const iv_op *op = telling_op(node);
    if (has_kernels_for(family, op))
        return 2;
    /* What takes any operator, or any fused nodes, tells something about element-wise ones. */
    return (op->flags & IV_OP_ELEMENTWISE) != 0 || node->op != op ? 1 : 0;
}

iv_status iv_cpu_find_kernel(const iv_kernel_query *query, const iv_kernel **kernel, char *why,
                             iv_error *error) {
    const iv_op *op = query->node->op;
    bool exhausted = false;
    iv_kernel_query asked = *query;
    asked.exhausted = &exhausted;
    int best = 0;
    *kernel = NULL;
    iv_reason_operator(why, telling_op(query->node));
    for (size_t f = 0; families[f] != NULL; f++) {
        for (const iv_kernel *candidate = families[f]; candidate->op != NULL; candidate++) {
            char reason[IV_WHY_BYTES] = "";
            if (!is_for(candidate, op))
                continue;
            if (candidate->supports(&asked, reason)) {
                *kernel = candidate;
                return IV_OK;
            }
            if (exhausted)
                return iv_fail(error, IV_ERROR_OUT_OF_MEMORY,
                               "out of memory while the kernel of node %s (%s) was chosen",
                               query->node->name, op->name);
            int weighs = reason[0] != '\0' ? weight(families[f], query->node) : 0;
            /* Among equals the last tells most: what takes any operator comes last. */
            if (weighs > 0 && weighs >= best) {
                best = weighs;
                memcpy(why, reason, IV_WHY_BYTES);
            }
        }
    }
    return IV_OK;
}
