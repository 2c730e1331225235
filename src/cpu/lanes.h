/* Parallel work that needs scratch memory per thread. */
#ifndef IV_CPU_LANES_H
#define IV_CPU_LANES_H

#include "graph/op.h"

/** Computes piece `index`. `scratch` belongs to the call while it runs. */
typedef void iv_lane_task(void *context, int64_t index, void *scratch);

/** Computes the pieces 0 to `count` - 1, each once, on all workers; `scratch_bytes` of the call's
 * scratch memory, aligned to 64, go to each thread. Pieces are taken in ascending order, by
 * whichever thread is free. */
iv_status iv_lanes_run(iv_call *call, int64_t count, size_t scratch_bytes, iv_lane_task *task,
                       void *context);

#endif
