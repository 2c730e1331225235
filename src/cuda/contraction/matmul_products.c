/* Products of f16 and bf16 in models, as those that programs ask for by <samebit/gemm.h>: both are the chain, what is added
 * to it, and one rounding. */
#include "cuda/common/call.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/contraction/matmul.h"

/* The step from one batch to the next, of several dimensions as one: false where they are not evenly spaced. */
static bool find_step(const sb_matmul_geometry *g, const int64_t *strides, int64_t *step) {
    int64_t inside = 1;
    *step = 0;
    for (int d = g->batch_rank - 1; d >= 0; d--) {
        if (g->batch_dims[d] == 1)
            continue;
        if (inside == 1)
            *step = strides[d];
        else if (strides[d] != *step * inside)
            return false;
        inside *= g->batch_dims[d];
    }
    return true;
}

static sb_matrix matrix_of(sb_dtype dtype, const char *data, int64_t rows, int64_t columns, int64_t row_stride,
                           int64_t column_stride, int64_t batch_stride) {
    return (sb_matrix){dtype, (void *)(uintptr_t)data, rows, columns, row_stride, column_stride, batch_stride};
}

/* What Gemm adds: to each row the same, or not. */
static void add(const sb_cuda_product *product, sb_gemm *gemm) {
    const sb_tensor *addend = product->addend;
    int64_t rows = product->geometry.m, columns = product->geometry.n, row_stride = addend->strides[0];
    sb_matrix matrix =
        matrix_of(addend->dtype, addend->data, row_stride == 0 ? 1 : rows, columns, row_stride, addend->strides[1], 0);
    if (row_stride == 0)
        gemm->bias = matrix;
    else
        gemm->residual = matrix;
}

sb_status sb_cuda_product_16(sb_call *call, const sb_cuda_product *product, bool *given) {
    const sb_matmul_geometry *g = &product->geometry;
    const sb_tensor *y = product->y;
    int64_t a_step, b_step;
    *given = find_step(g, g->a_batch_strides, &a_step) && find_step(g, g->b_batch_strides, &b_step) &&
             (product->addend == NULL || product->params->beta == 1.0f);
    if (!*given)
        return SB_OK;
    sb_gemm gemm = SB_GEMM_DEFAULT;
    gemm.batches = g->batches;
    gemm.a = matrix_of(y->dtype, product->a, g->m, g->k, g->a_row_stride, g->a_k_stride, a_step);
    gemm.b = matrix_of(y->dtype, product->b, g->k, g->n, g->b_k_stride, g->b_column_stride, b_step);
    gemm.c = matrix_of(y->dtype, y->data, g->m, g->n, g->n, 1, g->m * g->n);
    gemm.scale = product->params != NULL ? product->params->alpha : 1.0f;
    if (product->addend != NULL)
        add(product, &gemm);
    sb_gemm_plan plan;
    SB_TRY(sb_gemm_plan_fill(&gemm, &plan, call->error));
    return sb_gemm_launch(sb_cuda_call_queue(call), call->target->step, &plan, call->error);
}
