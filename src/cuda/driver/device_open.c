#include "cuda/driver/device_open.h"

#include "cuda/queue/run_queue.h"

static sb_status check_kernels(const sb_cuda_device *device, sb_error *error) {
    char why[SB_CUDA_WHY_BYTES];
    if (sb_cuda_choose_image(device->images, NULL, device->compute, device->driver->version, why) != NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "device %d, %s: %s", device->index, device->name, why);
}

void sb_cuda_present(sb_cuda_device *opened, sb_device *device) {
    device->interface = &sb_cuda_device_interface;
    device->handle = opened;
    device->name = opened->name;
    device->index = opened->index;
}

sb_status sb_cuda_open(const char *library, int index, sb_device *device, sb_error *error) {
    const sb_cuda_driver *driver = NULL;
    sb_cuda_device *opened = NULL;
    SB_TRY(sb_cuda_driver_open(library, &driver, NULL, NULL, error));
    SB_TRY(sb_cuda_device_open(driver, index, NULL, &opened, error));
    sb_status status = check_kernels(opened, error);
    if (status != SB_OK) {
        sb_cuda_device_release(opened);
        return status;
    }
    sb_cuda_present(opened, device);
    return SB_OK;
}
