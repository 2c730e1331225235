/* Kernels that do what the one right ahead of them would do, too, in a recorded list that a graph is built of: a launch less, and a way
 * through memory. What is computed stays what it is, and everything is still written that the two write, so nothing else in the list
 * has to be looked at. */
#ifndef SB_CUDA_QUEUE_JOIN_H
#define SB_CUDA_QUEUE_JOIN_H

#include "cuda/queue/task.h"

#define SB_CUDA_JOINED_RANGES 64

/* What an sb_cuda_join fills in, where the two can be one: `is_joined`, the task, whose parameters and ranges are here. `ahead` and `own`
 * have no more than SB_CUDA_JOINED_RANGES together. */
struct sb_cuda_joined {
    bool is_joined;
    sb_cuda_kernel_task task;
    unsigned char parameters[SB_CUDA_PARAMETER_BYTES] __attribute__((aligned(64)));
    sb_cuda_range ranges[SB_CUDA_JOINED_RANGES];
};

/** Makes another list of `list`, in which tasks are one that can be: the caller destroys it. Kernels that are wanted for it are loaded, so
 * no stream of this thread is captured. Errors: OUT_OF_MEMORY, DEVICE, UNSUPPORTED. */
sb_status sb_cuda_tasks_join(sb_cuda_device *device, const sb_cuda_task_list *list, sb_cuda_task_list **made,
                             sb_error *error);

/** Whether a range that one of the tasks writes touches one that the other reads or, of two tasks, writes. */
bool sb_cuda_writes_into(const sb_cuda_kernel_task *writer, const sb_cuda_kernel_task *other);

/** Whether the task writes where it reads: then no block might write before all of them have read. */
bool sb_cuda_writes_over_itself(const sb_cuda_kernel_task *task);

/** Gives the joined task the ranges of both. */
void sb_cuda_join_ranges(const sb_cuda_kernel_task *ahead, const sb_cuda_kernel_task *own, sb_cuda_joined *joined);

#endif
