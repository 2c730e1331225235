/* Tasks: what a device is told to do. Kernels, copies and fills all go through one function,
 * sb_cuda_launch, which carries a task out, records it, counts it and measures it. Nothing else
 * gives work to a stream, so a recorded list is complete by construction. */
#ifndef SB_CUDA_QUEUE_TASK_H
#define SB_CUDA_QUEUE_TASK_H

#include "cuda/driver/kernel.h"
#include "cuda/driver/memory.h"
#include "cuda/queue/stream.h"

typedef enum sb_cuda_task_kind {
    SB_CUDA_KERNEL,
    SB_CUDA_COPY_TO_DEVICE, /* from pinned host memory */
    SB_CUDA_COPY_TO_HOST,   /* to pinned host memory */
    SB_CUDA_COPY_ON_DEVICE,
    SB_CUDA_FILL /* every byte with one value */
} sb_cuda_task_kind;

/* Bytes that a task reads or writes. Addresses of the device and of pinned host memory come from one space, so a range
 * says which it is by itself. A strided view counts from its first to its last byte. */
typedef struct sb_cuda_range {
    CUdeviceptr address;
    size_t bytes; /* 0 for a range that does not matter */
    bool written; /* else only read */
} sb_cuda_range;

/* What a kernel may read before those ahead of it have ended, where no kernel before it writes it: `ranges`, as a graph knows, which are
 * among those that the task touches. It is told so by SB_CUDA_SETTLED in the 32-bit number at this place of its parameters, which is never
 * their beginning. Place 0: there is nothing. */
#define SB_CUDA_SETTLED (-1)
#define SB_CUDA_SETTLED_RANGES 5
typedef struct sb_cuda_settled {
    size_t place;
    int count;
    sb_cuda_range ranges[SB_CUDA_SETTLED_RANGES];
    bool comes_early; /* a task that is `apart` is not where it is settled */
} sb_cuda_settled;

/* Makes a task of two, of which `ahead` comes right before `own`: src/cuda/queue/join.h. */
typedef struct sb_cuda_joined sb_cuda_joined;
typedef struct sb_cuda_kernel_task sb_cuda_kernel_task;
typedef sb_status (*sb_cuda_join)(sb_cuda_device *device, const sb_cuda_kernel_task *ahead,
                                  const sb_cuda_kernel_task *own, sb_cuda_joined *joined, sb_error *error);

struct sb_cuda_kernel_task {
    const sb_cuda_kernel *kernel;
    unsigned grid[3], block[3]; /* each at least 1 */
    unsigned shared_bytes;      /* dynamic */
    bool apart;                 /* it is placed when those ahead have ended, dependent launch or not */
    sb_cuda_settled settled;    /* for graphs, which know what comes before it … */
    sb_cuda_join join;          /* … and may let it do what the kernel right ahead does, too; NULL: never */
    const void *parameters;     /* kernel->parameter_bytes bytes, copied by the launch */
    int range_count;            /* every range of memory that the kernel touches */
    const sb_cuda_range *ranges;
};

/* Addresses of the device, or of pinned host memory as the kind says. */
typedef struct sb_cuda_copy_task {
    CUdeviceptr to, from;
    size_t bytes; /* 0 does nothing, and is not a task */
} sb_cuda_copy_task;

typedef struct sb_cuda_fill_task {
    CUdeviceptr to;
    size_t bytes; /* 0 does nothing, and is not a task */
    unsigned char value;
} sb_cuda_fill_task;

typedef struct sb_cuda_task {
    sb_cuda_task_kind kind;
    int step; /* of the plan, for traces and messages; -1 for none */
    union {
        sb_cuda_kernel_task kernel;
        sb_cuda_copy_task copy;
        sb_cuda_fill_task fill;
    };
} sb_cuda_task;

typedef struct sb_cuda_task_list sb_cuda_task_list;
typedef struct sb_cuda_trace sb_cuda_trace;

/* Where tasks go. A plain struct of its user's; one thread at a time. */
typedef struct sb_cuda_queue {
    sb_cuda_stream *stream;
    sb_cuda_task_list *record; /* gets a copy of every task; NULL for none */
    sb_cuda_trace *trace;      /* measures every task; NULL for none, and while the stream is captured */
    /* Kernels are launched before those ahead of them have ended: see kernels/kernel.cuh.
     * Devices before 9.0 take no notice. */
    bool dependent_launch;
    bool only_records; /* tasks go into `record` alone */
    /* SB_CUDA_ARRIVALS words of the device that are 0 whenever no task is underway, NULL for none: blocks of one launch count
     * themselves there, and the last one sets its word back. A task that does so names all of them as written. */
    uint32_t *arrivals;
} sb_cuda_queue;

#define SB_CUDA_ARRIVALS 4096

/** Makes such words, to which `queue` then points: the caller owns one reference to the memory, and keeps it as long as the queue. The
 * queue is entered, and not captured. Errors: OUT_OF_MEMORY, DEVICE. */
sb_status sb_cuda_arrivals_create(sb_cuda_queue *queue, sb_cuda_memory **memory, sb_error *error);

/** Gives a task to the queue's stream, between sb_cuda_enter and sb_cuda_leave. Returns at once;
 * what the task does wrong is reported by whatever waits for the stream. A task that fails here is
 * not recorded. Errors: DEVICE; OUT_OF_MEMORY; INTERNAL when the task is not well formed. */
sb_status sb_cuda_launch(const sb_cuda_queue *queue, const sb_cuda_task *task, sb_error *error);

/** The ranges of a task of any kind: points *ranges at the kernel's own, or fills `room`. Returns how many. */
int sb_cuda_task_ranges(const sb_cuda_task *task, sb_cuda_range room[2], const sb_cuda_range **ranges);

/** Whether two tasks touch a byte in common that at least one of them writes, so that their order matters. */
bool sb_cuda_tasks_conflict(const sb_cuda_task *one, const sb_cuda_task *other);

/** Adds the task to the counters. */
void sb_cuda_task_count(const sb_cuda_task *task, sb_cuda_counters *counters);

/** "copy to device", or the kernel's name. Never NULL. */
const char *sb_cuda_task_name(const sb_cuda_task *task);

/* ---- recorded tasks ---- */

/** An empty list. The caller destroys it. */
sb_status sb_cuda_task_list_create(sb_cuda_task_list **list, sb_error *error);
/** NULL is allowed. */
void sb_cuda_task_list_destroy(sb_cuda_task_list *list);
/** Forgets all tasks and keeps the memory. */
void sb_cuda_task_list_clear(sb_cuda_task_list *list);
int sb_cuda_task_list_count(const sb_cuda_task_list *list);
/** Task `index`, with its parameters and ranges in the list's own memory: valid until the list changes. */
sb_cuda_task sb_cuda_task_list_at(const sb_cuda_task_list *list, int index);
/** Appends a copy. On failure the list is unchanged. */
sb_status sb_cuda_task_list_append(sb_cuda_task_list *list, const sb_cuda_task *task, sb_error *error);
/** Takes back the task appended last. */
void sb_cuda_task_list_drop_last(sb_cuda_task_list *list);

#endif
