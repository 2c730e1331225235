/* Memory of a device, and memory of the host that a device can copy from and to without a detour. */
#ifndef SB_CUDA_DRIVER_MEMORY_H
#define SB_CUDA_DRIVER_MEMORY_H

#include "cuda/driver/device.h"

/* A block of device memory. Shared; keeps its device alive. */
typedef struct sb_cuda_memory {
    sb_cuda_device *device;
    atomic_int references;
    CUdeviceptr address; /* aligned to 256 bytes at least */
    size_t bytes;
} sb_cuda_memory;

/** Allocates `bytes` bytes (0 gives a block of its own too), not initialised. The caller owns one
 * reference. Not while this thread captures a stream. Errors: OUT_OF_MEMORY, with what was wanted
 * and what is free; DEVICE. */
sb_status sb_cuda_memory_create(sb_cuda_device *device, size_t bytes, sb_cuda_memory **memory, sb_error *error);
sb_cuda_memory *sb_cuda_memory_retain(sb_cuda_memory *memory);
/** Drops a reference; the last one frees the block, and waits for what the device still does with
 * it. NULL is allowed. */
void sb_cuda_memory_release(sb_cuda_memory *memory);

/* A block of host memory that stays where it is (pinned), so that copies can run beside the host's own work. */
typedef struct sb_cuda_pinned {
    sb_cuda_device *device;
    void *data;
    size_t bytes;
} sb_cuda_pinned;

/** As sb_cuda_memory_create, for pinned memory with one owner. */
sb_status sb_cuda_pinned_create(sb_cuda_device *device, size_t bytes, sb_cuda_pinned **pinned, sb_error *error);
/** Frees the block. No stream may still use it. NULL is allowed. */
void sb_cuda_pinned_destroy(sb_cuda_pinned *pinned);

/** The index of the device in whose memory an address lies, in *index; -1 when it is no memory of a device. One call of
 * the driver, which needs no context, answers for memory that it does not know as well, and is allowed while a stream
 * is captured. Errors: DEVICE. */
sb_status sb_cuda_device_of(sb_cuda_device *device, const void *address, int *index, sb_error *error);

#endif
