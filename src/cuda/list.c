#include "cuda/list.h"

#include <stdio.h>

#define FAMILY_TABLE(name) iv_cuda_kernels_##name,
static const iv_kernel *const families[] = {IV_CUDA_FAMILIES(FAMILY_TABLE) NULL};
#undef FAMILY_TABLE

/* What a device never holds: text, sequences, values that may be nothing. */
static bool fits_device(const iv_fact *fact, const char *what, int index, char *why) {
    if (fact == NULL || (fact->kind == IV_KIND_TENSOR && fact->dtype != IV_STRING))
        return true;
    snprintf(why, IV_WHY_BYTES, "%s %d is %s, which stays on the CPU", what, index,
             fact->kind == IV_KIND_TENSOR     ? "text"
             : fact->kind == IV_KIND_SEQUENCE ? "a sequence"
                                              : "optional");
    return false;
}

static bool all_fit_device(const iv_kernel_query *query, char *why) {
    bool fit = true;
    for (int i = 0; i < query->node->input_count && fit; i++)
        fit = fits_device(query->inputs[i], "input", i, why);
    for (int i = 0; i < query->node->output_count && fit; i++) {
        if (query->node->outputs[i] != IV_NO_VALUE)
            fit = fits_device(&query->outputs[i], "output", i, why);
    }
    return fit;
}

static int equally(const iv_kernel *family, const iv_node *node) {
    return 1;
}

iv_status iv_cuda_find_op(const iv_kernel_query *query, const iv_kernel **kernel, char *why, iv_error *error) {
    const iv_op *op = query->node->op;
    *kernel = NULL;
    if ((op->flags & IV_OP_CONTROL) != 0) {
        snprintf(why, IV_WHY_BYTES, "%s decides on the CPU which graphs run; their nodes are placed one by one",
                 op->name);
        return IV_OK;
    }
    if (!all_fit_device(query, why))
        return IV_OK;
    snprintf(why, IV_WHY_BYTES, "%s has no GPU kernel", op->name);
    return iv_kernel_choose(families, query, equally, "GPU", kernel, why, error);
}
