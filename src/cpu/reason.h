/* Why a node has no kernel, in words for the user. */
#ifndef SB_CPU_REASON_H
#define SB_CPU_REASON_H

#include "kernel/kernel.h"

/** Says in `why` (SB_WHY_BYTES) that the operator has no row loop, or none from `count` inputs of
 * these dtypes (SB_DTYPE_NONE where omitted) to an output of dtype `result`. */
void sb_reason_loop(char *why, const sb_node *node, int count, const sb_dtype *dtypes, sb_dtype result);
/** Says in `why` what an operator does that no kernel is for. */
void sb_reason_operator(char *why, const sb_op *op);

#endif
