/* MatMul. Each output element is one chain over k from +0 (ops/contraction.h); f16 and bf16 are
 * rounded once, from the f32 accumulator. */
#include "ops/matmul.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/list.h"

void iv_matmul_geometry_of(const iv_tensor *a, const iv_tensor *b, iv_matmul_geometry *geometry) {
    iv_matmul_geometry g = {.batches = 1, .m = 1, .n = 1};
    int a_batch = a->rank > 2 ? a->rank - 2 : 0, b_batch = b->rank > 2 ? b->rank - 2 : 0;
    g.batch_rank = a_batch > b_batch ? a_batch : b_batch;
    for (int d = 0; d < g.batch_rank; d++) {
        int in_a = d - (g.batch_rank - a_batch), in_b = d - (g.batch_rank - b_batch);
        int64_t a_extent = in_a >= 0 ? a->dims[in_a] : 1, b_extent = in_b >= 0 ? b->dims[in_b] : 1;
        g.batch_dims[d] = a_extent == 1 ? b_extent : a_extent;
        g.a_batch_strides[d] = a_extent == 1 ? 0 : a->strides[in_a];
        g.b_batch_strides[d] = b_extent == 1 ? 0 : b->strides[in_b];
        g.batches *= g.batch_dims[d];
    }
    g.k = a->dims[a->rank - 1];
    g.a_k_stride = a->strides[a->rank - 1];
    if (a->rank > 1) {
        g.m = a->dims[a->rank - 2];
        g.a_row_stride = a->strides[a->rank - 2];
    }
    g.b_k_stride = b->strides[b->rank > 1 ? b->rank - 2 : 0];
    if (b->rank > 1) {
        g.n = b->dims[b->rank - 1];
        g.b_column_stride = b->strides[b->rank - 1];
    }
    *geometry = g;
}

void iv_matmul_batch_offsets(const iv_matmul_geometry *geometry, int64_t batch, int64_t *a,
                             int64_t *b) {
    *a = *b = 0;
    for (int d = geometry->batch_rank - 1; d >= 0; d--) {
        int64_t index = batch % geometry->batch_dims[d];
        batch /= geometry->batch_dims[d];
        *a += index * geometry->a_batch_strides[d];
        *b += index * geometry->b_batch_strides[d];
    }
}

/* The fact of what lies before the last two dimensions. */
static void batch_fact(const iv_fact *fact, iv_fact *batch) {
    *batch = (iv_fact){.kind = IV_KIND_TENSOR, .dtype = fact->dtype};
    batch->rank = fact->rank > 2 ? fact->rank - 2 : 0;
    memcpy(batch->dims, fact->dims, (size_t)batch->rank * sizeof *batch->dims);
}

iv_status iv_matmul_infer(iv_infer *infer, const iv_fact *a, const iv_fact *b, iv_dtype dtype) {
    if (a->rank == 0 || b->rank == 0)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "input %d is a scalar; both need rank 1 or more",
                             a->rank == 0 ? 0 : 1);
    if (a->rank == IV_RANK_UNKNOWN || b->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    int64_t left, right;
    iv_dim a_k = a->dims[a->rank - 1], b_k = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (iv_dim_is_constant(a_k, &left) && iv_dim_is_constant(b_k, &right) && left != right)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "the inner extents differ: %lld on the left, %lld on the right",
                             (long long)left, (long long)right);
    iv_fact a_batch, b_batch;
    batch_fact(a, &a_batch);
    batch_fact(b, &b_batch);
    const iv_fact *batches[] = {&a_batch, &b_batch};
    IV_TRY(iv_infer_broadcast(infer, 0, dtype, 2, batches));
    iv_fact *output = &infer->outputs[0];
    if (a->rank > 1)
        output->dims[output->rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        output->dims[output->rank++] = b->dims[b->rank - 1];
    return IV_OK;
}

#define MATMUL_DTYPES                                                                              \
    (IV_SET_FLOAT | IV_SET(IV_S32) | IV_SET(IV_S64) | IV_SET(IV_U32) | IV_SET(IV_U64))

static iv_status infer_matmul(iv_infer *infer) {
    const iv_fact *a, *b;
    IV_TRY(iv_infer_require(infer, 0, MATMUL_DTYPES, &a));
    IV_TRY(iv_infer_require(infer, 1, IV_SET(a->dtype), &b));
    return iv_matmul_infer(infer, a, b, a->dtype);
}

static iv_status eval_matmul(iv_call *call) {
    const iv_tensor *a = iv_call_input(call, 0), *b = iv_call_input(call, 1);
    iv_matmul_geometry g;
    iv_matmul_geometry_of(a, b, &g);
    iv_tensor *y;
    IV_TRY(iv_call_output(call, 0, &y));
    if (g.batches == 0 || g.m == 0 || g.n == 0)
        return IV_OK;
    int64_t size = (int64_t)iv_dtype_size(a->dtype);
    size_t acc_bytes = (size_t)g.n * iv_dtype_size(iv_contraction_accumulator(a->dtype));
    void *acc = iv_allocate(acc_bytes);
    if (acc == NULL)
        return iv_fail_memory(call->error, acc_bytes);
    for (int64_t batch = 0; batch < g.batches; batch++) {
        int64_t a_offset, b_offset;
        iv_matmul_batch_offsets(&g, batch, &a_offset, &b_offset);
        for (int64_t row = 0; row < g.m; row++) {
            memset(acc, 0, acc_bytes);
            iv_contract_row(a->dtype, g.n, g.k, a->data + (a_offset + row * g.a_row_stride) * size,
                            g.a_k_stride, b->data + b_offset * size, g.b_k_stride,
                            g.b_column_stride, acc);
            iv_contraction_store(a->dtype, g.n, acc, y->data + (batch * g.m + row) * g.n * size, 1);
        }
    }
    iv_free(acc);
    return IV_OK;
}

const iv_op iv_ops_matmul[] = {
    {.name = "MatMul",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_matmul,
     .eval = eval_matmul},
    {0},
};
