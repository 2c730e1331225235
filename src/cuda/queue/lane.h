/* Lanes: a timeline of runs on a device. What a session needs of its device in one place: a stream,
 * staging for copies, storage for tensors, and tasks for calls.
 *
 * One thread at a time, storage excepted: what sb_lane_storage gives may be released by any thread
 * and at any time, also after the lane's other owners have let go of it. */
#ifndef SB_CUDA_QUEUE_LANE_H
#define SB_CUDA_QUEUE_LANE_H

#include "cuda/common/call.h"
#include "cuda/driver/memory.h"
#include "cuda/queue/staging.h"
#include "tensor/tensor.h"

typedef struct sb_lane {
    sb_cuda_device *device;
    sb_cuda_queue queue;
    sb_cuda_staging *staging;
    struct sb_lane_pool *pool; /* of blocks that storages have given back */
    int64_t moves;             /* how often memory that runs use again has moved: its users count here */
} sb_lane;

/** A lane on a device with a stream of its own, or the caller's `stream` (a CUstream of the device's primary context, which
 * outlives the lane). Errors: DEVICE; OUT_OF_MEMORY. */
sb_status sb_lane_create(sb_cuda_device *device, void *stream, sb_lane **lane, sb_error *error);
/** Waits for the stream and frees the lane; storages live on. NULL is allowed. */
void sb_lane_destroy(sb_lane *lane);

/** Storage on the device for `bytes` bytes, aligned to 256, not initialised: from blocks that were
 * given back, of which one serves requests of at least half its size, or freshly allocated. What the
 * lane was told to do with a block before it was given back comes before what it is told now. */
sb_status sb_lane_storage(sb_lane *lane, size_t bytes, sb_storage **storage, sb_error *error);

/** The same with the block at `data`, if that is one that was given back and waits; else NULL. Allocates nothing. */
sb_storage *sb_lane_storage_at(sb_lane *lane, const void *data, size_t bytes);

/* The following are for between sb_cuda_enter and sb_cuda_leave. */

/** Copies the elements of `from`, on the host, to `to`, on the device: same dtype and extents, `to`
 * contiguous. Returns when it is done. */
sb_status sb_lane_upload(sb_lane *lane, const sb_tensor *to, sb_tensor *from, sb_error *error);
/** The other way; `to`, on the host, is contiguous. */
sb_status sb_lane_download(sb_lane *lane, const sb_tensor *to, const sb_tensor *from, sb_error *error);
/** A contiguous tensor on the lane's device with the elements of a host tensor, copied when this returns. The caller releases it. */
sb_status sb_lane_to_device(sb_lane *lane, sb_tensor *source, sb_tensor **tensor, sb_error *error);
/** Copies on the device, strides and broadcasting as they are; `step` is the task's. */
sb_status sb_lane_copy(sb_lane *lane, int step, const sb_tensor *to, const sb_tensor *from, sb_error *error);
/** Waits until everything given to the lane is done. */
sb_status sb_lane_wait(sb_lane *lane, sb_error *error);

/** Whether the tensor's elements lie on a device. */
static inline bool sb_tensor_on_device(const sb_tensor *tensor) {
    return tensor->storage->device != NULL;
}

#endif
