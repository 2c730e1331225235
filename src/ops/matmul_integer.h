/* What the kernels of MatMulInteger and QLinearMatMul share with their definitions. */
#ifndef SB_OPS_MATMUL_INTEGER_H
#define SB_OPS_MATMUL_INTEGER_H

#include "graph/op.h"
#include "ops/rescale_operands.h"

/** A list of one number per row of A is a column: [M] becomes [M, 1]. Other shapes, and NULL, stay.
 * The caller releases it. */
sb_status sb_rows_as_column(sb_tensor *list, const sb_tensor *a, sb_tensor **column, sb_error *error);

/** What each element of QLinearMatMul's output `y` is rescaled with, broadcast to its shape. The
 * caller releases the views, also on failure. */
sb_status sb_rescaling_broadcast(sb_call *call, const sb_tensor *y, sb_tensor *operands[SB_RESCALE_OPERANDS]);

#endif
