#include "cpu/elementwise/batch_factors.h"

#include "numerics/scalar.h"
#include "ops/batch_normalization.h"

sb_walk_row sb_batch_factors_row_scalar, sb_batch_factors_row_avx2, sb_batch_factors_row_avx512;

sb_walk_row *sb_batch_factors_loop(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return sb_batch_factors_row_avx512;
    if (isa == SB_ISA_AVX2)
        return sb_batch_factors_row_avx2;
#endif
    (void)isa;
    return sb_batch_factors_row_scalar;
}

static float element(const sb_tensor *tensor, int64_t index) {
    return ((const float *)(const void *)tensor->data)[index * tensor->strides[0]];
}

sb_status sb_batch_factors(const sb_node *node, const sb_fact *const *facts, int rank, sb_tensor **scale,
                           sb_tensor **shift, sb_error *error) {
    for (int i = 1; i < 5; i++) {
        if (facts[i]->constant->dtype != SB_F32)
            return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %s: statistics of dtype %s", node->name,
                           sb_dtype_name(facts[i]->constant->dtype));
    }
    int64_t dims[SB_MAX_RANK];
    for (int d = 0; d < rank - 1; d++)
        dims[d] = d == 0 ? facts[1]->constant->dims[0] : 1;
    SB_TRY(sb_tensor_create(SB_F32, rank - 1, dims, scale, error));
    sb_status status = sb_tensor_create(SB_F32, rank - 1, dims, shift, error);
    if (status != SB_OK) {
        sb_tensor_release(*scale);
        return status;
    }
    float epsilon = sb_batch_normalization_epsilon(node);
    float *a = (float *)(void *)(*scale)->data, *b = (float *)(void *)(*shift)->data;
    for (int64_t c = 0; c < dims[0]; c++)
        sb_batch_normalization_factors(element(facts[1]->constant, c), element(facts[2]->constant, c),
                                       element(facts[3]->constant, c), element(facts[4]->constant, c), epsilon, &a[c],
                                       &b[c]);
    return SB_OK;
}
