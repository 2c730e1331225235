/* Spreading a row loop over whole tensors and all workers. */
#ifndef SB_CPU_SPREAD_H
#define SB_CPU_SPREAD_H

#include "graph/op.h"

/** The order of dimensions in memory of a tensor, outermost first. */
void sb_memory_order(const sb_tensor *tensor, int *order);

/** Whether the elements of `rank` dimensions, numbered row-major, lie a constant step apart; sets that step (0 for one element, and
 * where all are the same). */
bool sb_even_step(int rank, const int64_t *dims, const int64_t *strides, int64_t *step);

/** Makes output 0 of the call in the memory order of the first of the `count` inputs (NULLs are passed over) that has
 * its shape, so that rows are long; row-major if there is none. */
sb_status sb_spread_output(sb_call *call, int count, sb_tensor *const *inputs, sb_tensor **output);

/** Runs `row` with operands `output`, then `inputs` (each broadcast to the output's shape), in parallel. */
void sb_spread_run(sb_call *call, sb_walk_row *row, void *context, sb_tensor *output, int count,
                   sb_tensor *const *inputs);

#endif
