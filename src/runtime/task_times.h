/* Measuring what a device does in a run, for an iv_task_observer. */
#ifndef IV_RUNTIME_TASK_TIMES_H
#define IV_RUNTIME_TASK_TIMES_H

#include <invar/session.h>

#include "cuda/lane.h"

/* One owner; one thread at a time. */
typedef struct iv_task_times iv_task_times;

/** `lane` must outlive it. */
iv_status iv_task_times_create(iv_lane *lane, iv_task_times **times, iv_error *error);
/** The lane must be idle. NULL is allowed. */
void iv_task_times_destroy(iv_task_times *times);

/* The following are for between iv_cuda_enter and iv_cuda_leave. */

/** Forgets what was measured, and measures every task that the idle lane is given from now on. */
iv_status iv_task_times_begin(iv_task_times *times, iv_error *error);
/** Says what the tasks since the last call, if any, were for; `name` and `op` as in iv_task_span, and they live until the
 * report. */
iv_status iv_task_times_note(iv_task_times *times, const char *name, const char *op, int depth, iv_error *error);
/** Measures no more. */
void iv_task_times_end(iv_task_times *times);
/** When the lane has done everything: gives the observer what was measured. */
iv_status iv_task_times_report(const iv_task_times *times, iv_task_observer *observer, void *context, iv_error *error);

#endif
