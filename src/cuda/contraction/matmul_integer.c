/* MatMulInteger and QLinearMatMul. */
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/windows/window_parameters.h"
#include "ops/matmul.h"
#include "ops/matmul_integer.h"

/* Operand and zero point of one side, the latter broadcast to the former. */
static sb_status broadcast_zero(sb_call *call, sb_tensor *zero, const sb_tensor *operand, bool left,
                                sb_tensor **broadcast) {
    sb_tensor *aligned;
    *broadcast = NULL;
    if (zero == NULL)
        return SB_OK;
    if (left)
        SB_TRY(sb_rows_as_column(zero, operand, &aligned, call->error));
    else
        aligned = sb_tensor_retain(zero);
    sb_status status = sb_tensor_broadcast(aligned, operand->rank, operand->dims, broadcast, call->error);
    sb_tensor_release(aligned);
    return status == SB_OK ? SB_OK
                           : sb_fail_within(call->error, status, "node %s (%s): a zero point: ", call->node->name,
                                            call->node->op->name);
}

/* The strides of both zero points come from the product of them, as those of the operands do. */
static void fill_product(sb_cuda_integer_matmul *p, const sb_tensor *a, const sb_tensor *b, const sb_tensor *a_zero,
                         const sb_tensor *b_zero) {
    sb_matmul_geometry g, zeros;
    sb_matmul_geometry_of(a, b, &g);
    sb_matmul_geometry_of(a_zero != NULL ? a_zero : a, b_zero != NULL ? b_zero : b, &zeros);
    p->m = g.m;
    p->n = g.n;
    p->k = g.k;
    p->batch_rank = g.batch_rank;
    memcpy(p->batch_dims, g.batch_dims, sizeof p->batch_dims);
    p->a = (sb_cuda_integer_operand){.dtype = a->dtype,
                                     .data = a->data,
                                     .zero = a_zero != NULL ? a_zero->data : NULL,
                                     .row_stride = g.a_row_stride,
                                     .k_stride = g.a_k_stride,
                                     .zero_row_stride = zeros.a_row_stride,
                                     .zero_k_stride = zeros.a_k_stride};
    p->b = (sb_cuda_integer_operand){.dtype = b->dtype,
                                     .data = b->data,
                                     .zero = b_zero != NULL ? b_zero->data : NULL,
                                     .row_stride = g.b_column_stride,
                                     .k_stride = g.b_k_stride,
                                     .zero_row_stride = zeros.b_column_stride,
                                     .zero_k_stride = zeros.b_k_stride};
    memcpy(p->a.batch_strides, g.a_batch_strides, sizeof p->a.batch_strides);
    memcpy(p->b.batch_strides, g.b_batch_strides, sizeof p->b.batch_strides);
    memcpy(p->a.zero_batch_strides, zeros.a_batch_strides, sizeof p->a.zero_batch_strides);
    memcpy(p->b.zero_batch_strides, zeros.b_batch_strides, sizeof p->b.zero_batch_strides);
}

static sb_status launch_product(sb_call *call, sb_cuda_integer_matmul *parameters, const char *kernel, int a_index,
                                int a_zero, int b_index, int b_zero, const sb_tensor *y) {
    sb_tensor *a = sb_call_input(call, a_index), *b = sb_call_input(call, b_index);
    sb_tensor *left = NULL, *right = NULL;
    sb_status status = broadcast_zero(call, sb_call_input(call, a_zero), a, true, &left);
    if (status == SB_OK)
        status = broadcast_zero(call, sb_call_input(call, b_zero), b, false, &right);
    if (status == SB_OK) {
        fill_product(parameters, a, b, left, right);
        parameters->elements = sb_tensor_elements(y);
        parameters->y = y->data;
        sb_cuda_work work = {.parameters = parameters, .parameter_bytes = sizeof *parameters};
        sb_cuda_work_writes(&work, y);
        for (int i = 0; i < call->input_count; i++)
            sb_cuda_work_reads(&work, sb_call_input(call, i));
        status = sb_cuda_launch_each(call, &work, "windows", kernel, NULL, parameters->elements);
    }
    sb_tensor_release(left);
    sb_tensor_release(right);
    return status;
}

static sb_status launch_matmul_integer(sb_call *call) {
    sb_cuda_integer_matmul parameters = {0};
    sb_tensor *y;
    SB_TRY(sb_call_output(call, 0, &y));
    return launch_product(call, &parameters, "sb_cuda_matmul_integer", 0, 2, 1, 3, y);
}

static sb_status launch_qlinear_matmul(sb_call *call) {
    sb_cuda_integer_matmul parameters = {0};
    sb_tensor *y, *operands[SB_RESCALE_OPERANDS] = {NULL};
    SB_TRY(sb_call_output(call, 0, &y));
    sb_status status = sb_rescaling_broadcast(call, y, operands);
    if (status == SB_OK) {
        parameters.rank = y->rank;
        parameters.y_dtype = y->dtype;
        memcpy(parameters.dims, y->dims, sizeof parameters.dims);
        for (int i = 0; i < SB_RESCALE_OPERANDS; i++) {
            parameters.rescale[i] = operands[i]->data;
            memcpy(parameters.rescale_strides[i], operands[i]->strides, sizeof parameters.rescale_strides[i]);
            if (i != SB_RESCALE_Y_ZERO)
                parameters.scale_dtypes[i] = operands[i]->dtype;
        }
        status = launch_product(call, &parameters, "sb_cuda_qlinear_matmul", 0, 2, 3, 5, y);
    }
    for (int i = 0; i < SB_RESCALE_OPERANDS; i++)
        sb_tensor_release(operands[i]);
    return status;
}

const sb_kernel sb_cuda_kernels_matmul_integer[] = {
    {.op = "MatMulInteger",
     .name = "matmul_integer",
     .supports = sb_cuda_supports_all,
     .launch = launch_matmul_integer},
    {.op = "QLinearMatMul",
     .name = "qlinear_matmul",
     .supports = sb_cuda_supports_all,
     .launch = launch_qlinear_matmul},
    {0},
};
