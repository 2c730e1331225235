/* Devices in use, and tensors on them. See <invar/device.h>. */
#include "cuda/device_open.h"

#include <string.h>

#include "base/allocation.h"
#include "base/configuration.h"

static iv_status check_kernels(const iv_cuda_device *device, iv_error *error) {
    char why[IV_CUDA_WHY_BYTES];
    if (iv_cuda_choose_image(device->images, NULL, device->compute, device->driver->version, why) != NULL)
        return IV_OK;
    return iv_fail(error, IV_ERROR_UNSUPPORTED, "device %d, %s: %s", device->index, device->name, why);
}

static iv_status fill_device(iv_device *device, const char *library, int index, iv_error *error) {
    const iv_cuda_driver *driver = NULL;
    IV_TRY(iv_cuda_driver_open(library, &driver, NULL, NULL, error));
    IV_TRY(iv_cuda_device_open(driver, index, NULL, &device->cuda, error));
    IV_TRY(check_kernels(device->cuda, error));
    return iv_lane_create(device->cuda, NULL, &device->lane, error);
}

iv_status iv_device_open(const iv_device_options *given, int index, iv_device **device, iv_error *error) {
    iv_device_options options = IV_DEVICE_OPTIONS_DEFAULT;
    IV_TRY(iv_device_read_options(given, &options, error));
    iv_device *fresh = iv_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    pthread_mutex_init(&fresh->lock, NULL);
    const char *library =
        options.cuda_driver != NULL ? options.cuda_driver : iv_configuration_from_environment().cuda_driver;
    iv_status status = fill_device(fresh, library, index, error);
    if (status != IV_OK) {
        iv_device_release(fresh);
        return status;
    }
    *device = fresh;
    return IV_OK;
}

void iv_device_release(iv_device *device) {
    if (device == NULL)
        return;
    iv_lane_destroy(device->lane);
    iv_cuda_device_release(device->cuda);
    pthread_mutex_destroy(&device->lock);
    iv_free(device);
}

const char *iv_device_name(const iv_device *device) {
    return device->cuda->name;
}

int iv_device_index(const iv_device *device) {
    return device->cuda->index;
}

bool iv_tensor_is_on_device(const iv_tensor *tensor) {
    return iv_tensor_on_device(tensor);
}

iv_status iv_tensor_to_device(iv_device *device, iv_tensor *tensor, iv_tensor **copy, iv_error *error) {
    if (tensor->dtype == IV_STRING)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "text is not kept on devices");
    if (iv_tensor_on_device(tensor))
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "the tensor already lies on a device");
    pthread_mutex_lock(&device->lock);
    iv_status status = iv_cuda_enter(device->cuda, error);
    if (status == IV_OK)
        status = iv_cuda_leave(device->cuda, iv_lane_to_device(device->lane, tensor, copy, error), error);
    pthread_mutex_unlock(&device->lock);
    return status;
}

static iv_status download(iv_device *device, const iv_tensor *tensor, iv_tensor **copy, iv_error *error) {
    IV_TRY(iv_tensor_create_uninitialised(tensor->dtype, tensor->rank, tensor->dims, copy, error));
    iv_status status = iv_cuda_enter(device->cuda, error);
    if (status == IV_OK)
        status = iv_cuda_leave(device->cuda, iv_lane_download(device->lane, *copy, tensor, error), error);
    if (status != IV_OK) {
        iv_tensor_release(*copy);
        *copy = NULL;
    }
    return status;
}

iv_status iv_tensor_to_host(iv_device *device, iv_tensor *tensor, iv_tensor **copy, iv_error *error) {
    if (!iv_tensor_on_device(tensor))
        return iv_tensor_contiguous(tensor, copy, error);
    if (tensor->storage->device != device->cuda)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "the tensor lies on another device");
    pthread_mutex_lock(&device->lock);
    iv_status status = download(device, tensor, copy, error);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void iv_device_count(const iv_device *device, iv_device_counters *counters) {
    iv_cuda_counters all = iv_cuda_device_counters(device->cuda);
    *counters = (iv_device_counters){
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
