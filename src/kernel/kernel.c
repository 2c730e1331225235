#include "kernel/kernel.h"

#include <string.h>

bool sb_kernel_is_named(const sb_kernel *kernel, const sb_op *op) {
    /* Nodes whose shapes follow from data are asked for in each run. */
    return kernel->op[0] == op->name[0] && strcmp(kernel->op, op->name) == 0 &&
           strcmp(kernel->domain != NULL ? kernel->domain : "", op->domain) == 0;
}

sb_status sb_kernel_derives(const sb_kernel *kernel, const sb_kernel_query *query, sb_derived_form *form,
                            sb_error *error) {
    *form = (sb_derived_form){.input = -1};
    return kernel->derives != NULL ? kernel->derives(query, form, error) : SB_OK;
}

sb_status sb_kernel_derive(const sb_kernel *kernel, const sb_node *node, sb_isa isa, sb_workers *workers,
                           const sb_call_target *target, const sb_tensor *from, void *derived, sb_error *error) {
    sb_call call = {.node = node, .workers = workers, .isa = isa, .target = target, .error = error};
    return kernel->derive(&call, from, derived);
}

sb_status sb_kernel_choose(const sb_kernel *const *families, const sb_kernel_query *query,
                           int (*weigh)(const sb_kernel *family, const sb_node *node), const char *whose,
                           const sb_kernel **kernel, char *why, sb_error *error) {
    const sb_node *node = query->node;
    bool exhausted = false;
    sb_kernel_query asked = *query;
    asked.exhausted = &exhausted;
    int best = 0;
    *kernel = NULL;
    for (; *families != NULL; families++) {
        for (const sb_kernel *candidate = *families; candidate->op != NULL; candidate++) {
            char reason[SB_WHY_BYTES] = "";
            if (strcmp(candidate->op, SB_ANY_OP) != 0 && !sb_kernel_is_named(candidate, node->op))
                continue;
            if (query->open && !candidate->finds_extents)
                continue;
            if (candidate->supports(&asked, reason)) {
                *kernel = candidate;
                return SB_OK;
            }
            if (exhausted)
                return sb_fail(error, SB_ERROR_OUT_OF_MEMORY,
                               "out of memory while the %s kernel of node %s (%s) was chosen", whose, node->name,
                               node->op->name);
            int weighs = reason[0] != '\0' ? weigh(*families, node) : 0;
            if (weighs > 0 && weighs >= best) {
                best = weighs;
                memcpy(why, reason, SB_WHY_BYTES);
            }
        }
    }
    return SB_OK;
}
