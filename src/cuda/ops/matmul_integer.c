/* MatMulInteger and QLinearMatMul. */
#include <string.h>

#include "cuda/kernels/window_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "ops/matmul.h"
#include "ops/matmul_integer.h"

/* Operand and zero point of one side, the latter broadcast to the former. */
static iv_status broadcast_zero(iv_call *call, iv_tensor *zero, const iv_tensor *operand, bool left,
                                iv_tensor **broadcast) {
    iv_tensor *aligned;
    *broadcast = NULL;
    if (zero == NULL)
        return IV_OK;
    if (left)
        IV_TRY(iv_rows_as_column(zero, operand, &aligned, call->error));
    else
        aligned = iv_tensor_retain(zero);
    iv_status status =
        iv_tensor_broadcast(aligned, operand->rank, operand->dims, broadcast, call->error);
    iv_tensor_release(aligned);
    return status == IV_OK ? IV_OK
                           : iv_fail_within(call->error, status,
                                            "node %s (%s): a zero point: ", call->node->name,
                                            call->node->op->name);
}

/* The strides of both zero points come from the product of them, as those of the operands do. */
static void fill_product(iv_cuda_integer_matmul *p, const iv_tensor *a, const iv_tensor *b,
                         const iv_tensor *a_zero, const iv_tensor *b_zero) {
    iv_matmul_geometry g, zeros;
    iv_matmul_geometry_of(a, b, &g);
    iv_matmul_geometry_of(a_zero != NULL ? a_zero : a, b_zero != NULL ? b_zero : b, &zeros);
    p->m = g.m;
    p->n = g.n;
    p->k = g.k;
    p->batch_rank = g.batch_rank;
    memcpy(p->batch_dims, g.batch_dims, sizeof p->batch_dims);
    p->a = (iv_cuda_integer_operand){.dtype = a->dtype,
                                     .data = a->data,
                                     .zero = a_zero != NULL ? a_zero->data : NULL,
                                     .row_stride = g.a_row_stride,
                                     .k_stride = g.a_k_stride,
                                     .zero_row_stride = zeros.a_row_stride,
                                     .zero_k_stride = zeros.a_k_stride};
    p->b = (iv_cuda_integer_operand){.dtype = b->dtype,
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

static iv_status launch_product(iv_call *call, iv_cuda_integer_matmul *parameters,
                                const char *kernel, int a_index, int a_zero, int b_index,
                                int b_zero, const iv_tensor *y) {
    iv_tensor *a = iv_call_input(call, a_index), *b = iv_call_input(call, b_index);
    iv_tensor *left = NULL, *right = NULL;
    iv_status status = broadcast_zero(call, iv_call_input(call, a_zero), a, true, &left);
    if (status == IV_OK)
        status = broadcast_zero(call, iv_call_input(call, b_zero), b, false, &right);
    if (status == IV_OK) {
        fill_product(parameters, a, b, left, right);
        parameters->elements = iv_tensor_elements(y);
        parameters->y = y->data;
        iv_cuda_work work = {.parameters = parameters, .parameter_bytes = sizeof *parameters};
        iv_cuda_work_writes(&work, y);
        for (int i = 0; i < call->input_count; i++)
            iv_cuda_work_reads(&work, iv_call_input(call, i));
        status = iv_cuda_launch_each(call, &work, "windows", kernel, NULL, parameters->elements);
    }
    iv_tensor_release(left);
    iv_tensor_release(right);
    return status;
}

static iv_status launch_matmul_integer(iv_call *call) {
    iv_cuda_integer_matmul parameters = {0};
    iv_tensor *y;
    IV_TRY(iv_call_output(call, 0, &y));
    return launch_product(call, &parameters, "iv_cuda_matmul_integer", 0, 2, 1, 3, y);
}

static iv_status launch_qlinear_matmul(iv_call *call) {
    iv_cuda_integer_matmul parameters = {0};
    iv_tensor *y, *operands[IV_RESCALE_OPERANDS] = {NULL};
    IV_TRY(iv_call_output(call, 0, &y));
    iv_status status = iv_rescaling_broadcast(call, y, operands);
    if (status == IV_OK) {
        parameters.rank = y->rank;
        parameters.y_dtype = y->dtype;
        memcpy(parameters.dims, y->dims, sizeof parameters.dims);
        for (int i = 0; i < IV_RESCALE_OPERANDS; i++) {
            parameters.rescale[i] = operands[i]->data;
            memcpy(parameters.rescale_strides[i], operands[i]->strides,
                   sizeof parameters.rescale_strides[i]);
            if (i != IV_RESCALE_Y_ZERO)
                parameters.scale_dtypes[i] = operands[i]->dtype;
        }
        status = launch_product(call, &parameters, "iv_cuda_qlinear_matmul", 0, 2, 3, 5, y);
    }
    for (int i = 0; i < IV_RESCALE_OPERANDS; i++)
        iv_tensor_release(operands[i]);
    return status;
}

const iv_kernel iv_cuda_kernels_matmul_integer[] = {
    {.op = "MatMulInteger",
     .name = "matmul_integer",
     .supports = iv_cuda_supports_all,
     .launch = launch_matmul_integer},
    {.op = "QLinearMatMul",
     .name = "qlinear_matmul",
     .supports = iv_cuda_supports_all,
     .launch = launch_qlinear_matmul},
    {0},
};
