/* Worker threads: a parallel loop over [0, count). How the range is cut never changes a result: each index is computed
 * on its own, by whichever thread. */
#ifndef SB_BASE_WORKERS_H
#define SB_BASE_WORKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct sb_workers sb_workers;

/** Makes a pool of `threads` threads, the caller's included; 0 means one per processor that the process may use. The
 * first loop that has work for them starts them; where the system has no memory for that, the caller's thread does all
 * work. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
sb_status sb_workers_create(int threads, sb_workers **workers, sb_error *error);
/** Ends the threads. NULL is allowed. */
void sb_workers_destroy(sb_workers *workers);
/** The number of threads, the caller's included; 1 for NULL. */
int sb_workers_threads(const sb_workers *workers);

/** Computes [begin, end). */
typedef void sb_worker_task(void *context, int64_t begin, int64_t end);

/** Runs `task` over [0, count) in pieces of at least `grain` (at least 1), and returns when all are done. With one
 * thread, with NULL for `workers`, or when count <= grain, it is a plain call. One thread at a time. Tasks must not
 * start loops of their own. */
void sb_workers_run(sb_workers *workers, int64_t count, int64_t grain, sb_worker_task *task, void *context);

#endif
