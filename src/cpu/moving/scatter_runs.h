/* Updates of ScatterElements, run by run along the last axis. */
#ifndef SB_CPU_MOVING_SCATTER_RUNS_H
#define SB_CPU_MOVING_SCATTER_RUNS_H

#include "base/isa.h"
#include "ops/scatter_values.h"
#include "tensor/tensor.h"

/** Applies updates, of the extents of `picks` and of the dtype of `output`, to the output in their row-major order; any strides
 * of picks (s32 or s64) and updates, an output without gaps, at least one update. Reductions are for f32, f16 and bf16, no dtype is text.
 * False when an index is outside of its extent: *astray is that index. Ranks are at least 1. */
bool sb_scatter_runs(sb_scatter_how how, int axis, const sb_tensor *picks, const sb_tensor *updates, sb_tensor *output,
                     sb_isa isa, int64_t *astray);

#endif
