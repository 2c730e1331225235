#include "cuda/ops/contractions.h"

#include <stdio.h>

bool iv_cuda_contraction_supports(const iv_kernel_query *query, const iv_site *site, char *why) {
    const iv_fact *first = iv_site_fact(site, query, 0);
    if (site->body == NULL)
        return true;
    if (first->dtype != IV_F32) {
        snprintf(why, IV_WHY_BYTES, "nodes behind a contraction of %s run by themselves",
                 iv_dtype_name(first->dtype));
        return false;
    }
    if (query->outputs[0].dtype != first->dtype) {
        snprintf(why, IV_WHY_BYTES, "the fused result is %s, not %s",
                 iv_dtype_name(query->outputs[0].dtype), iv_dtype_name(first->dtype));
        return false;
    }
    return iv_cuda_tail_supports(query, site->body, why);
}

iv_status iv_cuda_contraction_prepare(const iv_kernel_query *query, void **state, iv_error *error) {
    iv_site site = iv_site_of(query->node);
    iv_cuda_tail_plan *plan;
    if (site.body == NULL)
        return IV_OK;
    IV_TRY(iv_cuda_tail_plan_create(site.body, 1, query->inputs, &plan, error));
    *state = plan;
    return IV_OK;
}

void iv_cuda_contraction_release(void *state) {
    iv_cuda_tail_plan_destroy(state);
}
