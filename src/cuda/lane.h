/* Lanes: a timeline of runs on a device. What a session needs of its device in one place: a stream,
 * staging for copies, storage for tensors, and tasks for calls.
 *
 * One thread at a time, storage excepted: what iv_lane_storage gives may be released by any thread
 * and at any time, also after the lane's other owners have let go of it. */
#ifndef IV_CUDA_LANE_H
#define IV_CUDA_LANE_H

#include "cuda/call.h"
#include "cuda/memory.h"
#include "cuda/staging.h"
#include "tensor/tensor.h"

typedef struct iv_lane {
    iv_cuda_device *device;
    iv_cuda_queue queue;
    iv_cuda_staging *staging;
    struct iv_lane_pool *pool; /* of blocks that storages have given back */
    int64_t moves;             /* how often memory that runs use again has moved: its users count here */
} iv_lane;

/** A lane on a device with a stream of its own, or the caller's `stream` (a CUstream of the device's primary context, which
 * outlives the lane). Errors: DEVICE; OUT_OF_MEMORY. */
iv_status iv_lane_create(iv_cuda_device *device, void *stream, iv_lane **lane, iv_error *error);
/** Waits for the stream and frees the lane; storages live on. NULL is allowed. */
void iv_lane_destroy(iv_lane *lane);

/** Storage on the device for `bytes` bytes, aligned to 256, not initialised: from blocks that were
 * given back, of which one serves requests of at least half its size, or freshly allocated. What the
 * lane was told to do with a block before it was given back comes before what it is told now. */
iv_status iv_lane_storage(iv_lane *lane, size_t bytes, iv_storage **storage, iv_error *error);

/** The same with the block at `data`, if that is one that was given back and waits; else NULL. Allocates nothing. */
iv_storage *iv_lane_storage_at(iv_lane *lane, const void *data, size_t bytes);

/* The following are for between iv_cuda_enter and iv_cuda_leave. */

/** Copies the elements of `from`, on the host, to `to`, on the device: same dtype and extents, `to`
 * contiguous. Returns when it is done. */
iv_status iv_lane_upload(iv_lane *lane, const iv_tensor *to, iv_tensor *from, iv_error *error);
/** The other way; `to`, on the host, is contiguous. */
iv_status iv_lane_download(iv_lane *lane, const iv_tensor *to, const iv_tensor *from, iv_error *error);
/** A contiguous tensor on the lane's device with the elements of a host tensor, copied when this returns. The caller releases it. */
iv_status iv_lane_to_device(iv_lane *lane, iv_tensor *source, iv_tensor **tensor, iv_error *error);
/** Copies on the device, strides and broadcasting as they are; `step` is the task's. */
iv_status iv_lane_copy(iv_lane *lane, int step, const iv_tensor *to, const iv_tensor *from,
                       iv_error *error);
/** Waits until everything given to the lane is done. */
iv_status iv_lane_wait(iv_lane *lane, iv_error *error);

/** Whether the tensor's elements lie on a device. */
static inline bool iv_tensor_on_device(const iv_tensor *tensor) {
    return tensor->storage->device != NULL;
}

#endif
