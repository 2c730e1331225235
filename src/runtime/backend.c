#include "runtime/backend.h"

#include <string.h>

bool iv_kernel_is_named(const iv_kernel *kernel, const iv_op *op) {
    return strcmp(kernel->op, op->name) == 0 &&
           strcmp(kernel->domain != NULL ? kernel->domain : "", op->domain) == 0;
}

iv_status iv_kernel_choose(const iv_kernel *const *families, const iv_kernel_query *query,
                           int (*weigh)(const iv_kernel *family, const iv_node *node), const char *whose,
                           const iv_kernel **kernel, char *why, iv_error *error) {
    const iv_node *node = query->node;
    bool exhausted = false;
    iv_kernel_query asked = *query;
    asked.exhausted = &exhausted;
    int best = 0;
    *kernel = NULL;
    for (; *families != NULL; families++) {
        for (const iv_kernel *candidate = *families; candidate->op != NULL; candidate++) {
            char reason[IV_WHY_BYTES] = "";
            if (strcmp(candidate->op, IV_ANY_OP) != 0 && !iv_kernel_is_named(candidate, node->op))
                continue;
            if (candidate->supports(&asked, reason)) {
                *kernel = candidate;
                return IV_OK;
            }
            if (exhausted)
                return iv_fail(error, IV_ERROR_OUT_OF_MEMORY, "out of memory while the %s kernel of node %s (%s) was chosen",
                               whose, node->name, node->op->name);
            int weighs = reason[0] != '\0' ? weigh(*families, node) : 0;
            if (weighs > 0 && weighs >= best) {
                best = weighs;
                memcpy(why, reason, IV_WHY_BYTES);
            }
        }
    }
    return IV_OK;
}
