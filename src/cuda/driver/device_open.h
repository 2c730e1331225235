/* The inside of an sb_device. */
#ifndef SB_CUDA_DRIVER_DEVICE_OPEN_H
#define SB_CUDA_DRIVER_DEVICE_OPEN_H

#include <samebit/device.h>

#include "cuda/queue/lane.h"

struct sb_device {
    sb_cuda_device *cuda;
    pthread_mutex_t lock;
    sb_lane *lane; /* for copies of tensors; under the lock */
};

/** Reads a caller's options over the defaults in `options`; NULL leaves these. Errors: INVALID_ARGUMENT. */
sb_status sb_device_read_options(const sb_device_options *given, sb_device_options *options, sb_error *error);

#endif
