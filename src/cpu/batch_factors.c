#include "cpu/batch_factors.h"

#include "numerics/scalar.h"
#include "ops/batch_normalization.h"

iv_walk_row iv_batch_factors_row_scalar, iv_batch_factors_row_avx2, iv_batch_factors_row_avx512;

iv_walk_row *iv_batch_factors_loop(iv_isa isa) {
#if IV_HAS_X86_KERNELS
    if (isa == IV_ISA_AVX512)
        return iv_batch_factors_row_avx512;
    if (isa == IV_ISA_AVX2)
        return iv_batch_factors_row_avx2;
#endif
    (void)isa;
    return iv_batch_factors_row_scalar;
}

static float element(const iv_tensor *tensor, int64_t index) {
    return ((const float *)(const void *)tensor->data)[index * tensor->strides[0]];
}

iv_status iv_batch_factors(const iv_node *node, const iv_fact *const *facts, int rank,
                           iv_tensor **scale, iv_tensor **shift, iv_error *error) {
    for (int i = 1; i < 5; i++) {
        if (facts[i]->constant->dtype != IV_F32)
            return iv_fail(error, IV_ERROR_UNSUPPORTED, "node %s: statistics of dtype %s", node->name,
                           iv_dtype_name(facts[i]->constant->dtype));
    }
    int64_t dims[IV_MAX_RANK];
    for (int d = 0; d < rank - 1; d++)
        dims[d] = d == 0 ? facts[1]->constant->dims[0] : 1;
    IV_TRY(iv_tensor_create(IV_F32, rank - 1, dims, scale, error));
    iv_status status = iv_tensor_create(IV_F32, rank - 1, dims, shift, error);
    if (status != IV_OK) {
        iv_tensor_release(*scale);
        return status;
    }
    float epsilon = iv_batch_normalization_epsilon(node);
    float *a = (float *)(void *)(*scale)->data, *b = (float *)(void *)(*shift)->data;
    for (int64_t c = 0; c < dims[0]; c++)
        iv_batch_normalization_factors(element(facts[1]->constant, c), element(facts[2]->constant, c),
                                       element(facts[3]->constant, c), element(facts[4]->constant, c),
                                       epsilon, &a[c], &b[c]);
    return IV_OK;
}
