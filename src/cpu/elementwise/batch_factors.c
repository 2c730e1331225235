#include "cpu/elementwise/batch_factors.h"

#include "ops/batch_normalization.h"
#include "ops/loops.h"
#include "ops/real.h"

SB_DECLARE_LOOPS(sb_batch_factors_loops, 1)

sb_walk_row *sb_batch_factors_loop(sb_isa isa, sb_dtype dtype) {
    return SB_PICK_LOOPS(sb_batch_factors_loops, isa)[0][dtype];
}

static float element(const sb_tensor *tensor, int64_t index) {
    return sb_real_load_f32(tensor->dtype, tensor->data, index * tensor->strides[0]);
}

sb_status sb_batch_factors(const sb_node *node, const sb_fact *const *facts, int rank, sb_tensor **scale,
                           sb_tensor **shift, sb_error *error) {
    for (int i = 1; i < 5; i++) {
        sb_dtype dtype = facts[i]->constant->dtype;
        if (dtype != SB_F32 && dtype != SB_F16 && dtype != SB_BF16)
            return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %s: statistics of dtype %s", node->name,
                           sb_dtype_name(dtype));
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
