/* Copies between a device and ordinary host memory, by way of pinned blocks: while the device copies one,
 * the host copies another. */
#ifndef SB_CUDA_QUEUE_STAGING_H
#define SB_CUDA_QUEUE_STAGING_H

#include "cuda/driver/memory.h"
#include "cuda/queue/task.h"

typedef struct sb_cuda_staging sb_cuda_staging;

/* The most pinned blocks that copies on their way to the device may take; there are two at first. */
#define SB_CUDA_MOST_STAGING_BLOCKS 16

/** Two pinned blocks of `bytes` bytes each (at least 1). One thread at a time, and one stream; one owner. */
sb_status sb_cuda_staging_create(sb_cuda_device *device, size_t bytes, sb_cuda_staging **staging, sb_error *error);
/** The stream must have done what the functions below gave to it. NULL is allowed. */
void sb_cuda_staging_destroy(sb_cuda_staging *staging);

/* All three enter the device by themselves. They need a queue that does not record: host memory of the moment has no
 * place in a replay. When one fails, what it gave to the queue is done. */

/** Copies `bytes` bytes of host memory to the device in the order of the queue: they have been read when it returns,
 * and the device may not have come to the copy yet. Waits for the device only where more than
 * SB_CUDA_MOST_STAGING_BLOCKS blocks would be on their way, or there is no pinned memory for another. */
sb_status sb_cuda_upload_later(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const void *from,
                               size_t bytes, sb_error *error);
/** The same, and waits until the copy is done, everything given to the queue before included. */
sb_status sb_cuda_upload(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const void *from,
                         size_t bytes, sb_error *error);
/** Copies `bytes` bytes of the device to host memory, and waits likewise. */
sb_status sb_cuda_download(sb_cuda_staging *staging, const sb_cuda_queue *queue, void *to, CUdeviceptr from,
                           size_t bytes, sb_error *error);

#endif
