/* What the kernels of MatMulInteger and QLinearMatMul share with their definitions. */
#ifndef IV_OPS_MATMUL_INTEGER_H
#define IV_OPS_MATMUL_INTEGER_H

#include "graph/op.h"
#include "ops/rescale_operands.h"

/** A list of one number per row of A is a column: [M] becomes [M, 1]. Other shapes, and NULL, stay.
 * The caller releases it. */
iv_status iv_rows_as_column(iv_tensor *list, const iv_tensor *a, iv_tensor **column,
                            iv_error *error);

/** What each element of QLinearMatMul's output `y` is rescaled with, broadcast to its shape. The
 * caller releases the views, also on failure. */
iv_status iv_rescaling_broadcast(iv_call *call, const iv_tensor *y,
                                 iv_tensor *operands[IV_RESCALE_OPERANDS]);

#endif
