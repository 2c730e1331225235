/* Series: tasks of a recorded list that follow on each other, carried out by one launch (series.cu). */
#ifndef SB_CUDA_SERIES_SERIES_H
#define SB_CUDA_SERIES_SERIES_H

#include "cuda/queue/task.h"

/* Whether tasks of a recording are joined to series; the bits are the same. */
typedef enum sb_cuda_series_choice {
    SB_CUDA_SERIES_QUICKEST,
    SB_CUDA_SERIES_OFF,
    SB_CUDA_SERIES_ON, /* wherever two tasks can be joined */
} sb_cuda_series_choice;

/** Has recordings of a device be made so from now on: "quickest", "off" or "on". Any thread may call it. Errors: INVALID_ARGUMENT for
 * another name. */
sb_status sb_cuda_series_choose_by_name(sb_cuda_device *device, const char *name, sb_error *error);
/** Whether a recording's tasks are to be joined. */
bool sb_cuda_series_wanted(sb_cuda_device *device);

/* A list in which series have taken the place of their tasks, and the memory of the device that they read. */
typedef struct sb_cuda_joined {
    sb_cuda_task_list *tasks;
    sb_cuda_memory *memory;
} sb_cuda_joined;

/** Makes a list of the tasks of `list` that does the same, with series where at least two tasks follow on each other that can be part of
 * one; joined->tasks is NULL where there are none. The caller destroys it. Waits for a copy to the device, which it enters by itself;
 * not while this thread captures a stream. One launch at a time. Errors: OUT_OF_MEMORY, DEVICE. */
sb_status sb_cuda_series_join(sb_cuda_device *device, const sb_cuda_task_list *list, sb_cuda_joined *joined,
                              sb_error *error);
/** What was launched must have been done. */
void sb_cuda_joined_destroy(sb_cuda_joined *joined);

#endif
