/* Spreading a row loop over whole tensors and all workers. */
#ifndef IV_CPU_SPREAD_H
#define IV_CPU_SPREAD_H

#include "graph/op.h"

/** The order of dimensions in memory of a tensor, outermost first. */
void iv_memory_order(const iv_tensor *tensor, int *order);

/** Makes output 0 of the call in the memory order of the first of the `count` inputs (NULLs are passed over) that has its shape, so
 * that rows are long; row-major if there is none. */
iv_status iv_spread_output(iv_call *call, int count, iv_tensor *const *inputs, iv_tensor **output);

/** Runs `row` with operands `output`, then `inputs` (each broadcast to the output's shape), in parallel. */
void iv_spread_run(iv_call *call, iv_walk_row *row, void *context, iv_tensor *output, int count,
                 iv_tensor *const *inputs);

#endif
