/* Gemm: y = (alpha * (A' B')) + (beta * C).
 *
 * The product is one chain per element. Then each step rounds: times alpha unless alpha is 1; C times beta unless beta
 * is 1; the sum, if there is a C. f16 and bf16 do all of this in f32 on the accumulator and round once to be stored.
 * Integers are modulo 2^32 or 2^64, with whole alpha and beta. */
#include <math.h>
#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/list.h"
#include "ops/matmul.h"
#include "ops/real.h"

static sb_status prepare_gemm(sb_node *node, sb_error *error) {
    sb_gemm_params *params = node->params;
    int64_t transpose_a, transpose_b;
    SB_TRY(sb_node_float(node, "alpha", 1, &params->alpha, error));
    SB_TRY(sb_node_float(node, "beta", 1, &params->beta, error));
    SB_TRY(sb_node_int(node, "transA", 0, &transpose_a, error));
    SB_TRY(sb_node_int(node, "transB", 0, &transpose_b, error));
    params->transpose_a = transpose_a != 0;
    params->transpose_b = transpose_b != 0;
    return SB_OK;
}

static bool whole(float value) {
    return truncf(value) == value && fabsf(value) < 9007199254740992.0f;
}

static sb_status check_scales(const sb_infer *infer, sb_dtype dtype) {
    const sb_gemm_params *params = infer->node->params;
    if (sb_dtype_is_integer(dtype) && (!whole(params->alpha) || !whole(params->beta)))
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED,
                             "alpha %g and beta %g must be whole numbers for %s: cast to a float dtype",
                             (double)params->alpha, (double)params->beta, sb_dtype_name(dtype));
    return SB_OK;
}

/* C must broadcast to [m, n], which is what the output is whatever C says. */
static sb_status check_addend(const sb_infer *infer, const sb_fact *c, const sb_dim *dims) {
    if (c->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (c->rank > 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 2 has rank %d; at most 2 fits", c->rank);
    for (int d = 0; d < c->rank; d++) {
        int64_t have, want;
        if (sb_dim_is_constant(c->dims[d], &have) && have != 1 && sb_dim_is_constant(dims[d + 2 - c->rank], &want) &&
            want != have)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 2 has extent %lld where the product has %lld",
                                 (long long)have, (long long)want);
    }
    return SB_OK;
}

#define GEMM_DTYPES (SB_SET_FLOAT | SB_SET(SB_S32) | SB_SET(SB_S64) | SB_SET(SB_U32) | SB_SET(SB_U64))

static sb_status infer_gemm(sb_infer *infer) {
    const sb_gemm_params *params = infer->node->params;
    const sb_fact *a, *b, *c = sb_infer_input(infer, 2);
    SB_TRY(sb_infer_require(infer, 0, GEMM_DTYPES, &a));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(a->dtype), &b));
    if (c != NULL)
        SB_TRY(sb_infer_require(infer, 2, SB_SET(a->dtype), &c));
    SB_TRY(check_scales(infer, a->dtype));
    for (int i = 0; i < 2; i++) {
        int rank = (i == 0 ? a : b)->rank;
        if (rank != 2 && rank != SB_RANK_UNKNOWN)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d; Gemm takes matrices", i, rank);
    }
    sb_dim dims[2];
    dims[0] = a->rank == 2 ? a->dims[params->transpose_a ? 1 : 0] : sb_infer_fresh(infer, 0, 0);
    dims[1] = b->rank == 2 ? b->dims[params->transpose_b ? 0 : 1] : sb_infer_fresh(infer, 0, 1);
    int64_t left, right;
    if (a->rank == 2 && b->rank == 2 && sb_dim_is_constant(a->dims[params->transpose_a ? 0 : 1], &left) &&
        sb_dim_is_constant(b->dims[params->transpose_b ? 1 : 0], &right) && left != right)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the inner extents differ: %lld on the left, %lld on the right",
                             (long long)left, (long long)right);
    if (c != NULL)
        SB_TRY(check_addend(infer, c, dims));
    sb_fact_set_tensor(&infer->outputs[0], a->dtype, 2, dims);
    return SB_OK;
}

void sb_gemm_scale_and_add_f32(const sb_gemm_params *params, int64_t count, float *acc, sb_dtype c_dtype, const void *c,
                               int64_t c_stride) {
    if (params->alpha != 1.0f) {
        for (int64_t j = 0; j < count; j++)
            acc[j] = params->alpha * acc[j];
    }
    if (c == NULL)
        return;
    for (int64_t j = 0; j < count; j++) {
        float addend = sb_real_load_f32(c_dtype, c, j * c_stride);
        acc[j] = acc[j] + (params->beta != 1.0f ? params->beta * addend : addend);
    }
}

static void scale_and_add_f64(const sb_gemm_params *params, int64_t count, double *acc, const double *c,
                              int64_t c_stride) {
    double alpha = (double)params->alpha, beta = (double)params->beta;
    for (int64_t j = 0; j < count; j++) {
        double value = alpha != 1.0 ? alpha * acc[j] : acc[j];
        if (c != NULL)
            value = value + (beta != 1.0 ? beta * c[j * c_stride] : c[j * c_stride]);
        acc[j] = value;
    }
}

static void scale_and_add_u32(const sb_gemm_params *params, int64_t count, uint32_t *acc, const uint32_t *c,
                              int64_t c_stride) {
    uint32_t alpha = (uint32_t)(int64_t)params->alpha, beta = (uint32_t)(int64_t)params->beta;
    for (int64_t j = 0; j < count; j++)
        acc[j] = alpha * acc[j] + (c != NULL ? beta * c[j * c_stride] : 0);
}

static void scale_and_add_u64(const sb_gemm_params *params, int64_t count, uint64_t *acc, const uint64_t *c,
                              int64_t c_stride) {
    uint64_t alpha = (uint64_t)(int64_t)params->alpha, beta = (uint64_t)(int64_t)params->beta;
    for (int64_t j = 0; j < count; j++)
        acc[j] = alpha * acc[j] + (c != NULL ? beta * c[j * c_stride] : 0);
}

static void scale_and_add(const sb_gemm_params *params, sb_dtype dtype, int64_t count, void *acc, const void *c,
                          int64_t c_stride) {
    if (dtype == SB_F64)
        scale_and_add_f64(params, count, acc, c, c_stride);
    else if (sb_dtype_is_float(dtype))
        sb_gemm_scale_and_add_f32(params, count, acc, dtype, c, c_stride);
    else if (sb_dtype_size(dtype) == 4)
        scale_and_add_u32(params, count, acc, c, c_stride);
    else
        scale_and_add_u64(params, count, acc, c, c_stride);
}

static sb_status eval_gemm(sb_call *call) {
    const sb_gemm_params *params = call->node->params;
    const sb_tensor *a = sb_call_input(call, 0), *b = sb_call_input(call, 1);
    sb_tensor *c = sb_call_input(call, 2), *y, *addend = NULL;
    int a_k = params->transpose_a ? 0 : 1, b_k = params->transpose_b ? 1 : 0;
    SB_TRY(sb_call_output(call, 0, &y));
    int64_t m = y->dims[0], n = y->dims[1], size = (int64_t)sb_dtype_size(a->dtype);
    if (m == 0 || n == 0)
        return SB_OK;
    if (c != NULL)
        SB_TRY(sb_tensor_broadcast(c, 2, y->dims, &addend, call->error));
    size_t acc_bytes = (size_t)n * sb_dtype_size(sb_contraction_accumulator(a->dtype));
    void *acc = sb_allocate(acc_bytes);
    if (acc == NULL) {
        sb_tensor_release(addend);
        return sb_fail_memory(call->error, acc_bytes);
    }
    for (int64_t row = 0; row < m; row++) {
        memset(acc, 0, acc_bytes);
        sb_contract_row(a->dtype, n, a->dims[a_k], a->data + row * a->strides[1 - a_k] * size, a->strides[a_k], b->data,
                        b->strides[b_k], b->strides[1 - b_k], acc);
        const char *c_row = addend != NULL ? addend->data + row * addend->strides[0] * size : NULL;
        scale_and_add(params, a->dtype, n, acc, c_row, addend != NULL ? addend->strides[1] : 0);
        sb_contraction_store(a->dtype, n, acc, y->data + row * n * size, 1);
    }
    sb_free(acc);
    sb_tensor_release(addend);
    return SB_OK;
}

/* Operator set 6 has an attribute `broadcast` for C: what it allows is part of numpy's rule. */
const sb_op sb_ops_gemm[] = {
    {.name = "Gemm",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_gemm_params),
     .prepare = prepare_gemm,
     .infer = infer_gemm,
     .eval = eval_gemm},
    {0},
};
