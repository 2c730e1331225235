/* MatMul. Each output element is one chain over k from +0 (ops/contraction.h); f16 and bf16 are
 * rounded once, from the f32 accumulator. MatMulF32 is MatMul of f32, f16 and bf16 without that
 * rounding: what comes behind it (the logits of a language model) needs the bits that it would lose. */
#include "ops/matmul.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/list.h"

void sb_matmul_geometry_of(const sb_tensor *a, const sb_tensor *b, sb_matmul_geometry *geometry) {
    sb_matmul_geometry g = {.batches = 1, .m = 1, .n = 1};
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

void sb_matmul_batch_offsets(const sb_matmul_geometry *geometry, int64_t batch, int64_t *a, int64_t *b) {
    *a = *b = 0;
    for (int d = geometry->batch_rank - 1; d >= 0; d--) {
        int64_t index = batch % geometry->batch_dims[d];
        batch /= geometry->batch_dims[d];
        *a += index * geometry->a_batch_strides[d];
        *b += index * geometry->b_batch_strides[d];
    }
}

bool sb_matmul_merge_batches(sb_matmul_geometry *geometry) {
    sb_matmul_geometry *g = geometry;
    int64_t rows = g->m, stride = g->a_row_stride;
    for (int d = g->batch_rank - 1; d >= 0; d--) {
        if (g->batch_dims[d] == 1)
            continue;
        if (g->b_batch_strides[d] != 0 || (rows != 1 && g->a_batch_strides[d] != stride * rows))
            return false;
        if (rows == 1)
            stride = g->a_batch_strides[d];
        rows *= g->batch_dims[d];
    }
    g->m = rows;
    g->a_row_stride = stride;
    g->batches = 1;
    g->batch_rank = 0;
    return true;
}

/* The fact of what lies before the last two dimensions. */
static void batch_fact(const sb_fact *fact, sb_fact *batch) {
    *batch = (sb_fact){.kind = SB_KIND_TENSOR, .dtype = fact->dtype};
    batch->rank = fact->rank > 2 ? fact->rank - 2 : 0;
    memcpy(batch->dims, fact->dims, (size_t)batch->rank * sizeof *batch->dims);
}

sb_status sb_matmul_infer(sb_infer *infer, const sb_fact *a, const sb_fact *b, sb_dtype dtype) {
    if (a->rank == 0 || b->rank == 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is a scalar; both need rank 1 or more",
                             a->rank == 0 ? 0 : 1);
    if (a->rank == SB_RANK_UNKNOWN || b->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int64_t left, right;
    sb_dim a_k = a->dims[a->rank - 1], b_k = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (sb_dim_is_constant(a_k, &left) && sb_dim_is_constant(b_k, &right) && left != right)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the inner extents differ: %lld on the left, %lld on the right",
                             (long long)left, (long long)right);
    sb_fact a_batch, b_batch;
    batch_fact(a, &a_batch);
    batch_fact(b, &b_batch);
    const sb_fact *batches[] = {&a_batch, &b_batch};
    SB_TRY(sb_infer_broadcast(infer, 0, dtype, 2, batches));
    sb_fact *output = &infer->outputs[0];
    if (a->rank > 1)
        output->dims[output->rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        output->dims[output->rank++] = b->dims[b->rank - 1];
    return SB_OK;
}

#define MATMUL_DTYPES (SB_SET_FLOAT | SB_SET(SB_S32) | SB_SET(SB_S64) | SB_SET(SB_U32) | SB_SET(SB_U64))

static sb_status infer_matmul(sb_infer *infer) {
    const sb_fact *a, *b;
    SB_TRY(sb_infer_require(infer, 0, MATMUL_DTYPES, &a));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(a->dtype), &b));
    return sb_matmul_infer(infer, a, b, a->dtype);
}

static sb_status infer_matmul_f32(sb_infer *infer) {
    const sb_fact *a, *b;
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_F32) | SB_SET(SB_F16) | SB_SET(SB_BF16), &a));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(a->dtype), &b));
    return sb_matmul_infer(infer, a, b, SB_F32);
}

/* MatMul and MatMulF32: the output's type says whether a chain is rounded. */
static sb_status eval_matmul(sb_call *call) {
    const sb_tensor *a = sb_call_input(call, 0), *b = sb_call_input(call, 1);
    sb_matmul_geometry g;
    sb_matmul_geometry_of(a, b, &g);
    sb_tensor *y;
    SB_TRY(sb_call_output(call, 0, &y));
    if (g.batches == 0 || g.m == 0 || g.n == 0)
        return SB_OK;
    int64_t size = (int64_t)sb_dtype_size(a->dtype), row_bytes = g.n * (int64_t)sb_dtype_size(y->dtype);
    size_t acc_bytes = (size_t)g.n * sb_dtype_size(sb_contraction_accumulator(a->dtype));
    void *acc = sb_allocate(acc_bytes);
    if (acc == NULL)
        return sb_fail_memory(call->error, acc_bytes);
    for (int64_t batch = 0; batch < g.batches; batch++) {
        int64_t a_offset, b_offset;
        sb_matmul_batch_offsets(&g, batch, &a_offset, &b_offset);
        for (int64_t row = 0; row < g.m; row++) {
            memset(acc, 0, acc_bytes);
            sb_contract_row(a->dtype, g.n, g.k, a->data + (a_offset + row * g.a_row_stride) * size, g.a_k_stride,
                            b->data + b_offset * size, g.b_k_stride, g.b_column_stride, acc);
            sb_contraction_store(y->dtype, g.n, acc, y->data + (batch * g.m + row) * row_bytes, 1);
        }
    }
    sb_free(acc);
    return SB_OK;
}

const sb_op sb_ops_matmul[] = {
    {.name = "MatMul",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_matmul,
     .eval = eval_matmul},
    {.name = "MatMulF32",
     .domain = "samebit",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_matmul_f32,
     .eval = eval_matmul},
    {0},
};
