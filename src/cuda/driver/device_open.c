/* Devices in use, and tensors on them. See <samebit/device.h>. */
#include "cuda/driver/device_open.h"

#include <string.h>

#include "base/allocation.h"
#include "base/configuration.h"

static sb_status check_kernels(const sb_cuda_device *device, sb_error *error) {
    char why[SB_CUDA_WHY_BYTES];
    if (sb_cuda_choose_image(device->images, NULL, device->compute, device->driver->version, why) != NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_UNSUPPORTED, "device %d, %s: %s", device->index, device->name, why);
}

static sb_status fill_device(sb_device *device, const char *library, int index, sb_error *error) {
    const sb_cuda_driver *driver = NULL;
    SB_TRY(sb_cuda_driver_open(library, &driver, NULL, NULL, error));
    SB_TRY(sb_cuda_device_open(driver, index, NULL, &device->cuda, error));
    SB_TRY(check_kernels(device->cuda, error));
    return sb_lane_create(device->cuda, NULL, &device->lane, error);
}

sb_status sb_device_open(const sb_device_options *given, int index, sb_device **device, sb_error *error) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    SB_TRY(sb_device_read_options(given, &options, error));
    sb_device *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    pthread_mutex_init(&fresh->lock, NULL);
    const char *library =
        options.cuda_driver != NULL ? options.cuda_driver : sb_configuration_from_environment().cuda_driver;
    sb_status status = fill_device(fresh, library, index, error);
    if (status != SB_OK) {
        sb_device_release(fresh);
        return status;
    }
    *device = fresh;
    return SB_OK;
}

void sb_device_release(sb_device *device) {
    if (device == NULL)
        return;
    sb_lane_destroy(device->lane);
    sb_cuda_device_release(device->cuda);
    pthread_mutex_destroy(&device->lock);
    sb_free(device);
}

const char *sb_device_name(const sb_device *device) {
    return device->cuda->name;
}

int sb_device_index(const sb_device *device) {
    return device->cuda->index;
}

bool sb_tensor_is_on_device(const sb_tensor *tensor) {
    return sb_tensor_on_device(tensor);
}

sb_status sb_tensor_to_device(sb_device *device, sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    if (tensor->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "text is not kept on devices");
    if (sb_tensor_on_device(tensor))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the tensor already lies on a device");
    pthread_mutex_lock(&device->lock);
    sb_status status = sb_cuda_enter(device->cuda, error);
    if (status == SB_OK)
        status = sb_cuda_leave(device->cuda, sb_lane_to_device(device->lane, tensor, copy, error), error);
    pthread_mutex_unlock(&device->lock);
    return status;
}

static sb_status download(sb_device *device, const sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    SB_TRY(sb_tensor_create_uninitialised(tensor->dtype, tensor->rank, tensor->dims, copy, error));
    sb_status status = sb_cuda_enter(device->cuda, error);
    if (status == SB_OK)
        status = sb_cuda_leave(device->cuda, sb_lane_download(device->lane, *copy, tensor, error), error);
    if (status != SB_OK) {
        sb_tensor_release(*copy);
        *copy = NULL;
    }
    return status;
}

sb_status sb_tensor_to_host(sb_device *device, sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    if (!sb_tensor_on_device(tensor))
        return sb_tensor_contiguous(tensor, copy, error);
    if (tensor->storage->device != device->cuda)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the tensor lies on another device");
    pthread_mutex_lock(&device->lock);
    sb_status status = download(device, tensor, copy, error);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void sb_device_count(const sb_device *device, sb_device_counters *counters) {
    sb_cuda_counters all = sb_cuda_device_counters(device->cuda);
    *counters = (sb_device_counters){
        .device_allocations = all.device_allocations,
        .device_bytes = all.device_bytes,
        .copies_to_device = all.copies_to_device,
        .bytes_to_device = all.bytes_to_device,
        .copies_to_host = all.copies_to_host,
        .bytes_to_host = all.bytes_to_host,
        .copies_on_device = all.copies_on_device,
        .kernels = all.kernels,
        .graph_launches = all.graph_launches,
    };
}
