/* Why a node has no kernel, in words for the user. */
#ifndef IV_CPU_REASON_H
#define IV_CPU_REASON_H

#include "runtime/backend.h"

/** Says in `why` (IV_WHY_BYTES) that the operator has no row loop, or none from `count` inputs of
 * these dtypes (IV_DTYPE_NONE where omitted) to an output of dtype `result`. */
void iv_reason_loop(char *why, const iv_node *node, int count, const iv_dtype *dtypes,
                    iv_dtype result);
/** Says in `why` what an operator does that no kernel is for. */
void iv_reason_operator(char *why, const iv_op *op);

#endif
