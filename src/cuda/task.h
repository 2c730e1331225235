/* Tasks: what a device is told to do. Kernels, copies and fills all go through one function,
 * iv_cuda_launch, which carries a task out, records it, counts it and measures it. Nothing else
 * gives work to a stream, so a recorded list is complete by construction. */
#ifndef IV_CUDA_TASK_H
#define IV_CUDA_TASK_H

#include "cuda/kernel.h"
#include "cuda/stream.h"

typedef enum iv_cuda_task_kind {
    IV_CUDA_KERNEL,
    IV_CUDA_COPY_TO_DEVICE, /* from pinned host memory */
    IV_CUDA_COPY_TO_HOST,   /* to pinned host memory */
    IV_CUDA_COPY_ON_DEVICE,
    IV_CUDA_FILL /* every byte with one value */
} iv_cuda_task_kind;

/* Bytes that a task reads or writes. Addresses of the device and of pinned host memory come from
 * one space, so a range says which it is by itself. A strided view counts from its first to its
 * last byte. */
typedef struct iv_cuda_range {
    CUdeviceptr address;
    size_t bytes; /* 0 for a range that does not matter */
    bool written; /* else only read */
} iv_cuda_range;

typedef struct iv_cuda_kernel_task {
    const iv_cuda_kernel *kernel;
    unsigned grid[3], block[3]; /* each at least 1 */
    unsigned shared_bytes;      /* dynamic */
    const void *parameters;     /* kernel->parameter_bytes bytes, copied by the launch */
    int range_count;            /* every range of memory that the kernel touches */
    const iv_cuda_range *ranges;
} iv_cuda_kernel_task;

/* Addresses of the device, or of pinned host memory as the kind says. */
typedef struct iv_cuda_copy_task {
    CUdeviceptr to, from;
    size_t bytes; /* 0 does nothing, and is not a task */
} iv_cuda_copy_task;

typedef struct iv_cuda_fill_task {
    CUdeviceptr to;
    size_t bytes; /* 0 does nothing, and is not a task */
    unsigned char value;
} iv_cuda_fill_task;

typedef struct iv_cuda_task {
    iv_cuda_task_kind kind;
    int step; /* of the plan, for traces and messages; -1 for none */
    union {
        iv_cuda_kernel_task kernel;
        iv_cuda_copy_task copy;
        iv_cuda_fill_task fill;
    };
} iv_cuda_task;

typedef struct iv_cuda_task_list iv_cuda_task_list;
typedef struct iv_cuda_trace iv_cuda_trace;

/* Where tasks go. A plain struct of its user's; one thread at a time. */
typedef struct iv_cuda_queue {
    iv_cuda_stream *stream;
    iv_cuda_task_list *record; /* gets a copy of every task; NULL for none */
    iv_cuda_trace *trace; /* measures every task; NULL for none, and while the stream is captured */
    bool dependent_launch; /* kernels are launched before those ahead of them have ended: see kernels/kernel.cuh. Devices before
                              9.0 take no notice */
} iv_cuda_queue;

/** Gives a task to the queue's stream, between iv_cuda_enter and iv_cuda_leave. Returns at once;
 * what the task does wrong is reported by whatever waits for the stream. A task that fails here is
 * not recorded. Errors: DEVICE; OUT_OF_MEMORY; INTERNAL when the task is not well formed. */
iv_status iv_cuda_launch(const iv_cuda_queue *queue, const iv_cuda_task *task, iv_error *error);

/** The ranges of a task of any kind: points *ranges at the kernel's own, or fills `room`. Returns
 * how many. */
int iv_cuda_task_ranges(const iv_cuda_task *task, iv_cuda_range room[2],
                        const iv_cuda_range **ranges);

/** Whether two tasks touch a byte in common that at least one of them writes, so that their order
 * matters. */
bool iv_cuda_tasks_conflict(const iv_cuda_task *one, const iv_cuda_task *other);

/** Adds the task to the counters. */
void iv_cuda_task_count(const iv_cuda_task *task, iv_cuda_counters *counters);

/** "copy to device", or the kernel's name. Never NULL. */
const char *iv_cuda_task_name(const iv_cuda_task *task);

/* ---- recorded tasks ---- */

/** An empty list. The caller destroys it. */
iv_status iv_cuda_task_list_create(iv_cuda_task_list **list, iv_error *error);
/** NULL is allowed. */
void iv_cuda_task_list_destroy(iv_cuda_task_list *list);
/** Forgets all tasks and keeps the memory. */
void iv_cuda_task_list_clear(iv_cuda_task_list *list);
int iv_cuda_task_list_count(const iv_cuda_task_list *list);
/** Task `index`, with its parameters and ranges in the list's own memory: valid until the list
 * changes. */
iv_cuda_task iv_cuda_task_list_at(const iv_cuda_task_list *list, int index);
/** Appends a copy. On failure the list is unchanged. */
iv_status iv_cuda_task_list_append(iv_cuda_task_list *list, const iv_cuda_task *task,
                                   iv_error *error);
/** Takes back the task appended last. */
void iv_cuda_task_list_drop_last(iv_cuda_task_list *list);

#endif
