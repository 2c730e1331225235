/* Parallel work that needs scratch memory per thread. */
#ifndef SB_CPU_LANES_H
#define SB_CPU_LANES_H

#include "graph/op.h"

/** Computes piece `index`. `scratch` belongs to the call while it runs. */
typedef void sb_lane_task(void *context, int64_t index, void *scratch);

/** Computes the pieces 0 to `count` - 1, each once, on all workers; `scratch_bytes` of the call's
 * scratch memory, aligned to 64, go to each thread. Pieces are taken in ascending order, by
 * whichever thread is free. */
sb_status sb_lanes_run(sb_call *call, int64_t count, size_t scratch_bytes, sb_lane_task *task, void *context);

#endif
