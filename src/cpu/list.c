#include "cpu/list.h"

#include "cpu/reason.h"

#define FAMILY_TABLE(name) sb_cpu_kernels_##name,
static const sb_kernel *const families[] = {SB_CPU_FAMILIES(FAMILY_TABLE) NULL};
#undef FAMILY_TABLE

/* The operator whose kernels can tell why a node has none: of fused nodes, the first one. */
static const sb_op *telling_op(const sb_node *node) {
    if ((node->op->flags & SB_OP_FUSED) == 0)
        return node->op;
    return sb_node_graph(node, "body")->nodes[0]->op;
}

static bool has_kernels_for(const sb_kernel *family, const sb_op *op) {
    for (; family->op != NULL; family++) {
        if (sb_kernel_is_named(family, op))
            return true;
    }
    return false;
}

/* How well a family's reason explains why a node has no kernel. */
static int weight(const sb_kernel *family, const sb_node *node) {
    const sb_op *op = telling_op(node);
    if (has_kernels_for(family, op))
        return 2;
    /* What takes any operator, or any fused nodes, tells something about element-wise ones. */
    return (op->flags & SB_OP_ELEMENTWISE) != 0 || node->op != op ? 1 : 0;
}

sb_status sb_cpu_find_kernel(const sb_kernel_query *query, const sb_kernel **kernel, char *why, sb_error *error) {
    why[0] = '\0';
    SB_TRY(sb_kernel_choose(families, query, weight, "CPU's", kernel, why, error));
    if (*kernel == NULL && why[0] == '\0')
        sb_reason_operator(why, telling_op(query->node));
    return SB_OK;
}
