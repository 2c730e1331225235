/* Copies between a device and ordinary host memory, by way of two pinned blocks that take turns:
 * while the device copies one, the host copies the other. */
#ifndef SB_CUDA_QUEUE_STAGING_H
#define SB_CUDA_QUEUE_STAGING_H

#include "cuda/driver/memory.h"
#include "cuda/queue/task.h"

typedef struct sb_cuda_staging sb_cuda_staging;

/** Two pinned blocks of `bytes` bytes each (at least 1). One thread at a time; one owner. */
sb_status sb_cuda_staging_create(sb_cuda_device *device, size_t bytes, sb_cuda_staging **staging, sb_error *error);
/** No stream may still use it, which the two functions below make sure of. NULL is allowed. */
void sb_cuda_staging_destroy(sb_cuda_staging *staging);

/* Both enter the device by themselves and return when the copy is done, everything given to the
 * queue before included, also when they fail. They need a queue that does not record: host memory
 * of the moment has no place in a replay. */

/** Copies `bytes` bytes of host memory to the device. */
sb_status sb_cuda_upload(sb_cuda_staging *staging, const sb_cuda_queue *queue, CUdeviceptr to, const void *from,
                         size_t bytes, sb_error *error);
/** Copies `bytes` bytes of the device to host memory. */
sb_status sb_cuda_download(sb_cuda_staging *staging, const sb_cuda_queue *queue, void *to, CUdeviceptr from,
                           size_t bytes, sb_error *error);

#endif
