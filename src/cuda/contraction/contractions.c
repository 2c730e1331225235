#include "cuda/contraction/contractions.h"

#include <stdio.h>
#include <string.h>

bool sb_cuda_contraction_supports(const sb_kernel_query *query, const sb_contraction_node *contraction, char *why) {
    const sb_fact *first = sb_contraction_node_fact(contraction, query, 0);
    if (contraction->body == NULL)
        return true;
    bool is_conv = strcmp(contraction->node->op->name, "Conv") == 0;
    if (first->dtype != SB_F32 && (is_conv || (first->dtype != SB_F16 && first->dtype != SB_BF16))) {
        snprintf(why, SB_WHY_BYTES, "nodes behind a %s of %s run by themselves", contraction->node->op->name,
                 sb_dtype_name(first->dtype));
        return false;
    }
    if (query->outputs[0].dtype != first->dtype) {
        snprintf(why, SB_WHY_BYTES, "the fused result is %s, not %s", sb_dtype_name(query->outputs[0].dtype),
                 sb_dtype_name(first->dtype));
        return false;
    }
    return sb_cuda_epilogue_supports(query, contraction->body, why);
}

sb_status sb_cuda_contraction_prepare(const sb_kernel_query *query, void **state, sb_error *error) {
    sb_contraction_node contraction = sb_contraction_node_of(query->node);
    sb_cuda_epilogue_plan *plan;
    if (contraction.body == NULL)
        return SB_OK;
    SB_TRY(sb_cuda_epilogue_plan_create(contraction.body, 1, query->inputs, &plan, error));
    *state = plan;
    return SB_OK;
}

void sb_cuda_contraction_release(void *state) {
    sb_cuda_epilogue_plan_destroy(state);
}
