/* The kernels' own sources on the host: for the fake driver to run, so that what they compute can
 * be held to the CPU's loops without a GPU. */
#ifndef HOST_KERNELS_H
#define HOST_KERNELS_H

#include "cuda/driver/device_open.h"
#include "cuda/driver/image.h"
#include "fake_cuda.h"

#pragma GCC visibility push(default) /* of what the library host_kernels lends */

/* All modules of src/cuda, with whatever kernels the host has. */
extern const sb_cuda_images host_images;

/** Tells the fake about all kernels of src/cuda. */
void define_host_kernels(const fake_cuda_control *fake);

#pragma GCC visibility pop

/* Opens a device as sb_device_open does, with a driver and images of the test's own, and without a queue. */
static inline sb_status open_device_handle(const sb_cuda_driver *driver, int index, const sb_cuda_images *images,
                                           sb_device *device, sb_error *error) {
    sb_cuda_device *opened;
    SB_TRY(sb_cuda_device_open(driver, index, images, &opened, error));
    sb_cuda_present(opened, device);
    return SB_OK;
}

#endif
