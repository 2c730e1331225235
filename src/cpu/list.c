#include "cpu/list.h"

#include <stdio.h>
#include <string.h>

#define FAMILY_TABLE(name) iv_cpu_kernels_##name,
static const iv_kernel *const families[] = {IV_CPU_FAMILIES(FAMILY_TABLE) NULL};
#undef FAMILY_TABLE

static bool is_for(const iv_kernel *kernel, const iv_op *op) {
    if (strcmp(kernel->op, IV_ANY_OP) == 0)
        return true;
    return strcmp(kernel->op, op->name) == 0 &&
           strcmp(kernel->domain != NULL ? kernel->domain : "", op->domain) == 0;
}

const iv_kernel *iv_cpu_find_kernel(const iv_kernel_query *query, char *why) {
    const iv_op *op = query->node->op;
    snprintf(why, IV_WHY_BYTES, "no kernel for %s", op->name);
    for (size_t f = 0; families[f] != NULL; f++) {
        for (const iv_kernel *kernel = families[f]; kernel->op != NULL; kernel++) {
            if (is_for(kernel, op) && kernel->supports(query, why))
                return kernel;
        }
    }
    return NULL;
}
