/* Queues of runs: a CUDA stream with what a session needs beside it, as kernel/device.h describes it: staging for
 * copies, storage for tensors, recording and measuring. */
#ifndef SB_CUDA_QUEUE_RUN_QUEUE_H
#define SB_CUDA_QUEUE_RUN_QUEUE_H

#include "cuda/driver/memory.h"
#include "cuda/queue/staging.h"
#include "kernel/device.h"

typedef struct sb_cuda_run_queue {
    sb_queue base;       /* first; base.target is `tasks` */
    sb_cuda_queue tasks; /* where tasks go */
    sb_cuda_staging *staging;
    sb_cuda_memory *arrivals;        /* what tasks.arrivals points to */
    struct sb_cuda_block_pool *pool; /* of blocks that storages have given back */
} sb_cuda_run_queue;

/* The functions of CUDA devices, whose handles are sb_cuda_device. */
extern const sb_device_interface sb_cuda_device_interface;

/** See sb_queue_storage, sb_queue_storage_at: run_queue_memory.c. */
sb_status sb_cuda_run_queue_storage(sb_queue *queue, size_t bytes, sb_storage **storage, sb_error *error);
sb_storage *sb_cuda_run_queue_storage_at(sb_queue *queue, const void *data, size_t bytes);
/** Makes the queue's pool. Errors: OUT_OF_MEMORY. */
sb_status sb_cuda_block_pool_create(sb_cuda_run_queue *queue, sb_error *error);
/** Frees what waits; blocks in use are freed when they are given back. NULL is allowed. */
void sb_cuda_block_pool_close(struct sb_cuda_block_pool *pool);

#endif
