#include "cuda/list.h"

#include <stdio.h>

#define FAMILY_TABLE(name) sb_cuda_kernels_##name,
static const sb_kernel *const families[] = {SB_CUDA_FAMILIES(FAMILY_TABLE) NULL};
#undef FAMILY_TABLE

/* Those that find out themselves which extents their outputs have. */
static const sb_kernel *const counting[] = {sb_cuda_kernels_selection, NULL};

static bool outputs_are_open(const sb_kernel_query *query) {
    bool open = false;
    for (int i = 0; i < query->node->output_count; i++)
        open = open || (query->node->outputs[i] != SB_NO_VALUE && query->outputs[i].kind == SB_KIND_TENSOR &&
                        !sb_fact_is_concrete(&query->outputs[i], NULL));
    return open;
}

/* What a device never holds: text, sequences, values that may be nothing. */
static bool fits_device(const sb_fact *fact, const char *what, int index, char *why) {
    if (fact == NULL || (fact->kind == SB_KIND_TENSOR && fact->dtype != SB_STRING))
        return true;
    snprintf(why, SB_WHY_BYTES, "%s %d is %s, which stays on the CPU", what, index,
             fact->kind == SB_KIND_TENSOR     ? "text"
             : fact->kind == SB_KIND_SEQUENCE ? "a sequence"
                                              : "optional");
    return false;
}

static bool all_fit_device(const sb_kernel_query *query, char *why) {
    bool fit = true;
    for (int i = 0; i < query->node->input_count && fit; i++)
        fit = fits_device(query->inputs[i], "input", i, why);
    for (int i = 0; i < query->node->output_count && fit; i++) {
        if (query->node->outputs[i] != SB_NO_VALUE)
            fit = fits_device(&query->outputs[i], "output", i, why);
    }
    return fit;
}

static int equally(const sb_kernel *family, const sb_node *node) {
    return 1;
}

sb_status sb_cuda_find_kernel(const sb_kernel_query *query, const sb_kernel **kernel, char *why, sb_error *error) {
    const sb_op *op = query->node->op;
    bool controls = (op->flags & SB_OP_CONTROL) != 0, fits = all_fit_device(query, why);
    *kernel = NULL;
    if (!fits && !controls)
        return SB_OK;
    snprintf(why, SB_WHY_BYTES,
             controls ? "%s decides on the CPU which graphs run; their nodes are placed one by one"
                      : "%s has no GPU kernel",
             op->name);
    if (!fits)
        return SB_OK;
    return sb_kernel_choose(outputs_are_open(query) ? counting : families, query, equally, "GPU", kernel, why, error);
}
