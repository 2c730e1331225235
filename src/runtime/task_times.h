/* Measuring what a device does in a run, for an sb_task_observer. */
#ifndef SB_RUNTIME_TASK_TIMES_H
#define SB_RUNTIME_TASK_TIMES_H

#include <samebit/session.h>

#include "kernel/device.h"

/* One owner; one thread at a time. */
typedef struct sb_task_times sb_task_times;

/** `queue` must outlive it. */
sb_status sb_task_times_create(sb_queue *queue, sb_task_times **times, sb_error *error);
/** The queue must be idle. NULL is allowed. */
void sb_task_times_destroy(sb_task_times *times);

/* The following are for between sb_queue_enter and sb_queue_leave. */

/** Forgets what was measured, and measures every task that the idle queue is given from now on. */
sb_status sb_task_times_begin(sb_task_times *times, sb_error *error);
/** Says what the tasks since the last call, if any, were for; `name` and `op` as in sb_task_span,
 * and they live until the report. */
sb_status sb_task_times_note(sb_task_times *times, const char *name, const char *op, int depth, sb_error *error);
/** Measures no more. */
void sb_task_times_end(sb_task_times *times);
/** When the queue has done everything: gives the observer what was measured. */
sb_status sb_task_times_report(const sb_task_times *times, sb_task_observer *observer, void *context, sb_error *error);

#endif
