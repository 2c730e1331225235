/* Copies between a device and ordinary host memory, by way of two pinned blocks that take turns:
 * while the device copies one, the host copies the other. */
#ifndef IV_CUDA_STAGING_H
#define IV_CUDA_STAGING_H

#include "cuda/memory.h"
#include "cuda/task.h"

typedef struct iv_cuda_staging iv_cuda_staging;

/** Two pinned blocks of `bytes` bytes each (at least 1). One thread at a time; one owner. */
iv_status iv_cuda_staging_create(iv_cuda_device *device, size_t bytes, iv_cuda_staging **staging,
                                 iv_error *error);
/** No stream may still use it, which the two functions below make sure of. NULL is allowed. */
void iv_cuda_staging_destroy(iv_cuda_staging *staging);

/* Both enter the device by themselves and return when the copy is done, everything given to the
 * queue before included, also when they fail. They need a queue that does not record: host memory
 * of the moment has no place in a replay. */

/** Copies `bytes` bytes of host memory to the device. */
iv_status iv_cuda_upload(iv_cuda_staging *staging, const iv_cuda_queue *queue, CUdeviceptr to,
                         const void *from, size_t bytes, iv_error *error);
/** Copies `bytes` bytes of the device to host memory. */
iv_status iv_cuda_download(iv_cuda_staging *staging, const iv_cuda_queue *queue, void *to,
                           CUdeviceptr from, size_t bytes, iv_error *error);

#endif
