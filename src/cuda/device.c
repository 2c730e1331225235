#include "cuda/device.h"

#include <string.h>

#include "base/allocation.h"
#include "cuda/kernel.h"

iv_status iv_cuda_check(iv_cuda_device *device, CUresult result, const char *call,
                        iv_error *error) {
    if (result == CUDA_SUCCESS)
        return IV_OK;
    iv_error unwanted;
    error = error != NULL ? error : &unwanted;
    iv_cuda_fail(device->driver, result, call, error);
    iv_status status =
        iv_fail_within(error, error->status, "device %d (%s): ", device->index, device->name);
    if (iv_cuda_is_sticky(result)) {
        pthread_mutex_lock(&device->lost_lock);
        if (device->lost.status == IV_OK)
            device->lost = *error;
        pthread_mutex_unlock(&device->lost_lock);
        atomic_store(&device->is_lost, true);
    }
    return status;
}

static iv_status check_not_lost(iv_cuda_device *device, iv_error *error) {
    if (!atomic_load(&device->is_lost))
        return IV_OK;
    pthread_mutex_lock(&device->lost_lock);
    iv_status status =
        iv_fail(error, device->lost.status, "lost earlier: %.1900s", device->lost.message);
    pthread_mutex_unlock(&device->lost_lock);
    return status;
}

iv_status iv_cuda_enter(iv_cuda_device *device, iv_error *error) {
    IV_TRY(check_not_lost(device, error));
    return IV_CUDA_DO(device, error, cuCtxPushCurrent, device->context);
}

iv_status iv_cuda_leave(iv_cuda_device *device, iv_status status, iv_error *error) {
    CUcontext popped;
    CUresult result = device->driver->cuCtxPopCurrent(&popped);
    return status != IV_OK ? status : iv_cuda_check(device, result, "cuCtxPopCurrent", error);
}

bool iv_cuda_enter_to_release(iv_cuda_device *device) {
    return device->driver->cuCtxPushCurrent(device->context) == CUDA_SUCCESS;
}

void iv_cuda_leave_released(iv_cuda_device *device, bool entered) {
    CUcontext popped;
    if (entered)
        device->driver->cuCtxPopCurrent(&popped);
}

static iv_status read_attributes(iv_cuda_device *device, iv_error *error) {
    int major = 0, minor = 0;
    IV_TRY(IV_CUDA_DO(device, error, cuDeviceGetName, device->name, IV_CUDA_NAME_BYTES,
                      device->handle));
    device->name[IV_CUDA_NAME_BYTES - 1] = '\0';
    const struct {
        int *value;
        CUdevice_attribute attribute;
    } wanted[] = {
        {&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {&device->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {&device->shared_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        IV_TRY(IV_CUDA_DO(device, error, cuDeviceGetAttribute, wanted[i].value, wanted[i].attribute,
                          device->handle));
    device->compute = 10 * major + minor;
    return IV_OK;
}

iv_status iv_cuda_device_open(const iv_cuda_driver *driver, int index, const iv_cuda_images *images,
                              iv_cuda_device **device, iv_error *error) {
    if (index < 0 || index >= driver->device_count)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "there is no CUDA device %d: the driver knows %d, numbered from 0", index,
                       driver->device_count);
    iv_cuda_device *opened = iv_allocate_array(1, sizeof *opened);
    if (opened == NULL)
        return iv_fail_memory(error, sizeof *opened);
    opened->driver = driver;
    opened->images = images != NULL ? images : &iv_cuda_embedded_images;
    opened->index = index;
    atomic_init(&opened->references, 1);
    strcpy(opened->name, "name unknown");
    pthread_mutex_init(&opened->kernel_lock, NULL);
    pthread_mutex_init(&opened->lost_lock, NULL);
    iv_status status = IV_CUDA_DO(opened, error, cuDeviceGet, &opened->handle, index);
    if (status == IV_OK)
        status = read_attributes(opened, error);
    if (status == IV_OK)
        status =
            IV_CUDA_DO(opened, error, cuDevicePrimaryCtxRetain, &opened->context, opened->handle);
    if (status != IV_OK) {
        opened->context = NULL;
        iv_cuda_device_release(opened);
        return status;
    }
    *device = opened;
    return IV_OK;
}

iv_cuda_device *iv_cuda_device_retain(iv_cuda_device *device) {
    atomic_fetch_add(&device->references, 1);
    return device;
}

void iv_cuda_device_release(iv_cuda_device *device) {
    if (device == NULL || atomic_fetch_sub(&device->references, 1) != 1)
        return;
    iv_cuda_unload_modules(device);
    if (device->context != NULL)
        device->driver->cuDevicePrimaryCtxRelease(device->handle);
    pthread_mutex_destroy(&device->lost_lock);
    pthread_mutex_destroy(&device->kernel_lock);
    iv_free(device);
}

void iv_cuda_device_count(iv_cuda_device *device, const iv_cuda_counters *more) {
#define ADD(name)                                                                                  \
    if (more->name != 0)                                                                           \
        IV_CUDA_COUNT(device, name, (long long)more->name);
    IV_CUDA_COUNTERS(ADD)
#undef ADD
}

iv_cuda_counters iv_cuda_device_counters(iv_cuda_device *device) {
#define COUNTER(name) .name = atomic_load(&device->counters.name),
    return (iv_cuda_counters){IV_CUDA_COUNTERS(COUNTER)};
#undef COUNTER
}
