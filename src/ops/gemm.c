/* Gemm: y = (alpha * (A' B')) + (beta * C).
 *
 * The product is one chain per element. Then each step rounds: times alpha unless alpha is 1; C
 * times beta unless beta is 1; the sum, if there is a C. f16 and bf16 do all of this in f32 on the
 * accumulator and round once to be stored. Integers are modulo 2^32 or 2^64, with whole alpha and
 * beta.
 */
#include <math.h>
#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/list.h"
#include "ops/matmul.h"
#include "ops/real.h"

static iv_status prepare_gemm(iv_node *node, iv_error *error) {
    iv_gemm_params *params = node->params;
    int64_t transpose_a, transpose_b;
    IV_TRY(iv_node_float(node, "alpha", 1, &params->alpha, error));
    IV_TRY(iv_node_float(node, "beta", 1, &params->beta, error));
    IV_TRY(iv_node_int(node, "transA", 0, &transpose_a, error));
    IV_TRY(iv_node_int(node, "transB", 0, &transpose_b, error));
    params->transpose_a = transpose_a != 0;
    params->transpose_b = transpose_b != 0;
    return IV_OK;
}

static bool whole(float value) {
    return truncf(value) == value && fabsf(value) < 9007199254740992.0f;
}

static iv_status check_scales(const iv_infer *infer, iv_dtype dtype) {
    const iv_gemm_params *params = infer->node->params;
    if (iv_dtype_is_integer(dtype) && (!whole(params->alpha) || !whole(params->beta)))
        return iv_infer_fail(
            infer, IV_ERROR_UNSUPPORTED,
            "alpha %g and beta %g must be whole numbers for %s: cast to a float dtype",
            (double)params->alpha, (double)params->beta, iv_dtype_name(dtype));
    return IV_OK;
}

/* C must broadcast to [m, n], which is what the output is whatever C says. */
static iv_status check_addend(const iv_infer *infer, const iv_fact *c, const iv_dim *dims) {
    if (c->rank == IV_RANK_UNKNOWN)
        return IV_OK;
    if (c->rank > 2)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input 2 has rank %d; at most 2 fits", c->rank);
    for (int d = 0; d < c->rank; d++) {
        int64_t have, want;
        if (iv_dim_is_constant(c->dims[d], &have) && have != 1 &&
            iv_dim_is_constant(dims[d + 2 - c->rank], &want) && want != have)
            return iv_infer_fail(infer, IV_ERROR_SHAPE,
                                 "input 2 has extent %lld where the product has %lld",
                                 (long long)have, (long long)want);
    }
    return IV_OK;
}

#define GEMM_DTYPES                                                                                \
    (IV_SET_FLOAT | IV_SET(IV_S32) | IV_SET(IV_S64) | IV_SET(IV_U32) | IV_SET(IV_U64))

static iv_status infer_gemm(iv_infer *infer) {
    const iv_gemm_params *params = infer->node->params;
    const iv_fact *a, *b, *c = iv_infer_input(infer, 2);
    IV_TRY(iv_infer_require(infer, 0, GEMM_DTYPES, &a));
    IV_TRY(iv_infer_require(infer, 1, IV_SET(a->dtype), &b));
    if (c != NULL)
        IV_TRY(iv_infer_require(infer, 2, IV_SET(a->dtype), &c));
    IV_TRY(check_scales(infer, a->dtype));
    for (int i = 0; i < 2; i++) {
        int rank = (i == 0 ? a : b)->rank;
        if (rank != 2 && rank != IV_RANK_UNKNOWN)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d has rank %d; Gemm takes matrices",
                                 i, rank);
    }
    iv_dim dims[2];
    dims[0] = a->rank == 2 ? a->dims[params->transpose_a ? 1 : 0] : iv_infer_fresh(infer, 0, 0);
    dims[1] = b->rank == 2 ? b->dims[params->transpose_b ? 0 : 1] : iv_infer_fresh(infer, 0, 1);
    int64_t left, right;
    if (a->rank == 2 && b->rank == 2 &&
        iv_dim_is_constant(a->dims[params->transpose_a ? 0 : 1], &left) &&
        iv_dim_is_constant(b->dims[params->transpose_b ? 1 : 0], &right) && left != right)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "the inner extents differ: %lld on the left, %lld on the right",
                             (long long)left, (long long)right);
    if (c != NULL)
        IV_TRY(check_addend(infer, c, dims));
    iv_fact_set_tensor(&infer->outputs[0], a->dtype, 2, dims);
    return IV_OK;
}

void iv_gemm_finish_f32(const iv_gemm_params *params, int64_t count, float *acc, iv_dtype c_dtype,
                        const void *c, int64_t c_stride) {
    if (params->alpha != 1.0f) {
        for (int64_t j = 0; j < count; j++)
            acc[j] = params->alpha * acc[j];
    }
    if (c == NULL)
        return;
    for (int64_t j = 0; j < count; j++) {
        float addend = iv_real_load_f32(c_dtype, c, j * c_stride);
        acc[j] = acc[j] + (params->beta != 1.0f ? params->beta * addend : addend);
    }
}

static void finish_f64(const iv_gemm_params *params, int64_t count, double *acc, const double *c,
                       int64_t c_stride) {
    double alpha = (double)params->alpha, beta = (double)params->beta;
    for (int64_t j = 0; j < count; j++) {
        double value = alpha != 1.0 ? alpha * acc[j] : acc[j];
        if (c != NULL)
            value = value + (beta != 1.0 ? beta * c[j * c_stride] : c[j * c_stride]);
        acc[j] = value;
    }
}

static void finish_u32(const iv_gemm_params *params, int64_t count, uint32_t *acc,
                       const uint32_t *c, int64_t c_stride) {
    uint32_t alpha = (uint32_t)(int64_t)params->alpha, beta = (uint32_t)(int64_t)params->beta;
    for (int64_t j = 0; j < count; j++)
        acc[j] = alpha * acc[j] + (c != NULL ? beta * c[j * c_stride] : 0);
}

static void finish_u64(const iv_gemm_params *params, int64_t count, uint64_t *acc,
                       const uint64_t *c, int64_t c_stride) {
    uint64_t alpha = (uint64_t)(int64_t)params->alpha, beta = (uint64_t)(int64_t)params->beta;
    for (int64_t j = 0; j < count; j++)
        acc[j] = alpha * acc[j] + (c != NULL ? beta * c[j * c_stride] : 0);
}

static void finish(const iv_gemm_params *params, iv_dtype dtype, int64_t count, void *acc,
                   const void *c, int64_t c_stride) {
    if (dtype == IV_F64)
        finish_f64(params, count, acc, c, c_stride);
    else if (iv_dtype_is_float(dtype))
        iv_gemm_finish_f32(params, count, acc, dtype, c, c_stride);
    else if (iv_dtype_size(dtype) == 4)
        finish_u32(params, count, acc, c, c_stride);
    else
        finish_u64(params, count, acc, c, c_stride);
}

static iv_status eval_gemm(iv_call *call) {
    const iv_gemm_params *params = call->node->params;
    const iv_tensor *a = iv_call_input(call, 0), *b = iv_call_input(call, 1);
    iv_tensor *c = iv_call_input(call, 2), *y, *addend = NULL;
    int a_k = params->transpose_a ? 0 : 1, b_k = params->transpose_b ? 1 : 0;
    IV_TRY(iv_call_output(call, 0, &y));
    int64_t m = y->dims[0], n = y->dims[1], size = (int64_t)iv_dtype_size(a->dtype);
    if (m == 0 || n == 0)
        return IV_OK;
    if (c != NULL)
        IV_TRY(iv_tensor_broadcast(c, 2, y->dims, &addend, call->error));
    size_t acc_bytes = (size_t)n * iv_dtype_size(iv_contraction_accumulator(a->dtype));
    void *acc = iv_allocate(acc_bytes);
    if (acc == NULL) {
        iv_tensor_release(addend);
        return iv_fail_memory(call->error, acc_bytes);
    }
    for (int64_t row = 0; row < m; row++) {
        memset(acc, 0, acc_bytes);
        iv_contract_row(a->dtype, n, a->dims[a_k], a->data + row * a->strides[1 - a_k] * size,
                        a->strides[a_k], b->data, b->strides[b_k], b->strides[1 - b_k], acc);
        const char *c_row = addend != NULL ? addend->data + row * addend->strides[0] * size : NULL;
        finish(params, a->dtype, n, acc, c_row, addend != NULL ? addend->strides[1] : 0);
        iv_contraction_store(a->dtype, n, acc, y->data + row * n * size, 1);
    }
    iv_free(acc);
    iv_tensor_release(addend);
    return IV_OK;
}

/* Operator set 6 has an attribute `broadcast` for C: what it allows is part of numpy's rule. */
const iv_op iv_ops_gemm[] = {
    {.name = "Gemm",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_gemm_params),
     .prepare = prepare_gemm,
     .infer = infer_gemm,
     .eval = eval_gemm},
    {0},
};
