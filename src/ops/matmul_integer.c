/* MatMulInteger and QLinearMatMul: exact sums modulo 2^32 of products of 8-bit integers less their
 * zero points.
 *
 * QLinearMatMul's element is round((f32)sum * ((a_scale * b_scale) / y_scale)) + y_zero_point,
 * saturated; each of the three float operations rounds once. */
#include "ops/matmul_integer.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/list.h"
#include "ops/matmul.h"
#include "ops/quantized.h"
#include "ops/real.h"
#include "tensor/walk.h"

static iv_status infer_matmul_integer(iv_infer *infer) {
    const iv_fact *a, *b, *zero;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_QUANTIZED, &a));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_QUANTIZED, &b));
    if (iv_infer_input(infer, 2) != NULL)
        IV_TRY(iv_infer_require(infer, 2, IV_SET(a->dtype), &zero));
    if (iv_infer_input(infer, 3) != NULL)
        IV_TRY(iv_infer_require(infer, 3, IV_SET(b->dtype), &zero));
    return iv_matmul_infer(infer, a, b, IV_S32);
}

iv_status iv_rows_as_column(iv_tensor *list, const iv_tensor *a, iv_tensor **column,
                            iv_error *error) {
    if (list == NULL || list->rank != 1 || a->rank < 2) {
        *column = iv_tensor_retain(list);
        return IV_OK;
    }
    int64_t dims[] = {list->dims[0], 1};
    return iv_tensor_reshape(list, 2, dims, column, error);
}

/* The operands as s32 with the zero points taken off; `sums` has an element per output element. */
typedef struct integer_product {
    iv_matmul_geometry geometry;
    int32_t *a, *b, *sums;
} integer_product;

static void release_product(integer_product *product) {
    iv_free(product->a);
    iv_free(product->b);
    iv_free(product->sums);
}

static iv_status widen_operands(integer_product *product, iv_tensor *a, iv_tensor *b,
                                iv_tensor *a_zero, iv_tensor *b_zero, iv_error *error) {
    iv_tensor *column;
    IV_TRY(iv_rows_as_column(a_zero, a, &column, error));
    iv_status status = iv_quantized_widen(a, column, product->a, error);
    iv_tensor_release(column);
    IV_TRY(status);
    return iv_quantized_widen(b, b_zero, product->b, error);
}

static void multiply(integer_product *product) {
    const iv_matmul_geometry *g = &product->geometry;
    memset(product->sums, 0, (size_t)(g->batches * g->m * g->n) * sizeof *product->sums);
    for (int64_t batch = 0; batch < g->batches; batch++) {
        int64_t a, b;
        iv_matmul_batch_offsets(g, batch, &a, &b);
        for (int64_t row = 0; row < g->m; row++)
            iv_contract_row(IV_S32, g->n, g->k, product->a + a + row * g->a_row_stride,
                            g->a_k_stride, product->b + b, g->b_k_stride, g->b_column_stride,
                            product->sums + (batch * g->m + row) * g->n);
    }
}

/* The geometry of the dense s32 copies: that of `tensor` with row-major strides. */
static iv_tensor dense_twin(const iv_tensor *tensor) {
    iv_tensor twin = {.dtype = IV_S32, .rank = tensor->rank};
    memcpy(twin.dims, tensor->dims, sizeof twin.dims);
    iv_row_major_strides(twin.rank, twin.dims, twin.strides);
    return twin;
}

static iv_status compute_product(iv_call *call, int a_index, int a_zero, int b_index, int b_zero,
                                 integer_product *product) {
    iv_tensor *a = iv_call_input(call, a_index), *b = iv_call_input(call, b_index);
    iv_tensor a_twin = dense_twin(a), b_twin = dense_twin(b);
    *product = (integer_product){0};
    iv_matmul_geometry_of(&a_twin, &b_twin, &product->geometry);
    const iv_matmul_geometry *g = &product->geometry;
    product->a = iv_allocate_array((size_t)iv_tensor_elements(a), sizeof *product->a);
    product->b = iv_allocate_array((size_t)iv_tensor_elements(b), sizeof *product->b);
    product->sums = iv_allocate_array((size_t)(g->batches * g->m * g->n), sizeof *product->sums);
    iv_status status = IV_OK;
    if (product->a == NULL || product->b == NULL || product->sums == NULL)
        status = iv_fail_memory(call->error, (size_t)iv_tensor_elements(a) * sizeof *product->a);
    if (status == IV_OK) {
        status = widen_operands(product, a, b, iv_call_input(call, a_zero),
                                iv_call_input(call, b_zero), call->error);
        if (status != IV_OK)
            iv_fail_within(call->error, status, "node %s (%s): a zero point: ", call->node->name,
                           call->node->op->name);
    }
    if (status == IV_OK)
        multiply(product);
    else
        release_product(product);
    return status;
}

static iv_status eval_matmul_integer(iv_call *call) {
    iv_tensor *y;
    integer_product product;
    IV_TRY(iv_call_output(call, 0, &y));
    IV_TRY(compute_product(call, 0, 2, 1, 3, &product));
    size_t bytes = (size_t)iv_tensor_elements(y) * sizeof(int32_t);
    if (bytes != 0)
        memcpy(y->data, product.sums, bytes);
    release_product(&product);
    return IV_OK;
}

#define SET_SCALE (IV_SET(IV_F32) | IV_SET(IV_F16) | IV_SET(IV_BF16))

static iv_status infer_qlinear_matmul(iv_infer *infer) {
    const iv_fact *a, *b, *y_zero, *other;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_QUANTIZED, &a));
    IV_TRY(iv_infer_require(infer, 1, SET_SCALE, &other));
    IV_TRY(iv_infer_require(infer, 2, IV_SET(a->dtype), &other));
    IV_TRY(iv_infer_require(infer, 3, IV_SET_QUANTIZED, &b));
    IV_TRY(iv_infer_require(infer, 4, SET_SCALE, &other));
    IV_TRY(iv_infer_require(infer, 5, IV_SET(b->dtype), &other));
    IV_TRY(iv_infer_require(infer, 6, SET_SCALE, &other));
    IV_TRY(iv_infer_require(infer, 7, IV_SET_QUANTIZED, &y_zero));
    return iv_matmul_infer(infer, a, b, y_zero->dtype);
}

iv_status iv_rescaling_broadcast(iv_call *call, const iv_tensor *y,
                                 iv_tensor *operands[IV_RESCALE_OPERANDS]) {
    static const int inputs[] = {1, 4, 6, 7};
    for (int i = 0; i < IV_RESCALE_OPERANDS; i++) {
        iv_tensor *operand = iv_call_input(call, inputs[i]), *aligned;
        if (i == IV_RESCALE_A_SCALE)
            IV_TRY(iv_rows_as_column(operand, iv_call_input(call, 0), &aligned, call->error));
        else
            aligned = iv_tensor_retain(operand);
        iv_status status =
            iv_tensor_broadcast(aligned, y->rank, y->dims, &operands[i], call->error);
        iv_tensor_release(aligned);
        if (status != IV_OK)
            return iv_fail_within(call->error, status, "node %s (%s): input %d: ", call->node->name,
                                  call->node->op->name, inputs[i]);
    }
    return IV_OK;
}

typedef struct rescaling {
    iv_dtype dtype, scale_dtypes[3];
    const int32_t *sums;
    char *out;
} rescaling;

static void rescale_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    rescaling *state = context;
    for (int64_t i = 0; i < count; i++) {
        float scales[3];
        for (int s = 0; s < 3; s++)
            scales[s] = iv_real_load_f32(state->scale_dtypes[s], data[s] + i * steps[s], 0);
        float multiplier =
            (scales[IV_RESCALE_A_SCALE] * scales[IV_RESCALE_B_SCALE]) / scales[IV_RESCALE_Y_SCALE];
        int32_t zero = iv_quantized_load(state->dtype,
                                         data[IV_RESCALE_Y_ZERO] + i * steps[IV_RESCALE_Y_ZERO], 0);
        iv_quantized_store(state->out++, 0,
                           iv_quantized_rescale(state->dtype, *state->sums++, multiplier, zero));
    }
}

static iv_status eval_qlinear_matmul(iv_call *call) {
    iv_tensor *y, *operands[IV_RESCALE_OPERANDS] = {NULL};
    integer_product product;
    IV_TRY(iv_call_output(call, 0, &y));
    IV_TRY(compute_product(call, 0, 2, 3, 5, &product));
    iv_status status = iv_rescaling_broadcast(call, y, operands);
    if (status == IV_OK) {
        rescaling state = {.dtype = y->dtype, .sums = product.sums, .out = y->data};
        for (int s = 0; s < 3; s++)
            state.scale_dtypes[s] = operands[s]->dtype;
        iv_walk walk;
        iv_walk_start_ordered(&walk, y->rank, y->dims, IV_RESCALE_OPERANDS,
                              (const iv_tensor *const *)operands);
        iv_walk_run(&walk, rescale_row, &state);
    }
    for (int i = 0; i < IV_RESCALE_OPERANDS; i++)
        iv_tensor_release(operands[i]);
    release_product(&product);
    return status;
}

const iv_op iv_ops_matmul_integer[] = {
    {.name = "MatMulInteger",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_matmul_integer,
     .eval = eval_matmul_integer},
    {.name = "QLinearMatMul",
     .domain = "",
     .least_inputs = 8,
     .most_inputs = 8,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_qlinear_matmul,
     .eval = eval_qlinear_matmul},
    {0},
};
