/* Worker threads: a parallel loop over [0, count). How the range is cut never changes a result: each index is computed on its
 * own, by whichever thread. */
#ifndef IV_BASE_WORKERS_H
#define IV_BASE_WORKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct iv_workers iv_workers;

/** Starts a pool of `threads` threads, the caller's included; 0 means one per processor that the process may use. */
iv_status iv_workers_create(int threads, iv_workers **workers, iv_error *error);
/** Ends the threads. NULL is allowed. */
void iv_workers_destroy(iv_workers *workers);
/** The number of threads, the caller's included; 1 for NULL. */
int iv_workers_threads(const iv_workers *workers);

/** Computes [begin, end). */
typedef void iv_worker_task(void *context, int64_t begin, int64_t end);

/** Runs `task` over [0, count) in pieces of at least `grain` (at least 1), and returns when all are done. With one thread,
 * with NULL for `workers`, or when count <= grain, it is a plain call. Tasks must not start loops of their own. */
void iv_workers_run(iv_workers *workers, int64_t count, int64_t grain, iv_worker_task *task,
                    void *context);

#endif
