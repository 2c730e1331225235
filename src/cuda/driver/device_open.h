/* Devices of the public interface that are CUDA's. */
#ifndef SB_CUDA_DRIVER_DEVICE_OPEN_H
#define SB_CUDA_DRIVER_DEVICE_OPEN_H

#include "cuda/driver/device.h"
#include "kernel/device.h"

/** Opens device `index` of the driver in the file `library`: fills *device but for its queue; its handle is an
 * sb_cuda_device. Errors: UNSUPPORTED when there is no driver, it is too old, or there are no kernels for the
 * device; DEVICE; OUT_OF_MEMORY. */
sb_status sb_cuda_open(const char *library, int index, sb_device *device, sb_error *error);

/** Makes *device stand for an open device, of which it takes the reference. */
void sb_cuda_present(sb_cuda_device *opened, sb_device *device);

/** The device that a caller's handle stands for. */
static inline sb_cuda_device *sb_cuda_device_behind(const sb_device *device) {
    return device->handle;
}

#endif
