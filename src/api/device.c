/* Devices in use, and tensors on them. See <samebit/device.h>. */
#include <string.h>

#include "api/device_options.h"
#include "base/allocation.h"
#include "cuda/attention/attention.h"
#include "cuda/driver/device_open.h"
#include "kernel/device.h"

sb_status sb_device_read_options(const sb_device_options *given, sb_device_options *options, sb_error *error) {
    if (given != NULL) {
        if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "sb_device_options has %zu bytes where this library knows %zu: start from "
                           "SB_DEVICE_OPTIONS_DEFAULT",
                           given->struct_bytes, sizeof *given);
        memcpy(options, given, given->struct_bytes);
    }
    if (options->cuda_driver == NULL)
        options->cuda_driver = sb_configuration_from_environment().cuda_driver;
    return SB_OK;
}

sb_status sb_device_open(const sb_device_options *given, int index, sb_device **device, sb_error *error) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    SB_TRY(sb_device_read_options(given, &options, error));
    sb_device *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    pthread_mutex_init(&fresh->lock, NULL);
    sb_status status = sb_cuda_open(options.cuda_driver, index, fresh, error);
    const char *attention = sb_configuration_from_environment().cuda_attention;
    if (status == SB_OK && attention != NULL)
        status = sb_cuda_attention_choose_by_name(sb_cuda_device_behind(fresh), attention, error);
    if (status == SB_OK)
        status = sb_queue_create(fresh, NULL, false, &fresh->queue, error);
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
    sb_queue_destroy(device->queue);
    if (device->handle != NULL)
        device->interface->release(device->handle);
    pthread_mutex_destroy(&device->lock);
    sb_free(device);
}

const char *sb_device_name(const sb_device *device) {
    return device->name;
}

int sb_device_index(const sb_device *device) {
    return device->index;
}

void sb_device_count(const sb_device *device, sb_device_counters *counters) {
    device->interface->count(device->handle, counters);
}

sb_status sb_device_wait(sb_device *device, void *stream, sb_error *error) {
    return device->interface->wait_for_stream(device->handle, stream, error);
}

bool sb_tensor_is_on_device(const sb_tensor *tensor) {
    return sb_tensor_on_device(tensor);
}

/* Waits, since whatever queue may use the copy. */
static sb_status upload(sb_device *device, sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    SB_TRY(sb_queue_to_device(device->queue, tensor, copy, error));
    sb_status status = sb_queue_wait(device->queue, error);
    if (status != SB_OK) {
        sb_tensor_release(*copy);
        *copy = NULL;
    }
    return status;
}

sb_status sb_tensor_to_device(sb_device *device, sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    if (tensor->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "text is not kept on devices");
    if (sb_tensor_on_device(tensor))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the tensor already lies on a device");
    pthread_mutex_lock(&device->lock);
    sb_status status = sb_queue_enter(device->queue, error);
    if (status == SB_OK)
        status = sb_queue_leave(device->queue, upload(device, tensor, copy, error), error);
    pthread_mutex_unlock(&device->lock);
    return status;
}

static sb_status download(sb_device *device, const sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    SB_TRY(sb_tensor_create_uninitialised(tensor->dtype, tensor->rank, tensor->dims, copy, error));
    sb_status status = sb_queue_enter(device->queue, error);
    if (status == SB_OK)
        status = sb_queue_leave(device->queue, sb_queue_download(device->queue, *copy, tensor, error), error);
    if (status != SB_OK) {
        sb_tensor_release(*copy);
        *copy = NULL;
    }
    return status;
}

sb_status sb_tensor_to_host(sb_device *device, sb_tensor *tensor, sb_tensor **copy, sb_error *error) {
    if (!sb_tensor_on_device(tensor))
        return sb_tensor_contiguous(tensor, copy, error);
    if (tensor->storage->device != device->handle)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the tensor lies on another device");
    pthread_mutex_lock(&device->lock);
    sb_status status = download(device, tensor, copy, error);
    pthread_mutex_unlock(&device->lock);
    return status;
}
