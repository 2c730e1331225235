/* The inside of an iv_device. */
#ifndef IV_CUDA_DEVICE_OPEN_H
#define IV_CUDA_DEVICE_OPEN_H

#include <invar/device.h>

#include "cuda/lane.h"

struct iv_device {
    iv_cuda_device *cuda;
    pthread_mutex_t lock;
    iv_lane *lane; /* for copies of tensors; under the lock */
};

/** Reads a caller's options over the defaults in `options`; NULL leaves these. Errors: INVALID_ARGUMENT. */
iv_status iv_device_read_options(const iv_device_options *given, iv_device_options *options, iv_error *error);

#endif
