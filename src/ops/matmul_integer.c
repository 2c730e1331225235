/* MatMulInteger and QLinearMatMul: exact sums modulo 2^32 of products of 8-bit integers less their zero points.
 *
 * QLinearMatMul's element is round((f32)sum * ((a_scale * b_scale) / y_scale)) + y_zero_point, saturated; each of the
 * three float operations rounds once. */
#include "ops/matmul_integer.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/list.h"
#include "ops/matmul.h"
#include "ops/quantized.h"
#include "ops/real.h"
#include "tensor/walk.h"

static sb_status infer_matmul_integer(sb_infer *infer) {
    const sb_fact *a, *b, *zero;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_QUANTIZED, &a));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_QUANTIZED, &b));
    if (sb_infer_input(infer, 2) != NULL)
        SB_TRY(sb_infer_require(infer, 2, SB_SET(a->dtype), &zero));
    if (sb_infer_input(infer, 3) != NULL)
        SB_TRY(sb_infer_require(infer, 3, SB_SET(b->dtype), &zero));
    return sb_matmul_infer(infer, a, b, SB_S32);
}

sb_status sb_rows_as_column(sb_tensor *list, const sb_tensor *a, sb_tensor **column, sb_error *error) {
    if (list == NULL || list->rank != 1 || a->rank < 2) {
        *column = sb_tensor_retain(list);
        return SB_OK;
    }
    int64_t dims[] = {list->dims[0], 1};
    return sb_tensor_reshape(list, 2, dims, column, error);
}

/* The operands as s32 with the zero points taken off; `sums` has an element per output element. */
typedef struct integer_product {
    sb_matmul_geometry geometry;
    int32_t *a, *b, *sums;
} integer_product;

static void release_product(integer_product *product) {
    sb_free(product->a);
    sb_free(product->b);
    sb_free(product->sums);
}

static sb_status widen_operands(integer_product *product, sb_tensor *a, sb_tensor *b, sb_tensor *a_zero,
                                sb_tensor *b_zero, sb_error *error) {
    sb_tensor *column;
    SB_TRY(sb_rows_as_column(a_zero, a, &column, error));
    sb_status status = sb_quantized_widen(a, column, product->a, error);
    sb_tensor_release(column);
    SB_TRY(status);
    return sb_quantized_widen(b, b_zero, product->b, error);
}

static void multiply(integer_product *product) {
    const sb_matmul_geometry *g = &product->geometry;
    memset(product->sums, 0, (size_t)(g->batches * g->m * g->n) * sizeof *product->sums);
    for (int64_t batch = 0; batch < g->batches; batch++) {
        int64_t a, b;
        sb_matmul_batch_offsets(g, batch, &a, &b);
        for (int64_t row = 0; row < g->m; row++)
            sb_contract_row(SB_S32, g->n, g->k, product->a + a + row * g->a_row_stride, g->a_k_stride, product->b + b,
                            g->b_k_stride, g->b_column_stride, product->sums + (batch * g->m + row) * g->n);
    }
}

/* The geometry of the dense s32 copies: that of `tensor` with row-major strides. */
static sb_tensor dense_twin(const sb_tensor *tensor) {
    sb_tensor twin = {.dtype = SB_S32, .rank = tensor->rank};
    memcpy(twin.dims, tensor->dims, sizeof twin.dims);
    sb_row_major_strides(twin.rank, twin.dims, twin.strides);
    return twin;
}

static sb_status compute_product(sb_call *call, int a_index, int a_zero, int b_index, int b_zero,
                                 integer_product *product) {
    sb_tensor *a = sb_call_input(call, a_index), *b = sb_call_input(call, b_index);
    sb_tensor a_twin = dense_twin(a), b_twin = dense_twin(b);
    *product = (integer_product){0};
    sb_matmul_geometry_of(&a_twin, &b_twin, &product->geometry);
    const sb_matmul_geometry *g = &product->geometry;
    product->a = sb_allocate_array((size_t)sb_tensor_elements(a), sizeof *product->a);
    product->b = sb_allocate_array((size_t)sb_tensor_elements(b), sizeof *product->b);
    product->sums = sb_allocate_array((size_t)(g->batches * g->m * g->n), sizeof *product->sums);
    sb_status status = SB_OK;
    if (product->a == NULL || product->b == NULL || product->sums == NULL)
        status = sb_fail_memory(call->error, (size_t)sb_tensor_elements(a) * sizeof *product->a);
    if (status == SB_OK) {
        status = widen_operands(product, a, b, sb_call_input(call, a_zero), sb_call_input(call, b_zero), call->error);
        if (status != SB_OK)
            sb_fail_within(call->error, status, "node %s (%s): a zero point: ", call->node->name, call->node->op->name);
    }
    if (status == SB_OK)
        multiply(product);
    else
        release_product(product);
    return status;
}

static sb_status eval_matmul_integer(sb_call *call) {
    sb_tensor *y;
    integer_product product;
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(compute_product(call, 0, 2, 1, 3, &product));
    size_t bytes = (size_t)sb_tensor_elements(y) * sizeof(int32_t);
    if (bytes != 0)
        memcpy(y->data, product.sums, bytes);
    release_product(&product);
    return SB_OK;
}

#define SET_SCALE (SB_SET(SB_F32) | SB_SET(SB_F16) | SB_SET(SB_BF16))

static sb_status infer_qlinear_matmul(sb_infer *infer) {
    const sb_fact *a, *b, *y_zero, *other;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_QUANTIZED, &a));
    SB_TRY(sb_infer_require(infer, 1, SET_SCALE, &other));
    SB_TRY(sb_infer_require(infer, 2, SB_SET(a->dtype), &other));
    SB_TRY(sb_infer_require(infer, 3, SB_SET_QUANTIZED, &b));
    SB_TRY(sb_infer_require(infer, 4, SET_SCALE, &other));
    SB_TRY(sb_infer_require(infer, 5, SB_SET(b->dtype), &other));
    SB_TRY(sb_infer_require(infer, 6, SET_SCALE, &other));
    SB_TRY(sb_infer_require(infer, 7, SB_SET_QUANTIZED, &y_zero));
    return sb_matmul_infer(infer, a, b, y_zero->dtype);
}

sb_status sb_rescaling_broadcast(sb_call *call, const sb_tensor *y, sb_tensor *operands[SB_RESCALE_OPERANDS]) {
    static const int inputs[] = {1, 4, 6, 7};
    for (int i = 0; i < SB_RESCALE_OPERANDS; i++) {
        sb_tensor *operand = sb_call_input(call, inputs[i]), *aligned;
        if (i == SB_RESCALE_A_SCALE)
            SB_TRY(sb_rows_as_column(operand, sb_call_input(call, 0), &aligned, call->error));
        else
            aligned = sb_tensor_retain(operand);
        sb_status status = sb_tensor_broadcast(aligned, y->rank, y->dims, &operands[i], call->error);
        sb_tensor_release(aligned);
        if (status != SB_OK)
            return sb_fail_within(call->error, status, "node %s (%s): input %d: ", call->node->name,
                                  call->node->op->name, inputs[i]);
    }
    return SB_OK;
}

typedef struct rescaling {
    sb_dtype dtype, scale_dtypes[3];
    const int32_t *sums;
    char *out;
} rescaling;

static void rescale_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    rescaling *state = context;
    for (int64_t i = 0; i < count; i++) {
        float scales[3];
        for (int s = 0; s < 3; s++)
            scales[s] = sb_real_load_f32(state->scale_dtypes[s], data[s] + i * steps[s], 0);
        float multiplier = (scales[SB_RESCALE_A_SCALE] * scales[SB_RESCALE_B_SCALE]) / scales[SB_RESCALE_Y_SCALE];
        int32_t zero = sb_quantized_load(state->dtype, data[SB_RESCALE_Y_ZERO] + i * steps[SB_RESCALE_Y_ZERO], 0);
        sb_quantized_store(state->out++, 0, sb_quantized_rescale(state->dtype, *state->sums++, multiplier, zero));
    }
}

static sb_status eval_qlinear_matmul(sb_call *call) {
    sb_tensor *y, *operands[SB_RESCALE_OPERANDS] = {NULL};
    integer_product product;
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(compute_product(call, 0, 2, 3, 5, &product));
    sb_status status = sb_rescaling_broadcast(call, y, operands);
    if (status == SB_OK) {
        rescaling state = {.dtype = y->dtype, .sums = product.sums, .out = y->data};
        for (int s = 0; s < 3; s++)
            state.scale_dtypes[s] = operands[s]->dtype;
        sb_walk walk;
        sb_walk_start_ordered(&walk, y->rank, y->dims, SB_RESCALE_OPERANDS, (const sb_tensor *const *)operands);
        sb_walk_run(&walk, rescale_row, &state);
    }
    for (int i = 0; i < SB_RESCALE_OPERANDS; i++)
        sb_tensor_release(operands[i]);
    release_product(&product);
    return status;
}

const sb_op sb_ops_matmul_integer[] = {
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
