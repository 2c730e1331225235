#include "cpu/list.h"

#include "cpu/reason.h"

#define FAMILY_TABLE(name) iv_cpu_kernels_##name,
static const iv_kernel *const families[] = {IV_CPU_FAMILIES(FAMILY_TABLE) NULL};
#undef FAMILY_TABLE

/* The operator whose kernels can tell why a node has none: of fused nodes, the first one. */
static const iv_op *telling_op(const iv_node *node) {
    if ((node->op->flags & IV_OP_FUSED) == 0)
        return node->op;
    return iv_node_graph(node, "body")->nodes[0]->op;
}

static bool has_kernels_for(const iv_kernel *family, const iv_op *op) {
    for (; family->op != NULL; family++) {
        if (iv_kernel_is_named(family, op))
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
    iv_reason_operator(why, telling_op(query->node));
    return iv_kernel_choose(families, query, weight, "CPU's", kernel, why, error);
}
