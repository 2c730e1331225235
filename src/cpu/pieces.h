/* Parallel work that needs a workspace per thread. */
#ifndef SB_CPU_PIECES_H
#define SB_CPU_PIECES_H

#include "graph/op.h"

/** Computes piece `index`. `workspace` belongs to the call while it runs. */
typedef void sb_piece_task(void *context, int64_t index, void *workspace);

/** Computes the pieces 0 to `count` - 1, each once, on all workers; `workspace_bytes` of the call's
 * workspace, aligned to 64, go to each thread. Pieces are taken in ascending order, by
 * whichever thread is free. */
sb_status sb_pieces_run(sb_call *call, int64_t count, size_t workspace_bytes, sb_piece_task *task, void *context);

#endif
